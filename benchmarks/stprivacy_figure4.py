"""Figure 4 of STPrivacy (Li et al., ICCV 2023) on the built-in people: what its parts and settings are worth.

    python benchmarks/stprivacy_figure4.py --workers 10            trains and judges; run again to go on
    python benchmarks/stprivacy_figure4.py --only parts,alpha0.5   these columns or settings, and what they need
    python benchmarks/stprivacy_figure4.py --list                  the commands: done, or by another one
    python benchmarks/stprivacy_figure4.py --summary --draw        numbers of finished runs, and a picture of them

A `job_queue`, with results in benchmarks/results/stprivacy/. Each setting differs from STPrivacy as it is in one thing,
is trained once a seed, and is judged at the α it was trained with, as the rows of `dual_cls_table` are and beside the
same run of raw video. What that table trains, too, is trained once: take the same --runs. One column is not the
paper's: `deployed`, where the α of trained networks is changed.
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dual_cls_table import JUDGING, LEARNING, RAW, SEEDS, STPRIVACY, judging_of, trainings, world_of
from job_queue import Job, go_on, options_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vidveil.evaluation.results import Point
    from vidveil.report.paired import Setting
    from vidveil.report.same_clips import Run
    from vidveil.statistics.intervals import Difference, Estimate

RESULTS = Path(__file__).parent / "results" / "stprivacy"
BOTH = "both"
"""STPrivacy as it is: it drops, and draws."""
PARTS = {"sparse": "stprivacy-sparse", "anonymous": "stprivacy-anonymous", BOTH: "stprivacy"}
"""Rows of `dual_cls_table`."""
ALPHA = 0.7
VALUES: dict[str, tuple[float, tuple[float, ...]]] = {
    "alpha": (ALPHA, (0.5, 0.6, 0.7, 0.8, 0.9)),
    "tubelet_frames": (2, (1, 2, 4)),
    "action_weight": (0.5, (0.25, 0.5, 1)),
    "privacy_weight": (0.5, (0.25, 0.5, 1)),
}
"""Of keys of the recipe: its own, and those that are tried."""
DEPLOYED = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5)
CHANGED = {
    f"{key}{value:g}": [f"{key}={value:g}"] for key, (own, values) in VALUES.items() for value in values if value != own
}
TRAINED = {name: STPRIVACY[row] for name, row in PARTS.items()} | CHANGED
"""Settings, and what their trainings are told."""
COLUMNS: dict[str, dict[str, str]] = {
    "parts": {name: name for name in PARTS},
    **{
        key: {f"{value:g}": BOTH if value == own else f"{key}{value:g}" for value in values}
        for key, (own, values) in VALUES.items()
    },
    "deployed": {f"{alpha:g}": BOTH if alpha == ALPHA else f"deployed{alpha:g}" for alpha in DEPLOYED},
}
"""Column → what is written beside a point → its setting."""
TITLES = {
    "parts": "parts",
    "alpha": "α in training",
    "tubelet_frames": "δT, frames",
    "action_weight": "λ of the action",
    "privacy_weight": "λ of privacy",
    "deployed": "α in use",
}
LEAKAGES = {"attributes": "excess, attributes", "linkage": "excess, linkage"}
LINES = 3
"""Of what stands above a column."""


def jobs(rho: str, learning: list[str], judging: list[str], seeds: Sequence[int] = SEEDS) -> list[Job]:
    """Raw video, then all trainings, then all that judge them."""
    end, about = world_of(rho)
    raw = judging_of(f"raw{end}", "raw", RAW, [*judging, *about], seeds=seeds)
    trained, judged = list[Job](), list[Job]()
    for name, how in TRAINED.items():
        row = PARTS.get(name, f"stprivacy-{name}")
        networks = trainings(row, end, "stprivacy_puppets", how, [*learning, *about], seeds)
        keep = DEPLOYED if name == BOTH else ()
        what = [f"method=stprivacy:train-{row}{end}-{{seed}}", "keep=[" + ",".join(f"{one:g}" for one in keep) + "]"]
        needs = tuple(job.name for job in networks)
        run = run_of(name, rho)
        judged.append(judging_of(run, name, what, [*judging, *about], raw=raw.name, needs=needs, seeds=seeds))
        trained += networks
    return [raw, *trained, *judged]


def run_of(setting: str, rho: str) -> str:
    """Not as a row of `dual_cls_table`, whose names end in the world."""
    return f"figure4{world_of(rho)[0]}-{setting}"


def with_columns(only: str) -> str:
    """The settings of columns in place of their names."""
    words = [setting for word in only.split(",") for setting in COLUMNS.get(word, {word: word}).values()]
    return ",".join(dict.fromkeys(BOTH if word.startswith("deployed") else word for word in words))


def summary(runs: Path, rho: str) -> dict[str, Any]:
    """Use and leakage of all that is finished, of as many trainings as each has, and how they differ from STPrivacy as
    it is, if that is finished, in the same draws of people."""
    from vidveil.evaluation.results import read
    from vidveil.report.paired import method
    from vidveil.report.same_clips import comparable
    from vidveil.statistics.intervals import RESAMPLES, Resamples

    files = [file for name in (BOTH, *TRAINED) if (file := runs / run_of(name, rho) / "results.json").is_file()]
    if not files:
        raise SystemExit(f"nothing of figure 4 is finished in {runs}")
    opened, reasons = comparable([(file, read(file)) for file in dict.fromkeys(files)])
    for reason in reasons:
        print(f"left out: {reason}")
    if not opened or (files[0].parent.name == run_of(BOTH, rho) != opened[0].name):
        raise SystemExit(f"{files[0].parent.name} cannot be compared with: see above")
    results = opened[0].results
    draws = Resamples(opened[0].people, resamples=int(results.recipe.get("resamples", RESAMPLES)))
    found: dict[str, tuple[Run, Setting]] = {}
    for run in opened:
        name = run.name.removeprefix(run_of("", rho))
        for setting in method(run, draws).settings:
            turned = name == BOTH and setting.keep != ALPHA
            found[f"deployed{setting.keep:g}" if turned else name] = (run, setting)
    own = found[BOTH][1] if BOTH in found else None
    raw = results.raw.metrics
    return {
        "data": results.data["name"],
        "people": results.data["people"]["test"],
        "attackers": results.recipe["attackers"],
        "raw": {name: raw[name].value for name in ("action_top1", "linkage_rank1", "cmap") if name in raw},
        "settings": {name: numbers(run, setting, own) for name, (run, setting) in found.items()},
    }


def numbers(run: "Run", setting: "Setting", own: "Setting | None") -> dict[str, Any]:
    """Means over seeds with their intervals over people, and each seed."""
    point = next(point for point in run.results.points if point.keep == setting.keep)
    seeds = {
        "top1": setting.numbers["action_top1"].per_seed,
        "retention": tuple(kept for kept, _ in setting.by_seed),
        "linkage": tuple(leak for _, leak in setting.by_seed),
        "attributes": attributes_by_seed(point, run.results.raw),
    }
    ours = estimates(setting)
    found: dict[str, Any] = {"share": setting.share}
    found |= {name: {"mean": _told(one), "seeds": list(seeds[name])} for name, one in ours.items()}
    if own is not None and setting is not own:
        theirs = estimates(own)
        found["minus"] = {name: _told(_difference(one, theirs[name])) for name, one in ours.items()}
    return found


def estimates(setting: "Setting") -> "dict[str, Estimate | None]":
    return {
        "top1": setting.numbers["action_top1"],
        "retention": setting.retention,
        "linkage": setting.leakage("linkage"),
        "attributes": setting.leakage("attributes"),
    }


def attributes_by_seed(point: "Point", raw: "Point") -> tuple[float, ...]:
    """Excess over all measurable attributes, as shares of raw video's means."""
    names = [name for name in point.metrics if name.startswith("ap_")]
    measured = [name for name in names if name.removeprefix("ap_") not in point.not_measurable]
    whole = sum(raw.metrics[name].value - raw.metrics[name].floor for name in measured)
    floor = sum(point.metrics[name].floor for name in measured)
    seeds = zip(*(point.metrics[name].seeds for name in measured), strict=True)
    return tuple((sum(values) - floor) / whole for values in seeds)


