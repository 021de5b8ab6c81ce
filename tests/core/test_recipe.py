"""Recipes are read strictly: what is not understood is an error that helps."""

import re
from pathlib import Path

import pytest

import vidveil
from vidveil.app import run_recipe
from vidveil.core.errors import RecipeError, UsageError
from vidveil.core.recipe import as_values, build, find, header, names, read, read_for, runner_of, verb_of
from vidveil.core.registry import PROTOCOLS, resolve
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.methods.stprivacy.recipe import STPrivacyRecipe
from vidveil.training.recipe import TrainRecipe

TRAIN = "verb: train\ndata: puppets\n"
EVALUATE = "verb: evaluate\ndata: puppets\n"
DUAL_CLS = "verb: train\nmethod: dual_cls\ndata: puppets\n"
TRAINED = {"dual_cls": DualCLSRecipe, "splavu": SplavuRecipe, "stprivacy": STPrivacyRecipe}
EVALUATIONS = [name for name in names() if verb_of(read(find(name))) == "evaluate"]


def recipe(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", names())
def test_every_recipe_that_comes_with_vidveil_is_read_and_opens_with_what_to_expect_and_its_command(name):
    path = find(name)
    text, found = path.read_text(), read(path)
    verb = "evaluate" if "\nverb: evaluate\n" in text else "train"
    assert verb_of(found) == verb
    if verb == "train":
        kinds = [kind for method, kind in TRAINED.items() if f"\nmethod: {method}\n" in text]
        assert [type(found)] == (kinds or [TrainRecipe])
    assert header(path)
    first, *lines = text.splitlines()
    assert first.startswith("# ")
    assert any(re.match(rf"#   vidveil {verb} {name}\b", line) for line in lines[:3])


@pytest.mark.parametrize("name", EVALUATIONS)
def test_python_evaluates_recipes_of_every_protocol(monkeypatch, name):
    ran = []
    monkeypatch.setattr(run_recipe, "carry_out", lambda recipe, **_: ran.append(recipe))
    vidveil.evaluate(name)
    assert ran == [read(find(name))]
    assert runner_of(ran[0]) is resolve(PROTOCOLS[ran[0].protocol].run)


def test_the_name_of_a_dataset_is_not_taken_for_the_folder_of_datasets():
    with pytest.raises(UsageError, match=r"weizmann is no folder of datasets; .* \"data=NAME\""):
        run_recipe.evaluate("blur_puppets", data="weizmann")


def test_there_is_a_recipe_of_every_protocol():
    assert {read(find(name)).protocol for name in EVALUATIONS} == {*PROTOCOLS}


def test_a_recipe_is_named_after_its_file(tmp_path):
    assert read(recipe(tmp_path, TRAIN)).name == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("verb: train\n", r"mine\.yaml: data is missing"),
        ("data: puppets\n", "must begin with `verb: evaluate` or `verb: train`"),
        ("verb: [train]\ndata: puppets\n", "must begin with `verb: evaluate` or `verb: train`"),
        ("verb: [train", r"mine\.yaml is not YAML"),
        ("just words", r"mine\.yaml must be lines"),
        ("verb: train\ndata: !!python/object/apply:os.system ['true']", "is not YAML"),
        *(
            (f"{TRAIN}method: {method}\n", "method must be recognizer or dual_cls or splavu or stprivacy, not")
            for method in ("dual_clss", "[dual_cls]", "3", "")
        ),
        (TRAIN + "epoch: 3", r"mine\.yaml: nothing is called 'epoch'; did you mean epochs\?"),
        (TRAIN + "epochs: many", "epochs must be a whole number"),
        (TRAIN + "epochs: true", "epochs must be a whole number"),
        (TRAIN + "epochs: 2.5", "epochs must be a whole number"),
        (TRAIN + "epochs: 0", "epochs must be at least 1"),
        (TRAIN + "lr: fast", "lr must be a number"),
        (TRAIN + "augment: strong", "augment must be none or light or crop"),
        (TRAIN + "compile: 3", "compile must be true or false"),
        (TRAIN + "tasks: [action, age]", "no task is called .age.; there are action, attributes, identity"),
        (TRAIN + "tasks: []", "tasks must name at least one"),
        (TRAIN + "ema: 1.0", "ema are in"),
        (DUAL_CLS + "privacy_wait: 1", r"nothing is called 'privacy_wait'; did you mean privacy_weight\?"),
        (DUAL_CLS + "recognizer: r3d_tiny", "nothing is called 'recognizer'"),
        (DUAL_CLS + "train_on: pixel", "train_on must be heads or pixels or attribution or both"),
        (DUAL_CLS + "budget: [age]", "budget must be attributes or identity"),
        (DUAL_CLS + "budget: []", r"mine\.yaml: budget must name"),
        (DUAL_CLS + "network: vit_xl", "network must be mini or"),
        (DUAL_CLS + "train_on: attribution\noutput: decode", "output: decode learns from networks that see"),
        (EVALUATE + "seeds: [1, 1]", "different"),
        (EVALUATE + "keep: [1.5]", "keep rates"),
        (EVALUATE + "attackers: []", "unattacked"),
        (EVALUATE + "controls: [x]", "must be"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(tmp_path, text, message):
    with pytest.raises(RecipeError, match=message):
        read(recipe(tmp_path, text))


def test_overrides_win_and_are_written_as_in_yaml(tmp_path):
    path = recipe(tmp_path, EVALUATE + "seeds: [0]")
    changed = read(path, ["seeds=[3,4]", "lr=1e-3", "method=blur:strong", "joint=false", "name=other", "keep=0.5"])
    assert (changed.seeds, changed.lr, changed.method) == ((3, 4), 1e-3, ("blur:strong",))
    assert (changed.joint, changed.name, changed.keep) == (False, "other", (0.5,))


@pytest.mark.parametrize("text", ["seeds", "=3", "seeds=[1,", "data=hmdb51:"])
def test_an_override_that_is_none_is_refused(tmp_path, text):
    with pytest.raises(RecipeError, match=re.escape(repr(text))):
        read(recipe(tmp_path, EVALUATE), [text])


@pytest.mark.parametrize(
    ("wanted", "name", "other"),
    [
        ("train", "raw_puppets", "evaluate"),
        ("train", "control_puppets", "evaluate"),
        ("evaluate", "action_puppets", "train"),
        ("evaluate", "dual_cls_puppets", "train"),
    ],
)
def test_the_recipe_of_another_verb_is_refused(wanted, name, other):
    with pytest.raises(RecipeError, match=f"is a recipe for `vidveil {other}`, not for `vidveil {wanted}`"):
        read_for(wanted, find(name))
    assert read_for(other, find(name)) == read(find(name))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("method=", "method is empty"),
        ("method=[]", "method is empty"),
        ("method=[blur:strong,blur:strong]", "blur:strong is in the list twice"),
    ],
)
def test_what_is_wrong_with_a_list_of_methods_is_said(words, reason):
    with pytest.raises(RecipeError, match=reason):
        read(find("blur_puppets"), [words])


