"""`table.py`'s numbers as a page."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from dual_cls_summary import interval
from table import ROWS, STRONG, raw_of

SETS = {"ucf101_5": "Five classes of UCF101, splits 1 to 3", "weizmann": "Weizmann, three folds of three people"}
PARTS = {"whole": "As it was filmed", "crop": "Cut to a square around the person"}
STRONGEST = "Cut to a square around the person, by the strongest trained judges"
WHERE = {"ucf101_5": "UCF101", "weizmann": "Weizmann"}
HOW = {"whole": "as filmed", "crop": "in squares", "median": "by its median"}
Rows = dict[str, Any]
BEFORE = 0.5
"""The most tubelets by lot that were judged beside rows that do not say whether they were read beyond these."""
ALIKE = 0.01
"""Of top-1 or rank-1: so far may two goes of the same judges on raw video differ, and stand in one table."""


def page(found: dict[str, Any]) -> str:
    tables: list[str] = []
    for name, title in SETS.items():
        for part, shown in PARTS.items():
            if part in found[name]["parts"]:
                named = _with_places(found["weizmann_named"]["parts"], part) if name == "weizmann" else {}
                rows = _with_places(found[name]["parts"], part)
                tables += [f"## {title}: {shown[0].lower()}{shown[1:]}", "", grid(rows, named), ""]
        if len(strong := found[name]["parts"].get("strongest", {})) > 1:  # raw video alone says nothing new
            tables += [f"## {title}: {STRONGEST[0].lower()}{STRONGEST[1:]}", "", grid(strong, {}, by_use=True), ""]
    marks = [said for mark, said in MARKS.items() if any(mark in table for table in tables)]
    return "\n".join(["# The table of real video", "", words(found, marks), missing(found), "", *tables])


def _with_places(parts: dict[str, Rows], part: str) -> Rows:
    """The place alone is a part of what was filmed."""
    return parts.get(part, {}) | (parts.get("median", {}) if part == "whole" else {})


def words(found: dict[str, Any], marks: Sequence[str]) -> str:
    chance = {
        name: one["parts"]["whole"]["raw"]["settings"][0][metric]["floor"]
        for (name, one), metric in zip(found.items(), ("linkage_rank1", "linkage_rank1", "identity_top1"), strict=True)
    }
    counts = {key: {name: one[key] for name, one in found.items()} for key in ("people", "clips")}
    linked = found["weizmann"]["parts"]["whole"]["raw"]["settings"][0]["linkage_rank1"]
    raw = (linked["value"][0], linked["highest"])
    told_of = {"attributes": leaking(found["ucf101_5"]["attributes"]), "marks": "".join(marks)}
    return WORDS.format(chance=chance, raw=raw, **told_of, **counts)


def leaking(by_split: dict[str, dict[str, list[str]]]) -> str:
    """What raw video leaks of attributes, where it can be measured at all."""
    places = [
        f"{name.replace('_', ' ')} ({split}, {PARTS[part].lower()})"
        for part, splits in by_split.items()
        for split, names in splits.items()
        for name in names
    ]
    return (
        f"no more than {', '.join(places)} measurably of raw video" if places else "none measurably even of raw video"
    )


def missing(found: dict[str, Any]) -> str:
    """Rows that were not run, everywhere or somewhere."""
    left = []
    for name, row in ROWS.items():
        places = [(of, part) for of in SETS for part in row.parts]
        told_of = {(of, part): found[of]["parts"].get(part, {}).get(name, {"splits": []}) for of, part in places}
        lacks = [place for place in places if "splits" in told_of[place]]
        some = " on all splits" if any(told_of[place]["splits"] for place in lacks) else ""
        where = "" if lacks == places else f" of {' and '.join(f'{WHERE[of]} {HOW[part]}' for of, part in lacks)}"
        left += [f"`{name}`{some}{where}"] if lacks else []
    return f"Not run yet, by the names that `--only` takes: {'; '.join(left)}." if left else ""


def told(name: str) -> str:
    judges = {"real_table_trained": ", trained judges", "real_table_small": ", small judges"}
    row = ROWS.get(name) or STRONG[name]
    return row.title + judges.get(row.judges, "")


def grid(rows: Rows, named: Rows, *, by_use: bool = False) -> str:
    head = [
        "",
        "`--only`",
        "kept",
        "top-1",
        "retention",
        "linkage",
        "excess",
        "highest",
        "excess of the highest",
        "minus lots, excess",
        "by",
    ]
    head += ["named, top-1", "excess of that"] if named else []
    head += ["top-1 by"] if by_use else []
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    order = sorted(rows, key=[*ROWS, *STRONG].index)
    for name in order:
        raw = rows.get(raw_of(name), {}).get("raw") if name in ROWS else None
        mark = " †" if raw and "median" not in name and another(raw, rows[name].get("raw")) else ""
        if some := rows[name].get("splits"):
            mark = f", {len(some)} of 3 splits"
        if trained_before(name, rows, order):
            mark += " ‡"
        names = {one.get("keep"): one["identity_top1"] for one in named.get(name, {"settings": []})["settings"]}
        for one in rows[name]["settings"]:
            cells = row(name, one, mark, beyond(name, one, rows))
            if named:
                by_name = names.get(one.get("keep"))
                cells += [interval(by_name["value"]), interval(by_name["share"])] if by_name else ["", ""]
            cells += [one["action_top1"]["by"]] if by_use else []
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def trained_before(name: str, rows: Rows, order: list[str]) -> bool:
    """Whether its network is of another go than that of the first row of the same mode: it was trained anew there."""
    mode = ROWS[name].mode if name in ROWS else None
    first = next((each for each in order if mode and each in ROWS and ROWS[each].mode == mode), name)
    return bool(rows[first].get("commit") != rows[name].get("commit"))


def another(raw: dict[str, list[float]], then: dict[str, list[float]] | None) -> bool:
    """Whether raw video, judged once more, came out otherwise than beside a row: the same names, other numbers."""
    same = raw.keys() & (then or {}).keys()
    return any(abs(raw[name][0] - then[name][0]) > ALIKE for name in same) if then else True


def beyond(name: str, one: dict[str, Any], rows: Rows) -> bool:
    """Whether it keeps more of the use than the most tubelets by lot that were judged beside it, and less than all."""
    met = one.get("minus_lots") or {}
    if "beside_raw" in met or "minus" not in met or met.get("at") or name not in ROWS:
        return bool(met.get("beside_raw"))
    for each, found in rows.items():
        if each in ROWS and ROWS[each].is_random_pruning and ROWS[each].judges == ROWS[name].judges:
            kept = {setting["keep"]: setting["action_top1"]["share"][0] for setting in found["settings"]}
            return bool(one["action_top1"]["share"][0] > kept.get(BEFORE, np.inf))
    return False


def row(name: str, one: dict[str, Any], mark: str, guessed: bool) -> list[str]:
    use, linked = one.get("action_top1"), one["linkage_rank1"]
    return [
        told(name) + mark,
        f"`{name}`",
        f"{one['share']:.{2 if one['share'] >= 0.01 else 3}f}" if one.get("share") else "",
        interval(use["value"]) if use else "",
        interval(use["share"]) if use else "",
        interval(linked["value"]),
        interval(linked["share"]),
        f"{linked['highest']:.2f}",
        f"{linked['highest_share']:.2f}",
        minus(one.get("minus_lots")) + (" ~" if guessed else ""),
        linked["by"],
    ]


def minus(found: dict[str, Any] | None) -> str:
    """What a dash and a star mean stands above the tables."""
    if found is None:
        return ""
    if "minus" not in found:
        return "–"
    sure = "" if found["minus"][1] is not None else " (no interval)"
    return interval(found["minus"]) + sure + (" *" if found.get("at") else "") + (" ^" if found.get("several") else "")


MARKS = {
    " †": f"""\
