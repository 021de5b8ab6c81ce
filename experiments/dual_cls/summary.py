"""The table of dual-CLS in short: leakage where 0.97 of the utility is kept, and what masks hide of the ground truth.

    python -m experiments.dual_cls.summary --runs runs --rho 0        of finished runs, into results/

Of the runs of `experiments.dual_cls.table`; `experiments.tables` draws the tables. Excess leakage is read off each
curve at 0.97 of raw top-1; a method without a knob is compared at its own retention. Masks of faces of several sizes
are one curve, and so are blurs and downsampling. Every row is compared with the best mode in the same draws of
people; below 0 the best mode leaks less.

- `linkage_minus` and so on, `seeds_minus`: both curves are read at that retention; `seeds_minus` has one number per
  training.
- `compared`: no curve of the best mode is read. In each draw its strongest setting is taken that keeps at least as much
  utility, else raw video. `often` is the share of draws that take the setting that the whole set takes.
- `next_to_raw` (a star in the tables): read between raw video and the mildest setting, where a straight line is a
  guess. What draws anew has no raw video at the end of its curve.
- `strongest`: the row's strongest setting that keeps 0.97 of the utility, without reading a curve.
- `equal_utility`: each setting of the best mode, and of its parts, minus the others' curves at the same utility.

Ground truth is that of the setting that keeps about 0.89 of all tubelets; `settings` has all settings of the best
mode.
"""

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.dual_cls.page import SHOWN, TRUTHS
from experiments.dual_cls.table import ATTACKERS, BEST, RESULTS, prefix_of, world_of
from experiments.job_queue import write_json
from experiments.markdown import with_interval
from vidveil.evaluation.results import Point, Results
from vidveil.evaluation.results import read as read_results
from vidveil.report.paired import (
    LEAKAGES,
    RETENTIONS,
    Leakage,
    Method,
    Setting,
    at_retention,
    compared_with_curve,
    method,
)
from vidveil.report.same_clips import comparable
from vidveil.statistics.intervals import RESAMPLES, Estimate, Resamples, difference
from vidveil.statistics.tradeoff import compare

AT = RETENTIONS[0]
TRUTH_SHARE = 0.89
SIZED = {"faces": 1.0, "blur": 16.0, "downsample": 2.0}
"""Kind → its size where a name has none."""


def summary(runs: Path, end: str, start: str = "", mode: str = BEST) -> dict[str, Any]:
    """Of all finished runs whose names start and end like this; the best mode first."""
    best = f"{start}{mode}{end}"
    names = [path.parent.name for path in sorted(runs.glob(f"{start}*{end}/results.json"))]
    names = [name for name in names if prefix_of(name) == start]
    if best not in names:
        raise SystemExit(f"{best} is not finished in {runs}")
    files = [runs / name / "results.json" for name in sorted(names, key=lambda name: name != best)]
    opened, reasons = comparable([(file, read_results(file)) for file in files])
    for reason in reasons:
        print(f"left out: {reason}")
    if opened[0].results.name != best:
        raise SystemExit(f"{best} cannot be compared with: see above")
    draws = Resamples(opened[0].people, resamples=int(opened[0].results.recipe.get("resamples", RESAMPLES)))
    methods = {run.name.removeprefix(start).removesuffix(end): method(run, draws) for run in opened}
    truths = {run.name.removeprefix(start).removesuffix(end): truth(run.results) for run in opened}
    first, rows = methods[mode], {}
    methods = with_sizes(methods)
    for name, one in list(methods.items()):
        missing = next((why for of in LEAKAGES if (why := one.why_no_curve(of))), None)
        if missing is not None:
            print(f"left out: {name}, {missing}")
            del methods[name]
            continue
        rows[name] = row(first, one) | truths.get(name, {})
    recipe, raw = opened[0].results.recipe, opened[0].results.raw.metrics
    return {
        "at": AT, "best": mode, "data": opened[0].results.data["name"],
        "seeds": recipe["seeds"], "attackers": recipe["attackers"],
        "raw": {name: raw[name].value for name in ("action_top1", "linkage_rank1", "cmap") if name in raw},
        "rows": rows, "settings": settings(first, opened[0].results), "equal_utility": equal_utility(methods, mode),
    }  # fmt: skip


