"""Gait and bias of features before and behind adapters (SPLAVU's tables 7 and 3).

    python -m experiments.splavu.gait_bias --workers 2            trains and evaluates; run again to continue
    python -m experiments.splavu.gait_bias --only bias_puppets    this row, and what it needs
    python -m experiments.splavu.gait_bias --list                 the commands, and which are done

An `experiments.job_queue`, with results in results/gait_bias/; tables: `experiments.tables`. Three adapters per row,
one for each seed; those of `experiments.splavu.table` are shared: use the same --runs. Real videos are found in
VIDVEIL_DATA.
"""

import argparse
from dataclasses import dataclass
from functools import partial
from typing import Any

from experiments.job_queue import Job, Words, add_options, read_json, run_or_list
from experiments.markdown import interval, table
from experiments.splavu import table as adapters

RESULTS = adapters.RESULTS / "gait_bias"


@dataclass(frozen=True)
class Row:
    run: str
    title: str
    adapter: str
    """Its run, without the seed."""
    training: Words = ()
    """Recipe and words of its command, if it is none of `experiments.splavu.table`."""
    words: Words = ()
    """Of the evaluation."""


@dataclass(frozen=True)
class Study:
    recipe: str
    rows: tuple[Row, ...]
    metrics: tuple[str, ...]
    """Shown with their changes."""
    head: tuple[str, ...]


BIASED = ("splavu_puppets", "data=puppets:bias_f")
SCOPES = tuple(f"gait_rank1_{scope}_view" for scope in ("same", "cross", "any"))
GAIT_HEAD = ("features", "same view", "change", "cross view", "change", "any view", "change")
STUDIES = {
    "gait-casia": Study(
        "gait_features",
        (
            Row("gait_casia_latent", "published losses, each clip by itself", "s-apart-u1"),
            Row("gait_casia_no_latent", "the same without latent consistency", "s-apart-lc0-u1"),
            Row("gait_casia_ours", "ours, 0.75 erased", "s-ours-u1"),
            Row("gait_casia_ours_no_latent", "ours without latent consistency", "s-ours-lc0-u1"),
        ),
        SCOPES,
        GAIT_HEAD,
    ),
    "gait-puppets": Study(
        "gait_features_puppets",
        (
            Row("gait_puppets_published", "published losses, each clip by itself", "s-apart-p"),
            Row("gait_puppets_published_no_latent", "the same without latent consistency", "s-apart-lc0-p"),
            Row("gait_puppets_latent", "ours, 0.75 erased", "s-ours-p"),
            Row("gait_puppets_no_latent", "ours without latent consistency", "s-ours-lc0-p"),
        ),
        SCOPES,
        GAIT_HEAD,
    ),
    "bias": Study(
        "bias_features_puppets",
        (
            Row("bias_puppets_published", "published losses, trained there", "splavu_bias_kept", (*BIASED, "erase=0")),
            Row("bias_puppets", "ours, trained there", "splavu_bias", BIASED),
            Row(
                "bias_puppets_no_latent",
                "ours, trained there without latent consistency",
                "splavu_bias_lc0",
                (*BIASED, "latent_weight=0"),
            ),
            Row("bias_puppets_elsewhere_published", "published losses, trained without the shortcut", "s-apart-p"),
            Row("bias_puppets_elsewhere", "ours, trained without the shortcut", "s-ours-p"),
            Row(
                "bias_puppets_elsewhere_m",
                "the other way round: ours, trained without the shortcut",
                "s-ours-p",
                (),
                ("data=puppets:bias_m",),
            ),
        ),
        ("action_top1_shortcut_gap",),
        ("features", "women", "men", "gap", "p", "change of the gap", "top-1 of all"),
    ),
}


def jobs() -> list[Job]:
    found = adapters.jobs()
    for study in STUDIES.values():
        for row in study.rows:
            if row.training:
                recipe, *words = row.training
                found += adapters.training_jobs(row.run, recipe, words, row.adapter)
            method = f"method=splavu:{row.adapter}-{{seed}}"
            command = ("evaluate", study.recipe, *row.words, method, adapters.EVALUATED_SEEDS, f"name={row.run}")
            needs = tuple(f"{row.adapter}-{seed}" for seed in adapters.SEEDS)
            found.append(Job(row.run, (command,), needs, row.run))
    return found


def read(run: str) -> dict[str, Any]:
    found: dict[str, Any] = read_json(RESULTS / f"{run}.json")
    return found


def study_table(name: str) -> str:
    study = STUDIES[name]
    lines = []
    raw: Any = None
    for row in study.rows:
        results = read(row.run)
        if results["raw"] != raw:  # of another set, or the first
            raw = results["raw"]
            title = "the other way round: raw" if "other way round" in row.title else "raw"
            lines.append(_cells(study, title, raw["metrics"]))
        lines.append(_cells(study, row.title, results["points"][0]["metrics"]))
    return table(study.head, lines)


def _cells(study: Study, title: str, metrics: dict[str, Any]) -> list[str]:
    cells = [title]
    if "gap" in study.head:
        cells += [_value(metrics[f"action_top1_shortcut_{group}"]) for group in ("f", "m")]
        (of,) = study.metrics
        cells += [_value(metrics[of]), f"{metrics[of]['p']:.3f}", _change(metrics[of])]
        cells.append(f"{metrics['action_top1']['value']:.2f}")
    else:
        cells += [cell for of in study.metrics for cell in (_value(metrics[of]), _change(metrics[of]))]
    return cells


def _value(metric: dict[str, Any]) -> str:
    return interval([metric["value"], *metric["interval"]])


def _change(metric: dict[str, Any]) -> str:
    if metric.get("change") is None:
        return ""
    low, high = metric["change_interval"]
    return f"{metric['change']:+.2f} [{low:+.2f}, {high:+.2f}]"


TABLES = {name: partial(study_table, name) for name in STUDIES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, "bias_puppets,gait_casia_ours")
    options = parser.parse_args()
    options.only = options.only or ",".join(row.run for study in STUDIES.values() for row in study.rows)
    run_or_list(jobs(), options, RESULTS)


if __name__ == "__main__":
    main()
