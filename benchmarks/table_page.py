"""`table.py`'s numbers as a page and as a picture."""

from pathlib import Path
from typing import Any

from dual_cls_summary import interval
from table import ROWS

SETS = {"ucf101_5": "Five classes of UCF101, splits 1 to 3", "weizmann": "Weizmann, three folds of three people"}
PARTS = {"whole": "As it was filmed", "crop": "People alone, cut out"}
Rows = dict[str, Any]


def page(found: dict[str, Any]) -> str:
    lines = ["# The table of real video", "", WORDS]
    for name, title in SETS.items():
        for part, shown in PARTS.items():
            rows = found[name]["parts"].get(part)
            if rows:
                named = found["weizmann_named"]["parts"].get(part, {}) if name == "weizmann" else {}
                places = found[name]["parts"].get("median", {}) if part == "whole" else {}
                lines += [f"## {title}: {shown[0].lower()}{shown[1:]}", "", grid(rows | places, named), ""]
    return "\n".join(lines)


def grid(rows: Rows, named: Rows) -> str:
    head = ["", "kept", "top-1", "retention", "linkage", "excess", "highest linkage", "minus lots, excess", "by"]
    head += ["named, top-1", "excess"] if named else []
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    order = sorted(rows, key=lambda name: list(ROWS).index(name))
    for name in order:
        for i, one in enumerate(rows[name]["settings"]):
            cells = row(name, one)
            if named:
                told = named[name]["settings"][i]["identity_top1"] if name in named else None
                cells += [interval(told["value"]), interval(told["share"])] if told else ["", ""]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def row(name: str, one: dict[str, Any]) -> list[str]:
    use, linked = one.get("action_top1"), one["linkage_rank1"]
    highest = max(each["test"] for each in linked["others"].values())
    title = ROWS[name].title + (", trained judges" if ROWS[name].trained else "")
    return [
        title,
        f"{one['keep']:g}" if one.get("keep") else "",
        interval(use["value"]) if use else "",
        interval(use["share"]) if use else "",
        interval(linked["value"]),
        interval(linked["share"]),
        f"{highest:.2f}",
        minus(one.get("minus_lots")),
        linked["by"],
    ]


def minus(found: dict[str, Any] | None) -> str:
    """Why there is no difference is told below the table."""
    if found is None:
        return ""
    if "minus" not in found:
        return "–"
    return interval(found["minus"]) + (" *" if found.get("at") else "")


def picture(found: dict[str, Any], path: Path) -> None:
    """Retention to the right, excess of linkage upwards: a panel for each set and part."""
    from matplotlib.figure import Figure

    from vidveil.report.plot import COLOURS, MARKERS

    figure = Figure(figsize=(11, 9), dpi=130, layout="constrained")
    axes = figure.subplots(len(SETS), len(PARTS), squeeze=False)
    drawn = [name for name in ROWS if name not in ("raw", "median", "t-raw")]
    for line, (name, title) in zip(axes, SETS.items(), strict=True):
        for axis, (part, shown) in zip(line, PARTS.items(), strict=True):
            rows = found[name]["parts"].get(part, {})
            for i, each in enumerate(drawn):
                if each not in rows:
                    continue
                places = [
                    (one["action_top1"]["share"][0], one["linkage_rank1"]["share"][0]) for one in rows[each]["settings"]
                ]
                style = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], "markersize": 5}
                label = ROWS[each].title + (", trained judges" if ROWS[each].trained else "")
                axis.plot(*zip(*places, strict=True), label=label, **style)
            axis.plot(1, 1, "k*", markersize=10)
            axis.set_title(f"{title}\n{shown.lower()}", fontsize=9)
            axis.set_xlabel("retention: top-1 / raw top-1")
            axis.set_ylabel("excess of linkage")
            axis.grid(alpha=0.2)
    handles = {
        label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(path, format="png")


WORDS = """TODO"""