def equal_utility(methods: dict[str, Method], mode: str) -> list[dict[str, Any]]:
    """Each setting of the best mode, and of modes named after it, minus the curves of all other methods at the same
    retention. None where a curve does not reach it."""
    ours = {name: one for name, one in methods.items() if name == mode or name.startswith(f"{mode}-")}
    rivals = {name: one for name, one in methods.items() if name not in ours and len(one.settings) > 1}
    found = []
    for name, one in ours.items():
        for setting in one.settings:
            if setting.retention is None:
                continue
            minus: dict[str, dict[str, Any]] = {}
            for rival, other in rivals.items():
                read = {of: compared_with_curve(setting, other, of) for of in SHOWN}
                minus[rival] = {
                    of: with_interval(both.difference) if both and both.difference else None
                    for of, both in read.items()
                }
                minus[rival]["next_to_raw"] = any(both.second.next_to_raw for both in read.values() if both)
            found.append(
                {"of": name, "keep": setting.keep, "retention": with_interval(setting.retention), "minus": minus}
            )
    return found


def with_sizes(methods: dict[str, Method]) -> dict[str, Method]:
    """Joins methods that differ in size alone: `faces`, `faces1.5`, `faces2` … become `faces`."""
    for kind, usual in SIZED.items():
        found = {name: re.fullmatch(rf"{kind}([\d.]*)", name) for name in methods}
        sizes = {name: float(match[1] or usual) for name, match in found.items() if match}
        if len(sizes) < 2:
            continue
        # a larger number is milder for blur (how many σ fit into a frame), and stronger for the others
        sized = {name: size if kind == "blur" else 1 / size for name, size in sizes.items()}
        joined = [replace(methods[name].settings[0], keep=keep) for name, keep in sized.items()]
        first = methods[max(sized, key=lambda name: sized[name])]
        methods = {name: one for name, one in methods.items() if name not in sized}
        methods[kind] = replace(first, settings=joined)
    return methods


def row(best: Method, one: Method) -> dict[str, Any]:
    """Leakage at the retention that is asked for; of a method without a knob, at its own retention."""
    point = one.settings[0] if len(one.settings) == 1 else None
    kept = point.retention if point else at(best, AT)
    assert kept is not None
    found: dict[str, Any] = {"retention": kept.value, "knob": point is None}
    leaks: dict[Leakage, Estimate | None] = {}
    asked = {} if point else {reading.leakage: reading for reading in at_retention(best, one, (AT,))}
    for of in LEAKAGES:
        both = compare(best.curve(of), one.curve(of))[0] if point else asked[of].compared
        assert both is not None
        own = both.first if one is best else both.second
        leaks[of] = own.leakage
        found[of] = None if own.leakage is None else with_interval(own.leakage)
        found["next_to_raw"] = found.get("next_to_raw", False) or own.next_to_raw
        if one is not best and both.difference is not None:
            found[f"{of}_minus"] = with_interval(both.difference)
    found["strongest"] = strongest(best, one)
    if one is not best:
        found["compared"] = compared_with(best, kept, leaks)
        seeds = asked["linkage"].seeds if asked else ()
        found["seeds_minus"] = [value if np.isfinite(value) else None for value in seeds]  # JSON has no NaN
    return found


def strongest(best: Method, one: Method) -> dict[str, Any] | None:
    """Its strongest setting that keeps the asked retention on the whole set; None if none does."""
    enough = [each for each in one.settings if each.retention and each.retention.value >= AT]
    if not enough:
        return None
    setting = min(enough, key=strength)
    assert setting.retention is not None
    leaks = {of: setting.leakage(of) for of in LEAKAGES}
    found: dict[str, Any] = {
        "keep": setting.keep,
        "share": setting.share,
        "retention": with_interval(setting.retention),
    }
    found |= {of: None if leak is None else with_interval(leak) for of, leak in leaks.items()}
    return found if one is best else found | {"compared": compared_with(best, setting.retention, leaks)}


