"""Masks over a moving figure: what is left of the action, and of who it is, in five classes of UCF101.

    python benchmarks/figure_table.py --workers 4               trains and judges; run again to go on
    python benchmarks/figure_table.py --only pixels,rand25      these rows, and what they need
    python benchmarks/figure_table.py --list                    the commands
    python benchmarks/figure_table.py --summary                 of finished runs, into results/figure_table/
    python benchmarks/figure_table.py --page                    the summary as Markdown, as it stands in the docs

A `job_queue`; videos are found in VIDVEIL_DATA. One seed, split 1, judges see 16 frames of 112 × 112: I3D from
Kinetics, trained on what is shown for the action, and frozen and trained on it for linkage within a class, each in
three spaces. Of these six, linkage is that of the one that does best on validation people; `highest` is the highest of
them on test people, chosen in hindsight. Differences are those of the best row minus the other, in the same draws of
people.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from dual_cls_summary import interval, told
from job_queue import Job, go_on, options_of

from vidveil.evaluation.results import read as read_results
from vidveil.report.paired import Method, Setting, differences, method
from vidveil.report.same_clips import Run, comparable
from vidveil.statistics.intervals import RESAMPLES, Resamples

RESULTS = Path(__file__).parent / "results" / "figure_table"
BEST = "pixels"
AFTER = "figure:14"
RAW = "raw112"
JUDGING = ("size=112", "seeds=[0]", "checkpoint_seconds=600")
MODES = {
    "pixels": ["train_on=pixels", "privacy_attention=reversed", "head_weight=1", "smooth=false"],
    "credit": ["train_on=credit", "privacy_attention=plain", "head_weight=0.1", "smooth=true"],
    "heads": ["train_on=heads", "privacy_attention=reversed", "head_weight=0.1", "smooth=false"],
}
"""Of dual-CLS, all after `figure:14`; `heads` is the paper's Algorithm 1, `pixels` its eq. 7."""
WHOLE = {
    "fig14": ["method=figure:14"],
    "fig20": ["method=figure:20"],
    "fig8": ["method=figure:8"],
    "mot16": ["method=motion:16"],
    "rand25": ["method=random", "keep=[0.25]"],
    "rand10": ["method=random", "keep=[0.1]"],
}
"""What learns nothing; random is pruning of raw video by lot."""
MASKS = {
    "e_pixels": ("pixels", "", "0.737", []),
    "e_pixels_888": ("pixels", "", "0.888", []),
    "e_pixels_63": ("pixels", "", "0.63", []),
    "e_pixels_l0": ("pixels", "", "0.737", ["privacy_weight=0"]),
    "e_credit": ("credit", "", "0.737", []),
    "e_heads": ("heads", "", "0.737", []),
    "e_lots": ("credit", "random:", "0.737", []),
    "e_lots_888": ("credit", "random:", "0.888", []),
}
"""Run → mode, lots instead of its choice, keep rate, knobs. RandomPruning are the same behind every network."""
TITLES = {
    "fig14": "`figure:14`", "fig20": "`figure:20`", "fig8": "`figure:8`", "mot16": "`motion:16`",
    "rand25": "lots, raw video, 0.25", "rand10": "lots, raw video, 0.1",
    "e_pixels": "`pixels` after figure, `--keep 0.737`", "e_pixels_888": "`pixels` after figure, 0.888",
    "e_pixels_63": "`pixels` after figure, 0.63", "e_pixels_l0": "`pixels` after figure, 0.737, λ = 0",
    "e_credit": "`credit` after figure, 0.737", "e_heads": "the paper's `heads` after figure, 0.737",
    "e_lots": "lots after figure, 0.737", "e_lots_888": "lots after figure, 0.888",
}  # fmt: skip
METRICS = ("action_top1", "linkage_rank1")


