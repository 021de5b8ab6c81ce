"""STPrivacy's figure 4, drawn from `experiments.stprivacy.figure4`'s summary."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.stprivacy.figure4 import BOTH, COLUMNS, TITLES
from vidveil.report.colours import COLOURS, GREY, MARKERS

LEAKAGES = {"attributes": "excess, attributes", "linkage": "excess, linkage"}
LINES = 3
"""Of a legend above a column."""


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Top-1 over leakage: the upper left corner is best."""
    shown = {column: places for column, places in COLUMNS.items() if _finished(found, places)}
    figure = Figure(figsize=(11, 6.2), dpi=150, layout="constrained")
    axes = figure.subplots(len(LEAKAGES), len(shown), sharex="row", sharey=True, squeeze=False)
    for line, (leakage, title) in zip(axes, LEAKAGES.items(), strict=True):
        for axis, column in zip(line, shown, strict=True):
            _panel(axis, found, column, leakage)
            axis.set_xlabel(title, fontsize=10)
        line[0].set_ylabel("top-1", fontsize=10)
    for axis, column in zip(axes[0], shown, strict=True):
        if not (count := len(axis.get_legend_handles_labels()[0])):
            continue
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": math.ceil(count / LINES)}
        spaces = {"handletextpad": 0.2, "columnspacing": 0.8, "labelspacing": 0.25, "borderaxespad": 0.3}
        axis.legend(title=TITLES[column], title_fontsize=11, fontsize=10, frameon=False, **above, **spaces)
    at = (1, found["raw"]["action_top1"])
    axes[0][0].annotate("raw video", at, (-6, 0), textcoords="offset points", fontsize=9, ha="right", va="center")
    figure.savefig(path, format="png")


def _finished(found: Mapping[str, Any], places: Mapping[str, str]) -> bool:
    """Whether a column has anything of its own to show."""
    return any(setting in found["settings"] for setting in places.values() if setting != BOTH)


def _panel(axis: Axes, found: Mapping[str, Any], column: str, leakage: str) -> None:
    """The recipe itself is black in every column. Large: the mean and its interval over people; small: each seed."""
    axis.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
    axis.plot(1, found["raw"]["action_top1"], marker="*", markersize=9, color=GREY, linestyle="none")
    places = {label: found["settings"].get(setting) for label, setting in COLUMNS[column].items()}
    shown = {label: one for label, one in places.items() if one and one[leakage]["mean"]}
    if column == "deployed":
        line = [(one[leakage]["mean"][0], one["top1"]["mean"][0]) for one in shown.values()]
        axis.plot(*zip(*line, strict=True), color=GREY, linewidth=1.2, zorder=1)
    for number, (label, one) in enumerate(shown.items()):
        own = COLUMNS[column][label] == BOTH
        colour, marker = ("black", "o") if own else (COLOURS[number % len(COLOURS)], MARKERS[1 + number])
        (x, *across), (y, *along) = one[leakage]["mean"], one["top1"]["mean"]
        axis.errorbar(
            x,
            y,
            xerr=_bars(x, across),
            yerr=_bars(y, along),
            color=colour,
            marker=marker,
            markersize=6,
            elinewidth=0.8,
            linestyle="none",
            label=label,
            zorder=3 if own else 2,
        )
        seeds = one[leakage]["seeds"]
        axis.scatter(seeds, one["top1"]["seeds"][: len(seeds)], s=7, color=colour, alpha=0.45, linewidths=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=9)


def _bars(value: float, interval: Sequence[float | None]) -> list[list[float]]:
    """Lengths to either side; none where there is no interval."""
    low, high = (value if end is None else end for end in interval)
    return [[max(0.0, value - low)], [max(0.0, high - value)]]
