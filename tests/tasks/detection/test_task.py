"""TriDet learns an easy set, trains an adapter in front of it, and resumes an interrupted training to the bit."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.tasks.detection.made import SMALL, D, easy
from vidveil.core.errors import DataError, UsageError
from vidveil.methods.splavu import model as splavu
from vidveil.tasks.detection import Detection, Shape, TrainingBatches, detect, detection_map, fit_detection
from vidveil.tasks.detection.network import TriDetOutput
from vidveil.tasks.detection.targets import NONE, assign, grid
from vidveil.tasks.detection.task import OPTIONS, collate
from vidveil.training import checkpoints
from vidveil.training.options import Options

pytestmark = pytest.mark.xdist_group("detection")  # its fixtures take long: made by one worker

QUICK = Options(epochs=9, lr=3e-3, weight_decay=0.025, ema=0.95, warmup_epochs=2, validate_every=3, device="cpu")


@pytest.fixture(scope="module")
def data():
    return easy()


@pytest.fixture(scope="module")
def learned(data):
    return fit_detection(data, shape=SMALL, options=QUICK, batch=4)


def test_an_easy_set_is_learned(data, learned):
    detection, fitted = learned
    rows = data.indices("test")
    found = detection.evaluate(detect(detection, data, rows), rows)
    assert found.at(0.5) >= 0.9
    assert found.mean >= 0.85
    assert fitted.best >= 0.9
    assert fitted.history[-1]["train_loss"] < fitted.history[0]["train_loss"] / 3


def test_an_untrained_network_finds_nothing_that_counts(data):
    torch.manual_seed(0)
    rows = data.indices("test")
    fresh = Detection(data, SMALL)
    assert fresh.score(detect(fresh, data, rows), rows) < 0.2


def test_on_features_of_other_things_it_finds_nothing(data, learned):
    """It reads the features, and does not merely repeat how long actions last in this set and where they are."""
    rng = np.random.default_rng(0)
    noise = data.with_features(lambda features: rng.normal(size=features.shape))
    rows = data.indices("test")
    assert learned[0].score(detect(learned[0], noise, rows), rows) < 0.3


def test_a_network_that_outputs_the_targets_finds_every_action_to_the_second(data):
    """There and back: seconds → features → moments → distances → seconds."""
    detection = Detection(data, SMALL)
    batch = collate(data, data.indices("test"))
    where = grid(batch.mask.shape[1], SMALL.levels)
    there = batch.mask[:, where.at.long()]
    targets = assign(where, batch.events, there, SMALL.classes)
    detection.network.forward = lambda *_: TriDetOutput(40 * targets.classes - 20, targets.distances, there)
    found = detection.predict(batch.features, batch.mask, batch.rows)
    result = detection_map(data.truth(data.indices("test")), found, SMALL.classes, [0.99])
    assert result.mean == 1


def test_seconds_are_those_of_the_video(data, learned):
    detection = learned[0]
    rows = data.indices("test")[:3]
    slow = replace(data, seconds=[2.0] * len(data), segments=[[]] * len(data))
    found = detect(detection, data, rows)
    slowly = Detection(slow, SMALL)
    slowly.load_state_dict(detection.state_dict())
    np.testing.assert_allclose(detect(slowly, slow, rows).span, 4 * found.span)
    assert (found.span >= 0).all()
    for video, (_, end) in zip(found.video.tolist(), found.span.tolist(), strict=True):
        assert end <= data.duration(video)


def test_predictions_for_a_video_do_not_depend_on_its_batch(data, learned):
    rows = data.indices("test")
    alone, together = (detect(learned[0], data, rows, batch) for batch in (1, len(rows)))
    assert len(np.unique([len(data.features[row]) for row in rows])) > 1
    strong = alone.score > 0.05
    np.testing.assert_allclose(alone.score[strong], together.score[together.score > 0.05], atol=1e-4)
    np.testing.assert_allclose(alone.span[strong], together.span[together.score > 0.05], atol=1e-2)


@pytest.mark.parametrize("reference", [False, True])
def test_gradients_reach_an_adapter_in_front_of_it_and_train_it(data, reference):
    torch.manual_seed(2)
    detection = Detection(data, SMALL)
    adapter = splavu.AAM(splavu.Shape(D, heads=2, groups=2, reference=reference))
    batch = next(TrainingBatches(data, batch=4).epoch(0))
    losses = []
    sgd = torch.optim.Adam(adapter.parameters(), lr=0.01)  # the adapter alone
    for _ in range(6):
        sgd.zero_grad()
        adapted = torch.zeros_like(batch.features)
        adapted[batch.mask] = adapter(batch.features[batch.mask])
        loss = detection.loss(adapted, batch.mask, batch.events)
        loss.backward()
        losses.append(loss.item())
        if len(losses) > 1:  # at first, W_o is 0 and hides the rest
            assert all(parameter.grad.abs().max() > 0 for parameter in adapter.blocks.parameters())
        assert all(block.outer.weight.grad.abs().max() > 0 for block in adapter.blocks)
        sgd.step()
    assert losses[-1] < losses[0]


def test_a_training_that_is_interrupted_twice_is_the_same_to_the_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "COST", 0)
    options = replace(QUICK, epochs=3, validate_every=1, checkpoint_seconds=0)
    small = easy(videos=(12, 2, 2))
    wanted, fitted = fit_detection(small, shape=SMALL, options=options, batch=4)
    real = TrainingBatches.epoch
    for stop in (2, 4):
        left = stop

        def epoch(self, number, start=0):
            nonlocal left
            for batch in real(self, number, start):
                if left == 0:
                    raise KeyboardInterrupt
                left -= 1
                yield batch

        monkeypatch.setattr(TrainingBatches, "epoch", epoch)
        with pytest.raises(KeyboardInterrupt):
            fit_detection(small, shape=SMALL, options=options, batch=4, folder=tmp_path)
    monkeypatch.setattr(TrainingBatches, "epoch", real)
    found, again = fit_detection(small, shape=SMALL, options=options, batch=4, folder=tmp_path)
    events = [json.loads(line)["event"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert events.count("resumed") == 2
    assert again.history == fitted.history
    for name, tensor in wanted.state_dict().items():
        assert torch.equal(tensor, found.state_dict()[name]), name


def test_batches_are_whole_videos_with_their_events_in_features(data):
    rows = data.indices("train")[:3]
    batch = collate(data, rows)
    for i, row in enumerate(rows):
        length = len(data.features[row])
        assert batch.mask[i].sum() == length
        np.testing.assert_array_equal(batch.features[i, :length], data.features[row])
        own = batch.events[i][batch.events[i, :, 2] != NONE]
        wanted = [(start / 0.5 - 0.5, end / 0.5 - 0.5, label) for start, end, label in data.segments[row]]
        np.testing.assert_allclose(own, wanted)


def test_of_long_videos_a_random_part_is_taken_with_the_actions_of_which_half_is_in_it(data):
    row = int(np.argmax([len(features) for features in data.features]))
    length = len(data.features[row])
    seen = set()
    for start in np.linspace(0, 0.999, 12):
        batch = collate(data, np.array([row]), longest=20, starts=[start])
        first = int(start * (length - 19))
        seen.add(first)
        np.testing.assert_array_equal(batch.features[0], data.features[row][first : first + 20])
        wanted = []
        for begins, ends, label in data.segments[row]:
            a, b = round(begins / 0.5) - first, round(ends / 0.5) - first
            if min(b, 20) - max(a, 0) >= (b - a) / 2:
                wanted.append((max(a, 0) - 0.5, min(b, 20) - 0.5, label))
        np.testing.assert_allclose(batch.events[0].numpy().reshape(-1, 3), np.reshape(wanted, (-1, 3)))
    assert {0, length - 20} <= seen


def test_the_order_of_an_epoch_depends_on_seed_and_epoch_alone(data):
    def rows(seed, epoch, start=0):
        return [
            batch.rows.tolist() for batch in TrainingBatches(data, seed=seed, batch=4, longest=15).epoch(epoch, start)
        ]

    for first, again in zip(
        *(TrainingBatches(data, seed=0, batch=4, longest=15).epoch(3) for _ in range(2)), strict=True
    ):
        assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))  # the parts, too
    assert rows(0, 3)[2:] == rows(0, 3, 2)
    assert rows(0, 3) != rows(0, 4)
    assert rows(0, 3) != rows(1, 3)
    assert sorted(row for batch in rows(0, 3) for row in batch) == data.indices("train").tolist()


def test_the_published_recipe_is_the_default():
    assert (OPTIONS.lr, OPTIONS.weight_decay, OPTIONS.clip_norm) == (1e-4, 0.025, 1.0)
    assert OPTIONS.ema > 0


def test_a_network_of_another_width_is_refused(data):
    with pytest.raises(UsageError, match="features of 16 numbers and 4 classes, and the network is for 17 and 4"):
        Detection(data, Shape(D + 1, 4))
    with pytest.raises(UsageError, match=r"features of \(B, T, 16\)"):
        Detection(data, SMALL).loss(torch.zeros(1, 5, 3), torch.ones(1, 5, dtype=torch.bool), torch.zeros(1, 0, 3))


def test_videos_of_another_set_are_refused(data):
    with pytest.raises(UsageError, match="has 4 videos, and the network's own set 48"):
        detect(Detection(data, SMALL), easy(videos=(2, 1, 1)), np.array([0]))


@pytest.mark.parametrize(("empty", "words"), [("train", "training videos"), ("val", "validation videos")])
def test_a_set_in_which_nothing_happens_is_refused_before_training(data, empty, words):
    segments = [[] if name == empty else own for name, own in zip(data.split, data.segments, strict=True)]
    with pytest.raises(DataError, match=f"nothing happens in its .* {words}"):
        fit_detection(replace(data, segments=segments), shape=SMALL, options=QUICK)


def test_without_validation_videos_the_last_epoch_is_kept():
    small = easy(videos=(4, 0, 2))
    _, fitted = fit_detection(small, shape=SMALL, options=replace(QUICK, epochs=2), batch=2)
    assert fitted.best_epoch == 2


def test_a_batch_without_any_action_has_a_loss_and_finite_gradients(data):
    detection = Detection(data, SMALL)
    batch = collate(data, data.indices("train")[:2])
    loss = detection.loss(batch.features, batch.mask, batch.events[:, :0])
    loss.backward()
    assert loss.item() > 0
    assert all(p.grad is None or p.grad.isfinite().all() for p in detection.parameters())
