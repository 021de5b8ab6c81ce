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


def hindsight(part, row, keep=None):
    settings = FOUND["weizmann"]["parts"][part][row]["settings"]
    (one,) = [one for one in settings if keep is None or one["keep"] == keep]
    linked = one["linkage_rank1"]
    return tuple(
        f"{value:.2f}" for value in (one["action_top1"]["share"][0], linked["highest"], linked["highest_share"])
    )


def line(title, row, keep):
    return " | ".join((f"| {title}", *hindsight("whole", row, keep), *hindsight("crop", row, keep))) + " |"


UCF = "ucf101_5"
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
        "A square around the person links {}".format(number(UCF, "crop", "raw", "linkage_rank1", "value")),
        "attackers name {} of its clips and {} of raw ones, at a chance of {}".format(
            *(number("weizmann_named", "whole", row, "identity_top1", "value") for row in ("motion", "raw")),
            f"{FOUND['weizmann_named']['parts']['whole']['raw']['settings'][0]['identity_top1']['floor']:.2f}",
        ),
        *(
            line(title, row, keep)
            for title, row, keep in (
                ("raw video", "raw", None),
                ("grey frame difference", "motion", None),
                ("downsampled, × 4", "down4", None),
                ("most-moving tubelets, 0.1", "moving", 0.1),
            )
        ),
        "| background alone | {} | {} | {} |".format(*hindsight("median", "median")),
        "have {} and {} of the use".format(*(use(UCF, "whole", one, 0.5) for one in ("moving", "centre"))),
    ],
)
def test_numbers_are_those_of_the_table(sentence):
    assert sentence in PAGE


def test_less_than_half_of_the_use_is_less_than_half():
    assert float(use(UCF, "whole", "random", 0.1)) < 0.5


def test_no_share_of_tubelets_links_less_than_it_says():
    least = min(
        one["linkage_rank1"]["value"][0]
        for part in ("whole", "crop")
        for row in ("random", "moving", "centre")
        for one in FOUND[UCF]["parts"][part][row]["settings"]
    )
    (told,) = re.findall(r"down to a tenth, links less than (\d\.\d\d)\.", PAGE)
    assert f"{least:.2f}" == told
