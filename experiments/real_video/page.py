"""Tables of real video, from the summary of `experiments.real_video.table` and results of single runs."""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from experiments.job_queue import read_json
from experiments.markdown import MISSING, interval, table
from experiments.real_video import figure_table
from experiments.real_video.table import RESULTS, ROWS

SETS = {"ucf101_5": "Five classes of UCF101, splits 1 to 3", "weizmann": "Weizmann, three folds of three people"}
PARTS = {"whole": "As filmed", "crop": "Cut to a square around the person"}
CROP = "crop"


@cache
def summary() -> dict[str, Any]:
    found: dict[str, Any] = read_json(RESULTS / "summary.json")
    return found


def sets_table() -> str:
    """What was tested, and what guessing gets."""
    asked = {"ucf101_5": "linkage_rank1", "weizmann": "linkage_rank1", "weizmann_named": "identity_top1"}
    titles = SETS | {"weizmann_named": "Weizmann, known people, three folds of actions"}
    rows = []
    for name, one in summary().items():
        raw = one["parts"]["whole"]["raw"]["settings"][0][asked[name]]
        measure = "linkage, rank-1" if name != "weizmann_named" else "identity, top-1"
        numbers = [f"{raw[key]:.2f}" for key in ("floor",)] + [f"{raw['value'][0]:.2f}", f"{raw['highest']:.2f}"]
        rows.append([titles[name], str(one["people"]), str(one["clips"]), measure, *numbers])
    return table(["set", "test people", "test clips", "measure", "chance", "raw video", "highest attacker"], rows)


def rows_table(of: str, part: str) -> str:
    """All rows of a set and a part; the place alone is among those as filmed."""
    parts = summary()[of]["parts"]
    rows: dict[str, Any] = parts[part] | (parts["median"] if part == "whole" else {})
    named_parts = summary()["weizmann_named"]["parts"] if of == "weizmann" else {}
    named: dict[str, Any] = named_parts.get(part, {}) | (named_parts.get("median", {}) if part == "whole" else {})
    head = ["", "`--only`", "kept", "top-1", "retention", "linkage", "excess", "highest", "excess of the highest",
            "minus random, excess", "by"]  # fmt: skip
    head += ["known people, top-1", "excess of that"] if named else []
    lines = []
    for name in (name for name in ROWS if name in rows):
        known = {one.get("keep"): one["identity_top1"] for one in named.get(name, {"settings": []})["settings"]}
        for one in rows[name]["settings"]:
            cells = _cells(name, one)
            if named:
                top1 = known.get(one.get("keep"))
                cells += [interval(top1["value"]), interval(top1["share"])] if top1 else ["", ""]
            lines.append(cells)
    return table(head, lines)


def _cells(name: str, one: dict[str, Any]) -> list[str]:
    use, linked, share = one["action_top1"], one["linkage_rank1"], one.get("share")
    return [
        ROWS[name].title,
        f"`{name}`",
        f"{share:.{2 if share >= 0.01 else 3}f}" if share else "",
        interval(use["value"]),
        interval(use["share"]),
        interval(linked["value"]),
        interval(linked["share"]),
        f"{linked['highest']:.2f}",
        f"{linked['highest_share']:.2f}",
        _minus(one.get("minus_random")),
        linked["by"],
    ]


def _minus(found: dict[str, Any] | None) -> str:
    """The marks *, ~ and ^ are explained above the tables."""
    if found is None:
        return ""
    marks = {" *": found.get("at"), " ^": found.get("several"), " ~": found.get("next_to_raw")}
    return interval(found.get("minus")) + "".join(mark for mark, applies in marks.items() if applies)


COMMANDS = {
    "blur-faces": ("faces must not be visible, all of the utility is needed", "`--region faces` (the default)"),
    "motion": ("nothing that stands still, no colour", "`--method motion`"),
    "motion8": ("… in blocks too coarse for faces", "`--method motion:8`"),
    "figure14": ("only how people move", "`--method figure:14`"),
    "figure8": ("… in blocks too coarse for faces", "`--method figure:8`"),
    "recast14-15": (
        "… turned at random, so that clips of a person are a little harder to link",
        "`--method recast:14,15`",
    ),
    "recast14": ("… harder to link, at the cost of utility", "`--method recast:14`"),
}
"""Row → what a user wants, and the command for it."""


