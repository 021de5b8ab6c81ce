"""The picture of real video: excess of linkage over retention."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.real_video.page import PARTS, SETS
from vidveil.report.colours import COLOURS, MARKERS

CURVES = {
    "random tubelets": ("random",),
    "most-moving tubelets": ("moving",),
    "tubelets in the middle": ("centre",),
    "grey frame difference, as it is and in blocks": ("motion", "motion8"),
    "downsampled, × 2, 4, 8": ("down2", "down4", "down8"),
    "moving figure, not turned; turned by up to 15, 25, 40 degrees": (
        "figure14",
        "recast14-15",
        "recast14-25",
        "recast14",
    ),
    "dual-CLS as in the paper": ("paper",),
    "dual-CLS over turned figures": ("best",),
    "random tubelets over turned figures": ("best-random",),
    "STPrivacy": ("stprivacy",),
}
"""Series whose points differ in strength alone. Rows that are in no series are in the tables."""
POINTS = {
    "faces, blurred or black": ("blur-faces", "black-faces"),
    "people, blurred or black": ("blur-people", "black-people"),
    "masks alone, of dual-CLS and STPrivacy": ("paper-mask", "best-mask", "stprivacy-mask"),
}
"""Series of different things."""


def picture(found: dict[str, Any], path: Path) -> None:
    """One panel per set and part."""
    figure = Figure(figsize=(11, 9), dpi=130, layout="constrained")
    axes = figure.subplots(len(SETS), len(PARTS), squeeze=False)
    for line, (name, title) in zip(axes, SETS.items(), strict=True):
        for axis, (part, shown) in zip(line, PARTS.items(), strict=True):
            rows = found[name]["parts"].get(part, {})
            for i, (label, members) in enumerate((CURVES | POINTS).items()):
                settings = [one for each in members if each in rows for one in rows[each]["settings"]]
                if not settings:
                    continue
                places = [_place(one, by_highest=name == "weizmann") for one in settings]
                marker = MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]  # no two series look the same
                style = {"color": COLOURS[i % len(COLOURS)], "marker": marker, "markersize": 6, "linewidth": 1}
                axis.plot(
                    *zip(*places, strict=True), label=label, linestyle="-" if label in CURVES else "none", **style
                )
            axis.plot(1, 1, "k*", markersize=10, label="raw video")
            axis.set_title(f"{title}\n{shown.lower()}", fontsize=9)
            axis.set_xlabel("retention: top-1 / raw top-1 →")  # the lower right corner is the best one
            axis.set_ylabel("← excess of linkage" + (", by the highest" if name == "weizmann" else ""))
            axis.set_xlim(0.05, 1.1)
            axis.set_ylim(-0.05, 1.15)
            axis.grid(alpha=0.2)
    handles = {
        label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.savefig(path, format="png")


def _place(one: dict[str, Any], *, by_highest: bool) -> tuple[float, float]:
    linked = one["linkage_rank1"]
    return one["action_top1"]["share"][0], linked["highest_share"] if by_highest else linked["share"][0]
