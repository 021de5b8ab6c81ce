"""The table of dual-CLS in one screen: what leaks where 0.97 of the use is kept, and what masks hide of the truth.

    python benchmarks/dual_cls_summary.py --runs runs --rho 0         of finished runs, into results/dual_cls/
    python benchmarks/dual_cls_summary.py --page summary-rho0.json    as Markdown, as it stands in the docs

Of `dual_cls_table`'s runs. Excess leakage is read off each curve at 0.97 of raw top-1; a method without a knob stands
at its own retention. Masks of faces of several sizes are one curve, and so are blurs and small pictures. The best mode
is compared twice, in the same draws of people, and below 0 it leaks less. `minus`: both curves are read there, the best
mode's, too. `beside`: no curve of the best mode is read, but in each draw its strongest setting is taken that keeps no
less there, else raw video; `often` is in how many draws that is the setting of the whole set. The tables show this.
`seeds_minus` is `minus` of each training. `beside_raw`, a star: read between raw video and the mildest setting, where a
straight line is a guess; what draws anew has no raw video at the end of its curve. Truth is told of the setting that
keeps about 0.89 of all tubelets; `settings` has all of it of each setting of the best mode. `judged` reads no curve at
all: it is the row's strongest setting that keeps 0.97 of the use, and what the best mode has beside that. `met` reads
the curves of the others alone: each setting of the best mode, and of its parts, minus the others where these keep as
much of the use; a star there, too.
"""

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from dual_cls_table import AGAINST, BEST, RESULTS, starts

from vidveil.evaluation.results import Point, Results
from vidveil.evaluation.results import read as read_results
from vidveil.report.paired import LEAKAGES, RETENTIONS, Leakage, Method, Setting, at_retention, beside_curve, method
from vidveil.report.same_clips import comparable
from vidveil.statistics.intervals import RESAMPLES, Difference, Estimate, Resamples, difference
from vidveil.statistics.tradeoff import compare

AT = RETENTIONS[0]
TRUTH_SHARE = 0.89
SIZED = {"faces": 1.0, "blur": 16.0, "downsample": 2.0}
"""Kind → its size where a name tells none."""
SHOWN: tuple[Leakage, ...] = ("linkage", "attributes")
TRUTHS = ("identity_hidden", "action_kept", "score_auroc")


def summary(runs: Path, end: str, start: str = "", mode: str = BEST) -> dict[str, Any]:
    """Of all finished runs whose names begin and end so; the best mode first."""
    best = f"{start}{mode}{end}"
    names = [path.parent.name for path in sorted(runs.glob(f"{start}*{end}/results.json"))]
    names = [name for name in names if starts(name) == start]
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
        "rows": rows, "settings": settings(first, opened[0].results), "met": met(methods, mode),
    }  # fmt: skip


def met(methods: dict[str, Method], mode: str) -> list[dict[str, Any]]:
    """Each setting of the best mode, and of what is named after it: minus those that have a curve, where they keep as
    much; None where they do not get there."""
    ours = {name: one for name, one in methods.items() if name == mode or name.startswith(f"{mode}-")}
    rivals = {name: one for name, one in methods.items() if name not in ours and len(one.settings) > 1}
    found = []
    for name, one in ours.items():
        for setting in one.settings:
            if setting.retention is None:
                continue
            minus: dict[str, dict[str, Any]] = {}
            for rival, other in rivals.items():
                read = {of: beside_curve(setting, other, of) for of in SHOWN}
                minus[rival] = {
                    of: told(both.difference) if both and both.difference else None for of, both in read.items()
                }
                minus[rival]["beside_raw"] = any(both.second.beside_raw for both in read.values() if both)
            found.append({"of": name, "keep": setting.keep, "retention": told(setting.retention), "minus": minus})
    return found


def with_sizes(methods: dict[str, Method]) -> dict[str, Method]:
    """What differs in size alone is one method with a knob: `faces`, `faces1.5`, `faces2` … become `faces`."""
    for kind, usual in SIZED.items():
        found = {name: re.fullmatch(rf"{kind}([\d.]*)", name) for name in methods}
        sizes = {name: float(match[1] or usual) for name, match in found.items() if match}
        if len(sizes) < 2:
            continue
        # the larger the milder, of what a blur's σ goes into; the smaller, of the others
        sized = {name: size if kind == "blur" else 1 / size for name, size in sizes.items()}
        joined = [replace(methods[name].settings[0], keep=keep) for name, keep in sized.items()]
        first = methods[max(sized, key=lambda name: sized[name])]
        methods = {name: one for name, one in methods.items() if name not in sized}
        methods[kind] = replace(first, settings=joined)
    return methods


