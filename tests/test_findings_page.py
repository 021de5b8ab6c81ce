"""What the page of findings says of the table is what the table says."""

import json
import re
import sys
from pathlib import Path

import pytest

from vidveil import load

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import recast_strength  # noqa: E402
import table  # noqa: E402

FOUND = json.loads((ROOT / "benchmarks" / "results" / "table" / "summary.json").read_text())
EARLIER = json.loads((ROOT / "benchmarks" / "results" / "table" / "earlier.json").read_text())
TRAININGS = json.loads((ROOT / "benchmarks" / "results" / "table" / "trainings.json").read_text())
PAGE = " ".join((ROOT / "docs" / "findings.md").read_text().split())


def number(of, part, row, metric, which="share", keep=None):
    settings = FOUND[of]["parts"][part][row]["settings"]
    (one,) = [one for one in settings if keep is None or one["keep"] == keep]
    return f"{one[metric][which][0]:.2f}"


def use(of, part, row, keep=None):
    return number(of, part, row, "action_top1", keep=keep)


def linked(of, part, row, keep=None):
    return number(of, part, row, "linkage_rank1", keep=keep)


def kept(of, row, keep):
    (one,) = [one for one in FOUND[of]["parts"]["crop"][row]["settings"] if one["keep"] == keep]
    return one["share"]


def against_lots(row, keep, sign):
    value, low, high = setting(FOUND["weizmann"]["parts"]["crop"][row], keep)["minus_lots"]["minus"]
    return sign * value, low, high


def setting(row, keep=None):
    (one,) = [one for one in row["settings"] if keep is None or one["keep"] == keep]
    return one


def before(of, row, keep=None):
    """Use and linkage by the highest attacker, and minus lots, of an earlier training."""
    one = setting(EARLIER[f"{of} crop {row}"], keep)
    minus = one["minus_lots"].get("minus")
    return f"{one['action_top1']['share'][0]:.2f}", f"{one['linkage_rank1']['highest_share']:.2f}", minus


def highest(row, keep):
    return f"{setting(FOUND[UCF]['parts']['crop'][row], keep)['linkage_rank1']['highest_share']:.2f}"


def lots_minus(keep):
    """How much more lots leave than STPrivacy, on UCF101 in squares."""
    value, low, high = (-end for end in setting(FOUND[UCF]["parts"]["crop"]["stprivacy"], keep)["minus_lots"]["minus"])
    return f"{value:.2f} ({high:.2f} to {low:.2f})"


def hindsight(part, row, keep=None):
    settings = FOUND["weizmann"]["parts"][part][row]["settings"]
    (one,) = [one for one in settings if keep is None or one["keep"] == keep]
    linked = one["linkage_rank1"]
    return tuple(
        f"{value:.2f}" for value in (one["action_top1"]["share"][0], linked["highest"], linked["highest_share"])
    )


def line(title, row, keep):
    return " | ".join((f"| {title}", *hindsight("whole", row, keep), *hindsight("crop", row, keep))) + " |"


def minus_lots(of, row):
    return f"{FOUND[of]['parts']['crop'][row]['settings'][0]['minus_lots']['minus'][0]:.2f}"


def turned_by(title, row):
    of_ucf = [use(UCF, "crop", row), linked(UCF, "crop", row), minus_lots(UCF, row)]
    retention, _, highest = hindsight("crop", row)
    return " | ".join([f"| {title}", *of_ucf, retention, highest]) + " |"


def tried(row, who):
    """The highest of those whose names begin so, on UCF101."""
    others = FOUND[UCF]["parts"]["crop"][row]["settings"][0]["linkage_rank1"]["others"]
    return f"{max(one['test'] for name, one in others.items() if name.startswith(who)):.2f}"


def spread(names, what, metric="action_top1", trainings=TRAININGS):
    """The least and the most of three trainings whose names begin so."""
    found = [one[what][metric] for name, one in trainings.items() if name.startswith(names)]
    assert len(found) == 3
    return f"{min(found):.2f} to {max(found):.2f}"