@pytest.mark.parametrize("verb", [run_recipe.plan, run_recipe.evaluate, run_recipe.train])
def test_overrides_as_a_list_are_refused_with_how_to_write_them(verb):
    with pytest.raises(UsageError, match="write \\*overrides for a list"):
        verb("blur_puppets", ["data=puppets:share=0.1"])


def test_fields_of_a_method_are_converted_to_their_types(tmp_path):
    found = read(recipe(tmp_path, DUAL_CLS + "budget: identity\nshare_range: [0.5, 1]\nkeep: 1"))
    assert (found.budget, found.share_range, found.keep) == (("identity",), (0.5, 1.0), 1.0)


def test_the_recipe_of_a_method_comes_back_from_its_plain_values():
    found = read(find("dual_cls_puppets"), ["privacy_weight=2"])
    assert build(DualCLSRecipe, as_values(found), "again") == found


def test_a_name_that_does_not_exist_gets_a_suggestion(tmp_path):
    with pytest.raises(RecipeError, match=r"did you mean raw_puppets\?"):
        find("raw_pupets")
    with pytest.raises(RecipeError, match="there is no recipe at"):
        find(str(tmp_path / "none.yaml"))


def test_values_for_results_are_plain():
    values = as_values(read(find("raw_puppets")))
    assert values["attackers"] == ["resnet_tiny", "r3d_tiny"]
    assert EvaluateRecipe(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
