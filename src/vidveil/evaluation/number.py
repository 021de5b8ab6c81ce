"""A measured number, with everything that is needed to compare it with another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vidveil.evaluation.results import Kind
from vidveil.statistics.tradeoff import Leak

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Number:
    leak: Leak
    """Value with its resamples, floor and chance level. (Of a utility metric, too: the arithmetic is the same.)"""
    analytic: float
    """Its floor by formula."""
    floor_range: tuple[float, float]
    measured_by: str
    others: dict[str, dict[str, float]]
    """Every attacker that tried: what it got on test and on validation."""
    p: float | None = None
    """Share of permutations of the labels that reach the value."""
    least_p: float = 0.0
    """The smallest that so many permutations can give."""
    kind: Kind = "leakage"
    note: str = ""
    """What a reader must know of it, such as a threshold that is not the usual one."""
    per_clip: Floats | None = None
    """(S, N) what the number is the mean of, where it is one: for paired comparisons with other runs."""
    chance_per_clip: Floats | None = None
    """(N,) what its floor by formula is the mean of."""
    tried_per_clip: Mapping[str, Floats] = field(default_factory=dict)
    """As `per_clip`, of every attacker that tried, for who wants to choose among them."""
