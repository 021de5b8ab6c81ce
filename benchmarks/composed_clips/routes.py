"""How people move through composed clips: where a face is, by seconds. Speeds are in face sizes a second."""

import math

from composed_clips.stage import HEIGHT, WIDTH, Pose, Route


def standing(x: float, y: float, size: float, tilt: float, phase: float) -> Route:
    return lambda t: Pose(x + 0.01 * size * math.sin(2 * t + phase), y, size, tilt)


def strolling(x: float, y: float, size: float, tilt: float, phase: float, speed: float, yaw: float) -> Route:
    def route(t: float) -> Pose:
        along, bob = speed * size * (math.sin(t + phase) - math.sin(phase)), 0.06 * size * abs(math.sin(5 * t))
        return Pose(x + along, y + bob, size, tilt + 4 * math.sin(2 * t), yaw * math.sin(1.2 * t + phase))

    return route


def rushing(x: float, y: float, size: float, far: float, pace: float, phase: float) -> Route:
    """To and fro by `far` pixels on each side; the peak of speed is `far * pace`."""

    def route(t: float) -> Pose:
        turn = pace * t + phase
        return Pose(x + far * math.sin(turn), y + 0.1 * size * math.sin(9 * t), size, 5 * math.cos(turn))

    return route


def shaking(x: float, y: float, size: float, far: float, pace: float, phase: float) -> Route:
    """As a running man's camera shows somebody who stands: `far` sizes to each side, `pace` times a second."""

    def route(t: float) -> Pose:
        turn = 2 * math.pi * pace * t + phase
        return Pose(x + far * size * math.sin(turn), y + 0.5 * far * size * math.sin(1.7 * turn), size)

    return route


def visiting(x: float, y: float, size: float, begin: float, stay: float, speed: float, side: int) -> Route:
    """In across a side of the picture (0 left, 1 right, 2 below) and out again, as often as there is time."""
    out = begin + 3.2 / speed + stay

    def route(t: float) -> Pose:
        since = t % (out + 0.15)
        inward = size * min(speed * (since - begin), 1.6 + 0.3 * math.sin(t), speed * (out - since))
        at = ((inward - size, y), (WIDTH + size - inward, y), (x, HEIGHT + size - inward))[side]
        return Pose(*at, size)

    return route


def emerging(wall: float, y: float, size: float, speed: float, start: float, way: int) -> Route:
    """From behind a wall, to the right (1) or left (-1)."""

    def route(t: float) -> Pose:
        along = way * size * (speed * max(0.0, t - start) - 0.2)
        return Pose(wall + along, y + 0.05 * size * abs(math.sin(6 * t)), size)

    return route


def turning_round(x: float, y: float, size: float, speed: float, phase: float, side: int) -> Route:
    """From the front until only hair is seen, and back."""
    return lambda t: Pose(x, y, size, 0.0, side * 75 * (1 - math.cos(2 * speed * t + phase)))


def popping_up(x: float, y: float, size: float, begin: float, stay: float, again: float) -> Route:
    """Up from below for `stay` seconds, twice. Risen within 0.1 s; `stay` is between the moments of half the way."""

    def route(t: float) -> Pose:
        since = t - again if t >= again else t - begin
        up = max(0.0, min(1.0, (since + 0.05) / 0.1, (stay - since + 0.05) / 0.1))
        return Pose(x, y + 1.7 * size * (1 - up), size)

    return route


def glimpsed(x: float, y: float, size: float, begin: float, stay: float, again: float) -> Route:
    """There for `stay` seconds, twice, and else hidden below."""

    def route(t: float) -> Pose:
        there = 0 <= t - begin <= stay or 0 <= t - again <= stay
        return Pose(x, y if there else y + 1.7 * size, size)

    return route


def approaching(x: float, y: float, size: float, growth: float, seconds: float) -> Route:
    """`growth` times as large at the end as at the beginning; below 1, away."""

    def route(t: float) -> Pose:
        now = size * growth ** (t / seconds - 0.5)
        return Pose(x + 0.2 * size * math.sin(t), y, min(199.0, max(16.0, now)))

    return route


def passing(meet: float, y: float, size: float, speed: float, way: int, seconds: float) -> Route:
    """Straight across, at `meet` in the middle of the time."""

    def route(t: float) -> Pose:
        along = way * speed * size * (t - seconds / 2)
        return Pose(meet + along, y + 0.05 * size * abs(math.sin(6 * t + way)), size, 0, 25 * way)

    return route
