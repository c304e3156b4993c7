"""Start the memory: `ros2 launch robot_memory memory.launch.py namespace:=robot1 params_file:=/path/to/memory.yaml`."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare


def generate_launch_description() -> LaunchDescription:
    """Return the node with its arguments; it brings itself up unless autostart is false."""
    shipped = PathJoinSubstitution([FindPackageShare("robot_memory"), "config", "memory.yaml"])
    arguments = [
        DeclareLaunchArgument("params_file", default_value=shipped, description="Parameter file of the node."),
        DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node and its database."),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="Take the time from /clock."),
        DeclareLaunchArgument("autostart", default_value="true", description="Configure and activate at start."),
        DeclareLaunchArgument("log_level", default_value="info", description="debug, info, warn, error or fatal."),
    ]
    node = LifecycleNode(
        package="robot_memory",
        executable="memory_node",
        name="memory",
        namespace=LaunchConfiguration("namespace"),
        # A file that is missing: launch_ros starts the node without it; --params-file makes the node stop and say so.
        arguments=[
            "--ros-args",
            "--params-file",
            LaunchConfiguration("params_file"),
            "--log-level",
            LaunchConfiguration("log_level"),
        ],
        parameters=[
            {
                "use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool),
                "autostart": ParameterValue(LaunchConfiguration("autostart"), value_type=bool),
            },
        ],
        output="screen",
        emulate_tty=True,
    )
    return LaunchDescription([*arguments, node])
