"""What the page of findings says of the table is what the table says."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOUND = json.loads((ROOT / "benchmarks" / "results" / "table" / "summary.json").read_text())
PAGE = " ".join((ROOT / "docs" / "findings.md").read_text().split())


def number(of, part, row, metric, which="share", keep=None):
    settings = FOUND[of]["parts"][part][row]["settings"]
    (one,) = [one for one in settings if keep is None or one["keep"] == keep]
    return f"{one[metric][which][0]:.2f}"


def use(of, part, row, keep=None):
    return number(of, part, row, "action_top1", keep=keep)


def linked(of, part, row, keep=None):
    return number(of, part, row, "linkage_rank1", keep=keep)


UCF, WEIZMANN = "ucf101_5", "weizmann"
DOWN = ("down2", "down4", "down8")


@pytest.mark.parametrize(
    "sentence",
    [
        "Five classes, {} people in {} test clips".format(FOUND[UCF]["people"], FOUND[UCF]["clips"]),
        "downsampling by 2, 4 and 8 keeps {}, {} and {} of the use".format(*(use(UCF, "whole", one) for one in DOWN)),
        "(excess {} each time)".format(" or ".join(sorted({linked(UCF, "whole", one) for one in DOWN}))),
        "an excess of {}. Most-moving and middle ones keep {} and {} of the use".format(
            linked(UCF, "whole", "random", 0.1), use(UCF, "whole", "moving", 0.1), use(UCF, "whole", "centre", 0.1)
        ),
        "{} of the use, {} of the linkage.".format(use(UCF, "whole", "motion"), linked(UCF, "whole", "motion")),
        "frames, links {}.".format(number(UCF, "median", "median", "linkage_rank1", "value")),
        "cut out, links {} too".format(number(UCF, "crop", "raw", "linkage_rank1", "value")),
        "keeps {} of the use and {} of the linkage (cut out: {} and {})".format(
            *(of(WEIZMANN, part, "motion") for part in ("whole", "crop") for of in (use, linked))
        ),
        "names {} instead of {} of the clips".format(
            *(number("weizmann_named", "whole", row, "identity_top1", "value") for row in ("motion", "raw"))
        ),
        "(excess {} at × 2, {} at × 8)".format(*(linked(WEIZMANN, "whole", one) for one in ("down2", "down8"))),
        "have {} and {} of it".format(*(use(UCF, "whole", one, 0.5) for one in ("moving", "centre"))),
    ],
)
def test_numbers_are_those_of_the_table(sentence):
    assert sentence in PAGE


def test_less_than_half_of_the_use_is_less_than_half():
    assert float(use(UCF, "whole", "random", 0.1)) < 0.5


def test_intervals_on_weizmann_are_as_wide_as_it_says():
    low, high = FOUND[WEIZMANN]["parts"]["whole"]["motion"]["settings"][0]["linkage_rank1"]["share"][1:]
    assert f"{low:.2f} to {high:.2f}" in PAGE


def test_everything_links_as_much_as_the_last_paragraph_says():
    least = min(
        one["linkage_rank1"]["value"][0]
        for part in ("whole", "crop")
        for row in FOUND[UCF]["parts"][part].values()
        for one in row["settings"]
    )
    (told,) = re.findall(r"everything above links (\d\.\d\d) and more", PAGE)
    assert f"{least:.2f}" == told
