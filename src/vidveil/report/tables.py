"""Results as Markdown: every number with its interval, its floor, the raw value next to it, and who measured it.

table([results])            one run; with an overview, if it evaluated several methods
table([first, second])      several: an overview first, one row a setting, then each run by itself
"""

import math
from collections.abc import Container, Iterable, Sequence

from vidveil.data.description import UtilityMetric
from vidveil.evaluation.results import Metric, Point, Results, utility_in
from vidveil.report.markdown import NOTHING, escaped, grid, known, number, signed, with_interval
from vidveil.report.several_methods import methods_of

_NAMES = {
    "action_top1": "action, top-1",
    "action_cmap": "actions, cMAP",
    "cmap": "attributes, cMAP",
    "f1": "attributes, macro F1",
    "linkage_map": "linkage, mAP",
    "retrieval_r1": "retrieval, R@1",
    "retrieval_r5": "retrieval, R@5",
    "retrieval_r10": "retrieval, R@10",
    "action_top1_raw_heads": "action, top-1, heads of raw features",
    "action_cmap_raw_heads": "actions, cMAP, heads of raw features",
    "cmap_raw_heads": "attributes, cMAP, heads of raw features",
    "reconstruction_psnr": "pictures out of features, PSNR in dB",
    "reconstruction_ssim": "pictures out of features, SSIM",
    "reconstruction_rank1": "pictures out of features, linkage, rank-1",
    "detection_map": "actions detected, mAP",
    "detection_map_50": "actions detected, mAP at tIoU 0.5",
    "anomaly_frame_auc": "anomalies, AUC of frames",
    "anomaly_frame_auc_when": "anomalies, AUC of frames of abnormal videos",
    "anomaly_video_auc": "anomalies, AUC of videos",
    "identity_hidden": "pixels of identity alone, hidden",
    "action_kept": "pixels of the action, kept",
    "tubelets_kept": "tubelets kept",
    "score_auroc": "score, private against action, AUROC",
    "score_auroc_all": "score, private against all, AUROC",
}
_TRUTHS = {
    "tubelets_kept": "tubelets kept",
    "identity_hidden": "identity hidden",
    "action_kept": "action kept",
    "score_auroc": "AUROC of the score",
}
NOBODY = "the set has nobody to choose on, and the first attacker counts"
_UTILITIES: dict[UtilityMetric, str] = {"action_top1": "top-1", "action_cmap": "cMAP"}
_WHOLE = {"detection_map": "mAP", "anomaly_frame_auc": "AUC", "anomaly_video_auc": "AUC"}
"""Of whole videos, in the place of top-1: the first that was measured."""
_ENDINGS = {"_rank1": "rank-1", "_top1": "top-1", "_cmap": "cMAP", "_map": "mAP", "_class_mean": "mean per class"}
_BEGINNINGS = {"ap_": "AP", "auroc_": "AUROC"}
_LISTED = 64
NAMES = 2
"""The first columns of an overview; others are left out where they are empty."""


def table(results: Sequence[Results], compared: str = "") -> str:
    """Everything that a reader needs to assess the numbers, as Markdown. `compared` goes behind the overview."""
    parts = []
    if len(results) > 1 or any(len(methods_of(one)) > 1 for one in results):
        parts += ["## Compared", overview(results)]
        if len({(one.data.get("fingerprint"), one.data.get("labels")) for one in results}) > 1:
            parts.append("**These runs are about different clips: their numbers cannot be compared with each other.**")
    parts += [compared] if compared else []
    parts += [section for one in results for section in _run(one)]
    return "\n\n".join(parts)


def overview(results: Sequence[Results]) -> str:
    """One row per run and setting: what is kept, what leaks; what masks hid, where ground truth is known."""
    rows = []
    measured = {name for one in results for point in one.points for name in point.metrics}
    truths = {name: title for name, title in _TRUTHS.items() if name in measured}
    for one in results:
        for point in one.points or [one.raw]:
            name = main_utility(point)
            utility, link = point.metrics[name] if name else None, point.metrics.get("linkage_rank1")
            rows.append(
                [
                    one.name,
                    setting(point),
                    _value(utility),
                    _unless_exact(utility.retention, utility.retention_interval) if utility else NOTHING,
                    _value(link),
                    number(link.floor if link else None),
                    _unless_exact(link.excess, link.excess_interval) if link else NOTHING,
                    _unless_exact(point.attribute_excess, point.attribute_excess_interval),
                    *(_exactly(point.metrics.get(name)) for name in truths),
                ]
            )
    kept = used(*(one.raw.metrics for one in results))
    head = ["run", "method", kept, "retention", "rank-1", "its floor", "excess, linkage", "excess, attributes"]
    head += truths.values()
    there = [at for at in range(len(head)) if at < NAMES or any(row[at] != NOTHING for row in rows)]
    return grid([head[at] for at in there], ([row[at] for at in there] for row in rows))


