"""Runs of `table.py` put together: splits of a set, and several kinds of judges."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from table import NAMED, PEOPLE

from vidveil.core.errors import DataError
from vidveil.evaluation.results import Metric, Point
from vidveil.report.same_clips import Run, tag_of

TOP1, LINKAGE, NAMING, PRECISION = "action_top1", "linkage_rank1", "identity_top1", "linkage_map"
METRICS = (TOP1, LINKAGE, NAMING)
"""Of each the value, with its share of raw video's: retention of the first, excess of the others."""


def pooled(runs: Sequence[Run], folds: dict[str, str] | None = None, anew: Sequence[str] | None = None) -> Run:
    """Runs of the same row on several splits as one. Those of NAMED test the same people, all of these in each. Who
    measures the metrics `anew` is chosen here (`chosen`): of PEOPLE by default linkage."""
    first, same_people = runs[0], folds is NAMED
    if anew is None:
        anew = (LINKAGE,) if folds is PEOPLE else ()
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
            who = [chosen(point, name) if name in anew else point.metrics[name].measured_by for point in same]
            each = [
                run.hits_by(point, name, by) if name in anew else run.values(point, name)
                for run, point, by in zip(runs, same, who, strict=True)
            ]
            chance = [run.chance(point, name) for run, point in zip(runs, same, strict=True)]
            key = f"{tag_of(same[0])}/{name}"
            clips[key] = np.concatenate(each, axis=1)
            if all(one is not None for one in chance):
                clips[f"{key}/chance"] = np.concatenate([one for one in chance if one is not None])
            metrics[name] = _together([point.metrics[name] for point in same], each, who)
        kept = {name: metric for name, metric in same[0].metrics.items() if name == "tubelets_kept"}
        made.append(replace(same[0], metrics=metrics | kept))
    return Run(replace(first.results, raw=made[0], points=made[1:]), clips)


def merged(kinds: Sequence[Run]) -> Run:
    """The same row on the same split, by several kinds of judges, as one that all of them tried."""
    first = kinds[0]
    if any(not np.array_equal(run.people, first.people) for run in kinds):
        raise DataError(f"{' and '.join(run.name for run in kinds)} were tested on different clips")
    clips = dict(first.clips)
    made = []
    for same in zip(*([run.results.raw, *run.results.points] for run in kinds), strict=True):
        metrics = dict(same[0].metrics)
        for name in (TOP1, LINKAGE, PRECISION):
            tried = [point.metrics[name].others for point in same]
            metrics[name] = replace(metrics[name], others={who: told for one in tried for who, told in one.items()})
            for run, point, others in zip(kinds, same, tried, strict=True):
                for who in others if name != PRECISION else ():
                    hits = run.values(point, name) if name == TOP1 else run.hits_by(point, name, who)
                    clips[f"{tag_of(same[0])}/{name}/by/{who}"] = hits
        made.append(replace(same[0], metrics=metrics))
    return Run(replace(first.results, raw=made[0], points=made[1:]), clips)


def chosen(point: Point, metric: str) -> str:
    """Who does best on validation people; of attackers that are equal in rank-1, in average precision."""
    tried = point.metrics[metric].others
    second = point.metrics[PRECISION if metric == LINKAGE else metric].others
    return max(tried, key=lambda who: (tried[who]["val"], second[who]["val"]))


def _together(metrics: Sequence[Metric], values: Sequence[NDArray[np.float64]], who: Sequence[str]) -> Metric:
    """Means over clips that asked: of each seed, of floors, and of everybody who tried. `who` counts in each split."""
    asked = np.array([float((~np.isnan(each[0])).sum()) for each in values])
    share = asked / asked.sum()
    tried = [name for name in metrics[0].others if all(name in one.others for one in metrics)]
    return replace(
        metrics[0],
        value=float(np.nanmean(np.concatenate(values, axis=1), axis=1).mean()),
        seeds=np.nanmean(np.concatenate(values, axis=1), axis=1).tolist(),
        floor=float(share @ [one.floor for one in metrics]),
        measured_by=" / ".join(dict.fromkeys(who)),
        others={
            name: {split: float(share @ [one.others[name][split] for one in metrics]) for split in ("test", "val")}
            for name in tried
        },
    )
