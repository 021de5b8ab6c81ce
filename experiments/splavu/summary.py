"""The numbers of `experiments.splavu.table`: each setting on all splits of a set, compared with raw features.

Clips of all splits are pooled, and people are drawn from all of them; a change is measured in the same draws. The
attacker is chosen split by split, on validation people. Floors are means over the clips that were queries. Only puppets
have attributes, and one split: their excess and its interval are the evaluation's own.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.markdown import with_interval
from experiments.splavu.table import SETS, SETTINGS, run_of
from vidveil.evaluation.results import Point
from vidveil.evaluation.results import read as read_results
from vidveil.report.same_clips import Run, open_run
from vidveil.statistics.intervals import Estimate, Resamples, difference
from vidveil.statistics.tradeoff import Measurement, excess

UTILITIES = ("action_top1", "retrieval_map", "action_top1_raw_heads")
LEAKAGES = (
    "linkage_rank1",
    "linkage_rank1_raw_gallery",
    "reconstruction_psnr",
    "reconstruction_ssim",
    "reconstruction_rank1",
)
RAW_OF = {"action_top1_raw_heads": "action_top1", "linkage_rank1_raw_gallery": "linkage_rank1"}
"""Metric that raw features lack → the one of theirs that it is compared with."""
INVERSIONS = {"inverted by pairs": "black_box", "inverted by the adapter": "white_box"}


def summary(runs: Path) -> dict[str, Any]:
    """Set → setting → how it was evaluated (anew, and after each inversion) → numbers."""
    found: dict[str, Any] = {}
    for of, folds in SETS.items():
        files = {
            name: [runs / run_of(name, end) / "results.json" for end in folds]
            for name, setting in SETTINGS.items()
            if of in setting.sets
        }
        opened = {
            name: [open_run(file, read_results(file)) for file in each]
            for name, each in files.items()
            if all(file.is_file() for file in each)
        }
        if "raw" not in opened or len(opened) < 2:  # nothing to compare
            continue
        raw = opened["raw"]
        people = _people(raw)
        found[of] = {
            "splits": list(folds.values()),
            "clips": len(people),
            "people": len(np.unique(people)),
            "settings": {name: _setting(each, raw) for name, each in opened.items()},
        }
    return found


def _setting(runs: Sequence[Run], raw: Sequence[Run]) -> dict[str, Any]:
    commits = sorted({str(run.results.machine.get("commit")) for run in runs})
    kinds: dict[str, list[Point]] = {}
    for run in runs:
        for point in run.results.points or [run.results.raw]:
            kind = next((name for ending, name in INVERSIONS.items() if point.method.endswith(ending)), "anew")
            kinds.setdefault(kind, []).append(point)
    found: dict[str, Any] = {"commit": " and ".join(commits)}
    return found | {kind: numbers(runs, points, raw) for kind, points in kinds.items()}


def numbers(runs: Sequence[Run], points: Sequence[Point], raw: Sequence[Run]) -> dict[str, Any]:
    """Each with its seeds and its floor; of utility the change from raw features, of leakage the excess."""
    draws = Resamples(_people(runs))
    found: dict[str, Any] = {}
    for name in (*UTILITIES, *LEAKAGES):
        if not all(name in point.metrics for point in points):
            continue
        value = draws.mean(_values(runs, points, name))
        before_name = RAW_OF.get(name, name)
        first = [run.results.raw for run in raw]
        before = draws.mean(_values(raw, first, before_name)) if before_name in first[0].metrics else None
        queries = np.array(
            [np.sum(~np.isnan(run.values(point, name)[0])) for run, point in zip(runs, points, strict=True)]
        )
        share = queries / queries.sum()
        floor = float(share @ [point.metrics[name].floor for point in points])
        found[name] = {
            "value": with_interval(value),
            "floor": floor,
            "seeds": np.nanmean(_values(runs, points, name), axis=1).tolist(),
            "by": " / ".join(dict.fromkeys(point.metrics[name].measured_by for point in points)),
            "highest": _highest(points, name, share),
            "val": _val(points, name, share),
        }
        if before is None:
            continue
        if name in UTILITIES:
            found[name]["change"] = with_interval(difference(value, before))
        else:
            leaks = [
                Measurement("rank-1" if "rank1" in name else name, mean, at, chance)
                for mean, at, chance in (
                    (value, floor, _chance(runs, points, name, draws)),
                    (before, _floor(first, before_name, share), _chance(raw, first, before_name, draws)),
                )
            ]
            estimate = excess(leaks[0], leaks[1], name).estimate
            found[name]["excess"] = with_interval(estimate) if estimate else None
            found[name]["change"] = with_interval(difference(value, before))
    point = points[0]
    if len(points) == 1 and "cmap" in point.metrics:
        metric = point.metrics["cmap"]
        found["cmap"] = {
            "value": [metric.value, *metric.interval],
            "floor": metric.floor,
            "seeds": metric.seeds,
            "by": metric.measured_by,
            "excess": None
            if point.attribute_excess is None
            else [point.attribute_excess, *(point.attribute_excess_interval or [])],
            "raw_heads": point.metrics["cmap_raw_heads"].value if "cmap_raw_heads" in point.metrics else None,
        }
    return found


def _chance(runs: Sequence[Run], points: Sequence[Point], name: str, draws: Resamples) -> Estimate | None:
    each = [run.chance(point, name) for run, point in zip(runs, points, strict=True)]
    return (
        None
        if any(one is None for one in each)
        else draws.mean(np.concatenate([one for one in each if one is not None]))
    )


def _floor(points: Sequence[Point], name: str, share: NDArray[np.float64]) -> float:
    return float(share @ [point.metrics[name].floor for point in points])


def _highest(points: Sequence[Point], name: str, share: NDArray[np.float64]) -> float | None:
    """Of the strongest attacker on test people, chosen in hindsight."""
    tried = [point.metrics[name].others for point in points]
    names = set(tried[0]).intersection(*tried[1:]) if tried else set()
    return max((float(share @ [one[who]["test"] for one in tried]) for who in names), default=None)


def _val(points: Sequence[Point], name: str, share: NDArray[np.float64]) -> float | None:
    """On validation people, by the evaluator that was chosen there: for choices between settings."""
    counts = [point.metrics[name].others.get(point.metrics[name].measured_by) for point in points]
    return None if None in counts else float(share @ [one["val"] for one in counts if one])


def _values(runs: Sequence[Run], points: Sequence[Point], name: str) -> NDArray[np.float64]:
    return np.concatenate([run.values(point, name) for run, point in zip(runs, points, strict=True)], axis=1)


def _people(runs: Sequence[Run]) -> NDArray[np.int64]:
    """Different people in each split."""
    apart = 1 + max(int(run.people.max()) for run in runs)
    return np.concatenate([run.people.astype(np.int64) + apart * i for i, run in enumerate(runs)])
