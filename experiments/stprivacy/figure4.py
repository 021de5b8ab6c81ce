"""Figure 4 of STPrivacy (Li et al., ICCV 2023) on synthetic people: the effect of its parts and settings.

    python -m experiments.stprivacy.figure4 --workers 10            trains and evaluates; run again to continue
    python -m experiments.stprivacy.figure4 --only parts,alpha0.5   these columns or settings, and what they need
    python -m experiments.stprivacy.figure4 --list                  the commands, and which are done
    python -m experiments.stprivacy.figure4 --summary --draw        numbers of finished runs, and a picture of them

An `experiments.job_queue`, with results in experiments/stprivacy/results/. Each setting differs from STPrivacy's recipe
in one thing, is trained once per seed, and is evaluated at the α that it was trained with, like the rows of
`experiments.dual_cls.table` and against the same run of raw video. Trainings that this table needs as well are shared:
use the same --runs. One column is not in the paper: `deployed`, where the α of trained networks is changed.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.dual_cls.table import (
    EVALUATION,
    RAW,
    SEEDS,
    STPRIVACY,
    TRAINING,
    evaluation_job,
    training_jobs,
    world_of,
)
from experiments.job_queue import Job, add_options, read_json, run_or_list, write_json
from experiments.markdown import interval, table, with_interval
from vidveil.evaluation.results import Point, read
from vidveil.report.paired import Setting, method
from vidveil.report.same_clips import Run, comparable
from vidveil.statistics.intervals import RESAMPLES, Estimate, Resamples, difference

RESULTS = Path(__file__).parent / "results"
BOTH = "both"
"""STPrivacy's recipe: it drops tubelets, and draws the others anew."""
PARTS = {"sparse": "stprivacy-sparse", "anonymous": "stprivacy-anonymous", BOTH: "stprivacy"}
"""Setting → row of `experiments.dual_cls.table`."""
ALPHA = 0.7
VALUES: dict[str, tuple[float, tuple[float, ...]]] = {
    "alpha": (ALPHA, (0.5, 0.6, 0.7, 0.8, 0.9)),
    "tubelet_frames": (2, (1, 2, 4)),
    "action_weight": (0.5, (0.25, 0.5, 1)),
    "privacy_weight": (0.5, (0.25, 0.5, 1)),
}
"""Recipe key → its default, and the values that are tried."""
DEPLOYED = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5)
CHANGED = {
    f"{key}{value:g}": [f"{key}={value:g}"] for key, (own, values) in VALUES.items() for value in values if value != own
}
TRAINED = {name: STPRIVACY[row] for name, row in PARTS.items()} | CHANGED
"""Setting → words of its training commands."""
COLUMNS: dict[str, dict[str, str]] = {
    "parts": {name: name for name in PARTS},
    **{
        key: {f"{value:g}": BOTH if value == own else f"{key}{value:g}" for value in values}
        for key, (own, values) in VALUES.items()
    },
    "deployed": {f"{alpha:g}": BOTH if alpha == ALPHA else f"deployed{alpha:g}" for alpha in DEPLOYED},
}
"""Column → label of a point → its setting."""
TITLES = {
    "parts": "parts",
    "alpha": "α in training",
    "tubelet_frames": "δT, frames",
    "action_weight": "λ of the action",
    "privacy_weight": "λ of privacy",
    "deployed": "α at deployment",
}


def jobs(
    rho: str,
    training: Sequence[str] = TRAINING,
    evaluation: Sequence[str] = EVALUATION,
    seeds: Sequence[int] = SEEDS,
) -> list[Job]:
    """Raw video, then all trainings, then their evaluations."""
    end, data = world_of(rho)
    raw = evaluation_job(f"raw{end}", "raw", RAW, [*evaluation, *data], seeds=seeds)
    trained, evaluated = list[Job](), list[Job]()
    for name, words in TRAINED.items():
        row = PARTS.get(name, f"stprivacy-{name}")
        networks = training_jobs(row, end, "stprivacy_puppets", words, [*training, *data], seeds)
        keep = DEPLOYED if name == BOTH else ()
        keeps = "keep=[" + ",".join(f"{one:g}" for one in keep) + "]"
        evaluated_words = [f"method=stprivacy:train-{row}{end}-{{seed}}", keeps]
        needs = tuple(job.name for job in networks)
        settings = [*evaluation, *data]
        evaluated.append(
            evaluation_job(run_of(name, rho), name, evaluated_words, settings, raw=raw.name, needs=needs, seeds=seeds)
        )
        trained += networks
    return [raw, *trained, *evaluated]


