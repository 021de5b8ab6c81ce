"""The numbers of `experiments.real_video.table`: each row on all splits of a set, compared with random tubelets.

Clips of all splits are pooled, and people are drawn from all of them: different people in each split, except the known
people of Weizmann, who are in every split. Floors are means over the clips that were queries. The attacker is chosen
split by split, on the validation people of that split: those of other splits may be its test people. On Weizmann, where
two people validate, many attackers have the same rank-1; of these the best in average precision counts.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.job_queue import read_json
from experiments.markdown import with_interval
from experiments.real_video.pooled import METRICS, TOP1, pooled
from experiments.real_video.table import MODES, PARTS, ROWS, SETS, TRAINED_ON, Row, raw_of, run_of
from vidveil.core.errors import DataError
from vidveil.evaluation.results import Metric, Point
from vidveil.evaluation.results import read as read_results
from vidveil.report.paired import Method, Setting, compared_with_curve, method
from vidveil.report.same_clips import Run, open_run
from vidveil.statistics.intervals import Estimate, Resamples, difference
from vidveil.statistics.tradeoff import Measurement, excess, retention

RAW_PART = {"whole": "whole", "crop": "crop", "median": "whole"}
"""Part → the part of raw video that its shares are of."""


def summary(runs: Path, before: dict[str, Any]) -> dict[str, Any]:
    """Set → its splits, how much was tested, and by part the finished rows. Rows that are not in `runs` stay as they
    were `before`."""
    found: dict[str, Any] = {}
    for name, folds in SETS.items():
        found[name] = dict(before.get(name, {"splits": list(folds.values()), "parts": {}}))
        if all(_file(runs, "raw", "whole", end).is_file() for end in folds):
            people = pooled([_open(runs, "raw", "whole", end) for end in folds], folds).people
            found[name] |= {"clips": len(people), "people": len(np.unique(people))}
            if name == "ucf101_5":
                found[name]["attributes"] = {part: attributes(runs, folds, part) for part in PARTS}
        then = found[name]["parts"]
        parts = {part: then.get(part, {}) | rows_of(runs, folds, part) for part in (*PARTS, "median")}
        found[name]["parts"] = {
            part: {row: rows[row] for row in ROWS if row in rows} for part, rows in parts.items() if rows
        }
    return found


def trainings(runs: Path, before: dict[str, Any]) -> dict[str, Any]:
    """Anonymizer → its numbers on validation people, with what guessing gets. Those that are not in `runs` stay as they
    were `before`."""
    found = dict(before)
    for mode in MODES:
        for end in TRAINED_ON:
            file = runs / f"d-{mode}-{end}" / "checkpoint" / "checkpoint.json"
            if file.is_file():
                checkpoint = read_json(file)
                keys = ("data", "method", "preprocess", "train_on", "keep", "alpha", "epochs")
                recipe = {key: checkpoint["recipe"][key] for key in keys if key in checkpoint["recipe"]}
                found[f"d-{mode}-{end}"] = recipe | {key: checkpoint[key] for key in ("metrics", "floors")}
    return found


def attributes(runs: Path, folds: dict[str, str], part: str) -> dict[str, list[str]]:
    """Split → attributes that raw video leaks measurably."""
    left = {}
    for end, data in folds.items():
        raw = _open(runs, "raw", part, end).results.raw
        names = [name[3:] for name in raw.metrics if name.startswith("ap_")]
        left[data] = [name for name in names if name not in raw.not_measurable]
    return left


def rows_of(runs: Path, folds: dict[str, str], part: str) -> dict[str, Any]:
    """Rows that are finished on all splits."""
    finished = [
        name
        for name, row in ROWS.items()
        if part in row.parts
        and all(_file(runs, name, part, end).is_file() for end in folds)
        and all(_file(runs, raw_of(name), RAW_PART[part], end).is_file() for end in folds)
    ]

    def together(name: str, part: str) -> Run:
        return pooled([_open(runs, name, part, end) for end in folds], folds)

    baselines = {
        ROWS[name].recipe: method(run, Resamples(run.people))
        for name in finished
        if ROWS[name].is_random_pruning and (run := together(name, part))
    }
    return {
        name: settings(together(name, part), together(raw_of(name), RAW_PART[part]), ROWS[name], baselines)
        for name in finished
    }


def settings(run: Run, raw_run: Run, row: Row, baselines: dict[str, Method]) -> dict[str, Any]:
    """All settings of a row. `baselines`: recipe of the evaluators → random tubelets; the row may be one of them."""
    draws = Resamples(run.people)
    raw = (run if run.results.points else raw_run).results.raw
    about = {
        "commit": str(run.results.machine.get("commit") or ""),
        "raw": {name: [raw.metrics[name].value, raw.metrics[name].floor] for name in METRICS if name in raw.metrics},
    }
    if not run.results.points:
        return about | {"settings": [numbers(run, run.results.raw, draws, raw_run)]}
    baseline = None if row.is_random_pruning else baselines.get(row.recipe)
    pairs = zip(method(run, draws).settings, run.results.points, strict=True)
    return about | {"settings": [of_setting(run, one, point, baseline, draws) for one, point in pairs]}


def of_setting(run: Run, one: Setting, point: Point, baseline: Method | None, draws: Resamples) -> dict[str, Any]:
    found: dict[str, Any] = {"keep": one.keep, "share": one.share} | numbers(run, point, draws, run)
    left = one.excess.estimate if one.excess else None
    if baseline is not None and one.retention is not None and left is not None:
        found["minus_random"] = minus_random(one, left, baseline)
    return found


def minus_random(one: Setting, left: Estimate, baseline: Method) -> dict[str, Any]:
    """Excess minus that of random tubelets where they keep as much utility. A row that keeps at least as much as raw
    video, in all or in a draw of people, is compared with raw video there: random tubelets that keep everything."""
    assert one.retention is not None
    kept = one.retention
    if kept.value >= 1:
        raw = Estimate(1.0, np.ones(len(left.samples)), drawn=left.drawn)
        return {"minus": with_interval(difference(left, raw)), "at": "raw video"}
    if reason := baseline.why_no_curve():
        raise DataError(f"{baseline.name} has no excess to read at a retention: {reason}")
    capped = replace(kept, value=min(kept.value, 1.0), samples=np.minimum(kept.samples, 1.0))
    compared = compared_with_curve(replace(one, retention=capped), baseline)
    assert compared is not None
    if compared.difference is None:
        return {"reason": compared.second.reason or compared.first.reason}
    read = compared.second
    return {
        "minus": with_interval(compared.difference),
        "next_to_raw": read.next_to_raw,
        "several": read.ambiguous,
    }


def numbers(run: Run, point: Point, draws: Resamples, raw_run: Run) -> dict[str, Any]:
    """Each with its floor, its seeds, every attacker that was tried, and its share of raw video's."""
    found: dict[str, Any] = {}
    raw = raw_run.results.raw
    for name in METRICS:
        if name not in point.metrics:
            continue
        metric, value = point.metrics[name], draws.mean(run.values(point, name))
        if name == TOP1:
            share: Estimate | None = retention(value, draws.mean(raw_run.values(raw, name)))
        else:
            share = excess(_leak(run, point, name, draws), _leak(raw_run, raw, name, draws)).estimate
        found[name] = {
            "value": with_interval(value),
            "share": with_interval(share) if share else None,
            "seeds": metric.seeds,
            "floor": metric.floor,
            "by": metric.measured_by,
            "others": metric.others,
        }
        if name != TOP1:
            above = [_highest(one) - one.floor for one in (metric, raw.metrics[name])]
            found[name] |= {"highest": _highest(metric), "highest_share": above[0] / above[1]}
    return found


def _highest(metric: Metric) -> float:
    """Of every attacker that was tried, on test people: chosen in hindsight."""
    return max(one["test"] for one in metric.others.values())


def _leak(run: Run, point: Point, name: str, draws: Resamples) -> Measurement:
    chance = run.chance(point, name)
    value = draws.mean(run.values(point, name))
    return Measurement("rank-1", value, point.metrics[name].floor, None if chance is None else draws.mean(chance))


def _open(runs: Path, name: str, part: str, end: str) -> Run:
    file = _file(runs, name, part, end)
    return open_run(file, read_results(file))


def _file(runs: Path, name: str, part: str, end: str) -> Path:
    return runs / run_of(name, part, end) / "results.json"