- A **dagger** (†): that go and the one of the raw video that stands here differ by more than {ALIKE} in its top-1 or
  linkage.
""",
    " ‡": """\
- **‡**: by networks of another training, and of another go, than those of the first row of the same method.
""",
    " ~ |": """\
- **~**: read between raw video and the most tubelets by lot that were judged beside that row, half of them in most
  rows, where a straight line is a guess. On UCF101 both of its ends are linked alike, on Weizmann they need not be.
""",
    " ^": """\
- **^**: lots keep that much of the use at more than one setting, and the least that they leave there counts: of a row
  that leaks less than lots, that is the hardest rival.
""",
    "| – |": """\
- **A dash**: lots were not measured at such a retention.
""",
    "(no interval)": """\
- **No interval**: too few draws of people reach that retention.
""",
    " of 3 splits": """\
- *2 of 3 splits*: what was judged when time was up. Its shares are of raw video, and of lots, on the same splits.
""",
}
"""In a table → what it means."""
WORDS = """\
![Retention and excess](results/table/trade_off.png)

What is left of the action, and of who it is, in real video, after each way to hide people. `python benchmarks/table.py
--page` writes this page from [results](results/table/summary.json); `--list` says the command of each number. What it
teaches: [findings](../docs/findings.md). To draw a row again, on a machine with an accelerator:

