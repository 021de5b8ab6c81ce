"""The picture of SPLAVU's table."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.splavu.page import TITLES
from experiments.splavu.table import SHARES, WEIGHTS

STYLES = {
    "action_top1": ("#2a6fbb", "top-1"),
    "linkage_rank1": ("#c0392b", "linkage"),
    "cmap": ("#d99a2b", "attributes, cMAP"),
}


def picture(found: dict[str, Any], path: Path) -> None:
    """Utility and leakage over the weight of latent consistency, and over the share that is erased."""
    shown = [of for of in ("puppets", "ucf101_5") if of in found]
    figure = Figure(figsize=(10, 3.4 * len(shown)), layout="constrained")
    axes = figure.subplots(len(shown), 2, squeeze=False, sharey=True)
    for line, of in zip(axes, shown, strict=True):
        settings = found[of]["settings"]
        for axis, kinds in zip(line, ("weights", "shares"), strict=True):
            _curves(axis, settings, kinds)
        line[0].set_ylabel(f"{TITLES[of]}\n", fontsize=9)
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), fontsize=7, loc="outside lower center", ncols=2, handlelength=4
    )
    figure.savefig(path, dpi=130)


def _curves(axis: Axes, settings: dict[str, Any], kind: str) -> None:
    if kind == "weights":
        weights = sorted(WEIGHTS)
        curves = {
            title: [(float(weight), name if weight == 100 else f"{name}-lc{weight}") for weight in weights]
            for title, name in (("erased", "ours"), ("as published", "apart"))
        }
        axis.set(xscale="symlog", xlabel="weight of latent consistency")
        axis.set_xticks(weights, map(str, weights))
    else:
        shares = [(share, "ours" if share == 0.75 else f"erase{share:g}") for share in SHARES]
        curves = {"erased": [(0.0, "apart"), *shares]}
        axis.set(xlabel="share of directions that is erased", xlim=(-0.03, 1.03))
    for name, points in curves.items():
        found = [(x, settings[run]["anew"]) for x, run in points if run in settings]
        xs = [x for x, _ in found]
        for metric, (colour, title) in STYLES.items():
            if not found or any(metric not in one for _, one in found):
                continue
            values, lows, highs = zip(*(one[metric]["value"] for _, one in found), strict=True)
            line = "--" if name == "as published" else "-"
            axis.plot(xs, values, line, color=colour, marker="o", ms=3, label=f"{title}, {name}")
            axis.fill_between(xs, lows, highs, color=colour, alpha=0.1)
    for metric, (colour, _) in STYLES.items():
        if metric in settings["raw"]["anew"]:
            axis.axhline(settings["raw"]["anew"][metric]["floor"], color=colour, lw=0.8, ls=":")
    axis.set_ylim(0, 1.02)
    axis.grid(alpha=0.2)