def main_utility(point: Point) -> str | None:
    """The number by which utility is measured: of the action, or of whole videos."""
    return utility_in(point.metrics) or next((name for name in _WHOLE if name in point.metrics), None)


def used(*measured: Container[str]) -> str:
    """What retention is a share of, of runs that measured these: top-1, or cMAP where clips show several actions; of
    whole videos mAP or AUC."""
    found = {utility_in(names) for names in measured} - {None}
    short = [_UTILITIES[utility] for utility in _UTILITIES if utility in found]
    short += dict.fromkeys(_WHOLE[name] for names in measured for name in _WHOLE if name in names)
    return " or ".join(short) or "top-1"


def setting(point: Point) -> str:
    """`blur:strong`, or `dual_cls, keep 0.8`."""
    return point.method if point.keep is None else f"{point.method}, keep {point.keep:g}"


def spoken(name: str) -> str:
    """The name of a metric as people write it: `linkage_rank1_same_clothes` is `linkage, rank-1, same clothes`."""
    if name in _NAMES:
        return _NAMES[name]
    for beginning, metric in _BEGINNINGS.items():
        if name.startswith(beginning):
            return f"{name.removeprefix(beginning).replace('_', ' ')}, {metric}"
    for ending, metric in _ENDINGS.items():
        before, found, after = name.partition(ending)
        if found:
            return ", ".join(part.strip("_").replace("_", " ") for part in (before, metric, after) if part)
    return name.replace("_", " ")


def _run(results: Results) -> list[str]:
    parts = [f"## {escaped(results.name)}", _about(results)]
    for point in (results.raw, *results.points):
        parts.append(f"### {escaped(setting(point))}")
        if point.verdict:
            parts.append(f"**{escaped(point.verdict[:1].upper() + point.verdict[1:])}.**")
        parts.append(_metrics(point, next_to_raw=point is not results.raw))
        parts += _by_view(point)
        parts += _left_out(point, next_to_raw=point is not results.raw)
        parts += _attackers(point)
    if results.controls:
        parts += ["### Controls", "What raw video leaks through when a part of it is taken away.", _controls(results)]
    return parts


def _about(results: Results) -> str:
    """Which clips, how many people and seeds, which machine: what a number is worth."""
    data, machine = results.data, results.machine
    clips, people = data.get("clips", {}).get("test"), data.get("people", {}).get("test")
    seeds = max((len(metric.seeds) for metric in results.raw.metrics.values()), default=0)
    parts = [str(data.get("name", ""))]
    if clips is not None:
        parts.append(f"{clips} test clips" + (f" of {people} people" if people else ""))
    parts.append(f"{seeds} seed" + ("" if seeds == 1 else "s"))
    knobs = {"privacy weight": "privacy_weight", "fill": "fill"}
    parts += [f"{word} {value}" for word, key in knobs.items() if (value := results.recipe.get(key)) is not None]
    version = machine.get("versions", {}).get("vidveil")
    parts += [str(machine["device"])] if machine.get("device") else []
    parts += [f"vidveil {version}"] if version else []
    commit = str(machine.get("commit") or "")
    parts.append(commit[:12] + "+" * (len(commit) > 12 and commit.endswith("+")))  # + is for changes on top of it
    parts.append(f"{results.seconds:.0f} s")
    mark = str(data.get("fingerprint", ""))[:12]
    return escaped(" · ".join(filter(None, parts))) + (f" · data `{mark}`" if mark else "")


def _metrics(point: Point, *, next_to_raw: bool) -> str:
    several = any(len(metric.seeds) > 1 for metric in point.metrics.values())
    permuted = any(known(metric.p) for metric in point.metrics.values())
    head = ["number", "value [95 %]", *(["seeds"] if several else []), "floor [95 %]", *(["p"] if permuted else [])]
    head += [*(["raw [95 %]", "left of raw [95 %]"] if next_to_raw else []), "measured by"]
    rows = []
    for name, metric in point.metrics.items():
        row = [spoken(name), _value(metric), *([_seeds(metric)] if several else []), _floor(metric)]
        row += [_p(metric)] if permuted else []
        if next_to_raw:
            row += [with_interval(metric.raw, metric.raw_interval), _left(metric)]
        rows.append([*row, metric.measured_by + (f" ({metric.note})" if metric.note else "")])
    return grid(head, rows)


