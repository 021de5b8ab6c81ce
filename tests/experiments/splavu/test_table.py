"""The table of adapters: its commands can be run, and its page says what its results say."""

import json
import sys
from pathlib import Path

import pytest

from vidveil.core.recipe import find, read
from vidveil.evaluation.recipes.features import FeaturesRecipe
from vidveil.methods.splavu.recipe import SplavuRecipe

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from splavu_page import page, worth  # noqa: E402
from splavu_table import BEGIN, END, PAGE, RESULTS, SETS, SETTINGS, commands, everything  # noqa: E402

FOUND = json.loads(RESULTS.read_text())


def jobs():
    return list(everything(list(SETS), []))


def test_every_command_can_be_read_and_has_a_name_of_its_own():
    names = [command.name for job in jobs() for command in job]
    assert len(names) == len(set(names)) > 200
    for job in jobs():
        *trained, evaluated = [read(find(command.recipe), command.words) for command in job]
        assert isinstance(evaluated, FeaturesRecipe)
        assert all(isinstance(recipe, SplavuRecipe) for recipe in trained)
        assert [recipe.seed for recipe in trained] in ([], list(evaluated.seeds))
        assert {evaluated.method.replace("{seed}", str(recipe.seed)) for recipe in trained} == {
            f"splavu:{recipe.name}" for recipe in trained
        }


def test_adapters_and_judges_look_at_the_same_features():
    for job in jobs():
        *trained, evaluated = [read(find(command.recipe), command.words) for command in job]
        for recipe in trained:
            for key in ("data", "encoder", "half", "frames", "size", "stride"):
                assert getattr(recipe, key) == getattr(evaluated, key)


def test_settings_differ_in_nothing_but_what_their_names_say():
    ours, published = (
        read(find(commands(name, "puppets", "p")[0].recipe), commands(name, "puppets", "p")[0].words)
        for name in ("ours", "apart")
    )
    assert {key for key in vars(ours) if getattr(ours, key) != getattr(published, key)} == {"erase", "name"}


def test_pages_are_drawn_from_the_results():
    assert (BENCHMARKS / "SPLAVU.md").read_text() == page(FOUND)
    assert PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip() == worth(FOUND)


@pytest.mark.parametrize("of", FOUND)
def test_every_setting_was_judged_by_three_seeds_beside_its_floor(of):
    for setting in FOUND[of]["settings"].values():
        for number in ("action_top1", "linkage_rank1", "retrieval_map"):
            one = setting["anew"][number]
            assert len(one["seeds"]) == 3
            assert 0 < one["floor"] < 1
    assert set(FOUND[of]["settings"]) <= {*SETTINGS}


def told(of, setting, metric, which="value"):
    number = FOUND[of]["settings"][setting]
    number = number.get("anew", number)[metric][which]
    return f"{number[0] if isinstance(number, list) else number:.2f}"


def test_what_the_page_of_the_method_says_is_what_was_measured():
    text = " ".join(PAGE.read_text().split())
    use, linked = "action_top1", "linkage_rank1"
    weights = ["ours", *(f"ours-lc{weight}" for weight in (0, 1, 10, 1000))]
    left = sorted(told("puppets", setting, linked, "excess") for setting in weights)
    assert len({told("puppets", setting, use) for setting in weights}) == 1
    for sentence in (
        "a top-1 of {} where raw features have {},".format(
            *(told("ucf101_5", setting, use, "val") for setting in ("ours", "raw"))
        ),
        f"{left[0]} to {left[-1]} of the linkage are left on built-in people",
        "retrieval on UCF101 falls from {} to {}; with a weight of 100 it is {}.".format(
            *(told("ucf101_5", setting, "retrieval_map") for setting in ("raw", "apart-lc0", "apart"))
        ),
        "leaves top-1 over all of them at {} with it, and at {} without".format(
            *(told("puppets", setting, use) for setting in ("apart-known", "apart-lc0-known"))
        ),
        "top-1 over all of them falls from {} to {}, and to {} without latent consistency".format(
            *(told("puppets", setting, use) for setting in ("raw", "ours-known", "ours-lc0-known"))
        ),
        "On Weizmann erasing leaves {} of the linkage**".format(told("weizmann", "ours", linked, "excess")),
        "the published losses {}; the".format(told("weizmann", "apart", linked, "excess")),
        "top-1 falls to {} behind the projection".format(told("puppets", "ours-no-utility", use)),
    ):
        assert sentence in text
    for other, words in (("../README.md", "real video {} of the linkage is left"), ("findings.md", "leaves {} of it.")):
        text = " ".join((PAGE.parents[1] / other).read_text().split())
        assert words.format(told("weizmann", "ours", linked, "excess")) in text
    for kind, metric in (("ours", linked), ("apart", linked), ("apart", use)):
        assert abs(float(told("puppets", kind, metric)) - float(told("puppets", f"{kind}-no-budget", metric))) < 0.015
