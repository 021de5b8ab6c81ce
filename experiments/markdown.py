"""Numbers and tables as Markdown."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vidveil.statistics.intervals import Difference, Estimate

MISSING = "–"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def with_interval(value: Estimate | Difference) -> list[float | None]:
    """Value, low, high. None where too few draws give an interval: JSON has no NaN."""
    return [number if np.isfinite(number) else None for number in (value.value, value.low, value.high)]


def interval(numbers: Sequence[Any] | None) -> str:
    """`0.03 [0.01, 0.08]`; a dash for no value."""
    if not numbers or numbers[0] is None:
        return MISSING
    value, low, high = [*numbers, None, None][:3]
    return f"{value:.2f}" if low is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"
