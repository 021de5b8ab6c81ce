"""How numbers and tables look in Markdown: three digits, an interval in brackets, a dash for what is not there."""

from collections.abc import Iterable, Sequence
from typing import TypeGuard

NOTHING = "–"


def number(value: float | None) -> str:
    """What could not be measured is null in the file, and a dash here."""
    return f"{value:.3f}" if known(value) else NOTHING


def with_interval(value: float | None, interval: Sequence[float | None] | None) -> str:
    """`0.800 [0.760, 0.850]`"""
    low, high = (*(interval or ()), None, None)[:2]
    return f"{number(value)} [{low:.3f}, {high:.3f}]" if known(low) and known(high) else number(value)


def signed(value: float, interval: tuple[float, float]) -> str:
    """`+0.120 [-0.010, +0.250]`, of a difference."""
    if not known(value):
        return NOTHING
    low, high = interval
    return f"{value:+.3f} [{low:+.3f}, {high:+.3f}]" if known(low) and known(high) else f"{value:+.3f}"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines)


def escaped(text: str) -> str:
    """A method may be a chain, `blur | stride:5`, and a bar would end the cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def known(value: float | None) -> TypeGuard[float]:
    return value is not None and value == value
