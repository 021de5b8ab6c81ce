"""The trade-off as a picture: what is kept to the right, what leaks upwards; the best corner is the lower right one.

    x   retention, top-1 (or cMAP) / raw; left of the grey line the action is not predicted better than by guessing
        stretched towards the right (by √ of what is lost), where the methods lie that anybody would use
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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vidveil.core.atomic import new_file
from vidveil.core.errors import OutputError
from vidveil.core.progress import phase
from vidveil.evaluation.results import Point, Results
from vidveil.report.several_methods import by_method
from vidveil.report.tables import used

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C510A", "#7F7F7F"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
GREY = "#6b6b6b"
NAMED = 4
"""Runs whose settings can be named without covering each other."""
TICKS = (0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
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
def trade_off(results: Sequence[Results], path: Path) -> None:
    """Draw all runs into one PNG."""
    try:
        from matplotlib.figure import Figure  # slow to import; no window and no global state this way
    except ImportError as error:
        raise OutputError("the picture needs matplotlib: pip install matplotlib") from error

    results = [one for several in results for one in by_method(several)]
    panels = [panel for panel in PANELS if any(places(one, panel) or _attacked(one, panel) for one in results)]
    figure = Figure(figsize=(5.4 * max(1, len(panels)) + 0.4, 4.8), dpi=150, layout="constrained")
    axes = figure.subplots(1, max(1, len(panels)), squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=False):
        _panel(axis, results, panel)
    runs = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if runs:
        figure.legend(runs.values(), runs.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    if not panels:
        axes[0].text(0.5, 0.5, "nothing was attacked in these results", ha="center", va="center", color=GREY)
        axes[0].set_axis_off()
    try:
        with new_file(path) as file:
            figure.savefig(file, format="png")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


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
    roomy = guess > 0.3  # then words stand left of the line, where no useful method is
    axis.text(0 if roomy else guess + 0.01, 0.01, "floor: nothing leaks", color=GREY, fontsize=8, va="bottom")
    if guess:
        axis.axvline(guess, color=GREY, linewidth=1, linestyle=":")
        raw_number, ha = (guess - 0.01, "right") if roomy else (guess + 0.01, "left")
        axis.text(raw_number, 0.5, "guessing the action", color=GREY, fontsize=8, rotation=90, va="center", ha=ha)
    axis.plot(1, 1, marker="*", markersize=14, color="black", linestyle="none", label="raw video", zorder=4)
    heights, widths = [1.0, 0.0], [0.0, 1.0]
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
            heights += [place.y - place.down, place.y + place.up]
            widths += [place.x - place.left, place.x + place.right]
    end = max(widths) + 0.005
    axis.set_xscale("function", functions=(lambda x: -np.sqrt(np.maximum(end - x, 0)), lambda s: end - np.square(s)))
    axis.set_xlim(min(widths) - 0.02, end)
    axis.set_xticks([tick for tick in TICKS if tick >= min(widths) - 0.02], minor=False)
    axis.set_ylim(min(heights) - 0.08, max(heights) + 0.08)
    axis.set_xlabel(f"retention: share of raw {used(*(one.raw.metrics for one in results))} →")
    axis.set_ylabel("← excess leakage")
    axis.set_title(PANELS[panel], fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


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
