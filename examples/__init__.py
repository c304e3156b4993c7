"""Runnable examples of robot_memory."""
