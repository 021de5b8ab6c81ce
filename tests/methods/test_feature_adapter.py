"""A method on features that is not ours: everything that works with SPLAVU works with it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests import command
from tests.evaluation.made_features import WIDTH, made
from vidveil.core.errors import DataError, UsageError
from vidveil.core.registry import METHODS, Method
from vidveil.data.store.features import FeatureStore
from vidveil.evaluation.protocols.features import run
from vidveil.evaluation.recipes.features import FeaturesRecipe
from vidveil.methods import load, works_on_features
from vidveil.methods.feature_adapter import FeatureAdapter, changing, load_adapter
from vidveil.models import checkpoint


class Dropping(FeatureAdapter):
    """Keeps the first numbers of a vector."""

    def __init__(self, width: int, kept: int) -> None:
        super().__init__()
        self.width, self.kept = width, kept

    def forward(self, z):
        return z * (torch.arange(self.width, device=z.device) < self.kept)

    def warnings(self, videos):
        return [f"it was trained on {videos} videos"]


@pytest.fixture
def _trained(tmp_path, monkeypatch):
    """A store of features and a run of the method `dropping`, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    entry = Method(lambda found: Dropping(**found.about["network"]), "dropping:RUN", "...", learned="on features")
    monkeypatch.setitem(METHODS, "dropping", entry)
    checkpoint.write(
        tmp_path / "runs/mine/checkpoint", "dropping", {"width": WIDTH, "kept": 2}, {"none": torch.zeros(1)},
        recipe={"name": "mine"}, encoder={"spec": "made", "fingerprint": "made"},
    )  # fmt: skip
    made(tmp_path / "store")


@pytest.mark.usefixtures("_trained")
@pytest.mark.parametrize("method", ["dropping:mine", "mine"])
def test_it_anonymizes_stores_and_its_manifest_names_it(method, tmp_path):
    done = command.vidveil("anonymize", "store", "--method", method)
    assert done.exit_code == 0, done.output
    assert f"warning: it was trained on {WIDTH} videos" in done.stderr
    raw, after = FeatureStore.open(tmp_path / "store").all(), FeatureStore.open(tmp_path / "store_anonymized").all()
    np.testing.assert_array_equal(after[:, :2], raw[:, :2])
    assert not after[:, 2:].any()
    assert json.loads((tmp_path / "store_anonymized.json").read_text())["method"] == "dropping:mine"


@pytest.mark.usefixtures("_trained")
def test_it_is_evaluated_with_inversion_by_who_has_it():
    recipe = FeaturesRecipe(
        name="all", data="features:store", method="dropping:mine", attack=("linkage", "inversion"), epochs=2,
        attacker_epochs=2, batch=24, least_steps=1, permutations=10, resamples=10,
    )  # fmt: skip
    found = run(replace(recipe, seeds=(0,)))
    assert [point.method for point in found.points] == [
        "dropping:mine", "dropping:mine inverted by pairs", "dropping:mine inverted by the adapter",
    ]  # fmt: skip
    linkage = found.points[0].metrics["linkage_rank1"]
    assert linkage.value < linkage.raw


@pytest.mark.usefixtures("_trained")
def test_it_is_refused_for_video_and_named_for_what_it_is():
    assert works_on_features("dropping:mine")
    assert works_on_features("mine")
    assert not works_on_features("blur:strong")
    assert not works_on_features("dual_cls:mine")
    with pytest.raises(UsageError, match="dropping works on stored features, not on video"):
        load("dropping:mine")
    with pytest.raises(UsageError, match="splavu:mine is a checkpoint of dropping: say dropping:mine"):
        load_adapter("splavu:mine")
    with pytest.raises(UsageError, match="blur:strong works on video, not on features; method=raw needs no adapter"):
        load_adapter("blur:strong")
    with pytest.raises(UsageError, match="dropping needs a checkpoint, as dropping:RUN"):
        load_adapter("dropping")


class Odd(Dropping):
    def __init__(self, width: int, kept: int, *, makes) -> None:
        super().__init__(width, kept)
        self.makes, self.noise = makes, torch.nn.Dropout(0.5)

    def forward(self, z):
        return self.makes(self.noise(z))


@pytest.mark.usefixtures("_trained")
@pytest.mark.parametrize(
    ("makes", "message"),
    [
        (lambda z: z[:, :1], f"the adapter made (4, 1) of features (4, {WIDTH})"),
        (lambda z: z / 0, "the adapter made numbers that are not finite"),
    ],
)
def test_what_is_no_vector_of_the_same_length_is_refused(monkeypatch, makes, message):
    entry = Method(lambda found: Odd(**found.about["network"], makes=makes), "...", "...", learned="on features")
    monkeypatch.setitem(METHODS, "dropping", entry)
    adapter, _ = load_adapter("mine")
    with pytest.raises(DataError, match=re.escape(message)):
        changing(adapter)(np.ones((4, WIDTH), np.float32))


@pytest.mark.usefixtures("_trained")
def test_it_draws_no_random_numbers_in_use_and_must_be_an_adapter(monkeypatch):
    entry = Method(lambda found: Odd(**found.about["network"], makes=lambda z: z), "...", "...", learned="on features")
    monkeypatch.setitem(METHODS, "dropping", entry)
    adapter, _ = load_adapter("mine")
    ones = np.ones((4, WIDTH), np.float32)
    np.testing.assert_array_equal(changing(adapter)(ones), ones)
    monkeypatch.setitem(METHODS, "dropping", Method(lambda _: torch.nn.Identity(), "...", "...", learned="on features"))
    with pytest.raises(UsageError, match="the method dropping builds a Identity, which is no FeatureAdapter"):
        load_adapter("mine")
