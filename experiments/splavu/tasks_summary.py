"""The numbers of `experiments.splavu.tasks`, with changes from raw features in the same draws of test people or videos.

Numbers are those of the evaluations. The five folds of fights are joined as means; their test videos are different, so
the variances of the means, taken from the width of their intervals, add up.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.splavu.tasks import EVALUATORS, SETTINGS, evaluation_job
from vidveil.evaluation.results import Metric, Point, Results
from vidveil.evaluation.results import read as read_results

Number = dict[str, Any]
LEFT_OUT = ("ap_", "auroc_", "linkage_rank1_", "linkage_map", "f1")
"""How metrics begin that no table here shows."""


def summary(runs: Path, before: dict[str, Any]) -> dict[str, Any]:
    """Set → setting (raw among them) → evaluator → metric → numbers. Settings without finished runs stay as they were
    `before`, if raw features had the same results then; a setting with finished runs is replaced as a whole."""
    found = finished(runs)
    for of, then in before.items():
        now = found.setdefault(of, {"raw": then["raw"]})
        shared = [evaluator for evaluator in EVALUATORS[of] if evaluator in then["raw"] and evaluator in now["raw"]]
        unlike = [one for one in shared if _rounded(then["raw"][one]) != _rounded(now["raw"][one])]
        if unlike:
            print(f"left out: earlier settings of {of}; raw features then had other results ({', '.join(unlike)})")
            continue
        found[of] = then | now | {"raw": then["raw"] | now["raw"]}
    return {of: {name: own[name] for name in ("raw", *SETTINGS) if name in own} for of, own in found.items()}


def _rounded(numbers: dict[str, Number]) -> dict[str, float]:
    return {name: round(number["value"][0], 4) for name, number in numbers.items()}


def finished(runs: Path) -> dict[str, Any]:
    """The same of finished runs alone."""
    found: dict[str, Any] = {}
    for name, setting in SETTINGS.items():
        for evaluator in EVALUATORS[setting.set]:
            files = [runs / run / "results.json" for run in evaluation_job(name, evaluator).runs]
            if not all(file.is_file() for file in files):
                continue
            results = [read_results(file) for file in files]
            own = found.setdefault(setting.set, {"raw": {"tasks": []}})
            own["raw"].setdefault(evaluator, numbers([one.raw for one in results]))
            row = own.setdefault(name, {"tasks": list(setting.tasks)})
            row[evaluator] = numbers([one.points[0] for one in results])
            row.setdefault("commits", {})[evaluator] = _commits(results)
    return found


def numbers(points: Sequence[Point]) -> dict[str, Number]:
    """Of one evaluation, or of the folds of a set together."""
    shown = [
        name
        for name, metric in points[0].metrics.items()
        if metric.kind in ("utility", "leakage") and not name.startswith(LEFT_OUT)
    ]
    found = {name: joined([point.metrics[name] for point in points]) for name in shown}
    if "cmap" in found and points[0].attribute_excess is not None:
        found["cmap"]["excess"] = [points[0].attribute_excess, *(points[0].attribute_excess_interval or [])]
    return found


def joined(folds: Sequence[Metric]) -> Number:
    """The value, the change and the excess with their intervals."""
    parts: dict[str, list[tuple[Any, Any]]] = {
        "value": [(one.value, one.interval) for one in folds],
        "change": [(one.change, one.change_interval) for one in folds],
        "excess": [(one.excess, one.excess_interval) for one in folds],
    }
    found: Number = {key: _mean(each) for key, each in parts.items() if all(value is not None for value, _ in each)}
    seeds = zip(*(one.seeds for one in folds), strict=True)
    found["seeds"] = [sum(each) / len(folds) for each in seeds]
    found["floor"] = sum(one.floor for one in folds) / len(folds)
    return found


def _mean(folds: Sequence[tuple[Any, Any]]) -> list[float]:
    if len(folds) == 1:
        ((value, between),) = folds
        return [value, *(between or [])]
    value = sum(each for each, _ in folds) / len(folds)
    if any(not between for _, between in folds):
        return [value]
    half = math.sqrt(sum(((between[1] - between[0]) / 2) ** 2 for _, between in folds)) / len(folds)
    return [value, value - half, value + half]


def _commits(results: Sequence[Results]) -> str:
    return " and ".join(sorted({str(one.machine.get("commit")) for one in results}))
