"""The numbers of `table.py`: each row on all splits of a set together, beside tubelets by lot at equal retention.

Clips of all splits are put side by side, and people are drawn from all of them: different ones in each split, but for
those of Weizmann who are named, and who are in every split. Floors are means over the clips that asked. Who attacks is
chosen split by split, on the validation people of that split: those of others may be its test people. On Weizmann,
where two people validate, many attackers are equal in rank-1; of these the best in average precision counts.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dual_cls_summary import told
from table import LEARNED, MODES, NAMED, PARTS, ROWS, SETS, STRONG, TRAINED, Row, raw_of, run_of
from table_lots import beside_lots
from table_pooled import LINKAGE, METRICS, TOP1, merged, pooled

from vidveil.evaluation.results import Metric, Point
from vidveil.evaluation.results import read as read_results
from vidveil.report.paired import Method, Setting, method
from vidveil.report.same_clips import Run, open_run
from vidveil.statistics.intervals import Estimate, Resamples
from vidveil.statistics.tradeoff import Leak, excess, retention

BESIDE = {"whole": "whole", "crop": "crop", "median": "whole"}
"""Part → the part whose raw video a share is one of."""


def summary(runs: Path, before: dict[str, Any]) -> dict[str, Any]:
    """Set → its splits, how much was tested, and by part of what was filmed the rows that are finished. What is not
    among the runs is as it was `before`."""
    found: dict[str, Any] = {}
    for name, folds in SETS.items():
        found[name] = dict(before.get(name, {"splits": list(folds.values()), "parts": {}}))
        if all(_file(runs, "raw", "whole", end).is_file() for end in folds):
            people = pooled([_open(runs, "raw", "whole", end) for end in folds], folds).people
            found[name] |= {"clips": len(people), "people": len(np.unique(people))}
            if name == "ucf101_5":
                found[name]["attributes"] = {part: attributes(runs, folds, part) for part in PARTS}
        now = {part: rows_of(runs, folds, part) for part in (*PARTS, "median")}
        now["strongest"] = {} if folds is NAMED else strongest_of(runs, folds)
        then = found[name]["parts"]
        for part, rows in then.items():
            for row, told_then in rows.items():
                of = then.get(BESIDE.get(part, ""), {})
                if "raw" not in told_then and row in ROWS and raw_of(row) in of:
                    told_then["raw"] = raw_numbers(of[raw_of(row)])
        parts = {part: joined(then.get(part, {}), rows) for part, rows in now.items()}
        found[name]["parts"] = {part: _in_order(rows) for part, rows in parts.items() if rows}
    return found


def joined(then: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The newer rows, but none on fewer splits than an older one has."""

    def splits(row: dict[str, Any]) -> float:
        return len(row["splits"]) if "splits" in row else np.inf

    return then | {name: row for name, row in now.items() if splits(row) >= splits(then.get(name, {"splits": ()}))}


