"""An attacker recovers what an adapter only encodes otherwise, and nothing that it erased."""

from dataclasses import replace

import pytest
import torch

from tests.evaluation.made_features import WIDTH, clips_of, directions, made, read
from vidveil.evaluation.attacks.inversion import black_box, white_box
from vidveil.evaluation.protocols.feature_methods import adapted_set
from vidveil.methods.splavu.model import AAM, Shape
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.methods.splavu.train import SplavuNetworks

FEW = 40  # clips
SHAPE = Shape(WIDTH, heads=2, groups=4)
RECIPE = SplavuRecipe(name="mine", data="features:made", heads=2, groups=4, erase=1.0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return read(made(tmp_path_factory.mktemp("features") / "store", people=(16, 4, 6)))


@pytest.fixture(scope="module")
def erasing(data):
    """An adapter that leaves what separates actions."""
    return SplavuNetworks(RECIPE, data, "cpu").adapter.eval().requires_grad_(False)


def disturbing(shape=SHAPE, strength=0.05):
    torch.manual_seed(2)
    found = AAM(shape)
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.add_(strength * torch.randn_like(parameter))
        found.scale.fill_(1.4)
    return found.eval().requires_grad_(False)


def on_test(data, features):
    return features[torch.from_numpy(clips_of(data, "test"))]


def recovered(data, back, axes=None):
    """R² of recovered test clips, of all directions together or of some."""
    wanted, found = (on_test(data, one.clips.all) for one in (data, back))
    if axes is not None:
        wanted, found = wanted @ axes.T, found @ axes.T
    return 1 - float(((wanted - found) ** 2).sum() / ((wanted - wanted.mean(0)) ** 2).sum())


def with_clips(data, features):
    return replace(data, clips=replace(data.clips, all=features))


def test_a_set_after_an_adapter_is_every_clip_after_it_static_ones_too(data, monkeypatch):
    adapter = disturbing()
    monkeypatch.setattr("vidveil.evaluation.protocols.feature_methods.AT_ONCE", 50)
    after = adapted_set(data, adapter)
    torch.testing.assert_close(after.clips.all, adapter(data.clips.all), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(after.static.all, adapter(data.static.all), atol=1e-5, rtol=1e-5)
    assert after.labels is data.labels
    assert adapted_set(replace(data, static=None), adapter).static is None


def test_pairs_are_enough_to_undo_a_rotation(data):
    turn = torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(5))).Q
    after = with_clips(data, data.clips.all @ turn)
    assert recovered(data, after) < 0.2
    assert recovered(data, black_box(data, after, seed=0)) > 0.999


def test_pairs_are_enough_to_undo_an_adapter_that_erases_nothing(data):
    after = adapted_set(data, disturbing(strength=0.1))
    assert recovered(data, after) < 0.6
    assert recovered(data, black_box(data, after, seed=0)) > 0.95


def test_no_pair_brings_back_what_was_erased(data, erasing):
    """People of test are others: what is learned of those of training does not hold for them."""
    after = adapted_set(data, erasing)
    back = black_box(data, after, seed=0)
    personal, doing = (torch.from_numpy(directions()[part]).float() for part in (slice(0, 6), slice(6, 9)))
    assert recovered(data, back, personal) < 0.15
    assert recovered(data, back, doing) > 0.8


def changed_in(data, split, seed=0):
    mine = torch.from_numpy(clips_of(data, split))
    noise = 1e3 * torch.randn(len(mine), WIDTH, generator=torch.Generator().manual_seed(seed))
    return with_clips(data, torch.where(mine[:, None], noise, data.clips.all))


def test_an_attacker_with_pairs_knows_none_of_test_videos(data):
    after = adapted_set(data, disturbing())
    found = {split: black_box(changed_in(data, split), after, seed=1).clips.all for split in ("train", "test")}
    wanted = black_box(data, after, seed=1).clips.all
    assert torch.equal(found["test"], wanted)
    assert not torch.allclose(found["train"], wanted)


def test_validation_chooses_and_does_not_train(data):
    """Whatever the raw features of validation videos are, what is recovered looks like those of training videos."""
    after = adapted_set(data, disturbing())
    back = black_box(changed_in(data, "val"), after, seed=1)
    assert back.clips.all.abs().max() < 2 * data.clips.all.abs().max()


def test_nor_does_what_is_given_of_a_test_video_change_what_is_recovered_of_others(data):
    after = adapted_set(data, disturbing())
    test = torch.from_numpy(clips_of(data, "test"))
    other = with_clips(after, torch.where(test[:, None], 7.0, after.clips.all))
    one, two = (black_box(data, given, seed=1).clips.all for given in (after, other))
    torch.testing.assert_close(one[~test], two[~test])


def test_the_same_seed_recovers_the_same_and_the_callers_draws_go_on(data):
    after = adapted_set(data, disturbing())
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    one, same, other = (black_box(data, after, seed=seed).clips.all for seed in (0, 0, 1))
    assert torch.equal(torch.rand(3), wanted)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_an_attacker_with_the_adapter_finds_its_input(data):
    adapter, raw = disturbing(), with_clips(data, data.clips.all[:FEW])
    after = adapted_set(raw, adapter)
    back = white_box(after, adapter).clips.all
    torch.testing.assert_close(adapter(back), after.clips.all, atol=1e-2, rtol=0)
    assert (after.clips.all - raw.clips.all).abs().max() > 0.5
    assert (back - raw.clips.all).abs().max() < 0.05
    assert not any(p.grad is not None for p in adapter.parameters())


def test_an_attacker_with_the_adapter_finds_what_the_projection_left_and_no_more(data, erasing):
    adapter = AAM(replace(SHAPE, erase=1.0)).eval()
    adapter.load_state_dict(disturbing().state_dict() | {"centre": erasing.centre, "left": erasing.left})
    adapter.requires_grad_(False)
    raw = with_clips(data, data.clips.all[:FEW])
    back, left = white_box(adapted_set(raw, adapter), adapter).clips.all, adapter.erased(raw.clips.all)
    assert (left - raw.clips.all).abs().max() > 1
    assert (back - left).abs().max() < 0.05


def test_each_clip_is_inverted_by_itself(data):
    adapter = disturbing()
    after = adapted_set(with_clips(data, data.clips.all[:FEW]), adapter)
    alone = white_box(with_clips(after, after.clips.all[:1]), adapter).clips.all
    torch.testing.assert_close(alone, white_box(after, adapter).clips.all[:1], atol=1e-3, rtol=1e-3)