UCF = "ucf101_5"
LIKE = (("best-lots", 0.888), ("best", 0.737))
"""RandomPruning and masks over turned figures that keep nearly as much of the use."""
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
        "**blurred faces** keep {} of the use and an excess of {}, black ones {} and {}.".format(
            *(of(UCF, "whole", row) for row in ("blur-faces", "black-faces") for of in (use, linked))
        ),
        "keep {} of the use and still {}; black ones {} and {}.".format(
            *(of(UCF, "crop", row) for row in ("blur-people", "black-people") for of in (use, linked))
        ),
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
                ("blurred faces", "blur-faces", None),
                ("black faces", "black-faces", None),
                ("moving figure, 14 blocks", "figure14", None),
                ("most-moving tubelets, 0.1", "moving", 0.1),
            )
        ),
        "| background alone | {} | {} | {} |".format(*hindsight("median", "median")),
        "have {} and {} of the use".format(*(use(UCF, "whole", one, 0.5) for one in ("moving", "centre"))),
        "keeps {} and {} of the tubelets at keep rates of 0.888 and 0.737, hence {} and {} of the use, and".format(
            *(f"{kept(UCF, 'paper', keep):.2f}" for keep in (0.888, 0.737)),
            *(use(UCF, "crop", "paper", keep) for keep in (0.888, 0.737)),
        ),
        "leaves {} and {} of the linkage. A".format(*(linked(UCF, "crop", "paper", keep) for keep in (0.888, 0.737))),
        "the most-moving ones, keeps {} of the use.".format(use(UCF, "crop", "moving", 0.25)),
        "at 0.737 it keeps {} of the use, and".format(use("weizmann", "crop", "paper", 0.737)),
        "its excess is {:.2f} below that of lots there (interval {:.2f} to {:.2f});".format(
            *against_lots("paper", 0.737, -1)
        ),
        "the highest attacker gets {2} of what it gets of raw video.".format(*hindsight("crop", "paper", 0.737)),
        "the same networks keep {}, {:.2f} below lots ({:.2f} to {:.2f}), and the highest gets {}; by".format(
            use("weizmann", "crop", "paper-action"),
            *against_lots("paper-action", None, -1),
            hindsight("crop", "paper-action")[2],
        ),
        "by the privacy token alone {0} and {2};".format(*hindsight("crop", "paper-private")),
        "still give {2}.".format(*hindsight("crop", "paper-mask")),
        "identifies: {:.2f} below lots ({:.2f} to {:.2f}) with it, {:.2f} above them ({:.2f} to {:.2f}) without".format(
            *(
                sign * end if i == 0 else end
                for row, keep, sign in (("paper", 0.737, -1), ("paper-action", None, 1))
                for i, end in enumerate(before("weizmann", row, keep)[2])
            )
        ),
        "Its networks told {} of ten actions, these tell {}, and".format(
            *(spread("d-paper-w", "metrics", trainings=each) for each in (TRAININGS | EARLIER, TRAININGS))
        ),
        "a **hundredth** of the tubelets has {} of the use and an excess of {}; a thousandth".format(
            *(of(UCF, "crop", "random", 0.01) for of in (use, linked))
        ),
        "{} of the use, which is what guessing gets, and still {}.".format(
            *(of(UCF, "crop", "random", 0.001) for of in (use, linked))
        ),
        "down to a quarter of the tubelets ({}); a hundredth leaves {}, a thousandth {}.".format(
            *(hindsight("crop", "random", keep)[2] for keep in (0.25, 0.01, 0.001))
        ),
        "(the highest attacker {}, {} and {}), where".format(*(highest("best", keep) for keep in (0.95, 0.888, 0.737))),
        "keep {} and {} at the last two rates and leave {} and {} (the highest attacker {} and {}), the".format(
            *(of(UCF, "crop", "best-lots", keep) for of in (use, linked) for keep in (0.888, 0.737)),
            *(highest("best-lots", keep) for keep in (0.888, 0.737)),
        ),
        "where lots keep {} of the use and masks {}, the highest attacker gets {} of the one and {} of the".format(
            *(use(UCF, "crop", *row) for row in LIKE), *(highest(*row) for row in LIKE)
        ),
        "that was {} and {} of the use, {} and {} of the linkage.".format(
            *(before(UCF, *row)[i] for i in (0, 1) for row in LIKE)
        ),
        "An [earlier training](../benchmarks/results/table/earlier.json) kept {}, {} and {} and left {}, {} and {}, on "
        "two".format(*(before("weizmann", "stprivacy", keep)[i] for i in (0, 1) for keep in (0.9, 0.8, 0.7))),
        "of its masks alone, on all three, {} and {}:".format(*before("weizmann", "stprivacy-mask")[:2]),
        "left leave {}, {} and {} more.".format(*(lots_minus(keep) for keep in (0.9, 0.8, 0.7))),
        *(
            turned_by(title, row)
            for title, row in (
                ("not turned", "figure14"),
                ("by 15 degrees", "recast14-15"),
                ("by 25 degrees", "recast14-25"),
                ("by 40 degrees", "recast14"),
                ("not turned, trained judges", "t-figure14"),
                ("by 15 degrees, trained judges", "t-recast14-15"),
            )
        ),
        "| by 25 degrees, trained judges | not run | | | {} | {} |".format(*hindsight("crop", "t-recast14-25")[::2]),
        "`--method figure:14`, {}). One".format(linked(UCF, "crop", "figure14")),
        "turned by up to 15 degrees {} of the linkage, by up to 40 degrees {};".format(
            *(linked(UCF, "crop", row) for row in ("recast14-15", "recast14"))
        ),
        "frozen networks then keep {} and {} of the use, trained ones {} at 15 degrees".format(
            *(use(UCF, "crop", row) for row in ("recast14-15", "recast14", "t-recast14-15"))
        ),
        "by frozen networks, the figure leaves {2} of the linkage (the highest attacker) and {0} of the use".format(
            *hindsight("crop", "figure14")
        ),
        "the frame difference (`motion`) {2} and {0}.".format(*hindsight("crop", "motion")),
        "Half of the tubelets by lot has {} of the use of squares of UCF101 and all".format(
            use(UCF, "crop", "random", 0.5)
        ),
        "on Weizmann {0} and all of it ({2} by the highest).".format(*hindsight("crop", "random", 0.5)),
        "Trained judges have of the figure {} and {} of what".format(
            *(use(of, "crop", "t-figure14") for of in (UCF, "weizmann"))
        ),
        "where nobody moves, has {} of the use.".format(use(UCF, "median", "median")),
        "frozen judges have {} in squares of UCF101 and {} in those of Weizmann, where they have {} and {} of".format(
            *(use(of, "crop", row) for row in ("motion", "figure14") for of in (UCF, "weizmann"))
        ),
        "links {} of the figures in the discriminants of training people; an I3D that was trained".format(
            tried("t-figure14", "resnet50:frozen, LDA")
        ),
        "trained to link figures {} at best".format(tried("t-figure14", "i3d:pretrained")),
        "the trained attacker links {} at best and ResNet-50 still {}. At".format(
            tried("t-recast14-15", "i3d:pretrained"), tried("t-recast14-15", "resnet50:frozen, LDA")
        ),
        "there the figure itself leaves {2}. Between".format(*hindsight("crop", "figure14")),
        "which keeps {0} of the use and leaves {2}, something".format(*hindsight("crop", "motion")),
        "on validation people their action token tells {} of the actions, where guessing tells {},".format(
            spread("d-paper-u", "metrics"), spread("d-paper-u", "floors")
        ),
        "tells {} of the actions of validation people on UCF101 and {} on Weizmann".format(
            *(spread(f"d-best-{letter}", "metrics", "masked_top1") for letter in "uw")
        ),
        "it keeps {}, {} and {} of the use at keep rates of 0.95, 0.888 and 0.737, and leaves {}, {} and {} of".format(
            *(of(UCF, "crop", "best", keep) for of in (use, linked) for keep in (0.95, 0.888, 0.737))
        ),
        "where the turned figures themselves keep {} and leave {}:".format(
            *(of(UCF, "crop", "recast14") for of in (use, linked))
        ),
        "the action token alone (λ = 0) {} and {}, the privacy token alone {} and {}; the masks alone, nothing of the "
        "figure in them, keep {} and leave {},".format(
            *(of(UCF, "crop", row) for row in ("best-action", "best-private", "best-mask") for of in (use, linked)),
        ),
        "both tokens keep {}, {} and {} of the use at the three settings and leave {}, {} and {} of the linkage".format(
            *(hindsight("crop", "best", keep)[i] for i in (0, 2) for keep in (0.95, 0.888, 0.737))
        ),
        "(the highest attacker), lots {} and {}, and {} and {}.".format(
            *(hindsight("crop", "best-lots", keep)[i] for i in (0, 2) for keep in (0.888, 0.737))
        ),
        "have {} of the use of what it draws at an α of 0.9, and {} of the *masks alone* at 0.7".format(
            use(UCF, "crop", "stprivacy", 0.9), use(UCF, "crop", "stprivacy-mask")
        ),
        "Those masks leave {} of the linkage, and what is drawn {}, {} and {} at".format(
            linked(UCF, "crop", "stprivacy-mask"), *(linked(UCF, "crop", "stprivacy", keep) for keep in (0.9, 0.8, 0.7))
        ),
        "Its own recognizer tells {} of the actions of validation people.".format(
            spread("d-drawn-u", "metrics", "masked_top1")
        ),
        "what it draws keeps {}, {} and {} of the use at an α of 0.9, 0.8 and 0.7 and leaves {}, {} and {} of".format(
            *(hindsight("crop", "stprivacy", keep)[i] for i in (0, 2) for keep in (0.9, 0.8, 0.7))
        ),
        "masks alone {0} and {2}, and a".format(*hindsight("crop", "stprivacy-mask")),
        "which needs no training, {0} and {2}.".format(*hindsight("crop", "figure14")),
        "black ones at {} and {}.".format(*(hindsight(part, "black-faces")[2] for part in ("whole", "crop"))),
        "(λ = 0) {} of the use and {} of the linkage are left, by the privacy token alone {} and {}. These".format(
            *(of(UCF, "crop", row) for row in ("paper-action", "paper-private") for of in (use, linked))
        ),
        "still leave {} of the linkage: where".format(linked(UCF, "crop", "paper-mask")),
        "leaves {} of the linkage of squares on UCF101, and {} of the use".format(
            linked(UCF, "crop", "recast14"), use(UCF, "crop", "recast14")
        ),
        "they keep {0} of the use and {2} of the linkage".format(*hindsight("crop", "recast14")),
        "and name {} of the people".format(number("weizmann_named", "crop", "recast14", "identity_top1", "value")),
    ],
)
def test_numbers_are_those_of_the_table(sentence):
    assert sentence in PAGE


