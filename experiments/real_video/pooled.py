"""Runs of one row on several splits of a set, pooled clip by clip."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from experiments.real_video.table import KNOWN, PEOPLE
from vidveil.core.errors import DataError
from vidveil.evaluation.results import Metric, Point
from vidveil.report.same_clips import Run, tag_of

TOP1, LINKAGE, NAMING, PRECISION = "action_top1", "linkage_rank1", "identity_top1", "linkage_map"
METRICS = (TOP1, LINKAGE, NAMING)
"""Each with its share of raw video's: retention of the first, excess of the others."""


def pooled(runs: Sequence[Run], folds: dict[str, str] | None = None) -> Run:
    """Runs of the same row on several splits as one. People of different splits are different ones, except those of
    KNOWN, who are in every split. On PEOPLE the attacker of linkage is chosen here (`chosen`)."""
    first, same_people = runs[0], folds is KNOWN
    chosen_here = (LINKAGE,) if folds is PEOPLE else ()
    apart = 0 if same_people else 1 + max(int(run.people.max()) for run in runs)
    if same_people and len({len(np.unique(run.people)) for run in runs}) > 1:
        raise DataError(f"{first.name}: not everybody is in the test part of each split")
    clips: dict[str, NDArray[np.generic]] = {
        "people": np.concatenate([run.people.astype(np.int64) + apart * i for i, run in enumerate(runs)])
    }
    points = [[run.results.raw, *run.results.points] for run in runs]
    made = []
    for same in zip(*points, strict=True):  # the same setting on each split
        metrics = {}
        for name in METRICS:
            if not all(name in point.metrics for point in same):
                continue
            by = [chosen(point, name) if name in chosen_here else point.metrics[name].measured_by for point in same]
            each = [
                run.hits_by(point, name, who) if name in chosen_here else run.values(point, name)
                for run, point, who in zip(runs, same, by, strict=True)
            ]
            chance = [run.chance(point, name) for run, point in zip(runs, same, strict=True)]
            key = f"{tag_of(same[0])}/{name}"
            clips[key] = np.concatenate(each, axis=1)
            if all(one is not None for one in chance):
                clips[f"{key}/chance"] = np.concatenate([one for one in chance if one is not None])
            metrics[name] = _joined([point.metrics[name] for point in same], each, by)
        kept = {name: metric for name, metric in same[0].metrics.items() if name == "tubelets_kept"}
        made.append(replace(same[0], metrics=metrics | kept))
    return Run(replace(first.results, raw=made[0], points=made[1:]), clips)


def chosen(point: Point, metric: str) -> str:
    """Who does best on validation people; of attackers with equal rank-1, the one with the best average precision."""
    tried = point.metrics[metric].others
    second = point.metrics[PRECISION if metric == LINKAGE else metric].others
    return max(tried, key=lambda who: (tried[who]["val"], second[who]["val"]))


def _joined(metrics: Sequence[Metric], values: Sequence[NDArray[np.float64]], by: Sequence[str]) -> Metric:
    """Means over the clips that were queries: of each seed, of floors, and of every attacker that was tried."""
    queries = np.array([float((~np.isnan(each[0])).sum()) for each in values])
    share = queries / queries.sum()
    tried = [name for name in metrics[0].others if all(name in one.others for one in metrics)]
    return replace(
        metrics[0],
        value=float(np.nanmean(np.concatenate(values, axis=1), axis=1).mean()),
        seeds=np.nanmean(np.concatenate(values, axis=1), axis=1).tolist(),
        floor=float(share @ [one.floor for one in metrics]),
        measured_by=" / ".join(dict.fromkeys(by)),
        others={
            name: {split: float(share @ [one.others[name][split] for one in metrics]) for split in ("test", "val")}
            for name in tried
        },
    )
