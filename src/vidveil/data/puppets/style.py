"""How people move: the angles of their joints, the style that is theirs, and what differs from time to time.

Angles are zero in a person standing with hanging arms. `flex` and `hip` go forwards, `abd` and `spread` sideways,
`elbow` bends the forearm forwards and `out` sideways, `knee` bends the shin backwards, `lean`, `nod` and `pitch` tip
spine, head and the whole body forwards, `side` and `twist` bend and turn the spine, `gaze` turns the head.
`advance` is the way gone forwards and `rise` the height above the ground, in statures.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Angles = dict[str, Array]

SECONDS = 1.6
"""How long a clip lasts, whatever the number of its frames."""

SIDED = ("flex", "abd", "elbow", "out", "hip", "spread", "knee")
MIDDLE = ("lean", "side", "twist", "nod", "gaze", "pitch", "advance", "rise")
ANGLES = (*(f"{name}_{side}" for name in SIDED for side in "lr"), *MIDDLE)


@dataclass(frozen=True, kw_only=True)
class Style:
    """How someone moves, whatever they do. The defaults are the style that everyone has where style is not personal."""

    # of the legs
    stride: float = 1.0
    """Size of the movements of hips and knees."""
    crouch: float = 0.08
    """Bend of the knees that never goes away."""
    stance: float = 0.06
    """Feet apart."""
    bounce: float = 0.04
    """Bend of the knees in a springing that goes through all movements."""
    spring: float = 1.6
    """Its frequency, 1/s."""
    # of the arms
    swing: float = 1.0
    """Size of the movements of the arms."""
    elbow: float = 0.25
    """Bend of the elbows that never goes away."""
    carry: float = 0.14
    """Arms held away from the sides."""
    tempo: float = 1.0
    """Of all movements but the springing."""
    # of the spine
    slouch: float = 0.04
    """Spine bent forwards."""
    sway: float = 0.03
    """Swaying from side to side."""
    bow: float = 0.0
    """Head bent forwards."""


LEG_STYLE = ("stride", "crouch", "stance", "bounce", "spring")
ARM_STYLE = ("swing", "elbow", "carry", "tempo")


def overdone(style: Style, by: float = 2.2) -> Style:
    """Further from the common style by this factor in all that is not size or speed of an action."""
    common, names = Style(), ("crouch", "stance", "bounce", "elbow", "carry", "slouch", "sway", "bow")
    further = {name: by * (getattr(style, name) - getattr(common, name)) + getattr(common, name) for name in names}
    return replace(style, **further)


@dataclass(frozen=True, kw_only=True)
class Performance:
    """One performance: what differs between two times that the same person does the same."""

    phase: float
    """Where a cycle begins, in [0, 1)."""
    onset: float
    """Seconds until a single movement begins."""
    tempo: float
    """On top of the style's."""
    size: float
    """Of the movement, about 1."""
    side: int
    """Which hand or foot: 0 left, 1 right."""
    way: int
    """Which of two ways to do it: 0 or 1; people fall on their face or on their back."""
    length: float = SECONDS
    """Of the whole performance in seconds: what is played backwards begins here."""


def in_style(moved: Angles, times: Array, style: Style, performance: Performance) -> Angles:
    """Posture, springing and swaying on top of a movement."""
    beat = 2 * np.pi * (style.spring * times + performance.phase)
    swinging = style.sway * np.sin(2 * np.pi * (0.8 * style.tempo * times + performance.phase))
    bend = style.crouch + style.bounce * (1 - np.cos(beat)) / 2
    upright = np.cos(moved["pitch"]) ** 2  # nobody springs while lying
    for side, sign in (("l", 1.0), ("r", -1.0)):
        moved[f"elbow_{side}"] = moved[f"elbow_{side}"] + style.elbow
        moved[f"abd_{side}"] = moved[f"abd_{side}"] + style.carry - sign * swinging
        moved[f"hip_{side}"] = moved[f"hip_{side}"] + bend
        moved[f"knee_{side}"] = moved[f"knee_{side}"] + 2 * bend
        moved[f"spread_{side}"] = moved[f"spread_{side}"] + style.stance
    moved["side"] = moved["side"] + swinging * upright
    moved["nod"] = moved["nod"] + style.bow - 0.5 * moved["lean"]
    moved["lean"] = moved["lean"] + style.slouch
    return moved
