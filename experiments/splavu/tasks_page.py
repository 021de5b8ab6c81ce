"""The numbers of `splavu_tasks.py`, and their page.

Numbers are those of the evaluations, changes too: against raw features, in the same draws of test people or videos. The
five folds of fights are put together as means; their test videos are different ones, so the variances of the means,
taken from the width of their intervals, add up.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from experiments.markdown import interval
from experiments.splavu.table import KINDS
from experiments.splavu.tasks import EVALUATORS, FOLDS, LATENT, SETTINGS, SUBSETS, TASKS, WEIGHTS, judging
from vidveil.evaluation.results import Metric, Point, Results
from vidveil.evaluation.results import read as read_results
from vidveil.training.runs import runs_folder

Number = dict[str, Any]
LETTERS = "bcdefgh"
LEFT_OUT = ("ap_", "auroc_", "linkage_rank1_", "linkage_map", "f1")
"""How metrics begin that no table here shows."""


def summary(before: dict[str, Any] | None = None) -> dict[str, Any]:
    """Set → setting (raw among them) → judge → metric → numbers. What is not among the finished runs is as it was
    `before`, where the same raw features were evaluated alike; a setting that is among them is new as a whole."""
    found = finished()
    for of, then in (before or {}).items():
        now = found.setdefault(of, {"raw": then["raw"]})
        shared = [evaluator for evaluator in EVALUATORS[of] if evaluator in then["raw"] and evaluator in now["raw"]]
        if unlike := [
            evaluator for evaluator in shared if _gave(then["raw"], evaluator) != _gave(now["raw"], evaluator)
        ]:
            print(
                f"left out: what was evaluated before on {of}; raw features gave something else ({', '.join(unlike)})"
            )
            continue
        for name, told in then.items():
            now[name] = told | now["raw"] if name == "raw" else now.get(name, told | {"title": SETTINGS[name].title})
    return {of: {name: own[name] for name in ("raw", *SETTINGS) if name in own} for of, own in found.items()}


def _gave(raw: dict[str, Any], evaluator: str) -> dict[str, float]:
    return {name: round(number["value"][0], 4) for name, number in raw.get(evaluator, {}).items()}


def finished() -> dict[str, Any]:
    """What stands in runs."""
    found: dict[str, Any] = {}
    for name, setting in SETTINGS.items():
        for evaluator in EVALUATORS[setting.set]:
            runs = [runs_folder() / command.name / "results.json" for command in judging(name, evaluator)]
            if not all(path.is_file() for path in runs):
                continue
            results = [read_results(path) for path in runs]
            own = found.setdefault(setting.set, {"raw": {"title": "raw features", "tasks": []}})
            own["raw"].setdefault(evaluator, numbers([one.raw for one in results]))
            about = {"title": setting.title, "tasks": list(setting.tasks)}
            own.setdefault(name, about)[evaluator] = numbers([one.points[0] for one in results])
            own[name].setdefault("commits", {})[evaluator] = _commits(results)
    return found


def numbers(points: Sequence[Point]) -> dict[str, Number]:
    """Of one evaluation, or of the folds of a set."""
    shown = [
        name
        for name, metric in points[0].metrics.items()
        if metric.kind in ("utility", "leakage") and not name.startswith(LEFT_OUT)
    ]
    found = {name: together([point.metrics[name] for point in points]) for name in shown}
    if "cmap" in found and points[0].attribute_excess is not None:
        found["cmap"]["excess"] = [points[0].attribute_excess, *(points[0].attribute_excess_interval or [])]
    return found


def together(folds: Sequence[Metric]) -> Number:
    """The value, the change and the excess with their intervals."""
    told: dict[str, list[tuple[Any, Any]]] = {
        "value": [(one.value, one.interval) for one in folds],
        "change": [(one.change, one.change_interval) for one in folds],
        "excess": [(one.excess, one.excess_interval) for one in folds],
    }
    found: Number = {key: _mean(each) for key, each in told.items() if all(value is not None for value, _ in each)}
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


WORDS = """# Features after adapters of different tasks