def row(best: Method, one: Method) -> dict[str, Any]:
    """Where it keeps as much as is asked for; without a knob, where it stands."""
    point = one.settings[0] if len(one.settings) == 1 else None
    use = point.retention if point else at(best, AT)
    assert use is not None
    found: dict[str, Any] = {"retention": use.value, "knob": point is None}
    leaks: dict[Leakage, Estimate | None] = {}
    asked = {} if point else {reading.leakage: reading for reading in at_retention(best, one, (AT,))}
    for of in LEAKAGES:
        both = compare(best.curve(of), one.curve(of))[0] if point else asked[of].compared
        assert both is not None
        own = both.first if one is best else both.second
        leaks[of] = own.leakage
        found[of] = None if own.leakage is None else told(own.leakage)
        found["beside_raw"] = found.get("beside_raw", False) or own.beside_raw
        if one is not best and both.difference is not None:
            found[f"{of}_minus"] = told(both.difference)
    found["judged"] = judged(best, one)
    if one is not best:
        found["beside"] = beside(best, use, leaks)
        seeds = asked["linkage"].seeds if asked else ()
        found["seeds_minus"] = [value if np.isfinite(value) else None for value in seeds]  # JSON has no NaN
    return found


def judged(best: Method, one: Method) -> dict[str, Any] | None:
    """Its strongest setting that keeps as much as is asked for on the whole set; None where none does."""
    enough = [each for each in one.settings if each.retention and each.retention.value >= AT]
    if not enough:
        return None
    setting = min(enough, key=strength)
    assert setting.retention is not None
    leaks = {of: setting.leakage(of) for of in LEAKAGES}
    found: dict[str, Any] = {"keep": setting.keep, "share": setting.share, "retention": told(setting.retention)}
    found |= {of: None if leak is None else told(leak) for of, leak in leaks.items()}
    return found if one is best else found | {"beside": beside(best, setting.retention, leaks)}


def strength(setting: Setting) -> float:
    """Low is strong: how much of a clip is kept."""
    return 1.0 if setting.keep is None else setting.keep


def at(like: Method, share: float) -> Estimate:
    """A retention that is asked for, as one that is the same in all draws."""
    drawn = like.settings[0].retention
    assert drawn is not None
    return Estimate(share, np.full(len(drawn.samples), share), drawn=drawn.drawn)


def beside(best: Method, use: Estimate, leaks: dict[Leakage, Estimate | None]) -> dict[str, Any]:
    """The best mode's setting that keeps least of the clip and no less of the use, minus that; else raw video minus it.

    Chosen anew in each draw of people: who takes the strongest setting that passes, takes a lucky one.
    """
    order = sorted(best.settings, key=strength)  # the strongest first
    kept = np.stack([[each.retention.value, *each.retention.samples] for each in order if each.retention])  # (K, 1 + B)
    enough = kept >= np.array([use.value, *use.samples])
    chosen = np.where(enough.any(0), enough.argmax(0), len(order))  # (1 + B,); behind the last: raw video
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
        found[of] = told(difference(Estimate(float(taken[0]), taken[1:], drawn=its.drawn), its))
    return found


def truth(results: Results) -> dict[str, float]:
    """Of the setting that keeps about as much as is asked for."""
    masked = [point for point in results.points if "tubelets_kept" in point.metrics]
    shares = [(abs(point.metrics["tubelets_kept"].value - TRUTH_SHARE), point) for point in masked]
    near = min(shares, key=lambda pair: pair[0], default=(1.0, None))
    if near[1] is None or near[0] > 0.02:
        return {}
    return {name: near[1].metrics[name].value for name in TRUTHS if name in near[1].metrics}


def settings(best: Method, results: Results) -> list[dict[str, Any]]:
    return [of_setting(*pair) for pair in zip(best.settings, results.points, strict=True)]


def of_setting(setting: Setting, point: Point) -> dict[str, Any]:
    """Use, leakage and truth of one and the same mask, and the attribute of which most is left."""
    metrics = point.metrics
    left = {name: one.excess for name, one in metrics.items() if name.startswith("ap_") and one.excess is not None}
    worst = max(left, key=left.__getitem__, default=None)
    found: dict[str, Any] = {
        "keep": setting.keep,
        "share": setting.share,
        "retention": None if setting.retention is None else told(setting.retention),
    }
    for of in ("linkage", "attributes"):
        leak = setting.leakage(of)
        found[of] = None if leak is None else told(leak)
    found |= {name: [metrics[name].value, *metrics[name].interval] for name in TRUTHS if name in metrics}
    return found | {"most": None if worst is None else [worst.removeprefix("ap_").replace("_", " "), left[worst]]}


def told(value: Estimate | Difference) -> list[float | None]:
    """JSON has no NaN: what cannot be told of enough draws has no interval."""
    return [number if np.isfinite(number) else None for number in (value.value, value.low, value.high)]


