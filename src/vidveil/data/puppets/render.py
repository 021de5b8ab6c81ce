"""Clip i as pixels and all that is known of it, in any of the four views."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.data.puppets.appearance import plain
from vidveil.data.puppets.body import Build
from vidveil.data.puppets.brush import Brush, shade
from vidveil.data.puppets.camera import CAMERAS, Camera, Shot, through
from vidveil.data.puppets.figure import draw_figure
from vidveil.data.puppets.labels import attributes, facts
from vidveil.data.puppets.places import WIDE, plate
from vidveil.data.puppets.plan import Plan, plan, sample_times
from vidveil.data.puppets.scene import Actor, Prop, Scene, act
from vidveil.data.puppets.world import World

Picture = NDArray[np.uint8]
GREYS = np.array([0, 85, 170, 255], np.uint8)
"""How `view=mask` shows the four kinds."""
PARALLAX = 0.55
"""How much slower than the ground the plate goes by."""


def detail(size: int) -> int:
    """How many times finer than the picture the canvas is."""
    return 3 if size <= 96 else 2


@dataclass(frozen=True)
class Rendered:
    frames: Picture
    """(T, H, W, 3)"""
    masks: Picture
    """(T, H, W) kinds of pixels"""
    attributes: Picture
    """(T, 5)"""
    facts: NDArray[np.int64]
    """(F,)"""


def render(world: World, index: int) -> Rendered:
    wanted = plan(world, index)
    times = sample_times(world.frames)
    scene = act(wanted, times)
    frames, masks = (
        _motion(world, act(wanted, times, Build())) if world.view == "motion" else _filmed(world, wanted, scene)
    )
    if world.view == "mask":
        frames = np.repeat(GREYS[masks][..., None], 3, axis=-1)
    return Rendered(frames, masks, attributes(world, wanted, scene), facts(wanted))


def _filmed(world: World, wanted: Plan, scene: Scene) -> tuple[Picture, Picture]:
    side = world.size * detail(world.size)
    behind = plate(world, wanted.place, wanted.objects, world.stream("clutter", wanted.index), side)
    rng, camera = world.stream("sensor", wanted.index), CAMERAS[wanted.camera]
    return film(scene, behind, camera, wanted.gain, world.size, rng, without_cast=world.view == "background")


def film(
    scene: Scene,
    behind: Picture,
    camera: Camera,
    gain: float,
    size: int,
    rng: np.random.Generator,
    *,
    without_cast: bool = False,
) -> tuple[Picture, Picture]:
    """Frames (T, size, size, 3) and kinds (T, size, size) of a scene before a plate."""
    start = rng.uniform(-0.5, 0.5)
    passing = start + scene.shot.zoom * PARALLAX * (scene.shot.centre - scene.shot.centre.mean())
    apart, cast = ([(*who, who[1].see(who[0].posed)) for who in who_all] for who_all in (scene.bystanders, scene.cast))
    pictures, truths = [], []
    for t in range(len(scene.times)):
        brush = Brush(_window(behind, float(passing[t])))
        for actor, _, seen in apart:
            draw_figure(brush, actor.appearance, actor.posed, seen[t], masked=actor.masked)
        if not without_cast:
            _draw_props(brush, scene, t, standing=True)
            for actor, shot, seen in cast:
                _shadow(brush, actor, t, shot)
                draw_figure(brush, actor.appearance, actor.posed, seen[t], masked=actor.masked)
            _draw_props(brush, scene, t, standing=False)
        picture, truth = brush.finish(size)
        pictures.append(through(picture, camera, gain, rng))
        truths.append(truth)
    return np.stack(pictures), np.stack(truths)


def _window(behind: Picture, offset: float) -> Picture:
    """The part of a plate that a frame shows, `offset` widths right of its middle; a plate goes round."""
    side, width = behind.shape[:2]
    first = round(((WIDE - 1) / 2 + offset) * side) % width
    if first + side <= width:
        return behind[:, first : first + side].copy()
    return np.concatenate([behind[:, first:], behind[:, : first + side - width]], axis=1)


def _shadow(brush: Brush, actor: Actor, t: int, shot: Shot) -> None:
    """A darker patch on the ground: it ties feet to the floor. It is no part of a person and keeps kind 0."""
    body = actor.posed.joints[t]
    x = 0.5 + shot.zoom * (body[:, 0] - shot.centre[t])
    left, right = float(x.min()), float(x.max())
    depth = float(body[:, 2].mean())
    y = shot.ground + shot.zoom * depth * float(np.sin(shot.tilt)) + 0.005
    side = brush.side
    middle, half = (left + right) / 2, max(0.06, (right - left) * 0.42)
    rows = slice(int(max(0, (y - 0.03) * side)), int(max(0, min(side, (y + 0.03) * side))))
    columns = slice(int(max(0, (middle - half) * side)), int(max(0, min(side, (middle + half) * side))))
    patch = brush.canvas[rows, columns, :3]
    if patch.size:
        yy = (np.arange(rows.start, rows.stop) / side - y) / 0.03
        xx = (np.arange(columns.start, columns.stop) / side - middle) / half
        inside = (yy[:, None] ** 2 + xx[None] ** 2 < 1)[..., None]
        patch[...] = np.where(inside, patch * 0.62, patch).astype(np.uint8)


def _draw_props(brush: Brush, scene: Scene, t: int, *, standing: bool) -> None:
    """What stands on the ground is behind people, what they hold before them."""
    for prop in scene.props:
        if (prop.name == "stool") == standing and np.isfinite(prop.xyz[t, 0]):
            _draw_prop(brush, prop, t, scene.shot)


def _draw_prop(brush: Brush, prop: Prop, t: int, shot: Shot) -> None:
    place, zoom, kind = shot.point(prop.xyz[t], t), shot.zoom, prop.kind
    if prop.name == "ball":
        brush.disc(place, 0.05 * zoom, (150, 60, 20), kind)
        brush.disc(place - (0.008 + 0.01j) * zoom, 0.04 * zoom, (240, 140, 50), kind)
    elif prop.name == "box":
        w, h = 0.12 * zoom, 0.075j * zoom
        front = (190, 140, 85)
        brush.polygon((place - w - h, place + w - h, place + w + h, place - w + h), front, kind, convex=True)
        lid = (place - w - h, place - w * 0.75 - h * 1.45, place + w * 1.2 - h * 1.45, place + w - h)
        brush.polygon(lid, (220, 180, 125), kind, convex=True)
        brush.line((place - h, place + h), 0.02 * zoom, shade(front, 0.7), kind)
    else:
        seat, wide, wood = place - 0.2j * zoom, 0.09 * zoom, (125, 85, 55)
        for leg in (-wide, wide):
            brush.line((seat + leg * 0.7, place + leg), 0.028 * zoom, shade(wood, 0.75), kind)
        brush.oval(seat, wide * 1.25, 0.028j * zoom, wood, kind)


def _motion(world: World, scene: Scene) -> tuple[Picture, Picture]:
    """Motion alone: one body for all, on black, without noise, company or things."""
    side = world.size * detail(world.size)
    same = plain()
    pictures, truths = [], []
    actor, shot = scene.cast[-1]
    for seen in shot.see(actor.posed):
        brush = Brush(np.zeros((side, side, 4), np.uint8))
        draw_figure(brush, same, actor.posed, seen)
        picture, truth = brush.finish(world.size)
        pictures.append(picture)
        truths.append(truth)
    return np.stack(pictures), np.stack(truths)