```
export VIDVEIL_DATA=FOLDER                        # with ucf101_5 and weizmann, see docs/datasets.md
python benchmarks/table.py --only random,down4    # the row, the lots beside it, and raw video that both are shares of
python benchmarks/table.py --summary --page       # its numbers, and this page
```

- **Judges.** Kinetics I3D, ImageNet ResNet-50 by the frame and a ViT-S of pictures, all frozen, at 16 × 224 × 224, five
  views. A small network on I3D's features learns the action (*top-1*); attackers compare clips as each network embeds
  them, whitened, in the discriminants of training people, and by a small network that has learned to tell these apart.
  Of these that one counts which does best on validation people of a split (*by*); *highest* is the one that, taken for
  all splits, is strongest on test people, in hindsight, and the *excess* beside it sets that beside the highest of raw
  video. Where splits choose different ones, these may do better together. Frozen networks were made for ordinary video:
  of other pictures, use and linkage are lower bounds. *Trained judges* are I3D
  from Kinetics, every second frame, trained on what is shown to tell the action, and another one beside the frozen
  attackers; *small judges* an r3d_tiny from nothing, 32 frames of 32 × 32.
- **Which of these can be used?** `vidveil anonymize --method` takes `motion`, `motion:8`, `downsample:N`, `figure:N`,
  `recast:14,D` (turned by up to D degrees: a little 15, less 25, else 40), `blur:strong` and `solid` (black) with
  `--region faces` or `people`, and networks that were trained. Random tubelets, most-moving ones, those in the middle,
  the background and masks alone are controls: what a method has to beat, and no protection.
- **On Weizmann two people validate**, of whom several attackers link all clips. Of these the best in average precision
  counts, which need not be strong: as it was filmed, raw video links {raw[0]:.2f} by it and
  {raw[1]:.2f} by the highest. There take the excess of the highest, which has no interval; the other one, and *minus
  lots*, lean on that choice.
- **Shares.** *Retention* is top-1 as a share of raw video's. *Excess* is what is linked beyond chance, as a share of
  raw video's: 1 as much, 0 nothing. Rows of squares are shares of raw video cut alike, places (*background alone*) of
  raw video as it was filmed. Above 1 is chance, a picture that makes an attack easier, or a weak attacker of raw video.
- **Kept** is the share of tubelets. Shares are of raw video as it was judged in the same go.
{marks}\
- **A square** is one for all frames of a video: around the surest person of five frames, with a margin. What is behind
  and beside the person is in it, too. The median of a video shows also whoever stands still.
- **Linkage** is rank-1: is the nearest other clip of the same person? Among clips of the same action on UCF101, where
  chance is {chance[ucf101_5]:.2f}; among the other actions on Weizmann, where it is {chance[weizmann]:.2f}. *Named* is
  top-1 of telling which of the nine people of Weizmann somebody is, by networks that saw them do other actions; chance
  is {chance[weizmann_named]:.2f}.
- **Minus lots** is excess minus that of tubelets by lot, where these keep as much of the use: read off the line through
  their settings and raw video. A star: the row keeps no less than raw video, and is set beside that. Empty: raw video,
  its background, and lots. These lots lie over what was filmed; what a mask over turned figures has to beat is
  `best-lots`, lots over the same figures.
- Three seeds, of which the mean is told: they are those of networks that are trained, large or small, and all else is
  the same in each.
  Brackets are 95 % intervals over the test people of all splits:
  {people[ucf101_5]} people in {clips[ucf101_5]} clips of UCF101; {people[weizmann]} in {clips[weizmann]} of Weizmann,
  where intervals are a hint.
- **Compare with papers?** No. The five classes, the splits' validation people and these judges are ours; papers tell
  top-1 and attributes of whole sets, by networks that were trained on what is shown. Of the five attributes that
  VP-UCF101 labels, in three splits of both parts, these judges tell {attributes}, so none is in the table.
"""