def page(summary: dict[str, Any]) -> str:
    """By what leaks, those last whose curve does not get there; the best mode, setting by setting; what was judged."""
    best = summary["best"]
    head = ["", "excess, linkage", "excess, attributes", f"{best} minus it, linkage", "attributes",
            "linkage by seed", "identity hidden", "action kept", "AUROC"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    rows = summary["rows"].items()
    for name, one in sorted(rows, key=lambda pair: (pair[0] != best, (pair[1]["leak"] or [np.inf])[0])):
        cells = [f"{name}{'*' if one['beside_raw'] else ''}" if one["knob"] else f"{name} (at {one['retention']:.3f})"]
        cells += [interval(one[of]) for of in ("linkage", "attributes")]
        cells += [interval((one.get("beside") or {}).get(of)) for of in ("linkage", "attributes")]
        cells.append(" ".join("–" if value is None else f"{value:.2f}" for value in one.get("seeds_minus", ())))
        cells += [f"{one[which]:.2f}" if which in one else "" for which in TRUTHS]
        lines.append("| " + " | ".join(cells) + " |")
    head = ["`--keep`", "tubelets kept", "retention", "excess, linkage", "excess, attributes", "most left of",
            "identity hidden", "action kept", "AUROC"]  # fmt: skip
    lines += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in summary["settings"]:
        most = "" if one["most"] is None else f"{one['most'][0]}, {one['most'][1]:.2f}"
        share = "" if one["share"] is None else f"{one['share']:.2f}"
        keep = "" if one["keep"] is None else f"{one['keep']:g}"
        cells = [keep, share, *(interval(one[of]) for of in ("retention", "linkage", "attributes")), most]
        cells += [interval(one.get(which)) for which in TRUTHS]
        lines.append("| " + " | ".join(cells) + " |")
    met_there = where_met(summary)
    return "\n".join([*lines, "", *where_judged(summary), *(["", *met_there] if met_there else [])])


def where_met(summary: dict[str, Any]) -> list[str]:
    """A line a setting, a column a rival: linkage, then attributes."""
    rivals = list(summary["met"][0]["minus"]) if summary.get("met") else []
    if not rivals:
        return []
    lines = ["| " + " | ".join(["", "`--keep`", "retention", *(f"minus {rival}" for rival in rivals)]) + " |"]
    lines.append("|" + "---|" * (3 + len(rivals)))
    for one in summary["met"]:
        keep = "" if one["keep"] is None else f"{one['keep']:g}"
        minus = [
            ", ".join(interval(one["minus"][rival][of]) for of in SHOWN)
            + (" *" if one["minus"][rival]["beside_raw"] else "")
            for rival in rivals
        ]
        lines.append("| " + " | ".join([one["of"], keep, interval(one["retention"]), *minus]) + " |")
    return lines


def where_judged(summary: dict[str, Any]) -> list[str]:
    """Each row's strongest setting that keeps enough, by what it leaks."""
    best = summary["best"]
    head = ["", "kept of the clip", "retention", "excess, linkage", "excess, attributes",
            f"{best} beside it keeps", f"{best} minus it, linkage", "attributes"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    found = [(name, one["judged"]) for name, one in summary["rows"].items() if one.get("judged")]
    for name, one in sorted(found, key=lambda pair: (pair[0] != best, pair[1]["leak"][0])):
        beside = one.get("beside") or {}
        shares = ["" if share is None else f"{share:.2f}" for share in (one["share"], beside.get("share"))]
        shares[1] = "raw video" if beside.get("raw") else shares[1]
        cells = [name, shares[0], *(interval(one[of]) for of in ("retention", "linkage", "attributes")), shares[1]]
        cells += [interval(beside.get(of)) for of in ("linkage", "attributes")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def interval(numbers: list[float | None] | None) -> str:
    """`0.03 [0.01, 0.08]`; a bar where a curve does not get there."""
    if numbers is None or numbers[0] is None:
        return "–"
    value, low, high = numbers
    return f"{value:.2f}" if low is None else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--rho", default="0")
    parser.add_argument("--world", type=int, default=0)
    parser.add_argument("--best", default=BEST, help="the mode that the others are compared with")
    parser.add_argument("--against", default="", choices=["", *AGAINST], help="of these attackers, instead of one")
    parser.add_argument("--into", type=Path, default=RESULTS, help="folder of the summary")
    parser.add_argument("--page", type=Path, help="a summary, to be printed as Markdown")
    options = parser.parse_args()
    if options.page:
        print(page(json.loads(options.page.read_text())))
        return
    end = f"-rho{options.rho}" + (f"-world{options.world}" if options.world else "")
    start = f"{options.against}-" if options.against else ""
    found = summary(options.runs, end, start, options.best)
    options.into.mkdir(parents=True, exist_ok=True)
    file = options.into / f"{start}summary{end}.json"
    file.write_text(json.dumps(found, indent=1) + "\n")
    print(page(found))
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
