"""Settings of a row of `table.py` beside tubelets by lot."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dual_cls_summary import told

from vidveil.errors import DataError
from vidveil.evaluation.intervals import Estimate, difference
from vidveil.report.paired import Method, Setting, beside_curve


def beside_lots(one: Setting, left: Estimate, lots: Method) -> dict[str, Any]:
    """Excess minus that of tubelets by lot where they keep as much of the use. Who keeps no less than raw video, in all
    or in a draw of people, stands beside raw video there, which is what lots are that keep everything."""
    assert one.retention is not None
    kept = one.retention
    capped = replace(kept, value=min(kept.value, 1.0), samples=np.minimum(kept.samples, 1.0))
    if kept.value >= 1:
        raw = Estimate(1.0, np.ones(len(left.samples)), drawn=left.drawn)
        return {"minus": told(difference(left, raw)), "at": "raw video"}
    if reason := lots.why_no_curve():
        raise DataError(f"{lots.name} has no excess to read at a retention: {reason}")
    compared = beside_curve(replace(one, retention=capped), lots)
    assert compared is not None
    read_at = {"lots": [each.keep for each in lots.settings]}
    if compared.difference is None:
        return {"reason": compared.second.reason or compared.first.reason} | read_at
    return {"minus": told(compared.difference)} | read_at


def beside_own_lots(row: dict[str, Any], ours: Sequence[Setting], lots: Sequence[Setting]) -> None:
    """Retention and excess of a learned mask minus those of lots that take the place of its network, in the same
    windows, at the same keep rate."""
    for found, one in zip(row["settings"], ours, strict=True):
        for other in (each for each in lots if each.keep == one.keep):
            pairs = {"retention": (one.retention, other.retention)}
            pairs["excess"] = (one.leakage("linkage"), other.leakage("linkage"))
            found["minus_own_lots"] = {name: told(difference(a, b)) for name, (a, b) in pairs.items() if a and b}
