"""Masks over a moving figure: action accuracy and linkage in five classes of UCF101.

    python -m experiments.real_video.figure_table --workers 4               trains and evaluates; run again to continue
    python -m experiments.real_video.figure_table --only pixels,rand25      these rows, and what they need
    python -m experiments.real_video.figure_table --list                    the commands
    python -m experiments.real_video.figure_table --summary                 of finished runs, into results/figure_table/

An `experiments.job_queue`; videos are found in VIDVEIL_DATA. One seed, split 1. Evaluators see 16 frames of 112 ×
112: I3D from Kinetics, trained on what is shown for the action, and frozen and trained for linkage within a class,
each in three spaces. Of these six attackers, linkage is that of the one that does best on validation people;
`highest` is the highest on test people, chosen in hindsight. Differences are those of the best row minus the other,
in the same draws of people.
"""

import argparse
from pathlib import Path
from typing import Any

from experiments.job_queue import Job, add_options, run_or_list, write_json
from experiments.markdown import interval, table, with_interval
from vidveil.evaluation.results import read as read_results
from vidveil.report.paired import Method, Setting, differences, method
from vidveil.report.same_clips import Run, comparable
from vidveil.statistics.intervals import RESAMPLES, Resamples

RESULTS = Path(__file__).parent / "results" / "figure_table"
BEST = "pixels"
PREPROCESS = "figure:14"
RAW = "raw112"
EVALUATION = ("size=112", "seeds=[0]", "checkpoint_seconds=600")
MODES = {
    "pixels": ["train_on=pixels", "privacy_attention=reversed", "head_weight=1", "smooth=false"],
    "attribution": ["train_on=attribution", "privacy_attention=plain", "head_weight=0.1", "smooth=true"],
    "heads": ["train_on=heads", "privacy_attention=reversed", "head_weight=0.1", "smooth=false"],
}
"""Of dual-CLS, all over `figure:14`; `heads` is the paper's Algorithm 1, `pixels` its eq. 7."""
WHOLE = {
    "fig14": ["method=figure:14"],
    "fig20": ["method=figure:20"],
    "fig8": ["method=figure:8"],
    "mot16": ["method=motion:16"],
    "rand25": ["method=random", "keep=[0.25]"],
    "rand10": ["method=random", "keep=[0.1]"],
}
"""Baselines that learn nothing; random is random pruning of raw video."""
MASKS = {
    "e_pixels": ("pixels", "", "0.737", []),
    "e_pixels_888": ("pixels", "", "0.888", []),
    "e_pixels_63": ("pixels", "", "0.63", []),
    "e_pixels_l0": ("pixels", "", "0.737", ["privacy_weight=0"]),
    "e_attribution": ("attribution", "", "0.737", []),
    "e_heads": ("heads", "", "0.737", []),
    "e_random": ("attribution", "random:", "0.737", []),
    "e_random_888": ("attribution", "random:", "0.888", []),
}
"""Run → mode, prefix for random tubelets, keep rate, further words. Random tubelets are the same for all networks."""
TITLES = {
    "fig14": "`figure:14`", "fig20": "`figure:20`", "fig8": "`figure:8`", "mot16": "`motion:16`",
    "rand25": "random tubelets of raw video, 0.25", "rand10": "random tubelets of raw video, 0.1",
    "e_pixels": "`pixels` over the figure, `--keep 0.737`", "e_pixels_888": "`pixels` over the figure, 0.888",
    "e_pixels_63": "`pixels` over the figure, 0.63", "e_pixels_l0": "`pixels` over the figure, 0.737, λ = 0",
    "e_attribution": "`attribution` over the figure, 0.737", "e_heads": "the paper's `heads` over the figure, 0.737",
    "e_random": "random tubelets over the figure, 0.737", "e_random_888": "random tubelets over the figure, 0.888",
}  # fmt: skip
METRICS = ("action_top1", "linkage_rank1")