def replaced(then: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Rows of learned networks that another training took the place of, as they were: `SET PART ROW` → row."""

    def links(row: dict[str, Any]) -> list[Any]:
        return [one[LINKAGE]["value"] for one in row["settings"]]

    return {
        f"{of} {part} {name}": row
        for of, about in then.items()
        for part, rows in about["parts"].items()
        for name, row in rows.items()
        if name in ROWS and ROWS[name].mode and links(now[of]["parts"][part][name]) != links(row)
    }


def trainings(runs: Path, before: dict[str, Any]) -> dict[str, Any]:
    """Networks that hide → what validation people say of them, with what guessing gets. Those that are not among the
    runs are as they were `before`."""
    found = dict(before)
    for mode in MODES:
        for end in LEARNED:
            file = runs / f"d-{mode}-{end}" / "checkpoint" / "checkpoint.json"
            if file.is_file():
                about = json.loads(file.read_text(encoding="utf-8"))
                keys = ("data", "method", "after", "train_on", "keep", "alpha", "epochs")
                recipe = {key: about["recipe"][key] for key in keys if key in about["recipe"]}
                found[f"d-{mode}-{end}"] = recipe | {key: about[key] for key in ("metrics", "floors")}
    return found


def raw_numbers(row: dict[str, Any]) -> dict[str, list[float]]:
    """Of the row of raw video: metric → value and floor, which shares of other rows are of."""
    (one,) = row["settings"]
    return {name: [one[name]["value"][0], one[name]["floor"]] for name in METRICS if name in one}


def _in_order(rows: dict[str, Any]) -> dict[str, Any]:
    return {name: rows[name] for name in ROWS | STRONG if name in rows}


def attributes(runs: Path, folds: dict[str, str], part: str) -> dict[str, list[str]]:
    """Split → those that raw video leaks measurably."""
    left = {}
    for end, data in folds.items():
        raw = _open(runs, "raw", part, end).results.raw
        names = [name[3:] for name in raw.metrics if name.startswith("ap_")]
        left[data] = [name for name in names if name not in raw.not_measurable]
    return left


def rows_of(runs: Path, folds: dict[str, str], part: str) -> dict[str, Any]:
    """What is finished on some of the splits only is told of these; `splits` has their names."""
    found = {}
    lots: dict[tuple[str, ...], dict[str, Method]] = {}
    for name, row in ROWS.items():
        shown = {name: part, raw_of(name): BESIDE[part]}
        ends = tuple(end for end in folds if all(_file(runs, which, of, end).is_file() for which, of in shown.items()))
        if part not in row.parts or not ends:
            continue
        if ends not in lots:
            lots[ends] = lots_of(runs, folds, part, ends)
        run, beside = (
            pooled([_open(runs, which, of, end) for end in ends], folds)
            for which, of in ((name, part), (raw_of(name), BESIDE[part]))
        )
        found[name] = settings(run, beside, row, lots[ends])
        if len(ends) < len(folds):
            found[name]["splits"] = [folds[end] for end in ends]
    return found


def lots_of(runs: Path, folds: dict[str, str], part: str, ends: Sequence[str]) -> dict[str, Method]:
    """Judges → tubelets by lot, on these splits; in the same draws of people as any other row on them."""
    found = {}
    for name, row in ROWS.items():
        if row.is_random_pruning and part in row.parts and all(_file(runs, name, part, end).is_file() for end in ends):
            run = pooled([_open(runs, name, part, end) for end in ends], folds)
            found[row.judges] = method(run, Resamples(run.people))
    return found


def settings(run: Run, beside: Run, row: Row, lots: dict[str, Method]) -> dict[str, Any]:
    """All of a row; `lots` are those that the same judges judged, and it may be one of them."""
    draws = Resamples(run.people)
    raw = (run if run.results.points else beside).results.raw
    about = {
        "commit": str(run.results.machine.get("commit") or ""),
        "raw": {name: [raw.metrics[name].value, raw.metrics[name].floor] for name in METRICS if name in raw.metrics},
    }
    if not run.results.points:
        return about | {"settings": [numbers(run, run.results.raw, draws, beside)]}
    judged = method(run, draws)
    rival = None if row.is_random_pruning else lots.get(row.judges)
    points = zip(judged.settings, run.results.points, strict=True)
    return about | {"settings": [setting(run, one, point, rival, draws) for one, point in points]}


def strongest_of(runs: Path, folds: dict[str, str]) -> dict[str, Any]:
    """Rows that were judged by all kinds of trained networks: by the best for the use and the strongest for linkage, as
    validation people choose them."""
    found = {}
    lots: dict[str, Method] = {}
    for name, row in STRONG.items():
        names = [f"{letter}-{name}" for letter in TRAINED]
        if not all(_file(runs, one, "crop", end).is_file() for one in names for end in folds):
            continue
        run = pooled(
            [merged([_open(runs, one, "crop", end) for one in names]) for end in folds], folds, (TOP1, LINKAGE)
        )
        if row.is_random_pruning:
            lots[row.judges] = method(run, Resamples(run.people))
        found[name] = settings(run, run, row, lots)
    return found


def setting(run: Run, one: Setting, point: Point, lots: Method | None, draws: Resamples) -> dict[str, Any]:
    found: dict[str, Any] = {"keep": one.keep, "share": one.share} | numbers(run, point, draws, run)
    left = one.excess.estimate if one.excess else None
    if lots is not None and one.retention is not None and left is not None:
        found["minus_lots"] = beside_lots(one, left, lots)
    return found


def numbers(run: Run, point: Point, draws: Resamples, beside: Run) -> dict[str, Any]:
    """Each with its floor, its seeds and everybody who tried; and its share of what raw video gives `beside`."""
    found: dict[str, Any] = {}
    raw = beside.results.raw
    for name in METRICS:
        if name not in point.metrics:
            continue
        metric, value = point.metrics[name], draws.mean(run.values(point, name))
        if name == TOP1:
            share: Estimate | None = retention(value, draws.mean(beside.values(raw, name)))
        else:
            share = excess(_leak(run, point, name, draws), _leak(beside, raw, name, draws)).estimate
        found[name] = {
            "value": told(value),
            "share": told(share) if share else None,
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
    """Of everybody who tried, on test people: in hindsight."""
    return max(one["test"] for one in metric.others.values())


def _leak(run: Run, point: Point, name: str, draws: Resamples) -> Leak:
    chance = run.chance(point, name)
    value = draws.mean(run.values(point, name))
    return Leak("rank-1", value, point.metrics[name].floor, None if chance is None else draws.mean(chance))


def _open(runs: Path, name: str, part: str, end: str) -> Run:
    file = _file(runs, name, part, end)
    return open_run(file, read_results(file))


def _file(runs: Path, name: str, part: str, end: str) -> Path:
    return runs / run_of(name, part, end) / "results.json"
