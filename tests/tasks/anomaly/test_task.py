"""MGFN is trained on its own and behind an adapter."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.tasks.anomaly.made import SMALL, WIDTH, easy, features, noise, synthetic, task, train
from vidveil.core.errors import DataError, TrainingError, UsageError
from vidveil.methods.splavu.model import AAM
from vidveil.methods.splavu.model import Shape as AdapterShape
from vidveil.tasks.anomaly import FIRM, BalancedBatches, LossWeights, Shape, fit_anomaly
from vidveil.tasks.anomaly import task as task_module
from vidveil.tasks.anomaly.losses import anomaly_loss
from vidveil.tasks.anomaly.network import MGFNOutput
from vidveil.tasks.anomaly.segments import all_into_segments, into_segments
from vidveil.tasks.anomaly.task import scores_of_frames
from vidveil.training.options import Options
from vidveil.training.seeds import seeded


@pytest.fixture(scope="module")
def data():
    return easy(videos=40)


def same_bits(a, b):
    a, b = a.state_dict(), b.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_on_the_easy_set_it_finds_when_something_happens(seed):
    data = easy(seed)
    model, found = train(data, seed=seed)
    scores = model.metrics(data, "test")
    assert scores["frame_auc"] >= 0.9
    assert scores["video_auc"] >= 0.9
    assert found.best == model.metrics(data, "val")["video_auc"]
    assert model.network.scale.item() == pytest.approx(
        np.sqrt(np.mean([np.square(own).mean() for own in data.of("train")])), rel=1e-4
    )


def test_where_normal_and_abnormal_do_not_differ_it_is_at_chance():
    normal, _ = noise()
    blind = synthetic(normal[0::2], normal[1::2], videos=160)
    model, _ = train(blind, epochs=10)
    scores = model.metrics(blind, "test")
    assert 0.4 < scores["frame_auc"] < 0.6
    assert 0.25 < scores["video_auc"] < 0.75


def test_the_loss_is_that_of_the_networks_scores_and_features():
    model = task().eval()
    normal, abnormal = features(3, 32, WIDTH), features(3, 32, WIDTH, seed=1)
    output = model.network(torch.cat([normal, abnormal]))
    halves = MGFNOutput(output.scores[:3], output.features[:3]), MGFNOutput(output.scores[3:], output.features[3:])
    torch.testing.assert_close(model(normal, abnormal), anomaly_loss(*halves, FIRM))


def test_gradients_reach_an_adapter_in_front_of_it(data):
    with seeded(0):
        adapter = AAM(AdapterShape(width=WIDTH, heads=2, groups=2))
    model = task()
    rows = next(BalancedBatches(data, batch=8, seed=0).epoch(0))
    clips, counts = data.clips(rows)
    adapted = adapter(clips)
    adapted.retain_grad()
    model.loss(*all_into_segments(adapted, counts).chunk(2)).backward()
    reached = [own.abs().sum(1) > 0 for own in adapted.grad.split(counts)]
    assert all(own.any() for own in reached)  # of a normal video at least the chosen segments
    assert all(own.all() for own in reached[4:])  # of an abnormal one each clip: it is to be sparse and smooth
    assert all(block.outer.weight.grad.abs().sum() > 0 for block in adapter.blocks)


def test_an_adapter_that_learns_with_it_gets_better_at_the_task(data):
    with seeded(0):
        adapter = AAM(AdapterShape(width=WIDTH, heads=2, groups=2))
    model = task(dropout=0.0).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(adapter.parameters(), 3e-3)
    losses = []
    for epoch in range(6):
        for rows in BalancedBatches(data, batch=24, seed=0).epoch(epoch):
            clips, counts = data.clips(rows)
            loss = model.loss(*all_into_segments(adapter(clips), counts).chunk(2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_a_prediction_is_of_each_video_alone_and_leaves_the_mode_as_it_was(data, monkeypatch):
    model = task().train()
    videos = data.of("test")
    scores = model.predict(videos)
    assert model.training
    monkeypatch.setattr(task_module, "AT_ONCE", 3)
    in_parts = model.predict(videos)
    np.testing.assert_allclose(in_parts.segments, scores.segments, atol=1e-6)
    for number, clips in enumerate(videos):
        alone = model.predict([clips])
        np.testing.assert_allclose(alone.segments[0], scores.segments[number], atol=1e-6)
        np.testing.assert_allclose(alone.videos[0], scores.videos[number], atol=1e-6)


def test_the_score_of_a_video_is_that_of_its_segments_of_largest_magnitude(data):
    model = task().eval()
    clips = data.features[0]
    output = model.network(into_segments(torch.from_numpy(clips))[None])
    long = output.features[0, 0].norm(dim=-1)
    wanted = output.scores[0, long.argsort(descending=True)[:3]].mean()
    assert model.predict([clips]).videos[0] == pytest.approx(wanted.item(), abs=1e-6)


def test_clips_go_through_an_adapter_before_they_are_averaged(data):
    model = task()
    through = model.predict(data.of("test"), lambda clips: clips.pow(2))
    given = model.predict([clips**2 for clips in data.of("test")])
    np.testing.assert_allclose(through.segments, given.segments, atol=1e-6)


def test_frames_have_the_scores_of_their_segments(data):
    model, videos, labels = task(), data.of("test"), data.frame_labels("test")
    scores = model.predict(videos)
    frames = scores_of_frames(scores, videos, labels)
    assert [len(own) for own in frames] == [len(own) for own in labels]
    assert set(frames[0]) <= set(scores.segments[0]) or len(videos[0]) < 32


class StopsError(Exception):
    pass


@pytest.mark.parametrize(("epoch", "batch"), [(0, 1), (1, 0), (2, 1)])
def test_an_interrupted_training_ends_as_an_uninterrupted_one(data, tmp_path, monkeypatch, epoch, batch):
    whole, scores = train(data, epochs=3)
    real = BalancedBatches.epoch

    def stops(self, number, start=0):
        for at, rows in enumerate(real(self, number, start), start):
            if (number, at) == (epoch, batch):
                raise StopsError
            yield rows

    monkeypatch.setattr(BalancedBatches, "epoch", stops)
    with pytest.raises(StopsError):
        train(data, tmp_path, epochs=3, checkpoint_seconds=0)
    monkeypatch.undo()
    model, found = train(data, tmp_path, epochs=3, checkpoint_seconds=0)
    assert same_bits(model, whole)
    assert found.history == scores.history


def test_the_same_seed_trains_the_same_network_and_another_another(data):
    first = train(data, epochs=1)[0]
    torch.rand(5)  # whatever was drawn before
    assert same_bits(first, train(data, epochs=1)[0])
    assert not same_bits(first, train(data, epochs=1, seed=1)[0])


def test_a_checkpoint_of_other_videos_or_weights_is_refused(data, tmp_path):
    train(data, tmp_path, epochs=1)
    with pytest.raises(TrainingError, match="other data or another recipe"):
        train(easy(seed=5, videos=40), tmp_path, epochs=1)
    options = Options(epochs=1, lr=1e-3, weight_decay=5e-4, warmup_epochs=0.0, device="cpu")
    with pytest.raises(TrainingError, match="other data or another recipe"):
        fit_anomaly(data, shape=SMALL, weights=LossWeights(), options=options, batch=16, folder=tmp_path)


def test_validation_needs_labels_of_videos_only_and_frames_choose_nothing(data):
    with_frames = train(data, epochs=2)
    without = train(replace(data, frames=None), epochs=2)
    assert same_bits(with_frames[0], without[0])
    assert {"video_auc", "frame_auc"} < with_frames[1].history[0].keys()
    assert "frame_auc" not in without[1].history[0]


def test_without_validation_videos_the_last_epoch_is_taken(data):
    found = train(replace(data, split=np.where(data.split == "val", "train", data.split)), epochs=2)[1]
    assert found.best_epoch == 2
    assert np.isnan(found.best)


def test_data_that_cannot_be_learned_from_are_refused_before_training(data):
    wide = Shape(**{**SMALL.__dict__, "width": 99})
    with pytest.raises(UsageError, match="features of 99 numbers"):
        fit_anomaly(data, shape=wide)
    normal = data.indices("train")[data.label[data.indices("train")] == 0]
    split = data.split.copy()
    split[normal] = "test"
    with pytest.raises(DataError, match="no normal videos in train"):
        train(replace(data, split=split))
    split = np.where((data.split == "val") & (data.label == 1), "train", data.split)
    with pytest.raises(DataError, match="no abnormal videos in val"):
        train(replace(data, split=split))
    nought = replace(data, features=tuple(0 * clips for clips in data.features))
    with pytest.raises(DataError, match="are 0"):
        train(nought)


def test_videos_of_another_width_or_without_clips_are_not_predicted():
    model = task()
    with pytest.raises(UsageError, match="16 numbers here, these have 3"):
        model.predict([np.zeros((4, 3), np.float32)])
    with pytest.raises(UsageError, match="at least one"):
        model.predict([np.zeros((4, WIDTH), np.float32), np.zeros((0, WIDTH), np.float32)])
    assert model.predict([]).segments.shape == (0, 32)