def jobs() -> list[Job]:
    alone = ("controls=[]", "control_attackers=[]")
    found = [Job(RAW, (("evaluate", "raw_ucf101_5", *EVALUATION, *alone, f"name={RAW}"),), row="raw")]
    for name, words in WHOLE.items():
        command = ("evaluate", "raw_ucf101_5", *words, *EVALUATION, *alone, f"raw={RAW}", "tidy=true", f"name={name}")
        found.append(Job(name, (command,), (RAW,), name))
    for mode, words in MODES.items():
        common = (f"preprocess={PREPROCESS}", "keep=0.9", "epochs=40", "validate_every=40", "checkpoint_seconds=600")
        command = ("train", "dual_cls_ucf101_5", *words, *common, f"name=d_{mode}")
        found.append(Job(f"d_{mode}", (command,), row=f"train-{mode}"))
    for name, (mode, prefix, keep, words) in MASKS.items():
        settings = (f"method={prefix}dual_cls:d_{mode}", f"keep=[{keep}]", *words)
        command = ("evaluate", "dual_cls_ucf101_5_table", *settings, *EVALUATION, f"raw={RAW}", f"name={name}")
        found.append(Job(name, (command,), (RAW, f"d_{mode}"), name.removeprefix("e_")))
    return found


def summary(runs: Path) -> dict[str, Any]:
    """Of all finished rows, the best one first."""
    best = f"e_{BEST}"
    names = [best, *(name for name in TITLES if name != best and (runs / name / "results.json").is_file())]
    opened, reasons = comparable([(file, read_results(file)) for file in (runs / n / "results.json" for n in names)])
    for reason in reasons:
        print(f"left out: {reason}")
    draws = Resamples(opened[0].people, resamples=int(opened[0].results.recipe.get("resamples", RESAMPLES)))
    methods = {run.name: method(run, draws) for run in opened}
    raw = opened[0].results.raw.metrics
    return {
        "data": opened[0].results.data["name"], "clips": len(opened[0].people), "best": best,
        "raw": {name: [raw[name].value, *raw[name].interval] for name in METRICS},
        "floors": {name: raw[name].floor for name in METRICS},
        "rows": {run.name: row(run, methods[run.name], methods[best]) for run in opened},
    }  # fmt: skip


def row(run: Run, one: Method, best: Method) -> dict[str, Any]:
    """Its only setting: on test people, on validation people by the chosen attacker, and the best row minus it."""
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
        found["minus"] = {name: with_interval(pairs[name]) for name in METRICS}
    return found


def _shares(setting: Setting) -> dict[str, Any]:
    """Shares of raw video's numbers, and of all tubelets."""
    excess = setting.excess.estimate if setting.excess else None
    measured = {"retention": setting.retention, "excess": excess}
    shares: dict[str, Any] = {name: with_interval(one) for name, one in measured.items() if one is not None}
    return shares if setting.share is None else shares | {"share": setting.share}


def figure_table(found: dict[str, Any]) -> str:
    head = ["", "kept", "top-1", "linkage", "excess", "highest linkage", "excess",
            "best minus it, top-1", "linkage", "validation: top-1", "linkage"]  # fmt: skip
    rows = [["raw video", "", *(interval(found["raw"][name]) for name in METRICS), "1", *[""] * 6]]
    for name, one in found["rows"].items():
        cells = [TITLES[name], f"{one['share']:.2f}" if "share" in one else ""]
        cells += [interval(one[metric]) for metric in METRICS]
        cells += [interval(one["excess"]), f"{one['highest']:.2f}", f"{one['highest_excess']:.2f}"]
        cells += [interval(one["minus"][metric]) if "minus" in one else "" for metric in METRICS]
        rows.append([*cells, *(f"{one['validation'][metric]:.2f}" for metric in METRICS)])
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--summary", action="store_true", help="of what is finished")
    add_options(parser)
    options = parser.parse_args()
    if options.summary:
        write_json(RESULTS / "summary.json", summary(options.runs))
    else:
        run_or_list(jobs(), options, RESULTS)


if __name__ == "__main__":
    main()
