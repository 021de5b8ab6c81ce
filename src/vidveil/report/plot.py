"""The trade-off as a picture: what is kept to the right, what leaks upwards; the best corner is the lower right one.

    x   retention, top-1 (or cMAP) / raw; left of the grey line the action is not predicted better than by guessing
        stretched around 1 (by √ of what is lost, or gained), where the methods lie that anybody would use
    y   excess leakage: 1 as much as raw video, 0 the floor; one panel for linkage, one for attributes

A run, or each method of a run with several, is a marker and a colour (Okabe and Ito's, which colour-blind people tell
apart), its settings joined by a line; of many runs only the first one's settings are named, and from the seventh on
lines are dashed.
Bars are the 95 % intervals over test people of the ratios themselves: raw video was measured on the same people, and
moves with them.
"""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidveil.core.atomic import new_file
from vidveil.core.errors import OutputError
from vidveil.core.progress import phase
from vidveil.evaluation.results import Point, Results
from vidveil.report import utility_plot
from vidveil.report.colours import COLOURS, GREY, MARKERS
from vidveil.report.several_methods import by_method
from vidveil.report.tables import used

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 4
"""Runs whose settings can be named without covering each other."""
TICKS = (1.0, 0.5, 0.0, 0.9, 0.8, 0.7, 0.25, 0.95, 1.5, 2.0, 1.25, 1.1, 3.0, 5.0, 1.05, 10.0)
"""The more important ones first: one that would be printed over another is left out."""
APART = 0.075
"""Of the width of a panel: ticks are at least so far from each other."""
BARS = 0.15
"""How far bars may reach beyond raw video and the points: longer ones are cut at the border of the panel."""
PANELS = {"linkage": "linkage, rank-1", "attributes": "attributes, average precision"}


class PlotPoint(NamedTuple):
    """Where one setting stands, and the length of its bars to either side."""

    x: float
    y: float
    left: float
    right: float
    down: float
    up: float
    label: str


