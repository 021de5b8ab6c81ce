"""The section "Compared, on the same clips": the first method next to each of the others, as Markdown.

Made of `paired`'s numbers. Where runs cannot be paired the section says why, in one line each, and holds the rest.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from vidveil.core.errors import DataError
from vidveil.core.progress import phase
from vidveil.data.description import UTILITY_METRICS
from vidveil.evaluation.results import Results
from vidveil.report.markdown import NOTHING, escaped, grid, known, number, signed, with_interval
from vidveil.report.paired import (
    RETENTIONS,
    Area,
    AtRetention,
    Method,
    area,
    at_equal_retention,
    at_retention,
    differences,
    method,
)
from vidveil.report.same_clips import RANK1, Run, comparable, different_settings
from vidveil.report.several_methods import by_method
from vidveil.report.tables import spoken, used
from vidveil.statistics.intervals import RESAMPLES, Difference, Resamples, difference
from vidveil.statistics.tradeoff import Comparison

TITLE = "## Compared, on the same clips"
FEW_PEOPLE = 20


@phase("comparing methods on the same clips")
def section(runs: Sequence[tuple[Path, Results]]) -> str:
    """Of results and the files they were read from; empty where there are not two methods to compare. Those of one run
    are compared like those of several."""
    runs = [(path, one) for path, results in runs for one in by_method(results)]
    if sum(bool(results.points) for _, results in runs) < 2:
        return ""
    opened, reasons = comparable(runs)
    parts = [f"Not compared clip by clip: {escaped(reason)}." for reason in reasons]
    if len(opened) > 1:
        times = opened[0].results.recipe.get("resamples", RESAMPLES)  # as many as the evaluation drew: the same draws
        draws = Resamples(opened[0].people, resamples=int(times))
        methods = [method(run, draws) for run in opened]
        parts += [_about(opened[0], draws)]
        for run, other in zip(opened[1:], methods[1:], strict=True):
            parts += _pair(methods[0], other, _warnings(opened[0], run, methods[0], other))
        parts += _areas(methods)
    return "\n\n".join([TITLE, *parts])


def _about(first: Run, draws: Resamples) -> str:
    few = f" {draws.people} people are few: intervals are somewhat too narrow." if draws.people < FEW_PEOPLE else ""
    return (
        f"{len(first.people)} test clips of {draws.people} people, the same for all. Differences are those of "
        f"{escaped(first.name)} minus the other, in the same {len(draws.counts):,} draws of people; where their 95 % "
        "interval excludes 0, other people would hardly turn it round. Other trainings might: the values of the seeds "
        "show how much they vary. Each row is tested by itself: of 20 rows without any difference, one excludes 0 by "
        f"chance.{few}"
    )


def _pair(first: Method, second: Method, warnings: Iterable[str]) -> Iterable[str]:
    names = [escaped(one.name) for one in (first, second)]
    yield f"### {names[0]} − {names[1]}"
    yield from warnings
    pairs = differences(first, second)
    if pairs:
        values = [f"{one.name} [95 %]" for one in (first, second)]
        head = ["number", "first", "second", *values, "difference [95 %]", "excludes 0"]
        yield grid(
            head,
            (
                [
                    spoken(pair.metric),
                    *pair.settings,
                    with_interval(pair.first.value, pair.first.interval),
                    with_interval(pair.second.value, pair.second.interval),
                    *_difference_cells(pair.difference),
                ]
                for pair in pairs
            ),
        )
    else:
        yield "They have no keep rate in common, so no two settings are set side by side." + _shares(first, second)
    yield from _at_retention(first, second)
    yield from _equal_retention(first, second)


def _shares(first: Method, second: Method) -> str:
    """How much settings keep, where that is not what their keep rates say."""
    known = {side.name: [one.share for one in side.settings if one.share is not None] for side in (first, second)}
    if not all(known.values()):
        return ""
    kept = (f"{escaped(name)} keeps {', '.join(map(number, shares))}" for name, shares in known.items())
    return f" Of all tubelets, {' and '.join(kept)}."


def _at_retention(first: Method, second: Method) -> Iterable[str]:
    """The table that a claim is made of: both methods at a utility that was fixed before."""
    shares = " and ".join(f"{share:g}" for share in RETENTIONS)
    utility = used(first.raw, second.raw)
    yield (
        f"Excess leakage where both keep {shares} of raw {utility}; the leak is the mean of linkage and attributes. "
        f"Below 0, {escaped(first.name)} leaks less:"
    )
    found = at_retention(first, second)
    measured = [one for one in found if one.compared and one.compared.difference]
    if measured:
        values = [f"{one.name} [95 %]" for one in (first, second)]
        head = ["retention", "excess", *values, "difference [95 %]", "excludes 0", ""]
        yield grid(head, (_asked(one) for one in measured))
    missed = dict.fromkeys(why for one in found if one not in measured for why in one.reasons)
    if missed:
        yield _not_measured(missed)


def _asked(one: AtRetention) -> list[str]:
    assert one.compared is not None
    retention, *rest, note = _reading(one.compared)
    below = sum(difference < 0 for difference in one.seeds)
    seeds = f"below 0 in {below} of {len(one.seeds)} seeds" if len(one.seeds) > 1 else ""
    return [retention, one.leakage, *rest, "; ".join(filter(None, (seeds, note)))]


def _equal_retention(first: Method, second: Method) -> Iterable[str]:
    yield (
        "At equal retention, excess of linkage, read off the straight lines between settings. "
        f"Below 0, {escaped(first.name)} leaks less for the same utility:"
    )
    try:
        found = at_equal_retention(first, second)
    except DataError as error:
        yield _not_measured([str(error)])
        return
    reached = {number(one.retention): one for one in found if one.difference is not None}
    if reached:
        values = [f"{one.name} [95 %]" for one in (first, second)]
        head = ["retention", *values, "difference [95 %]", "excludes 0", ""]
        yield grid(head, (_reading(one) for one in reached.values()))
    missed = {number(one.retention): one for one in found if one.difference is None}
    reasons = [_why_missed(one, first, second) for at, one in missed.items() if at not in reached]
    if reasons:
        yield _not_measured(reasons)


def _not_measured(reasons: Iterable[str]) -> str:
    return f"Not measured: {'; '.join(map(escaped, reasons))}."


def _reading(one: Comparison) -> list[str]:
    """A row: both readings at one retention."""
    assert one.difference is not None
    notes = []
    if one.first.ambiguous or one.second.ambiguous:
        notes.append("a curve passes here more than once: most leakage of the first, least of the second")
    if not known(one.difference.low):
        notes.append("too near an end of a curve: many draws of people do not reach it")
    between = [which for which, side in (("first", one.first), ("second", one.second)) if side.next_to_raw]
    if between:
        notes.append(f"of the {' and the '.join(between)}, read between raw video and its mildest setting")
    sides = [
        with_interval(side.leakage.value, side.leakage.interval) if side.leakage else NOTHING
        for side in (one.first, one.second)
    ]
    return [number(one.retention), *sides, *_difference_cells(one.difference), "; ".join(notes)]


def _why_missed(one: Comparison, first: Method, second: Method) -> str:
    short = [(side, run) for side, run in ((one.first, first), (one.second, second)) if side.reason]
    return " and ".join(f"of {run.name}, {side.reason}" for side, run in short)


def _areas(methods: Sequence[Method]) -> Iterable[str]:
    """One number per method, and how it differs from the first one's."""
    areas = [area(one) for one in methods]
    yield "### Trade-off"
    yield (
        "NHV: the area that the settings of a method cover, of usefulness by 1 − excess of linkage. 1 is all utility "
        "and no leakage; raw video and noise have 0."
    )
    head = ["run", "operating points", "NHV [95 %]", "difference [95 %]", "excludes 0", ""]
    yield grid(head, (_area_row(one, found, areas[0]) for one, found in zip(methods, areas, strict=True)))
    if len({found.points for found in areas if found.estimate}) > 1:
        yield "**With more operating points any method covers more: these areas are not of equal numbers of them.**"


