"""Tables of dual-CLS, from the summaries of `experiments.dual_cls.summary` and of STPrivacy alike."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.dual_cls.table import RESULTS
from experiments.job_queue import read_json
from experiments.markdown import MISSING, interval, table
from vidveil.report.paired import Leakage

SHOWN: tuple[Leakage, ...] = ("linkage", "attributes")
TRUTHS = ("identity_hidden", "action_kept", "score_auroc")


def rows_table(summary: dict[str, Any]) -> str:
    """By what leaks; rows whose curve does not reach the retention come last."""
    best = summary["best"]
    head = ["", "excess, linkage", "excess, attributes", f"{best} minus it, linkage", "attributes",
            "linkage by seed", "identity hidden", "action kept", "AUROC"]  # fmt: skip
    lines = []
    rows = summary["rows"].items()
    for name, one in sorted(rows, key=lambda pair: (pair[0] != best, (pair[1]["leak"] or [np.inf])[0])):
        cells = [f"{name}{'*' if one['next_to_raw'] else ''}" if one["knob"] else f"{name} (at {one['retention']:.3f})"]
        cells += [interval(one[of]) for of in SHOWN]
        cells += [interval((one.get("compared") or {}).get(of)) for of in SHOWN]
        cells.append(" ".join(MISSING if value is None else f"{value:.2f}" for value in one.get("seeds_minus", ())))
        cells += [f"{one[which]:.2f}" if which in one else "" for which in TRUTHS]
        lines.append(cells)
    return table(head, lines)


def settings_table(summary: dict[str, Any]) -> str:
    """The best mode, setting by setting."""
    head = ["`--keep`", "tubelets kept", "retention", "excess, linkage", "excess, attributes", "largest excess",
            "identity hidden", "action kept", "AUROC"]  # fmt: skip
    lines = []
    for one in summary["settings"]:
        most = "" if one["most"] is None else f"{one['most'][0]}, {one['most'][1]:.2f}"
        share = "" if one["share"] is None else f"{one['share']:.2f}"
        cells = [_keep(one), share, *(interval(one[of]) for of in ("retention", *SHOWN)), most]
        lines.append([*cells, *(interval(one.get(which)) for which in TRUTHS)])
    return table(head, lines)


def equal_utility_table(summary: dict[str, Any]) -> str:
    """A line per setting, a column per rival: linkage, then attributes."""
    rivals = list(summary["equal_utility"][0]["minus"])
    head = ["", "`--keep`", "retention", *(f"minus {rival}" for rival in rivals)]
    lines = []
    for one in summary["equal_utility"]:
        minus = [
            ", ".join(interval(one["minus"][rival][of]) for of in SHOWN)
            + (" *" if one["minus"][rival]["next_to_raw"] else "")
            for rival in rivals
        ]
        lines.append([one["of"], _keep(one), interval(one["retention"]), *minus])
    return table(head, lines)


def strongest_table(summary: dict[str, Any]) -> str:
    """Each row's strongest setting that keeps enough, by what it leaks."""
    best = summary["best"]
    head = ["", "kept of the clip", "retention", "excess, linkage", "excess, attributes",
            f"{best} then keeps", f"{best} minus it, linkage", "attributes"]  # fmt: skip
    lines = []
    found = [(name, one["strongest"]) for name, one in summary["rows"].items() if one.get("strongest")]
    for name, one in sorted(found, key=lambda pair: (pair[0] != best, pair[1]["leak"][0])):
        compared = one.get("compared") or {}
        shares = ["" if share is None else f"{share:.2f}" for share in (one["share"], compared.get("share"))]
        shares[1] = "raw video" if compared.get("raw") else shares[1]
        cells = [name, shares[0], *(interval(one[of]) for of in ("retention", *SHOWN)), shares[1]]
        lines.append([*cells, *(interval(compared.get(of)) for of in SHOWN)])
    return table(head, lines)


def _keep(one: dict[str, Any]) -> str:
    return "" if one["keep"] is None else f"{one['keep']:g}"


def from_summary(file: Path, table_of: Callable[[dict[str, Any]], str]) -> str:
    return table_of(read_json(file))


KINDS = {"": rows_table, "-settings": settings_table, "-strongest": strongest_table}
SUMMARIES = {
    "rho0": ("summary-rho0", ("", "-settings")),
    "strong": ("strong-summary-rho0-world2", ("", "-settings", "-strongest")),
    "rho0.5": ("summary-rho0.5", ("", "-settings")),
    "rho0.5-again": ("again-summary-rho0.5", ("",)),
    "rho1": ("summary-rho1", ("", "-settings")),
}
"""Name → summary, and the tables of it that the page shows."""
TABLES = {
    f"dual-cls-{name}{kind}": partial(from_summary, RESULTS / f"{file}.json", KINDS[kind])
    for name, (file, kinds) in SUMMARIES.items()
    for kind in kinds
}