def strength(setting: Setting) -> float:
    """How much of a clip is kept: lower is stronger."""
    return 1.0 if setting.keep is None else setting.keep


def at(like: Method, share: float) -> Estimate:
    """A retention as an estimate that is the same in all draws."""
    drawn = like.settings[0].retention
    assert drawn is not None
    return Estimate(share, np.full(len(drawn.samples), share), drawn=drawn.drawn)


def compared_with(best: Method, asked: Estimate, leaks: dict[Leakage, Estimate | None]) -> dict[str, Any]:
    """The best mode's strongest setting that keeps at least `asked`, minus `leaks`; raw video if no setting does.

    Chosen again in each draw of people, because the strongest setting that passes is a lucky one.
    """
    order = sorted(best.settings, key=strength)  # the strongest first
    kept = np.stack([[each.retention.value, *each.retention.samples] for each in order if each.retention])  # (K, 1 + B)
    enough = kept >= np.array([asked.value, *asked.samples])
    chosen = np.where(enough.any(0), enough.argmax(0), len(order))  # (1 + B,); past the last: raw video
    raw = bool(chosen[0] == len(order))
    found: dict[str, Any] = {"share": 1.0 if raw else order[chosen[0]].share, "raw": raw}
    found["often"] = float((chosen[1:] == chosen[0]).mean())
    for of, its in leaks.items():
        own = [one.leakage(of) for one in order]
        if its is None or any(leak is None for leak in own):
            found[of] = None
            continue
        rows = np.stack([*([leak.value, *leak.samples] for leak in own if leak), np.ones(kept.shape[1])])  # (K + 1, …)
        taken = rows[chosen, np.arange(kept.shape[1])]
        found[of] = with_interval(difference(Estimate(float(taken[0]), taken[1:], drawn=its.drawn), its))
    return found


def truth(results: Results) -> dict[str, float]:
    """Ground truth of the setting that keeps about TRUTH_SHARE of the tubelets."""
    masked = [point for point in results.points if "tubelets_kept" in point.metrics]
    shares = [(abs(point.metrics["tubelets_kept"].value - TRUTH_SHARE), point) for point in masked]
    near = min(shares, key=lambda pair: pair[0], default=(1.0, None))
    if near[1] is None or near[0] > 0.02:
        return {}
    return {name: near[1].metrics[name].value for name in TRUTHS if name in near[1].metrics}


def settings(best: Method, results: Results) -> list[dict[str, Any]]:
    return [of_setting(*pair) for pair in zip(best.settings, results.points, strict=True)]


def of_setting(setting: Setting, point: Point) -> dict[str, Any]:
    """Utility, leakage and ground truth of one mask, and the attribute with the largest excess."""
    metrics = point.metrics
    left = {name: one.excess for name, one in metrics.items() if name.startswith("ap_") and one.excess is not None}
    worst = max(left, key=left.__getitem__, default=None)
    found: dict[str, Any] = {
        "keep": setting.keep,
        "share": setting.share,
        "retention": None if setting.retention is None else with_interval(setting.retention),
    }
    for of in SHOWN:
        leak = setting.leakage(of)
        found[of] = None if leak is None else with_interval(leak)
    found |= {name: [metrics[name].value, *metrics[name].interval] for name in TRUTHS if name in metrics}
    return found | {"most": None if worst is None else [worst.removeprefix("ap_").replace("_", " "), left[worst]]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--rho", default="0")
    parser.add_argument("--world", type=int, default=0)
    parser.add_argument("--best", default=BEST, help="the mode that the others are compared with")
    parser.add_argument("--attackers", default="", choices=["", *ATTACKERS], help="evaluated with these")
    parser.add_argument("--into", type=Path, default=RESULTS, help="folder of the summary")
    options = parser.parse_args()
    end = world_of(options.rho, options.world)[0]
    start = f"{options.attackers}-" if options.attackers else ""
    file = options.into / f"{start}summary{end}.json"
    write_json(file, summary(options.runs, end, start, options.best))
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