def decision_table() -> str:
    head = [
        "you want",
        "command",
        "UCF101: retention",
        "excess of linkage",
        "Weizmann: retention",
        "excess of the highest",
    ]
    rows = [[*words, *_both_sets(name)] for name, words in COMMANDS.items()]
    return table(head, rows)


def _both_sets(name: str, keep: float | None = None) -> list[str]:
    """Retention and linkage of a row in squares; on Weizmann of the highest attacker."""
    ucf, weizmann = (setting(of, CROP, name, keep) for of in SETS)
    return [*(f"{ucf[key]['share'][0]:.2f}" for key in ("action_top1", "linkage_rank1")), *_highest(weizmann)]


def _highest(one: dict[str, Any]) -> list[str]:
    return [f"{one['action_top1']['share'][0]:.2f}", f"{one['linkage_rank1']['highest_share']:.2f}"]


def setting(of: str, part: str, name: str, keep: float | None = None) -> dict[str, Any]:
    """One setting of a row; a row that is evaluated at one setting needs no keep rate."""
    found = summary()[of]["parts"][part][name]["settings"]
    one: dict[str, Any] = next(one for one in found if keep is None or one["keep"] == keep)
    return one


def comparison_table(rows: Sequence[tuple[str, float | None]]) -> str:
    """Some rows in squares, on both sets."""
    head = ["", "`--keep`", "UCF101: retention", "excess of linkage", "minus random", "Weizmann: retention",
            "excess of the highest"]  # fmt: skip
    lines = []
    for name, keep in rows:
        cells = [ROWS[name].title, "" if keep is None else f"{keep:g}"]
        if name in summary()["ucf101_5"]["parts"][CROP]:
            kept, left, *weizmann = _both_sets(name, keep)
            minus = setting("ucf101_5", CROP, name, keep).get("minus_random")
            cells += [kept, left, _minus(minus), *weizmann]
        else:
            cells += ["not run", "", "", *_highest(setting("weizmann", CROP, name, keep))]
        lines.append(cells)
    return table(head, lines)


TURNED = tuple((name, None) for name in ("figure14", "recast14-15", "recast14-25", "recast14"))
TURNED += tuple((f"t-{name}", None) for name in ("figure14", "recast14-15", "recast14-25"))
LEARNED = (
    ("random", 0.5), ("random", 0.01), ("random", 0.001), ("moving", 0.25),
    ("paper", 0.888), ("paper", 0.737), ("paper-action", 0.737), ("paper-private", 0.737), ("paper-mask", 0.737),
    ("recast14", None), ("best", 0.95), ("best", 0.888), ("best", 0.737), ("best-action", 0.888),
    ("best-private", 0.888), ("best-random", 0.888), ("best-random", 0.737), ("best-mask", 0.737),
    ("stprivacy", 0.9), ("stprivacy", 0.8), ("stprivacy", 0.7), ("stprivacy-mask", 0.7),
)  # fmt: skip
"""Rows of what is learned, with what they have to beat."""
Rows = tuple[tuple[str, float | None], ...]
UCF101_PARTS: Rows = (
    *((name, None) for name in ("median", "down2", "down4", "down8")), ("random", 0.1), ("moving", 0.1),
    ("centre", 0.1), *((name, None) for name in ("blur-faces", "black-faces", "blur-people", "black-people", "motion")),
)  # fmt: skip
WEIZMANN_PARTS: Rows = (
    *((name, None) for name in ("raw", "median", "motion", "down4", "blur-faces", "black-faces", "figure14")),
    ("moving", 0.1),
)