def run_of(setting: str, rho: str) -> str:
    """Unlike a row of `experiments.dual_cls.table`, whose name ends with the world."""
    return f"figure4{world_of(rho)[0]}-{setting}"


def with_columns(only: str) -> str:
    """The settings of columns instead of their names."""
    words = [setting for word in only.split(",") for setting in COLUMNS.get(word, {word: word}).values()]
    return ",".join(dict.fromkeys(BOTH if word.startswith("deployed") else word for word in words))


def summary(runs: Path, rho: str) -> dict[str, Any]:
    """Utility and leakage of all finished settings, and their differences from STPrivacy's recipe in the same draws of
    people, if that is finished."""
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
            deployed = name == BOTH and setting.keep != ALPHA
            found[f"deployed{setting.keep:g}" if deployed else name] = (run, setting)
    own = found[BOTH][1] if BOTH in found else None
    raw = results.raw.metrics
    return {
        "data": results.data["name"],
        "people": results.data["people"]["test"],
        "attackers": results.recipe["attackers"],
        "raw": {name: raw[name].value for name in ("action_top1", "linkage_rank1", "cmap") if name in raw},
        "settings": {name: numbers(run, setting, own) for name, (run, setting) in found.items()},
    }


def numbers(run: Run, setting: Setting, own: Setting | None) -> dict[str, Any]:
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
    found |= {
        name: {"mean": with_interval(one) if one else None, "seeds": list(seeds[name])} for name, one in ours.items()
    }
    if own is not None and setting is not own:
        pairs = {name: (one, estimates(own)[name]) for name, one in ours.items()}
        found["minus"] = {
            name: with_interval(difference(one, other)) if one and other else None
            for name, (one, other) in pairs.items()
        }
    return found


def estimates(setting: Setting) -> dict[str, Estimate | None]:
    return {
        "top1": setting.numbers["action_top1"],
        "retention": setting.retention,
        "linkage": setting.leakage("linkage"),
        "attributes": setting.leakage("attributes"),
    }


def attributes_by_seed(point: Point, raw: Point) -> tuple[float, ...]:
    """Excess over all measurable attributes, as shares of raw video's means."""
    names = [name for name in point.metrics if name.startswith("ap_")]
    measured = [name for name in names if name.removeprefix("ap_") not in point.not_measurable]
    whole = sum(raw.metrics[name].value - raw.metrics[name].floor for name in measured)
    floor = sum(point.metrics[name].floor for name in measured)
    seeds = zip(*(point.metrics[name].seeds for name in measured), strict=True)
    return tuple((sum(values) - floor) / whole for values in seeds)


def settings_table(found: dict[str, Any]) -> str:
    """A line per setting."""
    rows = []
    for column, places in COLUMNS.items():
        for label, setting in places.items():
            if one := found["settings"].get(setting):
                cells = [interval(one[name]["mean"]) for name in ("top1", "linkage", "attributes")]
                rows.append([TITLES[column], label, str(len(one["top1"]["seeds"])), *cells])
    return table(["", "", "trainings", "top-1", "excess, linkage", "excess, attributes"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rho", default="0", choices=["0", "0.5", "1"])
    parser.add_argument("--summary", action="store_true", help="of what is finished: figure4.json")
    parser.add_argument("--draw", action="store_true", help="a table and a picture of figure4.json")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)), help="0: one training per setting")
    add_options(parser, f"{','.join(COLUMNS)} (columns), or sparse,alpha0.5 ({BOTH} is STPrivacy's recipe)")
    options = parser.parse_args()
    file = RESULTS / f"figure4{'' if options.rho == '0' else f'-rho{options.rho}'}.json"
    if options.summary:
        write_json(file, summary(options.runs, options.rho))
    if options.draw:
        from experiments.stprivacy.figure4_picture import draw

        draw(read_json(file), file.with_suffix(".png"))
        print(settings_table(read_json(file)), f"\nwrote {file.with_suffix('.png')}")
    if options.summary or options.draw:
        return
    options.only = with_columns(options.only)
    run_or_list(jobs(options.rho, seeds=[int(seed) for seed in options.seeds.split(",")]), options, RESULTS)


if __name__ == "__main__":
    main()
