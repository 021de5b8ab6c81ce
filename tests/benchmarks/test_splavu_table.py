"""The table of adapters: its commands can be run, and its page says what its results say."""

import json
import sys
from pathlib import Path

import pytest

from vidveil.evaluation.feature_recipe import FeaturesRecipe
from vidveil.methods.splavu_recipe import SplavuRecipe
from vidveil.recipe import find, read

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
        *trained, judged = [read(find(command.recipe), command.words) for command in job]
        assert isinstance(judged, FeaturesRecipe)
        assert all(isinstance(recipe, SplavuRecipe) for recipe in trained)
        assert [recipe.seed for recipe in trained] in ([], list(judged.seeds))
        assert {judged.method.replace("{seed}", str(recipe.seed)) for recipe in trained} == {
            f"splavu:{recipe.name}" for recipe in trained
        }


def test_adapters_and_judges_look_at_the_same_features():
    for job in jobs():
        *trained, judged = [read(find(command.recipe), command.words) for command in job]
        for recipe in trained:
            for key in ("data", "encoder", "half", "frames", "size", "stride"):
                assert getattr(recipe, key) == getattr(judged, key)


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
