"""Which world: the dials behind `puppets:rho=1,view=mask`, and the random streams that everything is drawn from.

Every draw comes from a stream named by (version, seed, purpose, number), never from shared state: a clip is the same
whoever renders it, in whatever order, on however many processes. The dials are no part of the name, so that the same
clip of another rho or view shows the same performance.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

import numpy as np

from vidveil.core.errors import UsageError

VERSION = 1
"""Of the world. Whatever changes a label or a pixel gets a new number, next to the old one."""

Kind = Literal["full", "gait", "null", "bias_f", "bias_m"]
View = Literal["all", "background", "mask", "motion"]
RHOS = (0.0, 0.5, 1.0)
USAGE = "puppets[:rho=0|0.5|1][,gait|null|bias_f|bias_m][,view=background|mask|motion][,share=0.1]"

PEOPLE = {"train": 100, "val": 20, "test": 36}
CLIPS = {"train": 24, "val": 16, "test": 20}
"""Clips of each person."""


@dataclass(frozen=True, kw_only=True)
class World:
    seed: int = 0
    """Other seeds give other people, in other clothes, that nothing was tuned on."""
    rho: float = 0.5
    """Share of the cues of identity that sit on pixels which also carry the action."""
    kind: Kind = "full"
    """`gait`: identity in motion alone. `null`: nothing distinguishes people. `bias_f`, `bias_m`: in training one
    action is done by men (by women) and all others by women (by men)."""
    view: View = "all"
    frames: int = 8
    size: int = 64
    share: float = 1.0
    """Of the people of each split, to try things out on less."""

    def __post_init__(self) -> None:
        if self.rho not in RHOS:
            raise UsageError(f"puppets: rho is 0, 0.5 or 1, not {self.rho:g}")
        if not 1 <= self.frames <= 256 or not 32 <= self.size <= 512:
            raise UsageError("puppets: from 1 to 256 frames of 32 to 512 pixels, for instance 8 of 64 or 16 of 224")
        if not 0 < self.share <= 1:
            raise UsageError("puppets: share is the part of the people to draw, more than 0 and at most 1")

    def people(self) -> dict[str, int]:
        return {split: max(2, round(self.share * count)) for split, count in PEOPLE.items()}

    @property
    def personal(self) -> bool:
        """Whether people have their own looks."""
        return self.kind not in ("gait", "null")

    @property
    def biased(self) -> bool:
        return self.kind in ("bias_f", "bias_m")

    def stream(self, purpose: str, number: int = 0) -> np.random.Generator:
        name = int.from_bytes(purpose.encode()[:8].ljust(8, b"_"), "big")
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([VERSION, self.seed, name, number])))

    @property
    def name(self) -> str:
        dials = [] if self.rho == 0.5 else [f"rho={self.rho:g}"]
        dials += [] if self.kind == "full" else [self.kind]
        dials += [] if self.view == "all" else [f"view={self.view}"]
        dials += [] if self.share == 1 else [f"share={self.share:g}"]
        return "puppets" + (":" + ",".join(dials) if dials else "")


def parse(argument: str | None, *, frames: int, size: int, seed: int) -> World:
    """`rho=1,view=mask` as a world."""
    rho, kind, view, share = 0.5, "full", "all", 1.0
    for part in (argument or "").split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key in get_args(Kind)[1:] and not value:
            kind = key
        elif key == "view" and value in get_args(View):
            view = value
        elif key in ("rho", "share"):
            number = _number(key, value)
            rho, share = (number, share) if key == "rho" else (rho, number)
        elif part.strip():
            views = [f"view={name}" for name in get_args(View)]
            known = [*get_args(Kind)[1:], "share=0.1", "rho=0", "rho=0.5", "rho=1", *views]
            near = get_close_matches(part.strip(), known, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else f"it is {USAGE}"
            raise UsageError(f"puppets: {part.strip()!r} is not known; {hint}")
    return World(seed=seed, rho=rho, kind=kind, view=view, frames=frames, size=size, share=share)  # type: ignore[arg-type]


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"puppets: {key}={value} is no number; for instance {key}=1") from None
