"""Actions as angles of joints over time, in radians and seconds, with the style of the one who moves.

    angles(action, times, style, performance) -> {"hip_l": (T,), "knee_l": (T,), ...}

Seven pairs are each other played backwards: whoever looks at frames without their order can tell the pair, never which
of the two, so that a reader of unordered frames is right in 12 of 19 cases at best.

What the angles mean is in `style.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vidveil.data.puppets.style import ANGLES, SECONDS, Angles, Array, Performance, Style, in_style


@dataclass(frozen=True)
class Action:
    move: Callable[[Array, Style, Performance], Angles]
    backwards: bool = False
    prop: str | None = None
    """What it needs: a stool, a ball, a box."""
    cyclic: bool = False
    """Whether it can go on for as long as one likes."""


def _wave(times: Array, style: Style, performance: Performance, frequency: float) -> Array:
    """Phase of a cycle, in radians."""
    return 2 * np.pi * (frequency * style.tempo * performance.tempo * times + performance.phase)


def progress(times: Array, style: Style, performance: Performance, seconds: float) -> Array:
    """0 before a single movement, 1 after it, smooth between; it takes `seconds` and is over before the clip is."""
    seconds = min(seconds / (style.tempo * performance.tempo), SECONDS - performance.onset - 0.1)
    share = np.clip((times - performance.onset) / seconds, 0, 1)
    return share * share * (3 - 2 * share)


def _half(phase: Array) -> Array:
    return (1 - np.cos(phase)) / 2


def _both(**values: Array) -> Angles:
    return {f"{name}_{side}": value for name, value in values.items() for side in "lr"}


def walking(times: Array, style: Style, performance: Performance) -> Angles:
    phase = _wave(times, style, performance, 0.82)
    reach = 0.56 * style.stride * performance.size
    swing = 0.6 * style.swing * performance.size
    speed = 4 * 0.45 * np.sin(reach) * 0.82 * style.tempo * performance.tempo
    return {
        "hip_l": reach * np.sin(phase),
        "hip_r": -reach * np.sin(phase),
        "knee_l": 1.15 * style.stride * np.maximum(0, np.cos(phase)) ** 1.5,
        "knee_r": 1.15 * style.stride * np.maximum(0, -np.cos(phase)) ** 1.5,
        "flex_l": -swing * np.sin(phase),
        "flex_r": swing * np.sin(phase),
        "twist": 0.12 * style.swing * np.sin(phase),
        "advance": speed * (times - performance.length / 2),
    }


def running(times: Array, style: Style, performance: Performance) -> Angles:
    phase = _wave(times, style, performance, 1.1)
    reach = 0.85 * style.stride * performance.size
    swing = 0.95 * style.swing * performance.size
    return {
        "hip_l": 0.25 + reach * np.sin(phase),
        "hip_r": 0.25 - reach * np.sin(phase),
        "knee_l": 0.3 + 1.7 * style.stride * np.maximum(0, np.cos(phase + 0.3)),
        "knee_r": 0.3 + 1.7 * style.stride * np.maximum(0, -np.cos(phase + 0.3)),
        "flex_l": -swing * np.sin(phase),
        "flex_r": swing * np.sin(phase),
        **_both(elbow=np.full_like(times, 1.5)),
        "lean": np.full_like(times, 0.3),
        "twist": 0.2 * style.swing * np.sin(phase),
        "advance": 2.0 * style.tempo * performance.tempo * (times - performance.length / 2),
        "rise": 0.05 * np.abs(np.sin(phase)),
    }


def waving(times: Array, style: Style, performance: Performance) -> Angles:
    phase = _wave(times, style, performance, 1.25)
    arm, other = "lr"[performance.side], "rl"[performance.side]
    return {
        f"abd_{arm}": np.full_like(times, 1.9 * min(style.swing, 1.15)),
        f"out_{arm}": 0.75 + 0.75 * performance.size * style.swing * np.sin(phase),
        f"abd_{other}": np.full_like(times, 0.05),
        "side": np.full_like(times, 0.08 if performance.side else -0.08),
    }


def squatting(times: Array, style: Style, performance: Performance) -> Angles:
    deep = _half(_wave(times, style, performance, 0.72)) * performance.size * min(style.stride, 1.1)
    return {
        **_both(hip=1.75 * deep, knee=2.15 * deep, flex=1.45 * deep * style.swing),
        "spread_l": 0.25 + 0 * deep,
        "spread_r": 0.25 + 0 * deep,
        "lean": 0.45 * deep,
    }


def punching(times: Array, style: Style, performance: Performance) -> Angles:
    phase = _wave(times, style, performance, 0.95)
    left, right = np.maximum(0, np.sin(phase)) ** 0.7, np.maximum(0, -np.sin(phase)) ** 0.7
    front, back = "lr"[performance.side], "rl"[performance.side]
    reach = min(style.swing, 1.1) * performance.size
    return {
        "flex_l": 0.65 + 0.9 * reach * left,
        "flex_r": 0.65 + 0.9 * reach * right,
        "elbow_l": 2.1 - 2.1 * left,
        "elbow_r": 2.1 - 2.1 * right,
        "twist": 0.45 * reach * (right - left),
        f"hip_{front}": np.full_like(times, 0.45),
        f"knee_{front}": np.full_like(times, 0.4),
        f"hip_{back}": np.full_like(times, -0.3),
        f"knee_{back}": np.full_like(times, 0.25),
        "lean": np.full_like(times, 0.15),
    }


def jumping_jacks(times: Array, style: Style, performance: Performance) -> Angles:
    phase = _wave(times, style, performance, 0.8)
    open_ = _half(phase) * performance.size
    return {
        **_both(abd=0.1 + 2.6 * min(style.swing, 1.1) * open_, spread=0.5 * style.stride * open_),
        "rise": 0.07 * np.sin(phase) ** 2,
    }


def lunging(times: Array, style: Style, performance: Performance) -> Angles:
    deep = progress(times, style, performance, 1.0) * performance.size * min(style.stride, 1.15)
    front, back = "lr"[performance.side], "rl"[performance.side]
    return {
        f"hip_{front}": 1.35 * deep,
        f"knee_{front}": 1.45 * deep,
        f"hip_{back}": -0.65 * deep,
        f"knee_{back}": 0.75 * deep,
        **_both(abd=0.75 + 0 * deep, flex=-0.35 + 0 * deep, elbow=1.5 + 0 * deep),
        "advance": 0.2 * deep - 0.1,
    }


def sitting_down(times: Array, style: Style, performance: Performance) -> Angles:
    down = progress(times, style, performance, 1.05)
    return {
        **_both(hip=1.5 * down, knee=1.5 * down, flex=0.55 * down + 0.5 * np.sin(np.pi * down), elbow=0.5 * down),
        "lean": 0.6 * np.sin(np.pi * down) * performance.size,
        "advance": 0.12 - 0.24 * down,
    }


def falling(times: Array, style: Style, performance: Performance) -> Angles:
    down = progress(times, style, performance, 1.05) ** 1.3
    buckle = np.sin(np.pi * down)
    to_face = 1.0 if performance.way else -1.0
    return {
        "pitch": to_face * 1.5 * down,
        **_both(
            hip=0.55 * buckle, knee=1.0 * buckle, flex=(2.9 if performance.way else -0.5) * np.minimum(1, 2 * down)
        ),
        **_both(abd=0.5 * np.minimum(1, 2 * down)),
        "lean": 0.25 * buckle * to_face,
        "advance": to_face * (0.45 * np.sin(1.5 * down) - 0.3),
    }


def throwing(times: Array, style: Style, performance: Performance) -> Angles:
    gone = progress(times, style, performance, 1.0)
    arm, other = "lr"[performance.side], "rl"[performance.side]
    back = np.exp(-(((gone - 0.22) / 0.2) ** 2))
    return {
        f"flex_{arm}": 0.3 + 2.6 * np.clip(gone / 0.3, 0, 1) - 2.1 * np.clip((gone - 0.3) / 0.5, 0, 1),
        f"elbow_{arm}": 1.1 * np.clip(gone / 0.3, 0, 1) + 0.4 - 1.4 * np.clip((gone - 0.3) / 0.25, 0, 1),
        f"flex_{other}": 1.0 * back * style.swing,
        "lean": -0.3 * back + 0.5 * np.clip((gone - 0.3) / 0.4, 0, 1) * performance.size,
        "twist": (0.5 * back - 0.35 * gone) * (1 if performance.side else -1),
        f"hip_{other}": 0.6 * gone * style.stride,
        f"knee_{other}": 0.35 * gone,
        f"hip_{arm}": -0.35 * gone,
        f"knee_{arm}": 0.2 * gone,
        "advance": 0.2 * gone - 0.1,
    }


RELEASE = 0.5
"""Share of a throw after which the ball flies."""


def lifting(times: Array, style: Style, performance: Performance) -> Angles:
    up = progress(times, style, performance, 1.05)
    low = 1 - up
    return {
        **_both(hip=1.75 * low, knee=1.95 * low, flex=0.8 * low + 0.55 * up, elbow=0.1 * low + 1.25 * up),
        **_both(spread=0.16 + 0 * low, abd=-0.08 + 0 * low),
        "lean": 0.85 * low * performance.size - 0.05 * up,
    }


def raising_arms(times: Array, style: Style, performance: Performance) -> Angles:
    up = progress(times, style, performance, 1.0)
    return {
        **_both(flex=2.75 * min(style.swing, 1.1) * performance.size * up, abd=0.1 * up),
        "lean": -0.12 * up,
        "nod": -0.2 * up,
    }


ACTIONS: dict[str, Action] = {
    "walking": Action(walking, cyclic=True),
    "walking backwards": Action(walking, backwards=True, cyclic=True),
    "running": Action(running, cyclic=True),
    "waving": Action(waving, cyclic=True),
    "squatting": Action(squatting, cyclic=True),
    "punching": Action(punching, cyclic=True),
    "jumping jacks": Action(jumping_jacks, cyclic=True),
    "sitting down": Action(sitting_down, prop="stool"),
    "standing up": Action(sitting_down, backwards=True, prop="stool"),
    "falling": Action(falling),
    "getting up": Action(falling, backwards=True),
    "throwing": Action(throwing, prop="ball"),
    "catching": Action(throwing, backwards=True, prop="ball"),
    "lifting": Action(lifting, prop="box"),
    "putting down": Action(lifting, backwards=True, prop="box"),
    "raising arms": Action(raising_arms),
    "lowering arms": Action(raising_arms, backwards=True),
    "lunging": Action(lunging),
    "stepping back": Action(lunging, backwards=True),
}
PAIRS = tuple(
    (forwards, backwards)
    for forwards, one in ACTIONS.items()
    for backwards, other in ACTIONS.items()
    if other.backwards and not one.backwards and one.move is other.move
)
"""Actions that are each other played backwards."""


def angles(action: str, times: Array, style: Style, performance: Performance) -> Angles:
    """Every angle of `ANGLES`, each (T,), at the given times of a performance."""
    about = ACTIONS[action]
    clock = performance.length - times if about.backwards else times
    moved = about.move(clock, style, performance)
    return in_style({name: moved.get(name, np.zeros_like(times)) for name in ANGLES}, clock, style, performance)


def standing(times: Array, style: Style, performance: Performance) -> Angles:
    """What people do who do nothing."""
    return in_style({name: np.zeros_like(times) for name in ANGLES}, times, style, performance)
