"""Whole evaluations of a method that was trained once a seed: each judge sees its own training."""

from dataclasses import replace

import pytest
import torch
from rich.console import Console

from tests.evaluation.masked import FRAMES, SIZE, Masker, loader, people
from vidveil.core.errors import RecipeError, UsageError
from vidveil.core.recipe import as_values, build
from vidveil.evaluation.per_clip import read_per_clip
from vidveil.evaluation.protocols import clips as engine
from vidveil.evaluation.protocols.clips import ClipsProtocol, refuse_mistakes
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.results import read
from vidveil.training.runs import Run

RECIPE = EvaluateRecipe(
    name="masked",
    data="puppets",
    method="m-{seed}",
    keep=(28 / 32,),
    frames=FRAMES,
    size=SIZE,
    utility="r3d_tiny",
    attackers=("resnet_tiny",),
    attack=("linkage",),
    epochs=1,
    attacker_epochs=1,
    batch=16,
    seeds=(3, 5),
    permutations=20,
    resamples=50,
)


class Bright(Masker):
    """Another training: it has learned the opposite."""

    def anonymize_batch(self, clips, *, keep=None, privacy_weight=None):
        return super().anonymize_batch(clips, keep=keep, privacy_weight=0 if privacy_weight else 1)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    torch.set_num_threads(1)


def test_seed_s_of_the_judges_looks_at_training_s_of_the_method(tmp_path, monkeypatch):
    loader(monkeypatch, Masker("m-3", weights="three"), Bright("m-5", weights="five"))
    data, seen = people(tmp_path), {}

    def learn(clips, *words, label, seed, **more):
        seen[label] = getattr(clips.videos, "about", {}).get("weights")
        return original(clips, *words, label=label, seed=seed, **more)

    original = engine.learn
    monkeypatch.setattr(engine, "learn", learn)
    refuse_mistakes(RECIPE)
    with Run.create(RECIPE.name, as_values(RECIPE)) as run:
        results = ClipsProtocol(RECIPE, data, run, None, Console(quiet=True)).evaluate()
        results.write(run.folder / "results.json")

    shown = {label: weights for label, weights in seen.items() if label.startswith("m-")}
    assert shown == {label: "three" if label.endswith("seed 3") else "five" for label in shown}
    assert len(shown) == 4  # utility and one attacker, two seeds each
    assert {weights for label, weights in seen.items() if label.startswith("raw")} == {None}

    (point,) = read(run.folder / "results.json").points
    assert point.metrics["action_kept"].seeds == [0, 1]  # the arm is bright
    assert point.metrics["action_kept"].kind == "truth"
    assert point.metrics["action_kept"].floor == pytest.approx(28 / 32)
    assert point.metrics["identity_hidden"].value == 0.5
    assert point.metrics["tubelets_kept"].floor is None
    assert {"score_auroc", "score_auroc_all", "linkage_rank1_raw_gallery"} <= point.metrics.keys()
    assert "action_kept" not in results.raw.metrics
    assert (point.kept_as_filmed, results.raw.kept_as_filmed) == (True, None)
    clips = read_per_clip(run.folder / "per_clip.safetensors")
    assert clips["m-{seed}-0.875/identity_hidden"].shape == (2, 18)


def test_a_training_that_is_not_there_is_told_beforehand(monkeypatch):
    loader(monkeypatch, Masker("m-3"))
    with pytest.raises(KeyError, match="m-5"):  # the stand-in for `load` raises what a dict raises
        refuse_mistakes(RECIPE)


def test_an_oracle_of_recorded_video_is_refused():
    with pytest.raises(UsageError, match="built-in people only, and ucf101 has none"):
        refuse_mistakes(replace(RECIPE, method="oracle", data="ucf101"))
    with pytest.raises(UsageError, match="built-in people only"):
        refuse_mistakes(replace(RECIPE, method="oracle:8", data="puppets:view=mask"))
    refuse_mistakes(replace(RECIPE, method="oracle"))


def test_an_infinite_privacy_weight_is_written_as_a_recipe_may_hold_it(tmp_path, monkeypatch):
    loader(monkeypatch, Masker("m"))
    recipe = replace(RECIPE, method="m", privacy_weight=float("inf"), seeds=(0,))
    with Run.create(recipe.name, as_values(recipe)) as run:
        results = ClipsProtocol(recipe, people(tmp_path), run, None, None).evaluate()
        results.write(run.folder / "results.json")
    told = read(run.folder / "results.json").recipe
    assert told["privacy_weight"] == "inf"
    assert build(EvaluateRecipe, told, "again").privacy_weight == float("inf")


def test_a_negative_privacy_weight_is_refused():
    with pytest.raises(RecipeError, match="privacy_weight is 0 or more"):
        replace(RECIPE, privacy_weight=-1.0)
    with pytest.raises(RecipeError, match="privacy_weight is 0 or more"):
        replace(RECIPE, privacy_weight=float("nan"))