What is left for tasks, and for attackers, of features that went through an adapter
([SPLAVU](../docs/methods/splavu.md)) which learned with some of these tasks, and with others not. After the paper's
tables 5, 6, 7, 11 and 13. `python benchmarks/splavu_tasks.py --page` writes this page from
[results](results/splavu_tasks.json); `--list` says the command of each number, `--only SETTING` runs one again.

- **Learned with.** *action*: a linear head on clips; *detection*: TriDet on whole videos; *anomaly*: MGFN on whole
  videos of which some have something abnormal. *Published losses* erase nothing; *ours* erases 0.75 of the directions
  that tell none of the tasks it learned with.
- **Evaluated.** Everything is trained anew on what comes out, three adapters a row, one for each seed of the evaluators.
  *Top-1* of clips by a linear head; *detection* is mAP over tIoU 0.3 to 0.7 by TriDet; *anomaly* the AUC of frames, and
  of videos, by MGFN; frames of fights have no labels. Adapters learn with MGFN's published weights, and it evaluators with
  firmer ones, which tell better when something happens. *Linkage* is rank-1, *attributes* cMAP, by the strongest of
  several attackers on validation people. *Excess*: 1 as much as raw features beyond chance, 0 none; of attributes it is
  over those that raw features leak measurably, and cMAP is the mean of all.
- **Retrieval** looks for clips of the same action. To adapters that erase it is no unseen use: they keep what tells the
  actions apart, where they learned with them.