def _area_row(one: Method, found: Area, first: Area) -> list[str]:
    if found.estimate is None:
        return [one.name, str(found.points), NOTHING, NOTHING, NOTHING, found.reason]
    minus = [NOTHING, NOTHING]
    if found is not first and first.estimate is not None:
        minus = _difference_cells(difference(first.estimate, found.estimate))
    return [one.name, str(found.points), with_interval(found.estimate.value, found.estimate.interval), *minus, ""]


def _difference_cells(minus: Difference) -> list[str]:
    """The difference, and whether it is one."""
    verdict = ("yes" if minus.excludes_zero else "no") if known(minus.low) else "not known"
    return [signed(minus.value, (minus.low, minus.high)), verdict]


def _warnings(first: Run, other: Run, one: Method, two: Method) -> Iterable[str]:
    """What makes a comparison less than fair, though it can be made."""
    if differ := different_settings(first, other):
        yield (
            f"**The evaluators of these two differ ({', '.join(differ)}): a part of every difference may be theirs, "
            "not the methods'.**"
        )
    apart = [
        f"{spoken(name)} {one.raw[name].value:.3f} and {two.raw[name].value:.3f}"
        for name in (*UTILITY_METRICS, RANK1)
        if name in one.raw and name in two.raw and abs(one.raw[name].value - two.raw[name].value) >= 0.0005
    ]
    if apart:
        yield (
            f"Each run trained its own evaluators of raw video ({'; '.join(apart)}), and its shares are of these; "
            "`raw=NAME` in an evaluation uses those of another run."
        )
