"""From numbers to results: each next to its raw value, with excess or retention, and one sentence about them all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vidveil.evaluation.number import Number
from vidveil.evaluation.results import Kind, Metric, Point, utility_in
from vidveil.statistics.floors import above_chance
from vidveil.statistics.intervals import Difference, Estimate, difference
from vidveil.statistics.tradeoff import Excess, excess, excess_over_attributes, retention

RAW_GALLERY = "linkage_rank1_raw_gallery"  # its raw value is linkage among raw clips
TESTED = ("linkage_rank1", "identity_top1", "gait_rank1")  # what a verdict is made of, next to attributes
LEVEL = 0.05  # chance of a single false alarm
NO_EXCESS = ("f1", "cmap")  # F1 has a threshold in it; cMAP's excess is that of its attributes, where they are reported


def point(
    method: str, keep: float | None, numbers: Mapping[str, Number], constant: Sequence[str], raw: Mapping[str, Number]
) -> Point:
    metrics = {}
    attributes = of_attributes(numbers)
    for name, number in numbers.items():
        raw_number = raw.get("linkage_rank1" if name == RAW_GALLERY else name)
        kept = left = None
        if number.kind == "utility" and raw_number is not None:
            kept = retention(number.measured.value, raw_number.measured.value)
        elif raw_number is not None and (name in attributes or name not in NO_EXCESS):
            left = excess(number.measured, raw_number.measured, name).estimate
        metrics[name] = _metric(number.kind, number, raw_number, left, kept)
    together = attribute_excess(numbers, raw)
    overall = together.estimate if together else None
    return Point(
        method=method,
        keep=keep,
        metrics=metrics,
        attribute_excess=overall.value if overall else None,
        attribute_excess_interval=list(overall.interval) if overall else None,
        not_measurable=[name.removeprefix("ap_") for name in together.not_measurable] if together else [],
        constant=list(constant),
        verdict=verdict(numbers, raw),
    )


def attribute_excess(numbers: Mapping[str, Number], raw: Mapping[str, Number]) -> Excess | None:
    """Over all measurable attributes together; None where nobody attacked any."""
    ours, theirs = ({name: one.measured for name, one in of_attributes(these).items()} for these in (numbers, raw))
    return excess_over_attributes(ours, theirs) if ours else None


def of_attributes(numbers: Mapping[str, Number]) -> dict[str, Number]:
    """What attributes are evaluated by: the average precision of each, or cMAP where none is reported alone."""
    each = {name: number for name, number in numbers.items() if name.startswith("ap_")}
    return each or {name: number for name, number in numbers.items() if name == "cmap"}


def control_metrics(numbers: Mapping[str, Number]) -> dict[str, Metric]:
    return {name: _metric("control", number, None) for name, number in numbers.items()}


def verdict(numbers: Mapping[str, Number], raw: Mapping[str, Number]) -> str:
    """One sentence. Something leaks if permuted labels hardly ever reach it, all numbers tested together; something is
    useful if top-1, or cMAP, has its interval above the floor. Evaluators that cannot read raw video prove nothing."""
    attributes = of_attributes(numbers)
    tested = {name: one.p for name, one in numbers.items() if name.startswith(TESTED) or name in attributes}
    ps = {name: p for name, p in tested.items() if p is not None}
    if not ps:
        leakage = "leakage was not measured"
    elif min(number.least_p for name, number in numbers.items() if name in ps) > LEVEL / len(ps):
        leakage = "too few permutations to say what leaks"
    else:
        leaks = above_chance(ps, LEVEL)
        leakage = f"{' and '.join(_spoken(leaks))} leak" if leaks else "no leak was found"
        before = {name: raw[name].p for name in ps if name in raw}
        if (
            not leaks
            and numbers is not raw
            and not above_chance({n: p for n, p in before.items() if p is not None}, LEVEL)
        ):
            leakage = "nothing can be said about leaks, since attackers got nothing of what was there before either"
    utility = utility_in(numbers)
    if utility is None:
        return leakage
    if utility in raw and not _readable(raw[utility]):
        return (
            f"{leakage}; but evaluators could not even read the action of raw video, and say nothing about any method"
        )
    return f"{leakage}, {'the action is still readable' if _readable(numbers[utility]) else 'nothing is useful'}"


def _readable(action: Number) -> bool:
    above = action.measured.above_floor()
    return bool((above.low if np.isfinite(above.low) else above.value) > 0)


def _spoken(leaks: Sequence[str]) -> list[str]:
    attributes = [name.removeprefix("ap_").replace("_", " ") for name in leaks if name.startswith("ap_")]
    linked = ["identities"] if any(name.startswith(("linkage", "identity_top1", "gait")) for name in leaks) else []
    many = ["attributes"] if "cmap" in leaks else []
    return linked + many + ([f"attributes ({', '.join(attributes)})"] if attributes else [])


def _metric(
    kind: Kind, number: Number, raw: Number | None, left: Estimate | None = None, kept: Estimate | None = None
) -> Metric:
    leak = number.measured
    change = None if raw is None or raw is number else _change(number, raw)
    return Metric(
        kind=kind,
        value=leak.value.value,
        seeds=list(leak.value.per_seed),
        interval=list(leak.value.interval),
        floor=leak.floor,
        floor_range=list(number.floor_range),
        floor_analytic=number.analytic,
        p=number.p,
        measured_by=number.measured_by,
        raw=None if raw is None else raw.measured.value.value,
        raw_interval=None if raw is None else list(raw.measured.value.interval),
        excess=None if left is None else left.value,
        excess_interval=None if left is None else list(left.interval),
        retention=None if kept is None else kept.value,
        retention_interval=None if kept is None else list(kept.interval),
        change=None if change is None else change.value,
        change_interval=None if change is None else [change.low, change.high],
        others=number.others,
        note=number.note,
    )


def _change(number: Number, raw: Number) -> Difference:
    """A gap is an absolute value in each draw, too: there it may go the other way, and be a gap all the same."""
    ours, theirs = number.measured.value, raw.measured.value
    if number.kind == "gap":
        ours, theirs = (replace(one, samples=np.abs(one.samples)) for one in (ours, theirs))
    return difference(ours, theirs)