@phase("drawing the trade-off")
def trade_off(results: Sequence[Results], path: Path) -> str:
    """Draw all runs into one PNG. What it shows: `trade-off`, or `utility` where nothing was attacked; nothing is drawn
    where neither was measured, and it is empty."""
    try:
        from matplotlib.figure import Figure  # slow to import; no window and no global state this way
    except ImportError as error:
        raise OutputError("the picture needs matplotlib: pip install matplotlib") from error

    together, results = results, [one for several in results for one in by_method(several)]
    panels = [panel for panel in PANELS if any(places(one, panel) or _attacked(one, panel) for one in results)]
    utilities = {} if panels else utility_plot.rows_by_metric(together)
    if not panels and not utilities:
        return ""
    count = len(panels or utilities)
    most = max((len(rows) for rows in utilities.values()), default=0)
    figure = Figure(figsize=(5.4 * count + 0.4, 4.8 if panels else 2.0 + 0.4 * most), dpi=150, layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=False):
        _panel(axis, results, panel)
    for axis, (name, rows) in zip(axes, utilities.items(), strict=False):
        utility_plot.draw(axis, name, rows)
    runs = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if runs:
        figure.legend(runs.values(), runs.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    try:
        with new_file(path) as file:
            figure.savefig(file, format="png")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
    return "trade-off" if panels else "utility"


def places(results: Results, panel: str) -> list[PlotPoint]:
    """The settings of a run that have both a retention and an excess, by falling keep rate."""
    found = []
    for point in sorted(results.points, key=lambda one: -(one.keep or 0)):
        utility = point.utility
        x, y = utility.retention if utility else None, _excess(point, panel)
        if utility is None or x is None or y is None:
            continue
        left, right = _bars(x, utility.retention_interval)
        down, up = _bars(y, _excess_interval(point, panel))
        label = "" if point.keep is None else f"{point.keep:g}"
        found.append(PlotPoint(x, y, left, right, down, up, label))
    return found


def _panel(axis: "Axes", results: Sequence[Results], panel: str) -> None:
    axis.axhline(0, color=GREY, linewidth=1)
    guess = max((floor for one in results if (floor := _guessing(one)) is not None), default=0.0)
    outside: dict[str, Any] = {"color": GREY, "fontsize": 8}  # words stand outside the panel, where no point is
    axis.text(1.01, 0, "floor", transform=axis.get_yaxis_transform(), va="center", ha="left", **outside)
    if guess:
        axis.axvline(guess, color=GREY, linewidth=1, linestyle=":")
        where = axis.get_xaxis_transform()
        axis.text(guess, 1.01, "guessing the action", transform=where, va="bottom", ha="center", **outside)
    axis.plot(1, 1, marker="*", markersize=14, color="black", linestyle="none", label="raw video", zorder=4)
    for number, one in enumerate(results):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        run = places(one, panel)
        if not run:
            continue
        axis.errorbar(
            [place.x for place in run],
            [place.y for place in run],
            xerr=[[place.left for place in run], [place.right for place in run]],
            yerr=[[place.down for place in run], [place.up for place in run]],
            color=colour,
            marker=marker,
            markersize=6,
            linewidth=1.5,
            elinewidth=0.9,
            linestyle="-" if number < len(COLOURS) else "--",
            capsize=2,
            label=one.name,
            zorder=3,
        )
        away, side = ((6, -10), "left") if number % 2 == 0 else ((-6, 4), "right")  # curves often lie close together
        for place in run:
            if number == 0 or len(results) <= NAMED:
                at = (place.x, place.y)
                axis.annotate(place.label, at, away, textcoords="offset points", fontsize=7, color=colour, ha=side)
    shown = [place for one in results for place in places(one, panel)]
    bottom, top = _span([(place.y, place.down, place.up) for place in shown])
    begin, end = _span([(place.x, place.left, place.right) for place in shown])
    begin, end = begin - 0.02, end + 0.005
    axis.set_xscale("function", functions=(stretched, _back))
    axis.set_xlim(begin, end)
    axis.set_xticks(ticks(begin, end), minor=False)
    axis.set_ylim(bottom - 0.08, top + 0.08)
    axis.set_xlabel(f"retention: share of raw {used(*(one.raw.metrics for one in results))} →")
    axis.set_ylabel("← excess leakage")
    axis.set_title(PANELS[panel], fontsize=10, pad=18)
    axis.spines[["top", "right"]].set_visible(False)


def _span(each: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """What a panel shows of values with bars below and above: 0 and 1, all values, and a part of long bars."""
    low, high = min([0.0, *(value for value, *_ in each)]), max([1.0, *(value for value, *_ in each)])
    longest = (
        min([low, *(value - below for value, below, _ in each)]),
        max([high, *(v + above for v, _, above in each)]),
    )
    return max(longest[0], low - BARS), min(longest[1], high + BARS)


def stretched(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where a retention stands: 0 is that of raw video."""
    return np.sign(np.subtract(x, 1)) * np.sqrt(np.abs(np.subtract(x, 1)))


def _back(s: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 + np.sign(s) * np.square(s)


def ticks(begin: float, end: float) -> list[float]:
    """Of `TICKS` those between these retentions that are not printed over each other."""
    left, right = stretched(np.array([begin, end]))
    found: dict[float, float] = {}
    for tick in TICKS:
        place = float((stretched(np.array(tick)) - left) / (right - left))
        if begin <= tick <= end and all(abs(place - other) >= APART for other in found.values()):
            found[tick] = place
    return sorted(found)


def _bars(value: float, interval: Sequence[float | None] | None) -> tuple[float, float]:
    """Lengths of the bars below and above; none where there is no interval."""
    low, high = (*(interval or ()), None, None)[:2]
    if low is None or high is None or not isfinite(high - low):
        return 0.0, 0.0
    return max(0.0, value - low), max(0.0, high - value)


def _excess(point: Point, panel: str) -> float | None:
    if panel == "attributes":
        return point.attribute_excess
    metric = point.metrics.get("linkage_rank1")
    return metric.excess if metric else None


def _excess_interval(point: Point, panel: str) -> Sequence[float | None] | None:
    if panel == "attributes":
        return point.attribute_excess_interval
    metric = point.metrics.get("linkage_rank1")
    return metric.excess_interval if metric else None


def _attacked(results: Results, panel: str) -> bool:
    return _excess(results.raw, panel) is not None


def _guessing(results: Results) -> float | None:
    """The retention of always saying the largest class; of a random order, where there are several actions at once."""
    utility = results.raw.utility
    return utility.floor / utility.value if utility is not None and utility.value else None
