"""A measured number, with everything that is needed to compare it with another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vidveil.evaluation.results import Kind
from vidveil.statistics.floors import Floor
from vidveil.statistics.tradeoff import Measurement

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Number:
    measured: Measurement
    """Value with its resamples, floor and chance level. (Of a utility metric, too: the arithmetic is the same.)"""
    measured_by: str
    others: dict[str, dict[str, float]]
    """Every attacker that tried: what it got on test and on validation."""
    permuted: Floor | None = None
    """Its floor by permutation; None where nothing is permuted, and the floor is exact."""
    formula: float | None = None
    """Its floor by formula, where that is neither the floor of `measured` nor its chance level."""
    kind: Kind = "leakage"
    note: str = ""
    """What a reader must know of it, such as a threshold that is not the usual one."""
    per_clip: Floats | None = None
    """(S, N) what the number is the mean of, where it is one: for paired comparisons with other runs."""
    chance_per_clip: Floats | None = None
    """(N,) what its floor by formula is the mean of."""
    tried_per_clip: Mapping[str, Floats] = field(default_factory=dict)
    """As `per_clip`, of every attacker that tried, for another choice among them."""

    @property
    def analytic(self) -> float:
        """Its floor by formula."""
        if self.measured.chance is not None:
            return self.measured.chance.value
        return self.measured.floor if self.formula is None else self.formula

    @property
    def floor_range(self) -> tuple[float, float]:
        return (self.permuted.low, self.permuted.high) if self.permuted else (self.measured.floor, self.measured.floor)

    @property
    def p(self) -> float | None:
        """Share of permutations of the labels that reach the value."""
        return self.permuted.p if self.permuted else None

    @property
    def least_p(self) -> float:
        """The smallest that so many permutations can give."""
        return 1 / (1 + self.permuted.permutations) if self.permuted else 0.0