def test_what_pages_say_of_turned_figures_is_what_was_measured():
    found = json.loads((ROOT / "benchmarks" / "results" / "recast_strength.json").read_text())
    mean = {
        (method, key): f"{sum(one[key] for one in seeds) / len(seeds):.2f}"
        for method, seeds in found.items()
        for key in ("top1", "linkage", "chance")
    }
    turned, plain = ([mean[method, key] for key in ("top1", "linkage")] for method in ("recast:14,40", "figure:14"))
    assert "tell {} of the actions and link {} of the clips, where".format(*turned) in PAGE
    assert "they tell {} and link {} of the same figure".format(*plain) in PAGE
    assert "chance links {}".format(mean["figure:14", "chance"]) in PAGE
    guide = " ".join((ROOT / "docs" / "anonymize.md").read_text().split())
    assert "Of `figure:14` they tell {} of the actions and link {} of the clips within".format(*plain) in guide
    assert "of `recast:14` {} and {}; chance".format(*turned) in guide
    assert load("recast:14").strength == load("recast:14,40").strength
    lines = [line for line in recast_strength.page(found).splitlines() if line.startswith("|")]
    assert "\n".join(lines) in (ROOT / "docs" / "findings.md").read_text()


def test_the_short_answer_is_true_of_all_rows():
    parts = FOUND[UCF]["parts"]
    left = [
        one["linkage_rank1"]["share"][0]
        for part in ("whole", "crop")
        for name, row in parts[part].items()
        if "recast" not in name and "best" not in name  # what is turned by lot
        if not name.endswith("-mask") and name != "stprivacy"  # what shows nothing that was filmed
        for one in row["settings"]
        if name != "random" or one["keep"] >= 0.01
    ]
    assert f"leaves {int(100 * min(left)) / 100:.2f} of the linkage or more" in PAGE
    rows = FOUND["weizmann"]["parts"]["whole"]
    highest = {
        name: min(one["linkage_rank1"]["highest_share"] for one in row["settings"]) for name, row in rows.items()
    }
    assert sorted(highest, key=lambda name: highest[name])[:3] == ["recast14", "figure8", "figure14"]