- Brackets are 95 % intervals over test people or videos; *change* is against raw features in the same draws.
- Settings of `splavu_tasks.py` that are not here were not run. Other adapters, and each loss left out, for clips:
  [SPLAVU.md](SPLAVU.md). Bias, gait of silhouettes: [the method's page](../docs/methods/splavu.md#what-it-is-worth)."""

TITLES = {"puppets": "Built-in people", "ucf101_5": "Real video, features of Kinetics I3D"}
Columns = dict[str, tuple[str, tuple[str, ...]]]
"""Column → judge, and the metric: the first of these that it has."""
USES: Columns = {
    "top-1": ("clips", ("action_top1",)),
    "detection, mAP": ("detection", ("detection_map",)),
    "anomaly, AUC of frames": ("anomaly", ("anomaly_frame_auc",)),
    "of videos": ("anomaly", ("anomaly_video_auc",)),
}
LEAKS: Columns = {"attributes": ("clips", ("cmap",)), "linkage": ("clips", ("linkage_rank1",))}
RETRIEVAL: Columns = {
    "R@1": ("clips", ("retrieval_r1",)),
    "R@5": ("clips", ("retrieval_r5",)),
    "R@10": ("clips", ("retrieval_r10",)),
    "mAP": ("clips", ("retrieval_map",)),
}
GAIT: Columns = {
    scope.replace("_", " "): ("gait", (f"gait_rank1_{scope}",))
    for scope in ("same_view", "cross_view", "all_views", "any_view")
}


def page(found: dict[str, Any]) -> str:
    lines = [WORDS, ""]
    for title, table in tables(found):
        lines += [f"## {title}", "", table, ""]
    return "\n".join(lines)


def tables(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Those that there are numbers for."""
    drawn = found.get("puppets", {})
    for ending, (told, _) in LATENT.items():
        rows = {f"{kind}-{'-'.join(tasks)}{ending}": f"({letter})" for kind in ("apart", "ours")
                for letter, tasks in zip(LETTERS, SUBSETS, strict=True)}  # fmt: skip
        if not ending:
            rows |= {"mild-detection": "(c)", "mild-anomaly": "(d)"}
        if table := grid(drawn, {"raw": "(a)"} | rows, USES | LEAKS):
            yield f"{TITLES['puppets']}: which tasks it learned with{told} (table 5)", table
    without = ("none", "no-budget", "action-lc0", "action")
    rows = {f"{kind}-{name}": "" for kind in ("apart", "ours") for name in without}
    if table := grid(drawn, {"raw": ""} | rows, USES | LEAKS):
        yield f"{TITLES['puppets']}: without one of the losses (table 6)", table
    rows = {f"{kind}-action{end}": "" for kind in ("apart", "ours")
            for end in ("-lc0", *(f"-lc{weight}" for weight in WEIGHTS[:2]), "", f"-lc{WEIGHTS[2]}")}  # fmt: skip
    if any(f"{kind}-action-lc{weight}" in drawn for kind in ("apart", "ours") for weight in (0, *WEIGHTS)):
        table = grid(drawn, {"raw": ""} | rows, USES | LEAKS)
        yield f"{TITLES['puppets']}: how much latent consistency counts, × 100 if not told (table 11)", table
    for of, own in found.items():
        rest = dict.fromkeys([name for name in own if name != "raw"], "")
        for columns, words in ((GAIT, "gait, rank-1 (table 7)"), (RETRIEVAL, "retrieval of actions (table 13)")):
            if table := grid(own, {"raw": ""} | rest, columns):
                yield f"{TITLES[of]}: {words}", table
    real = found.get("ucf101_5", {})
    columns = {"top-1": USES["top-1"], "fights, AUC": USES["of videos"], "linkage": LEAKS["linkage"]}
    if table := grid(real, dict.fromkeys(real, ""), columns):
        yield f"{TITLES['ucf101_5']}: five classes of UCF101 and {len(FOLDS)} folds of fights", table


def unseen(own: dict[str, Any]) -> str:
    """Change of each task after adapters that did not learn with it; a row a subset, a column a kind and task."""
    columns = dict(zip(TASKS, ("top-1", "detection, mAP", "anomaly, AUC of frames"), strict=True))
    kinds = ("apart", "ours")
    lines = [["learned with", *(f"{KINDS[kind][0]}: {task}" for kind in kinds for task in TASKS)]]
    lines.append(["---"] * len(lines[0]))
    for tasks in SUBSETS[:-1]:
        rows = [own[f"{kind}-{'-'.join(tasks)}"] for kind in kinds]
        changes = [
            "" if task in tasks else _cells(row, columns[task], USES[columns[task]], False)[1]
            for row in rows
            for task in TASKS
        ]
        lines.append([" + ".join(tasks), *changes])
    return _lines(lines)


def grid(own: dict[str, Any], rows: dict[str, str], columns: Columns) -> str:
    """A row a setting that has any of the numbers, behind what it learned with; nothing without an adapter's row."""
    body = []
    columns = {
        column: where
        for column, where in columns.items()
        if any(_cells(own.get(name, {}), column, where, False)[0] for name in rows)
    }
    for name, letter in rows.items():
        told = own.get(name, {})
        cells = [cell for column in columns for cell in _cells(told, column, columns[column], name == "raw")]
        if any(cells):
            marks = ["✓" if task in own[name]["tasks"] else "" for task in TASKS]
            body.append([f"{letter} {own[name]['title']}".strip(), *marks, *cells])
    if len(body) < 2:
        return ""
    head = ["", *TASKS, *(word for column in columns for word in (column, _beside(column)))]
    return _lines([head, ["---"] * len(head), *body])


def _lines(table: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in table)


def _beside(column: str) -> str:
    return "excess" if column in LEAKS else "change"


def _cells(setting: dict[str, Any], column: str, where: tuple[str, tuple[str, ...]], raw: bool) -> tuple[str, str]:
    evaluator, names = where
    told = setting.get(evaluator, {})
    number = next((told[name] for name in names if name in told), None)
    if number is None:
        return "", ""
    next_to = number.get(_beside(column))
    return _told(number["value"]), "" if raw or not next_to else _told(next_to)


def _told(number: Sequence[float]) -> str:
    return interval([*number]) if len(number) == 3 else f"{number[0]:.2f}"
