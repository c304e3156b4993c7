"""What RViz shows: entities as labelled spheres, gists as flat discs, the path of the last minutes as a line."""

from __future__ import annotations

import colorsys
import hashlib
import itertools
from collections.abc import Sequence

from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from memory_node.graph import Entity, Gist, Pose, Position
from memory_node.ros.conversion import time_message

MOST = 200
"""Entities and gists shown, each."""
_PATH_POINTS = 500
_SPHERE = 0.25
_TEXT = 0.2
_LINE = 0.05


def type_color(entity_type: str, alpha: float = 0.9) -> ColorRGBA:
    """Return a colour that is always the same for a type."""
    hue = hashlib.blake2b(entity_type.encode(), digest_size=2).digest()
    red, green, blue = colorsys.hsv_to_rgb(int.from_bytes(hue, "little") / 65_536, 0.8, 0.9)
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def line_of(path: Sequence[Pose]) -> tuple[Position, ...]:
    """Return the corners of the line along a path: a robot that stands still adds none."""
    step = max(1, len(path) // _PATH_POINTS)
    return tuple(position for position, _ in itertools.groupby(pose.position for pose in path[::step]))


def looks_of(entities: Sequence[Entity], gists: Sequence[Gist], line: tuple[Position, ...]) -> object:
    """Return what the markers show; equal when they look the same."""
    things = [(e.id, e.name, e.entity_type, e.position, e.tentative, e.missing) for e in entities]
    return things, [(gist.id, gist.position, gist.radius) for gist in gists], line


def marker_array(
    entities: Sequence[Entity], gists: Sequence[Gist], line: Sequence[Position], frame: str, now: int
) -> MarkerArray:
    """Return all markers, after one that removes those shown before."""
    markers = [Marker(action=Marker.DELETEALL)]
    for entity in entities:
        if entity.position is not None:
            markers += _entity(entity, entity.position)
    markers += [_gist(gist, gist.position) for gist in gists if gist.position is not None]
    if len(line) > 1:
        markers.append(_path(line))
    for marker in markers:
        marker.header.frame_id = frame
        marker.header.stamp = time_message(now)
    return MarkerArray(markers=markers)


def _marker(namespace: str, id: int, kind: int, position: Position) -> Marker:
    marker = Marker(ns=namespace, id=id % 2**31, type=kind, action=Marker.ADD)
    marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = position
    marker.pose.orientation.w = 1.0
    return marker


def _entity(entity: Entity, position: Position) -> list[Marker]:
    sphere = _marker("entities", entity.id, Marker.SPHERE, position)
    sphere.scale.x = sphere.scale.y = sphere.scale.z = _SPHERE
    sphere.color = type_color(entity.entity_type or entity.name, 0.4 if entity.tentative or entity.missing else 0.9)
    x, y, z = position
    label = _marker("labels", entity.id, Marker.TEXT_VIEW_FACING, (x, y, z + 0.3))
    label.text = entity.name + (" (missing)" if entity.missing else "")
    label.scale.z = _TEXT
    label.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
    return [sphere, label]


def _gist(gist: Gist, position: Position) -> Marker:
    x, y, _ = position
    disc = _marker("gists", gist.id, Marker.CYLINDER, (x, y, 0.0))
    disc.scale.x = disc.scale.y = 2.0 * max(gist.radius, 0.2)
    disc.scale.z = 0.02
    disc.color = ColorRGBA(r=0.3, g=0.5, b=0.9, a=0.25)
    return disc


def _path(corners: Sequence[Position]) -> Marker:
    line = _marker("path", 0, Marker.LINE_STRIP, (0.0, 0.0, 0.0))
    line.scale.x = _LINE
    line.color = ColorRGBA(r=0.2, g=0.8, b=0.3, a=0.9)
    line.points = [Point(x=x, y=y, z=z) for x, y, z in corners]
    return line
