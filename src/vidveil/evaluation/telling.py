"""From numbers to results: each beside its raw value, with excess or retention, and one sentence about them all."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vidveil.data.clips import SPLITS, ClipSet
from vidveil.evaluation.measure import Number
from vidveil.evaluation.results import Metric, Point
from vidveil.evaluation.tradeoff import excess, excess_over_attributes, retention

UTILITY = "action_top1"
NO_EXCESS = ("f1", "cmap")  # F1 has a threshold in it; cMAP's excess is that of its attributes together


def about_data(data: ClipSet) -> dict[str, Any]:
    """Which clips, so that two results can be told to be about the same."""
    rows = {split: data.indices(split) for split in SPLITS}
    return {
        "name": data.name,
        "fingerprint": data.videos.fingerprint,
        "clips": {split: len(which) for split, which in rows.items()},
        "people": {split: len(np.unique(data.person[which][data.person[which] >= 0])) for split, which in rows.items()},
        "actions": list(data.actions),
        "attributes": list(data.attribute_names),
        "gallery": data.gallery,
    }


def point(
    method: str, keep: float | None, numbers: Mapping[str, Number], constant: Sequence[str], raw: Mapping[str, Number]
) -> Point:
    metrics = {}
    for name, number in numbers.items():
        beside = raw.get(name)
        if name == UTILITY and beside is not None:
            kept = retention(number.leak.value, beside.leak.value).value
            metrics[name] = _metric("utility", number, beside, retention=kept)
        elif beside is not None and name not in NO_EXCESS:
            left = excess(number.leak, beside.leak, name)
            metrics[name] = _metric("leakage", number, beside, excess=left.estimate.value if left.estimate else None)
        else:
            metrics[name] = _metric("leakage", number, beside)
    ours, theirs = ({k: n.leak for k, n in these.items() if k.startswith("ap_")} for these in (numbers, raw))
    together = excess_over_attributes(ours, theirs) if ours else None
    return Point(
        method=method,
        keep=keep,
        metrics=metrics,
        attribute_excess=together.estimate.value if together and together.estimate else None,
        not_measurable=[name.removeprefix("ap_") for name in together.not_measurable] if together else [],
        constant=list(constant),
        verdict=verdict(numbers),
    )


def control_metrics(numbers: Mapping[str, Number]) -> dict[str, Metric]:
    return {name: _metric("control", number, None) for name, number in numbers.items()}


def verdict(numbers: Mapping[str, Number]) -> str:
    """What an interval that holds the floor allows to say, and what one above it does."""
    leaks = [name for name, number in numbers.items() if name.startswith(("linkage_rank1", "ap_")) and _above(number)]
    told = f"{' and '.join(_spoken(leaks))} leak" if leaks else "nothing leaks"
    if UTILITY not in numbers:
        return told
    return f"{told}, {'the action is still readable' if _above(numbers[UTILITY]) else 'nothing is useful'}"


def _spoken(leaks: Sequence[str]) -> list[str]:
    attributes = [name.removeprefix("ap_").replace("_", " ") for name in leaks if name.startswith("ap_")]
    linked = ["identities"] if any(name.startswith("linkage") for name in leaks) else []
    return linked + ([f"attributes ({', '.join(attributes)})"] if attributes else [])


def _above(number: Number) -> bool:
    """Whether the interval lies above the floor, and the value above what permuted labels reach."""
    above = number.leak.above_floor()
    low = above.low if np.isfinite(above.low) else above.value
    return low > 0 and number.leak.value.value > number.floor_range[1]


def _metric(
    kind: Any,
    number: Number,
    raw: Number | None,
    excess: float | None = None,
    retention: float | None = None,
) -> Metric:
    leak = number.leak
    return Metric(
        kind=kind,
        value=leak.value.value,
        seeds=list(leak.value.per_seed),
        interval=list(leak.value.interval),
        floor=leak.floor,
        floor_range=list(number.floor_range),
        floor_analytic=leak.floor if leak.chance is None else leak.chance.value,
        measured_by=number.measured_by,
        raw=None if raw is None else raw.leak.value.value,
        raw_interval=None if raw is None else list(raw.leak.value.interval),
        excess=excess,
        retention=retention,
        others=number.others,
    )