def test_the_table_to_decide_by_has_the_numbers_of_the_table():
    text = (ROOT / "docs" / "findings.md").read_text()
    lines = text.split("<!-- decide -->\n")[1].split("\n<!-- end of decide -->")[0].splitlines()[2:]
    rows = ("blur-faces", "motion", "motion8", "figure14", "figure8", "recast14-15", "recast14")
    for line, row in zip(lines, rows, strict=True):
        retention, _, highest = hindsight("crop", row)
        ours = f"{use(UCF, 'crop', row)}, {linked(UCF, 'crop', row)} | {retention}, {highest} |"
        assert line.endswith(ours), row


def test_everything_was_judged_on_all_splits_and_beside_lots():
    for of in (UCF, "weizmann"):
        for part in ("whole", "crop"):
            for name, row in FOUND[of]["parts"][part].items():
                assert "splits" not in row, name
                for one in row["settings"]:
                    if table.ROWS[name].words and not table.ROWS[name].is_random_pruning:
                        assert None not in one["minus_lots"]["minus"], name


def test_lots_and_masks_over_turned_figures_are_told_apart_by_neither_training():
    """As the page says: the highest attacker gets as much of either, within a few hundredths, both times."""
    for told in ([(use(UCF, "crop", *row), highest(*row)) for row in LIKE], [before(UCF, *row)[:2] for row in LIKE]):
        lots, masks = ([float(number) for number in pair] for pair in told)
        assert all(abs(a - b) < 0.03 for a, b in zip(lots, masks, strict=True))
    assert len(EARLIER["weizmann crop stprivacy"]["splits"]) == 2
    assert "splits" not in EARLIER["weizmann crop stprivacy-mask"]


