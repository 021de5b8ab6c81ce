"""A setting of a row of `table.py` beside tubelets by lot."""

from dataclasses import replace
from typing import Any

import numpy as np
from dual_cls_summary import told

from vidveil.core.errors import DataError
from vidveil.report.paired import Method, Setting, beside_curve
from vidveil.statistics.intervals import Estimate, difference


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
    if compared.difference is None:
        return {"reason": compared.second.reason or compared.first.reason}
    read = compared.second
    return {"minus": told(compared.difference), "beside_raw": read.beside_raw, "several": read.ambiguous}
