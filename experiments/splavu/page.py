"""Tables of features behind adapters, from the summary of `experiments.splavu.table`."""

from functools import cache, partial
from typing import Any

from experiments.job_queue import read_json
from experiments.markdown import interval, table
from experiments.splavu.table import RESULTS, SETTINGS

TITLES = {
    "puppets": "Synthetic people",
    "ucf101_5": "Five classes of UCF101, splits 1 to 3",
    "weizmann": "Weizmann, three folds of three people",
}
ATTACKS = {"anew": "as it is", "black_box": "black box: by pairs", "white_box": "white box: by the adapter"}
Numbers = dict[str, Any]


@cache
def summary() -> Numbers:
    found: Numbers = read_json(RESULTS / "table.json")
    return found


def settings(of: str) -> Numbers:
    """Setting → numbers, in the order of the study."""
    found = summary()[of]["settings"]
    return {name: found[name] for name in SETTINGS if name in found}


def sets_table() -> str:
    rows = [[TITLES[of], str(found["people"]), str(found["clips"])] for of, found in summary().items()]
    return table(["set", "test people", "test clips"], rows)


def short_table() -> str:
    """Raw features and the main settings, on all sets."""
    rows = []
    for of in summary():
        for name in ("raw", "ours", "apart"):
            one = settings(of)[name]["anew"]
            cells = [f"{TITLES[of]}: {SETTINGS[name].title}", *_pair(name, one["action_top1"], "change")]
            rows.append([*cells, *_pair(name, one["linkage_rank1"], "excess"), *_attributes(name, one)])
    return table(["", "top-1", "change", "linkage", "excess", "attributes, cMAP", "excess"], rows)


def settings_table(of: str) -> str:
    with_attributes = of == "puppets"
    head = ["", "top-1", "change", "old heads", "retrieval", "change", "linkage", "excess", "highest"]
    rows = []
    for name, found in settings(of).items():
        one = found["anew"]
        old = one.get("action_top1_raw_heads")
        cells = [
            SETTINGS[name].title,
            *_pair(name, one["action_top1"], "change"),
            f"{old['value'][0]:.2f}" if old else "",
        ]
        cells += [*_pair(name, one["retrieval_map"], "change"), *_pair(name, one["linkage_rank1"], "excess")]
        cells.append(f"{one['linkage_rank1']['highest']:.2f}")
        rows.append(cells + (_attributes(name, one) if with_attributes else []))
    return table(head + (["attributes", "excess"] if with_attributes else []), rows)


def inversions_table(of: str) -> str:
    rows = []
    for name, found in settings(of).items():
        for attack, title in ATTACKS.items() if "black_box" in found else ():
            one = found[attack]
            link, attributes = one["linkage_rank1"], one["cmap"]
            cells = [f"{one[key]['value'][0]:.2f}" for key in ("action_top1_raw_heads", "action_top1", "linkage_rank1")]
            cells += [interval(link["excess"]), f"{attributes['raw_heads']:.2f}", f"{attributes['value'][0]:.2f}"]
            rows.append([SETTINGS[name].title, title, *cells, interval(attributes["excess"])])
    head = ["", "attack", "top-1, old", "top-1, anew", "linkage, anew", "excess", "attributes, old",
            "attributes, anew", "excess"]  # fmt: skip
    return table(head, rows)


def pictures_table(of: str) -> str:
    rows = []
    for name, found in settings(of).items():
        one = found["anew"]
        if "reconstruction_psnr" not in one:
            continue
        psnr, ssim, link = (one[f"reconstruction_{key}"] for key in ("psnr", "ssim", "rank1"))
        cells = [interval(psnr["value"]), f"{psnr['floor']:.2f}", interval(ssim["value"]), f"{ssim['floor']:.2f}"]
        rows.append([SETTINGS[name].title, *cells, *_pair(name, link, "excess")])
    head = ["", "PSNR, dB", "that of the mean picture", "SSIM", "that of the mean picture", "linked by pictures",
            "excess"]  # fmt: skip
    return table(head, rows)


def _pair(name: str, number: Numbers, compared: str) -> list[str]:
    """The value, and its change or excess, which raw features have not."""
    return [interval(number["value"]), "" if name == "raw" else interval(number[compared])]


def _attributes(name: str, one: Numbers) -> list[str]:
    return _pair(name, one["cmap"], "excess") if "cmap" in one else ["", ""]


TABLES = {
    "splavu-sets": sets_table,
    "splavu-short": short_table,
    **{f"splavu-{of}": partial(settings_table, of) for of in TITLES},
    "splavu-inversions": partial(inversions_table, "puppets"),
    "splavu-pictures": partial(pictures_table, "puppets"),
}
