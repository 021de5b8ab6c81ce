"""Recipes are read strictly: what is not understood is an error that helps."""

import re
from pathlib import Path

import pytest

from vidveil.core.errors import RecipeError
from vidveil.core.recipe import as_values, build, find, header, names, read, read_for
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.recipes.features import FeaturesRecipe
from vidveil.evaluation.recipes.untrimmed import UntrimmedRecipe
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.methods.stprivacy.recipe import STPrivacyRecipe
from vidveil.training.recipe import TrainRecipe


def recipe(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", names())
def test_every_recipe_that_comes_with_vidveil_is_read(name):
    path = find(name)
    found = read(path)
    kinds = {"dual_cls": DualCLSRecipe, "splavu": SplavuRecipe, "stprivacy": STPrivacyRecipe}
    assert isinstance(found, (EvaluateRecipe, FeaturesRecipe, UntrimmedRecipe, TrainRecipe, *kinds.values()))
    for method, kind in kinds.items():
        assert isinstance(found, kind) == (f"method: {method}\n" in path.read_text())


@pytest.mark.parametrize("name", names())
def test_every_recipe_opens_with_what_to_expect_and_its_command(name):
    path = find(name)
    lines = path.read_text().splitlines()
    verb = "evaluate" if isinstance(read(path), EvaluateRecipe | FeaturesRecipe | UntrimmedRecipe) else "train"
    assert header(path)
    assert lines[0].startswith("# ")
    assert any(re.match(rf"#   vidveil {verb} {name}\b", line) for line in lines[1:4])


def test_a_recipe_is_named_after_its_file(tmp_path):
    assert read(recipe(tmp_path, "verb: train\ndata: puppets")).name == "mine"


def test_an_unknown_key_is_refused_with_a_suggestion(tmp_path):
    with pytest.raises(RecipeError, match=r"mine\.yaml: nothing is called 'epoch'; did you mean epochs\?"):
        read(recipe(tmp_path, "verb: train\ndata: puppets\nepoch: 3"))


def test_a_missing_key_is_named(tmp_path):
    with pytest.raises(RecipeError, match=r"mine\.yaml: data is missing"):
        read(recipe(tmp_path, "verb: train"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("epochs: many", "epochs must be a whole number"),
        ("epochs: true", "epochs must be a whole number"),
        ("epochs: 2.5", "epochs must be a whole number"),
        ("epochs: 0", "epochs must be at least 1"),
        ("lr: fast", "lr must be a number"),
        ("augment: strong", "augment must be none or light or crop"),
        ("compile: 3", "compile must be true or false"),
        ("tasks: [action, age]", "tasks must be action or attributes or identity"),
        ("tasks: []", "tasks must name at least one"),
        ("ema: 1.0", "ema are in"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(tmp_path, line, said):
    with pytest.raises(RecipeError, match=said):
        read(recipe(tmp_path, f"verb: train\ndata: puppets\n{line}"))


def test_overrides_win_and_are_written_as_in_yaml(tmp_path):
    path = recipe(tmp_path, "verb: evaluate\ndata: puppets\nseeds: [0]")
    changed = read(path, ["seeds=[3,4]", "lr=1e-3", "method=blur:strong", "joint=false", "name=other", "keep=0.5"])
    assert (changed.seeds, changed.lr, changed.method) == ((3, 4), 1e-3, "blur:strong")
    assert (changed.joint, changed.name, changed.keep) == (False, "other", (0.5,))


@pytest.mark.parametrize("text", ["seeds", "=3", "seeds=[1,", "data=hmdb51:"])
def test_an_override_that_is_none_is_refused(tmp_path, text):
    with pytest.raises(RecipeError, match=re.escape(repr(text))):
        read(recipe(tmp_path, "verb: evaluate\ndata: puppets"), [text])


def test_a_recipe_without_a_verb_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="must begin with `verb: evaluate` or `verb: train`"):
        read(recipe(tmp_path, "data: puppets"))


def test_the_recipe_of_another_verb_is_named_as_such():
    with pytest.raises(RecipeError, match="is a recipe for `vidveil evaluate`, not for `vidveil train`"):
        read_for("train", find("raw_puppets"))


def test_the_recipe_of_a_method_is_one_of_train_and_not_of_evaluate():
    assert isinstance(read_for("train", find("dual_cls_puppets")), DualCLSRecipe)
    assert isinstance(read_for("train", find("action_puppets")), TrainRecipe)
    with pytest.raises(RecipeError, match="is a recipe for `vidveil train`, not for `vidveil evaluate`"):
        read_for("evaluate", find("dual_cls_puppets"))
    with pytest.raises(RecipeError, match="a recipe for `vidveil evaluate`, not for `vidveil train`"):
        read_for("train", find("control_puppets"))


METHOD = "verb: train\nmethod: dual_cls\ndata: puppets\n"


def test_fields_of_a_method_are_read_as_strictly_as_all_others(tmp_path):
    found = read(recipe(tmp_path, METHOD + "budget: identity\nshare_range: [0.5, 1]\nkeep: 1"))
    assert (found.budget, found.share_range, found.keep) == (("identity",), (0.5, 1.0), 1.0)
    assert read(recipe(tmp_path, METHOD), ["train_on=heads", "lr=1e-3"]).train_on == "heads"
    for line, said in {
        "privacy_wait: 1": r"nothing is called 'privacy_wait'; did you mean privacy_weight\?",
        "recognizer: r3d_tiny": "nothing is called 'recognizer'",
        "train_on: pixel": "train_on must be heads or pixels or attribution or both",
        "budget: [age]": "budget must be attributes or identity",
        "budget: []": r"mine\.yaml: budget must name",
        "network: vit_xl": "network must be mini or",
        "train_on: attribution\noutput: decode": "output: decode is taught by what networks see of it",
    }.items():
        with pytest.raises(RecipeError, match=said):
            read(recipe(tmp_path, METHOD + line))


@pytest.mark.parametrize("method", ["dual_clss", "[dual_cls]", "3", ""])
def test_a_method_that_does_not_learn_is_refused(tmp_path, method):
    with pytest.raises(RecipeError, match=r"method must be recognizer or dual_cls or splavu or stprivacy, not"):
        read(recipe(tmp_path, f"verb: train\nmethod: {method}\ndata: puppets"))


def test_a_verb_that_is_no_word_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="must begin with `verb: evaluate` or `verb: train`"):
        read(recipe(tmp_path, "verb: [train]\ndata: puppets"))


def test_the_recipe_of_a_method_comes_back_from_its_plain_values():
    found = read(find("dual_cls_puppets"), ["privacy_weight=2"])
    assert build(DualCLSRecipe, as_values(found), "again") == found


def test_a_file_that_is_not_yaml_is_named(tmp_path):
    with pytest.raises(RecipeError, match=r"mine\.yaml is not YAML"):
        read(recipe(tmp_path, "verb: [train"))
    with pytest.raises(RecipeError, match=r"mine\.yaml must be lines"):
        read(recipe(tmp_path, "just words"))


def test_yaml_cannot_make_objects(tmp_path):
    with pytest.raises(RecipeError, match="is not YAML"):
        read(recipe(tmp_path, "verb: train\ndata: !!python/object/apply:os.system ['true']"))


def test_a_name_that_does_not_exist_gets_a_suggestion(tmp_path):
    with pytest.raises(RecipeError, match=r"did you mean raw_puppets\?"):
        find("raw_pupets")
    with pytest.raises(RecipeError, match="there is no recipe at"):
        find(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("seeds=[1,1]", "different"),
        ("keep=[1.5]", "keep rates"),
        ("attackers=[]", "unattacked"),
        ("controls=[x]", "must be"),
    ],
)
def test_an_evaluation_that_would_prove_nothing_is_refused(override, said):
    with pytest.raises(RecipeError, match=said):
        read(find("raw_puppets"), [override])


def test_values_for_results_are_plain():
    values = as_values(read(find("raw_puppets")))
    assert values["attackers"] == ["resnet_tiny", "r3d_tiny"]
    assert EvaluateRecipe(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
