"""Utility alone as a picture, of results in which nothing was attacked: one row for raw video and for each setting.

A point is the value, its bar the 95 % interval, a grey line the floor of that row: what knowing nothing gives.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from vidveil.evaluation.results import Metric, Results
from vidveil.report.colours import COLOURS, GREY
from vidveil.report.markdown import known
from vidveil.report.tables import main_utility, setting, spoken

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 40
"""Characters of a label."""


class Row(NamedTuple):
    label: str
    metric: Metric
    colour: str


def rows_by_metric(results: Sequence[Results]) -> dict[str, list[Row]]:
    """By the name of the number, in the order of the runs; raw video first, and grey."""
    found: dict[str, list[Row]] = {}
    for number, one in enumerate(results):
        for point in (one.raw, *one.points):
            name = main_utility(point)
            if name is None or not known(point.metrics[name].value):
                continue
            label = setting(point) if len(results) == 1 else f"{one.name}/{setting(point)}"
            colour = GREY if point is one.raw else COLOURS[number % len(COLOURS)]
            found.setdefault(name, []).append(Row(label, point.metrics[name], colour))
    return found


def draw(axis: "Axes", name: str, rows: Sequence[Row]) -> None:
    for height, row in enumerate(rows):
        low, high = (*row.metric.interval, None, None)[:2]
        if known(low) and known(high):
            axis.plot([low, high], [height, height], color=row.colour, linewidth=1.5, marker="|", markersize=6)
        axis.plot(row.metric.value, height, color=row.colour, marker="o", markersize=6)
        if known(row.metric.floor):
            floor = [row.metric.floor] * 2
            axis.plot(floor, [height - 0.35, height + 0.35], color=GREY, linewidth=1, linestyle=":")
    axis.set_yticks(range(len(rows)), [_short(row.label) for row in rows], fontsize=8)
    axis.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
    axis.set_xlabel("value with its 95 % interval, dotted: its floor →", fontsize=8)
    axis.set_title(spoken(name), fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