def _by_view(point: Point) -> Iterable[str]:
    """Rank-1 of gaits for each pair of views, a table a condition, with what the row is on the mean of other views."""
    for condition, rows in point.by_view.items():
        who = f"Rank-1 of probes ({condition}) by their view, in the gallery of each view:"
        views = list(rows)
        yield who if len(point.by_view) > 1 else who.replace(f" ({condition})", "")
        yield grid(
            ["probe", *views, "other views"],
            (
                [
                    probe,
                    *(number(found.get(view)) for view in views),
                    number(_mean([found.get(view) for view in views if view != probe])),
                ]
                for probe, found in rows.items()
            ),
        )


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if known(value)]
    return sum(there) / len(there) if there else None


def _unless_exact(value: float | None, interval: Sequence[float | None] | None) -> str:
    """An interval of no length says nothing and is left off: raw video is 1 of itself whoever is drawn."""
    low, high = (*(interval or ()), None, None)[:2]
    return number(value) if low == high else with_interval(value, interval)


def _left(metric: Metric) -> str:
    """Retention, with the change, or excess; of a gap, and where raw video has too little to take a share of, the
    change alone."""
    low, high = metric.change_interval or (math.nan, math.nan)
    change = None if metric.change is None else f"change {signed(metric.change, (low, high))}"
    if metric.retention is not None:
        kept = f"retention {_unless_exact(metric.retention, metric.retention_interval)}"
        return ", ".join(filter(None, (kept, change)))
    if metric.excess is not None and metric.kind != "gap":
        return f"excess {_unless_exact(metric.excess, metric.excess_interval)}"
    return change or NOTHING


def _p(metric: Metric) -> str:
    """How often permuted labels do as well; in a thousand permutations less than 0.001 cannot be seen."""
    return "< 0.001" if metric.p is not None and metric.p < 0.001 else number(metric.p)


def _left_out(point: Point, *, next_to_raw: bool) -> Iterable[str]:
    if next_to_raw and point.attribute_excess is not None:
        excess = _unless_exact(point.attribute_excess, point.attribute_excess_interval)
        yield f"Excess over all measurable attributes together: {excess}."
    if point.not_measurable:
        yield f"Not measurable, since raw video itself is too near its floor: {_listed(point.not_measurable)}."
    if point.constant:
        yield f"The same in all test clips, and left out: {_listed(point.constant)}."


def _listed(names: Sequence[str]) -> str:
    """The first of so many that nobody would read them; all are in the file."""
    shown = ", ".join(name.replace("_", " ") for name in names[:_LISTED])
    return escaped(shown) + (f" and {len(names) - _LISTED:,} others" if len(names) > _LISTED else "")


def _attackers(point: Point) -> Iterable[str]:
    """Everybody who tried, so that the strongest can be seen to be the strongest."""
    rows = [
        [
            spoken(name),
            who,
            number(tried.get("val")),
            number(tried.get("test")),
            "counts" * (who == metric.measured_by),
        ]
        for name, metric in point.metrics.items()
        if metric.kind == "leakage" and len(metric.others) > 1
        for who, tried in metric.others.items()
    ]
    if rows:
        chosen = any(known(tried.get("val")) for one in point.metrics.values() for tried in one.others.values())
        how = "the best on validation counts, whatever test says" if chosen else NOBODY
        yield f"Every attacker that tried; {how}:"
        yield grid(["number", "attacker", "validation", "test", ""], rows)


def _controls(results: Results) -> str:
    rows = [[spoken(name), _value(one), _floor(one), one.measured_by] for name, one in results.controls.items()]
    return grid(["number", "value [95 %]", "floor [95 %]", "measured by"], rows)


def _exactly(metric: Metric | None) -> str:
    return NOTHING if metric is None else _unless_exact(metric.value, metric.interval)


def _value(metric: Metric | None) -> str:
    return NOTHING if metric is None else with_interval(metric.value, metric.interval)


def _floor(metric: Metric) -> str:
    """The range of permuted labels is left off where the floor is a count and has none."""
    return _unless_exact(metric.floor, metric.floor_range)


def _seeds(metric: Metric) -> str:
    return " ".join(number(value) for value in metric.seeds)
