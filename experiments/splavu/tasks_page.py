"""Tables of tasks behind adapters, from the summary of `experiments.splavu.tasks`."""

from functools import cache, partial
from typing import Any

from experiments.job_queue import read_json
from experiments.markdown import interval, table
from experiments.splavu.table import KINDS
from experiments.splavu.tasks import FILE, SETTINGS, SUBSETS, TASKS, WEIGHTS

LETTERS = "bcdefgh"
Columns = dict[str, tuple[str, str]]
"""Title → evaluator and metric."""
UTILITIES: Columns = {
    "top-1": ("clips", "action_top1"),
    "detection, mAP": ("detection", "detection_map"),
    "anomaly, AUC of frames": ("anomaly", "anomaly_frame_auc"),
    "of videos": ("anomaly", "anomaly_video_auc"),
}
LEAKAGES: Columns = {"attributes": ("clips", "cmap"), "linkage": ("clips", "linkage_rank1")}
RETRIEVAL: Columns = {
    title: ("clips", f"retrieval_{metric}")
    for title, metric in {"R@1": "r1", "R@5": "r5", "R@10": "r10", "mAP": "map"}.items()
}
GAIT: Columns = {
    scope.replace("_", " "): ("gait", f"gait_rank1_{scope}")
    for scope in ("same_view", "cross_view", "all_views", "any_view")
}
REAL: Columns = {"fights, AUC": UTILITIES["of videos"]}


@cache
def summary() -> dict[str, Any]:
    found: dict[str, Any] = read_json(FILE)
    return found


def settings_table(of: str, columns: Columns, rows: dict[str, str] | None = None) -> str:
    """`rows`: setting → the letter that stands before its title; by default all. Settings without numbers are left
    out."""
    lines = []
    for name, letter in (rows or dict.fromkeys(summary()[of], "")).items():
        one = summary()[of].get(name, {})
        pairs = [_pair(name, one, title, columns) for title in columns]
        if any(value for value, _ in pairs):
            title = SETTINGS[name].title if name in SETTINGS else "raw features"
            marks = ["✓" if task in one["tasks"] else "" for task in TASKS]
            lines.append([f"{letter} {title}".strip(), *marks, *(cell for pair in pairs for cell in pair)])
    return table(["", *TASKS, *(word for title in columns for word in (title, _compared(title)))], lines)


def unseen_table() -> str:
    """Change of each task behind adapters that were not trained with it."""
    titles = dict(zip(TASKS, UTILITIES, strict=False))
    kinds = ("apart", "ours")
    lines = []
    for tasks in SUBSETS[:-1]:
        names = [f"{kind}-{'-'.join(tasks)}" for kind in kinds]
        changes = [
            "" if task in tasks else _pair(name, summary()["puppets"][name], titles[task], UTILITIES)[1]
            for name in names
            for task in TASKS
        ]
        lines.append([" + ".join(tasks), *changes])
    return table(["trained with", *(f"{KINDS[kind][0]}: {task}" for kind in kinds for task in TASKS)], lines)


def _compared(title: str) -> str:
    return "excess" if title in LEAKAGES else "change"


def _pair(name: str, one: dict[str, Any], title: str, columns: Columns) -> tuple[str, str]:
    """The value, and its change or excess, which raw features have not."""
    evaluator, metric = columns[title]
    number = one.get(evaluator, {}).get(metric)
    if number is None:
        return "", ""
    return interval(number["value"]), "" if name == "raw" else interval(number[_compared(title)])


def _table_5() -> dict[str, str]:
    """Raw features and all subsets of tasks, with the letters of the paper."""
    rows = {"raw": "(a)"}
    for kind in ("apart", "ours"):
        rows |= {f"{kind}-{'-'.join(tasks)}": f"({letter})" for letter, tasks in zip(LETTERS, SUBSETS, strict=True)}
    return rows | {"mild-detection": "(c)", "mild-anomaly": "(d)"}


LOSSES = ("none", "no-budget", "action-lc0", *(f"action-lc{weight}" for weight in WEIGHTS), "action")
"""Without one of the losses (the paper's table 6), and other weights of latent consistency (table 11)."""
ROWS = dict.fromkeys(["raw", *(f"{kind}-{ending}" for kind in ("apart", "ours") for ending in LOSSES)], "")
TABLES = {
    "splavu-tasks": partial(settings_table, "puppets", UTILITIES | LEAKAGES, _table_5()),
    "splavu-tasks-losses": partial(settings_table, "puppets", UTILITIES | LEAKAGES, ROWS),
    "splavu-tasks-gait": partial(settings_table, "puppets", GAIT),
    "splavu-tasks-retrieval": partial(settings_table, "puppets", RETRIEVAL),
    "splavu-tasks-real": partial(settings_table, "ucf101_5", REAL),
    "splavu-unseen": unseen_table,
}
