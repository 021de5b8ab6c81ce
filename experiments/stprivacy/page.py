"""Tables of STPrivacy on synthetic people."""

from functools import partial

from experiments.dual_cls.page import (
    equal_utility_table,
    from_summary,
    rows_table,
    settings_table,
    strongest_table,
)
from experiments.job_queue import read_json
from experiments.markdown import table
from experiments.stprivacy import figure4
from experiments.stprivacy.figure4 import RESULTS

ROWS = {
    "STPrivacy, `--keep 0.963`": ("stprivacy", 0.963),
    "STPrivacy, `--keep 0.741`, about the default": ("stprivacy", 0.741),
    "STPrivacy, nothing dropped (`sparsify=false` in training)": ("stprivacy-anonymous", None),
    "dual-CLS (`attribution`), `--keep 0.888`": ("attribution", 0.888),
    "`blur:strong`": ("blur", None),
    "`blur:4`": ("blur4", None),
    "half the resolution": ("downsample2", None),
    "a sixteenth of it": ("downsample16", None),
}
"""Title → row and keep rate."""


def short_table() -> str:
    """Utility and leakage of some settings, as shares of raw video's."""
    rows = []
    for title, (name, keep) in ROWS.items():
        points = read_json(RESULTS / f"{name}-rho0.json")["points"]
        point = next(point for point in points if point["keep"] == keep)
        metrics = point["metrics"]
        shares = (metrics["action_top1"]["retention"], metrics["linkage_rank1"]["excess"], point["attribute_excess"])
        rows.append([title, *(f"{round(share, 2) + 0:.2f}" for share in shares)])  # no -0.00
    return table(["", "retention", "excess, linkage", "excess, attributes"], rows)


SUMMARY = RESULTS / "summary-rho0.json"
TABLES = {
    "stprivacy-short": short_table,
    "stprivacy-equal-utility": partial(from_summary, SUMMARY, equal_utility_table),
    "stprivacy-settings": partial(from_summary, SUMMARY, settings_table),
    "stprivacy": partial(from_summary, SUMMARY, rows_table),
    "stprivacy-strongest": partial(from_summary, SUMMARY, strongest_table),
    "stprivacy-figure4": partial(from_summary, RESULTS / "figure4.json", figure4.settings_table),
}
