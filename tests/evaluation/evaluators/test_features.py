"""Heads on features: trained on training videos, chosen on validation videos, applied to test videos."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.evaluation.made_features import clips_of, made, read
from vidveil.core.errors import RecipeError
from vidveil.evaluation.evaluators.features import Head, features_by_split, space, train_head
from vidveil.evaluation.recipes.features import FeaturesRecipe
from vidveil.tasks import make_task

RECIPE = FeaturesRecipe(name="mine", data="features:made", batch=24, label_smoothing=0.0, least_steps=1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    torch.set_num_threads(1)
    return read(made(tmp_path_factory.mktemp("features") / "store"))


def trained_head(data, kind="linear", task="action", recipe=RECIPE, **words):
    chosen = {"epochs": 8, "lr": 1e-2, "seed": 0} | words
    return train_head(data, kind, make_task(task, data.labels, "cpu", 0.0), recipe, **chosen)


def changed_in(data, split, value=50.0):
    mine = torch.from_numpy(clips_of(data, split))
    return replace(data, clips=replace(data.clips, all=torch.where(mine[:, None], value, data.clips.all)))


def same(one, other):
    pairs = zip(one.head.state_dict().values(), other.head.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("kind", ["linear", "mlp"])
@pytest.mark.parametrize("task", ["action", "attributes"])
def test_heads_predict_what_is_in_features(data, kind, task, tmp_path):
    found = trained_head(data, kind, task).predict(data, tmp_path)
    assert found.scores[task] > 0.9
    assert found.network == kind
    assert set(found.predictions) == {"train", "val", "test"}
    predictions = found.predictions["test"]
    assert np.array_equal(predictions.rows, data.labels.indices("test"))
    truth = data.labels.action if task == "action" else data.labels.attributes[:, 0]
    probabilities = predictions.probabilities[task]
    guess = probabilities.argmax(1) if task == "action" else probabilities[:, 0] > 0.5
    assert (guess == truth[predictions.rows]).mean() > 0.9


def test_an_mlp_predicts_what_no_linear_head_does(data):
    """Which of two axes has the larger number, whatever its sign."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(len(data.labels)), data.clips.count)
    shown = rng.normal(size=(len(data.labels), 2)) * 2
    features = torch.zeros_like(data.clips.all)
    features[:, :2] = torch.from_numpy(shown[rows]).float()
    labels = replace(data.labels, attributes=(np.abs(shown[:, :1]) > np.abs(shown[:, 1:])).astype(np.float32))
    crossed = replace(data, labels=labels, clips=replace(data.clips, all=features))
    scores = {}
    for kind in ("linear", "mlp"):
        head = trained_head(crossed, kind, "attributes", epochs=60)
        logits = head.head(features[torch.from_numpy(clips_of(crossed, "test"))])[:, 0]
        truth = labels.attributes[rows, 0][clips_of(crossed, "test")] == 1
        scores[kind] = float(((logits > 0).numpy() == truth).mean())
    assert scores["mlp"] > scores["linear"] + 0.15


def test_a_head_is_of_the_size_that_was_published():
    like = torch.randn(9, 24)
    assert sum(p.numel() for p in Head("mlp", like, 7).parameters()) == 24 * 24 + 24 + 24 * 7 + 7
    assert sum(p.numel() for p in Head("linear", like, 7).parameters()) == 24 * 7 + 7


def test_features_are_brought_to_their_mean_and_deviation_first():
    like = 100 + 5 * torch.randn(500, 3) * torch.tensor([1.0, 10.0, 0.0])
    head = Head("linear", like, 2)
    with torch.no_grad():
        head.out.weight.copy_(torch.eye(3)[:2])
        head.out.bias.zero_()
        found = head(like)
    torch.testing.assert_close(found.mean(0), torch.zeros(2), atol=1e-3, rtol=0)
    torch.testing.assert_close(found.std(0), torch.ones(2), atol=0.02, rtol=0)
    assert torch.isfinite(Head("mlp", like, 2)(like)).all()  # a channel that never changes does no harm


def test_test_videos_do_not_change_a_head(data):
    assert same(trained_head(data), trained_head(changed_in(data, "test")))
    assert not same(trained_head(data), trained_head(changed_in(data, "train", 0.5)))


def test_validation_chooses_the_epoch_and_nothing_else(data):
    """Where validation labels are turned around, the head that knows least is the best one."""
    val = data.labels.split == "val"
    turned = np.where(val, (data.labels.action + 1) % 3, data.labels.action)
    other = replace(data, labels=replace(data.labels, action=turned))
    late, early = trained_head(data, epochs=6), trained_head(other, epochs=6)
    assert torch.equal(late.head.mean, early.head.mean)
    test = data.labels.indices("test")
    clips = data.clips.even(test)[:, 0]
    sure = [head.head(clips).softmax(1).max(1).values.mean() for head in (late, early)]
    assert sure[0] > sure[1]


def test_the_same_seed_trains_the_same_head_and_the_callers_draws_go_on(data):
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    one, again, other = (trained_head(data, "mlp", seed=seed, epochs=2) for seed in (3, 3, 4))
    assert torch.equal(torch.rand(3), wanted)
    assert same(one, again)
    assert not same(one, other)


def test_a_videos_probability_is_the_mean_over_five_clips(data, tmp_path):
    one = trained_head(data)
    row = int(data.labels.indices("test")[0])
    each = one.head(data.clips.even(np.array([row]))[0]).softmax(1)
    assert each.shape == (5, 3)
    np.testing.assert_allclose(
        one.predict(data, tmp_path).predictions["test"].probabilities["action"][0], each.mean(0).numpy(), atol=1e-6
    )


def test_a_head_predicts_for_features_that_it_was_not_trained_on(data, tmp_path):
    blank = replace(data, clips=replace(data.clips, all=torch.zeros_like(data.clips.all)))
    found = trained_head(data).predict(blank, tmp_path)
    assert found.scores["action"] == pytest.approx(1 / 3)


def test_a_space_is_the_mean_of_a_videos_clips_and_forgets_what_was_learned_in_its_folder(data, tmp_path):
    folder = tmp_path / "linkage"
    folder.mkdir()
    (folder / "mlp.safetensors").write_bytes(b"of other features")
    found = space(data, folder)
    assert not any(folder.iterdir())
    row = int(data.labels.indices("test")[3])
    np.testing.assert_allclose(
        found.predictions["test"].features[3], data.clips.even(np.array([row]))[0].mean(0).numpy(), atol=1e-6
    )
    assert found.network.endswith(":frozen")  # a small network on top learns identity
    assert [len(one.rows) for one in features_by_split(data).values()] == [72, 36, 48]


def test_a_head_at_one_of_several_rates_is_named_by_it(data):
    assert trained_head(data, recipe=replace(RECIPE, attacker_lr=(1e-3, 1e-2)), epochs=1).name == "linear lr 0.01"


@pytest.mark.parametrize(("changes", "reason"), [
    ({"attack": ("inversion",)}, "evaluated by linkage or attributes"),
    ({"attack": ()}, "unattacked proves nothing"),
    ({"attackers": ()}, "unattacked proves nothing"),
    ({"seeds": (0, 0)}, "different numbers"),
    ({"seeds": ()}, "different numbers"),
    ({"permutations": 0}, "permutations must be at least 1"),
])  # fmt: skip
def test_recipes_that_make_no_sense_are_refused(changes, reason):
    with pytest.raises(RecipeError, match=reason):
        replace(RECIPE, **changes)