def test_the_readme_says_what_is_left_of_real_people():
    readme = " ".join((ROOT / "README.md").read_text().split())

    def both(row, keep=None):
        return f"{linked(UCF, 'crop', row, keep)} of the linkage at {use(UCF, 'crop', row, keep)} of the use"

    assert f"the paper's leave {both('paper', 0.737)}." in readme
    turned = linked(UCF, "crop", "recast14"), use(UCF, "crop", "recast14")
    lots, masks = (f"{highest(*row)} at {use(UCF, 'crop', *row)}" for row in LIKE)
    told = (
        f"leaves {both('recast14-15')} or {' at '.join(turned)}; masks over it {masks}, and lots over it {lots} "
        "(both by the highest attacker)."
    )
    assert told in readme
    trained = use(UCF, "crop", "t-recast14-15"), linked(UCF, "crop", "t-recast14-15")
    assert (
        "trained ones have {} of the use of a figure that is turned a little, and link {}.".format(*trained) in readme
    )


def test_less_than_half_of_the_use_is_less_than_half():
    assert float(use(UCF, "whole", "random", 0.1)) < 0.5


def test_no_share_of_tubelets_links_less_than_it_says():
    least = min(
        one["linkage_rank1"]["value"][0]
        for part in ("whole", "crop")
        for row in ("random", "moving", "centre")
        for one in FOUND[UCF]["parts"][part][row]["settings"]
        if one["keep"] >= 0.01
    )
    (told,) = re.findall(r"down to a hundredth, links less than (\d\.\d\d)\.", PAGE)
    assert f"{least:.2f}" == told


def test_a_thousandth_of_the_tubelets_tells_no_more_of_the_action_than_guessing():
    (one,) = [one for one in FOUND[UCF]["parts"]["crop"]["random"]["settings"] if one["keep"] == 0.001]
    assert one["action_top1"]["value"][0] <= one["action_top1"]["floor"] + 0.01