def jobs() -> list[Job]:
    alone = ("controls=[]", "control_attackers=[]")
    found = [Job(RAW, ("evaluate", "raw_ucf101_5", *JUDGING, *alone, f"name={RAW}"), of="raw")]
    for name, words in WHOLE.items():
        command = ("evaluate", "raw_ucf101_5", *words, *JUDGING, *alone, f"raw={RAW}", "tidy=true", f"name={name}")
        found.append(Job(name, command, (RAW,), of=name))
    for mode, words in MODES.items():
        common = (f"after={AFTER}", "keep=0.9", "epochs=40", "validate_every=40", "checkpoint_seconds=600")
        command = ("train", "dual_cls_ucf101_5", *words, *common, f"name=d_{mode}")
        found.append(Job(f"d_{mode}", command, makes="checkpoint/checkpoint.json", of=f"train-{mode}"))
    for name, (mode, lots, keep, knobs) in MASKS.items():
        chosen = (f"method={lots}dual_cls:d_{mode}", f"keep=[{keep}]", *knobs)
        command = ("evaluate", "dual_cls_ucf101_5_table", *chosen, *JUDGING, f"raw={RAW}", f"name={name}")
        found.append(Job(name, command, (RAW, f"d_{mode}"), of=name.removeprefix("e_")))
    return found


def summary(runs: Path) -> dict[str, Any]:
    """Of all finished rows, the best one first."""
    best = f"e_{BEST}"
    names = [best, *(name for name in TITLES if name != best and (runs / name / "results.json").is_file())]
    opened, reasons = comparable([(file, read_results(file)) for file in (runs / n / "results.json" for n in names)])
    for reason in reasons:
        print(f"left out: {reason}")
    draws = Resamples(opened[0].people, resamples=int(opened[0].results.recipe.get("resamples", RESAMPLES)))
    judged = {run.name: method(run, draws) for run in opened}
    raw = opened[0].results.raw.metrics
    return {
        "data": opened[0].results.data["name"], "clips": len(opened[0].people), "best": best,
        "raw": {name: [raw[name].value, *raw[name].interval] for name in METRICS},
        "floors": {name: raw[name].floor for name in METRICS},
        "rows": {run.name: row(run, judged[run.name], judged[best]) for run in opened},
    }  # fmt: skip


def row(run: Run, one: Method, best: Method) -> dict[str, Any]:
    """Its only setting: on test people, on validation people by what was chosen there, and the best row minus it."""
    (setting,), (point,) = one.settings, run.results.points
    metrics = point.metrics
    found: dict[str, Any] = {name: [metrics[name].value, *metrics[name].interval] for name in METRICS}
    found["validation"] = {name: metrics[name].others[metrics[name].measured_by]["val"] for name in METRICS}
    linked = metrics["linkage_rank1"]
    highest = max(each["test"] for each in linked.others.values())
    above = run.results.raw.metrics["linkage_rank1"]
    found |= {"by": linked.measured_by, "highest": highest}
    found["highest_excess"] = (highest - linked.floor) / (above.value - above.floor)
    found |= _shares(setting)
    if one is not best:
        pairs = {pair.metric: pair.difference for pair in differences(best, one)}
        found["minus"] = {name: told(pairs[name]) for name in METRICS}
    return found


def _shares(setting: Setting) -> dict[str, Any]:
    """Of what raw video has, and of all tubelets."""
    excess = setting.excess.estimate if setting.excess else None
    measured = {"retention": setting.retention, "excess": excess}
    shares: dict[str, Any] = {name: told(one) for name, one in measured.items() if one is not None}
    return shares if setting.share is None else shares | {"share": setting.share}


def page(found: dict[str, Any]) -> str:
    head = ["", "of the picture", "top-1", "linkage", "excess", "highest linkage", "excess",
            "best minus it, top-1", "linkage", "validation: top-1", "linkage"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    raw = ["raw", "", *(interval(found["raw"][name]) for name in METRICS), "1", "", "", "", "", "", ""]
    lines.append("| " + " | ".join(raw) + " |")
    for name, one in found["rows"].items():
        cells = [TITLES[name], f"{one['share']:.2f}" if "share" in one else ""]
        cells += [interval(one[metric]) for metric in METRICS]
        cells += [interval(one["excess"]), f"{one['highest']:.2f}", f"{one['highest_excess']:.2f}"]
        cells += [interval(one["minus"][metric]) if "minus" in one else "" for metric in METRICS]
        cells += [f"{one['validation'][metric]:.2f}" for metric in METRICS]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--summary", action="store_true", help="of what is finished")
    parser.add_argument("--page", action="store_true", help="the summary as Markdown")
    options_of(parser)
    options = parser.parse_args()
    file = RESULTS / "summary.json"
    if options.summary:
        RESULTS.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(summary(options.runs), indent=1) + "\n", encoding="utf-8")
    if options.page:
        print(page(json.loads(file.read_text(encoding="utf-8"))))
    if not options.summary and not options.page:
        go_on(jobs(), options, RESULTS)


if __name__ == "__main__":
    main()