def _difference(one: "Estimate | None", other: "Estimate | None") -> "Difference | None":
    from vidveil.statistics.intervals import difference

    return difference(one, other) if one and other else None


def _told(value: "Estimate | Difference | None") -> list[float | None] | None:
    from dual_cls_summary import told

    return None if value is None else told(value)


def told_of(found: Mapping[str, Any]) -> str:
    """Markdown, a line a setting."""
    from dual_cls_summary import interval

    lines = ["| | | trainings | top-1 | excess, linkage | excess, attributes |", "|---|---|---|---|---|---|"]
    for column, places in COLUMNS.items():
        for label, setting in places.items():
            if one := found["settings"].get(setting):
                cells = [interval(one[name]["mean"]) for name in ("top1", "linkage", "attributes")]
                lines.append(f"| {TITLES[column]} | {label} | {len(one['top1']['seeds'])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Top-1 upwards and leakage to the right, so the upper left corner is the best one."""
    from matplotlib.figure import Figure

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


def _panel(axis: "Axes", found: Mapping[str, Any], column: str, leakage: str) -> None:
    """STPrivacy as it is is black in every column; large: the mean and its interval over people, small: each seed."""
    from vidveil.report.plot import COLOURS, GREY, MARKERS

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rho", default="0", choices=["0", "0.5", "1"])
    parser.add_argument("--summary", action="store_true", help="of what is finished: figure4.json")
    parser.add_argument("--draw", action="store_true", help="of figure4.json a table, and a picture: figure4.png")
    parser.add_argument("--into", type=Path, default=RESULTS, help="folder of both")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)), help="0: one training a setting")
    parser.add_argument("--learning", default=",".join(LEARNING), help="KEY=VALUE,… of trainings of the method")
    parser.add_argument("--judging", default=";".join(JUDGING), help="KEY=VALUE;… of judges and attackers")
    options_of(parser, f"{','.join(COLUMNS)} (columns), or sparse,alpha0.5 ({BOTH} is STPrivacy as it is)")
    options = parser.parse_args()
    file = options.into / f"figure4{'' if options.rho == '0' else f'-rho{options.rho}'}.json"
    if options.summary:
        found = summary(options.runs, options.rho)
        options.into.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {file}, of {len(found['settings'])} settings")
    if options.draw:
        found = json.loads(file.read_text(encoding="utf-8"))
        draw(found, file.with_suffix(".png"))
        print(told_of(found), f"\nwrote {file.with_suffix('.png')}")
    if options.summary or options.draw:
        return
    options.only = with_columns(options.only)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    go_on(jobs(options.rho, options.learning.split(","), options.judging.split(";"), seeds), options, options.into)


if __name__ == "__main__":
    main()