def parts_table(of: str, rows: Sequence[tuple[str, float | None]]) -> str:
    """Some rows as filmed and in squares; on Weizmann by the highest attacker."""
    by_highest = of == "weizmann"
    columns = (
        ["retention", "highest linkage", "excess of the highest"] if by_highest else ["retention", "excess of linkage"]
    )
    lines = []
    for name, keep in rows:
        cells = [ROWS[name].title, "" if keep is None else f"{keep:g}"]
        for part in PARTS:
            part = "median" if name == "median" and part == "whole" else part
            if name not in summary()[of]["parts"][part]:
                cells += [""] * len(columns)
                continue
            one = setting(of, part, name, keep)
            kept, share = _highest(one)
            linkage = one["linkage_rank1"]
            cells += [kept, f"{linkage['highest']:.2f}", share] if by_highest else [kept, f"{linkage['share'][0]:.2f}"]
        lines.append(cells)
    return table(["", "`--keep`", *columns, f"square: {columns[0]}", *columns[1:]], lines)


def repeated_table() -> str:
    """Rows whose networks were trained twice: utility and the highest attacker, now and in the earlier training."""
    rows = []
    for key, before in read_json(RESULTS / "earlier.json").items():
        if key.startswith("d-"):
            continue
        of, part, name = key.split()
        for one in before["settings"]:
            now = setting(of, part, name, one["keep"])
            rows.append([SETS[of].split(",")[0], ROWS[name].title, f"{one['keep']:g}", *_highest(one), *_highest(now)])
    head = [
        "set",
        "",
        "`--keep`",
        "earlier: retention",
        "excess of the highest",
        "now: retention",
        "excess of the highest",
    ]
    return table(head, rows)


def trainings_table() -> str:
    """What anonymizers reach on validation people: the least and the most of three splits."""
    found = read_json(RESULTS / "trainings.json")
    names = {"paper": "dual-CLS as in the paper", "best": "dual-CLS over turned figures", "drawn": "STPrivacy"}
    rows = []
    for mode, title in names.items():
        for letter, of in (("u", "UCF101"), ("w", "Weizmann")):
            three = [one for name, one in found.items() if name.startswith(f"d-{mode}-{letter}")]
            cells = []
            for metric in ("action_top1", "masked_top1"):
                values = [(one["metrics"].get(metric), one["floors"].get(metric)) for one in three]
                cells += [_range([pair[which] for pair in values]) for which in (0, 1)]
            rows.append([title, of, *cells])
    head = ["", "set", "own action head, top-1", "chance", "recognizer on its output, top-1", "chance"]
    return table(head, rows)


def _range(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return " to ".join(dict.fromkeys(f"{value:.2f}" for value in (min(known), max(known)))) if known else MISSING


def first_masks_table() -> str:
    """Masks over the video as filmed on split 1 of UCF101, one seed."""
    names = {
        "raw": "raw video",
        "dual_cls": "`attribution`",
        "action_alone": "the same network, λ = 0",
        "paper": "`paper`, Algorithm 1",
        "random": "random tubelets",
    }
    metrics = ("action_top1", "linkage_rank1", "linkage_rank1_raw_gallery", "ap_nudity")
    rows = []
    for name, title in names.items():
        results = read_json(RESULTS / "masks" / f"{name}_ucf101_5_seed0.json")
        found = (results["points"] or [results["raw"]])[0]["metrics"]
        kept = f"{found['tubelets_kept']['value']:.2f}" if name != "raw" else ""
        cells = ["{value:.3f} [{interval[0]:.2f}, {interval[1]:.2f}]".format(**found[one]) if one in found else ""
                 for one in metrics]  # fmt: skip
        rows.append([title, kept, *cells])
    return table(["", "tubelets kept", "top-1", "linkage", "linkage, raw gallery", "nudity, AP"], rows)


TABLES = {
    **{f"real-video-{of}-{part}": partial(rows_table, of, part) for of in SETS for part in PARTS},
    "real-video-sets": sets_table,
    "real-video-repeated": repeated_table,
    "real-video-trainings": trainings_table,
    "real-video-commands": decision_table,
    "real-video-ucf101-parts": partial(parts_table, "ucf101_5", UCF101_PARTS),
    "real-video-weizmann-parts": partial(parts_table, "weizmann", WEIZMANN_PARTS),
    "real-video-turned": partial(comparison_table, TURNED),
    "real-video-learned": partial(comparison_table, LEARNED),
    "real-video-first-masks": first_masks_table,
    "real-video-figure": lambda: figure_table.figure_table(read_json(figure_table.RESULTS / "summary.json")),
}
