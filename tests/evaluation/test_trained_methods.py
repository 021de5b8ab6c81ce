"""Whole evaluations of a method that was trained once per seed: each seed of the evaluators gets its own training."""

from dataclasses import replace

import pytest
from rich.console import Console

from tests.evaluation import toy
from tests.evaluation.masked import FRAMES, SIZE, Masker, loader, people
from vidveil.core.errors import RecipeError, UsageError
from vidveil.core.recipe import build
from vidveil.data.store.anonymized import AnonymizedVideos
from vidveil.evaluation.checks import refuse_mistakes
from vidveil.evaluation.per_clip import read_per_clip
from vidveil.evaluation.protocols import clips as clips_module
from vidveil.evaluation.protocols.clips import AttackProtocol
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.results import read
from vidveil.training.runs import runs_folder

pytestmark = pytest.mark.usefixtures("own_folders")

RECIPE = replace(
    toy.RECIPE, name="masked", data="puppets", method="m-{seed}", keep=(28 / 32,), frames=FRAMES, size=SIZE,
    attack=("linkage",), epochs=1, attacker_epochs=1, seeds=(3, 5), permutations=20, resamples=50,
)  # fmt: skip


class Bright(Masker):
    """Another training: it has learned the opposite."""

    def anonymize_batch(self, clips, *, keep=None, privacy_weight=None):
        return super().anonymize_batch(clips, keep=keep, privacy_weight=0 if privacy_weight else 1)


def test_each_seed_of_the_evaluators_gets_the_training_of_that_seed(tmp_path, monkeypatch):
    loader(monkeypatch, Masker("m-3", weights="three"), Bright("m-5", weights="five"))
    weights = {}
    original = clips_module.learn

    def learn(clips, *words, label, **more):
        anonymized = isinstance(clips.videos, AnonymizedVideos)
        weights[label] = clips.videos.about["weights"] if anonymized else None
        return original(clips, *words, label=label, **more)

    monkeypatch.setattr(clips_module, "learn", learn)
    refuse_mistakes(RECIPE)
    results = AttackProtocol(RECIPE, people(tmp_path)).evaluate(console=Console(quiet=True))

    of_method = {label: name for label, name in weights.items() if label.startswith("m-")}
    assert of_method == {label: "three" if label.endswith("seed 3") else "five" for label in of_method}
    assert len(of_method) == 4  # utility and one attacker, two seeds each
    assert {name for label, name in weights.items() if label.startswith("raw")} == {None}

    (point,) = read(runs_folder() / "masked" / "results.json").points
    assert point.metrics["action_kept"].seeds == [0, 1]  # the arm is bright
    assert point.metrics["action_kept"].kind == "truth"
    assert point.metrics["action_kept"].floor == pytest.approx(28 / 32)
    assert point.metrics["identity_hidden"].value == 0.5
    assert point.metrics["tubelets_kept"].floor is None
    assert {"score_auroc", "score_auroc_all", "linkage_rank1_raw_gallery"} <= point.metrics.keys()
    assert "action_kept" not in results.raw.metrics
    assert (point.kept_as_filmed, results.raw.kept_as_filmed) == (True, None)
    kept = read_per_clip(runs_folder() / "masked" / "per_clip.safetensors")
    assert kept["m-{seed}-0.875/identity_hidden"].shape == (2, 18)


def test_a_training_that_is_not_there_is_refused_beforehand(monkeypatch):
    loader(monkeypatch, Masker("m-3"))
    with pytest.raises(KeyError, match="m-5"):  # the stand-in for `load` raises what a dict raises
        refuse_mistakes(RECIPE)


def test_an_oracle_of_recorded_video_is_refused():
    with pytest.raises(UsageError, match="ucf101 has none: take the built-in people"):
        refuse_mistakes(replace(RECIPE, method="oracle", data="ucf101"))
    with pytest.raises(UsageError, match="take the built-in people"):
        refuse_mistakes(replace(RECIPE, method="oracle:8", data="puppets:view=mask"))
    refuse_mistakes(replace(RECIPE, method="oracle", keep=(0.5,)))


@pytest.mark.parametrize(
    ("methods", "hint"),
    [
        (("recast:5", "40"), r'no method is called \'40\'; quote a method with a comma: \["recast:5,40"\]$'),
        (("blur:strong,pixelate:8",), r"; several methods are a list: \[blur:strong,pixelate:8\]$"),
        (("blur:bogus",), r"^(?!.*controls)"),
    ],
)
def test_a_comma_at_a_wrong_place_gets_a_hint(methods, hint):
    with pytest.raises(UsageError, match=hint):
        refuse_mistakes(replace(RECIPE, method=methods, keep=()))


def test_an_infinite_privacy_weight_is_written_as_a_recipe_may_hold_it(tmp_path, monkeypatch):
    loader(monkeypatch, Masker("m"))
    recipe = replace(RECIPE, method="m", privacy_weight=float("inf"), seeds=(0,))
    AttackProtocol(recipe, people(tmp_path)).evaluate()
    written = read(runs_folder() / "masked" / "results.json").recipe
    assert written["privacy_weight"] == "inf"
    assert build(EvaluateRecipe, written, "again").privacy_weight == float("inf")


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_a_negative_privacy_weight_is_refused(weight):
    with pytest.raises(RecipeError, match="privacy_weight is 0 or more"):
        replace(RECIPE, privacy_weight=weight)
