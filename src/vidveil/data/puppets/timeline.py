"""Several actions one after the other: angles of joints over a longer time, without jumps.

Each part is acted out by itself; at its beginning the body passes over from where the last one left it. The way gone
adds up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vidveil.data.puppets.motion import ACTIONS, angles, standing
from vidveil.data.puppets.style import SECONDS, Angles, Array, Performance, Style

PASSING = 0.3
"""Seconds from one part's last pose into the next one."""


@dataclass(frozen=True)
class Part:
    action: str | None
    """None is standing about."""
    start: float
    end: float
    performance: Performance

    def local(self, times: Array) -> Array:
        """Seconds since the part began. A single movement that is over stays as it is."""
        return np.clip(times - self.start, 0, self.length)

    @property
    def length(self) -> float:
        whole = self.end - self.start
        return whole if self.action is None or ACTIONS[self.action].cyclic else min(whole, SECONDS)


def along(parts: Sequence[Part], times: Array, style: Style) -> Angles:
    """Every angle, each (T,). The parts follow each other without gaps."""
    out: Angles = {}
    gone = 0.0
    for part in parts:
        performance = replace(part.performance, length=part.length)
        local = part.local(np.concatenate([times, [part.start, part.end]]))
        here = (
            standing(local, style, performance)
            if part.action is None
            else angles(part.action, local, style, performance)
        )
        way = here["advance"] - here["advance"][-2] + gone
        gone = float(way[-1])
        here = {name: values[:-2] for name, values in {**here, "advance": way}.items()}
        if not out:
            out = here
            continue
        share = np.clip((times - part.start) / PASSING, 0, 1)
        share = share * share * (3 - 2 * share)
        late = times >= part.start
        left = {name: float(values[~late][-1]) if (~late).any() else 0.0 for name, values in out.items()}
        for name, values in here.items():
            passed = values if name == "advance" else left[name] + (values - left[name]) * share
            out[name] = np.where(late, passed, out[name])
    return out
