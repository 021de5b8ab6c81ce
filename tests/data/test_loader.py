"""Batches: the same ones in the same order, wherever one starts and whoever makes them."""

import gc
import threading
import weakref
from itertools import islice

import numpy as np
import pytest
import torch

from tests.data.made import InMemory, clip_set, noise, numbered, stored
from vidveil.core.errors import UsageError
from vidveil.data.loader import Loader, prefetched
from vidveil.data.store.resident import Resident
from vidveil.data.temporal_controls import CONTROLS, median, one_frame, shuffled


@pytest.fixture
def clips(tmp_path):
    return stored(tmp_path / "set", noise(*[(6 + i % 3, 20, 20 + 8 * (i % 2)) for i in range(11)]))


def loader(clips, **options):
    return Loader(clips, range(len(clips)), **{"frames": 4, "size": 16, "batch": 3, "augment": "crop", **options})


def same(one, other) -> bool:
    return torch.equal(one.video, other.video) and torch.equal(one.index, other.index)


def test_an_epoch_shows_every_clip_once_in_a_new_order_and_leaves_out_the_incomplete_batch(clips):
    batches = loader(clips)
    assert len(batches) == 3
    orders = []
    for epoch in range(2):
        found = list(batches.epoch(epoch))
        assert [tuple(batch.video.shape) for batch in found] == [(3, 3, 4, 16, 16)] * 3
        orders.append(torch.cat([batch.index for batch in found]).tolist())
        assert len(set(orders[-1])) == 9
    assert orders[0] != orders[1]


def test_the_clips_left_out_differ_from_epoch_to_epoch(clips):
    seen = {i for epoch in range(8) for batch in loader(clips).epoch(epoch) for i in batch.index.tolist()}
    assert seen == set(range(11))


def test_in_sequence_the_last_batch_is_as_long_as_it_is(clips):
    batches = loader(clips, order="sequential")
    assert len(batches) == 4
    assert torch.cat([batch.index for batch in batches.epoch(0)]).tolist() == list(range(11))


def test_the_only_batch_is_kept_although_it_is_incomplete(clips):
    assert [len(batch.index) for batch in loader(clips, batch=64).epoch(0)] == [11]


@pytest.mark.parametrize("augment", ["none", "light", "crop", "turn"])
def test_starting_in_the_middle_gives_exactly_the_rest(clips, augment):
    whole = list(loader(clips, augment=augment, seed=5).epoch(3))
    rest = list(loader(clips, augment=augment, seed=5).epoch(3, start=1))
    assert len(rest) == 2
    assert all(same(a, b) for a, b in zip(whole[1:], rest, strict=True))
    assert list(loader(clips).epoch(3, start=3)) == []


def test_a_clip_looks_different_in_another_epoch_and_under_another_seed(clips):
    def looks(seed, epoch):
        found = [loader(clips, seed=seed).epoch(epoch)]
        batches = [batch for epoch_of in found for batch in epoch_of]
        return {int(i): view for batch in batches for i, view in zip(batch.index, batch.video, strict=True)}

    first = looks(0, 0)
    for other in (looks(0, 1), looks(1, 0)):
        shared = first.keys() & other.keys()
        assert len(shared) > 3
        assert not any(torch.equal(first[i], other[i]) for i in shared)


def test_without_augmentation_a_clip_always_looks_the_same(clips):
    one, other = (loader(clips, augment="none", order="sequential").epoch(epoch) for epoch in (0, 1))
    assert all(same(a, b) for a, b in zip(one, other, strict=True))


def test_pixels_end_up_beside_their_row_although_sizes_differ(tmp_path):
    videos = [np.full((4, 8 + 2 * (i % 3), 9, 3), 10 * i, np.uint8) for i in range(12)]
    for batch in loader(stored(tmp_path / "set", videos), batch=5, size=6).epoch(0):
        levels = (batch.video[:, 0, 0, 0, 0] * 255).round()
        assert levels.tolist() == (10 * batch.index).tolist()


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("augment", ["none", "light", "crop", "squash", "turn"])
def test_pictures_of_all_sizes_in_one_go_look_as_one_size_after_the_other(tmp_path, monkeypatch, mapped, augment):
    videos = noise(*[(6 + i % 3, 16 + 7 * (i % 2), 16 + 9 * (i % 3)) for i in range(11)])
    clips = stored(tmp_path / "set", videos) if mapped else clip_set(InMemory(videos))
    one_by_one = loader(clips, batch=6, augment=augment, whole=augment == "squash")
    expected = [*one_by_one.epoch(1), *one_by_one.views("5x3")]
    monkeypatch.setattr(Loader, "_at_once", lambda _, shapes: [np.arange(len(shapes))])
    for one, other in zip([*one_by_one.epoch(1), *one_by_one.views("5x3")], expected, strict=True):
        assert torch.equal(one.index, other.index)
        torch.testing.assert_close(one.video, other.video, atol=1e-6, rtol=0)


def test_on_an_accelerator_sizes_go_in_one_go_unless_most_would_be_padding(tmp_path):
    made = loader(stored(tmp_path / "set", noise((4, 8, 8))), batch=1)
    square, smaller, panorama = (4, 20, 20, 3), (4, 16, 18, 3), (4, 8, 64, 3)
    assert [len(same) for same in made._at_once([square, smaller, square])] == [2, 1]
    made.device = torch.device("cuda")
    assert [len(same) for same in made._at_once([square, smaller, square])] == [3]
    assert [len(same) for same in made._at_once([square, panorama, square])] == [2, 1]


def test_videos_in_memory_and_in_a_store_give_the_same_batches(tmp_path):
    videos = noise(*[(8, 16, 16)] * 6)
    for augment in ("none", "light", "crop", "turn"):
        one = loader(stored(tmp_path / augment, videos), frames=8, augment=augment).epoch(0)
        other = loader(clip_set(InMemory(videos)), frames=8, augment=augment).epoch(0)
        assert all(same(a, b) for a, b in zip(one, other, strict=True))


def test_views_show_every_clip_once_in_order(clips):
    found = list(loader(clips).views("5x3"))
    assert [tuple(batch.video.shape) for batch in found] == [(3, 15, 3, 4, 16, 16)] * 3 + [(2, 15, 3, 4, 16, 16)]
    assert torch.cat([batch.index for batch in found]).tolist() == list(range(11))


def test_views_that_would_all_be_the_same_are_made_once(tmp_path):
    clips = stored(tmp_path / "set", noise(*[(4, 16, 16)] * 3))
    (batch,) = loader(clips).views("5x3")
    assert batch.video.shape == (3, 1, 3, 4, 16, 16)
    expected = torch.from_numpy(np.stack([clips.videos.frames(i) for i in range(3)])).permute(0, 4, 1, 2, 3) / 255
    assert torch.equal(batch.video[:, 0], expected)


def test_batches_made_ahead_are_the_same(clips):
    plain, early = loader(clips).epoch(0), loader(clips, prefetch=2).epoch(0)
    assert all(same(a, b) for a, b in zip(plain, early, strict=True))


def test_an_error_in_the_thread_reaches_who_asked_for_the_batch(clips):
    def fails(*_):
        raise ZeroDivisionError("in the transform")

    with pytest.raises(ZeroDivisionError, match="in the transform"):
        next(loader(clips, prefetch=2, transform=fails).epoch(0))
    assert not [thread for thread in threading.enumerate() if thread.name == "vidveil-loader"]


def test_the_thread_ends_with_its_iterator():
    made = []
    batches = prefetched((made.append(i) or i for i in range(1000)), 2)
    assert list(islice(batches, 3)) == [0, 1, 2]
    assert any(thread.name == "vidveil-loader" for thread in threading.enumerate())
    batches.close()
    assert not any(thread.name == "vidveil-loader" for thread in threading.enumerate())
    assert len(made) <= 7


def test_loaders_of_the_same_videos_share_them_for_as_long_as_they_live(clips):
    one, other = loader(clips), loader(clips, seed=1)
    assert one.resident is other.resident
    shared = weakref.ref(one.resident)
    del one, other
    gc.collect()
    assert shared() is None


def test_writing_into_a_video_does_not_reach_the_file(clips):
    before = clips.videos.frames(0).copy()
    Resident(clips.videos, "cpu").frames(0).zero_()
    np.testing.assert_array_equal(clips.videos.frames(0), before)


def test_one_frame_is_random_in_training_and_in_the_middle_in_test(tmp_path):
    clips = stored(tmp_path / "set", numbered(8, 4, 4))
    chosen = set()
    for epoch in range(20):
        for batch in loader(clips, frames=8, size=4, augment="none", transform=one_frame).epoch(epoch):
            times = (batch.video[:, 0, :, 0, 0] * 255).round() - 16 * batch.index[:, None]
            assert (times == times[:, :1]).all()
            chosen |= set(times[:, 0].int().tolist())
    assert chosen == set(range(8))
    (first, _) = loader(clips, frames=8, size=4, transform=one_frame).views("1x1")
    assert (first.video[:, 0, 0, :, 0, 0] * 255).round().tolist() == [[16 * i + 4] * 8 for i in range(3)]


def test_shuffled_frames_are_all_there_in_an_order_that_can_be_repeated(tmp_path):
    clips = stored(tmp_path / "set", numbered(8, 4, 12))

    def orders(epoch):
        batches = loader(clips, frames=8, size=4, batch=12, augment="none", transform=shuffled)
        (batch,) = batches.views() if epoch is None else batches.epoch(epoch)
        video = batch.video[:, 0] if epoch is None else batch.video
        return batch.index, (video[:, 0, :, 0, 0] * 255).round().int() - 16 * batch.index[:, None]

    for epoch in (0, 1, None):
        _, found = orders(epoch)
        assert (found.sort(dim=1).values == torch.arange(8)).all()
        assert (found != torch.arange(8)).any(dim=1).sum() >= 11
        assert torch.equal(found, orders(epoch)[1])
    rows = [found[index.argsort()] for index, found in (orders(0), orders(1), orders(None))]
    assert not torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])


def test_the_median_keeps_what_stays_and_drops_who_passes():
    video = torch.full((1, 3, 7, 4, 8), 0.25)
    for t in range(7):
        video[..., t, :, t] = 1
    assert torch.equal(median(video, np.array([0]), 0, None), torch.full_like(video, 0.25))


@pytest.mark.parametrize("name", CONTROLS)
def test_controls_leave_the_batch_they_were_given_alone(name):
    video = torch.rand(2, 3, 5, 4, 4)
    before = video.clone()
    out = CONTROLS[name](video, np.array([0, 1]), 0, 0)
    assert out.shape == video.shape
    out.zero_()
    assert torch.equal(video, before)


def test_sizes_that_make_no_sense_are_refused(clips):
    with pytest.raises(UsageError, match="1 or more"):
        loader(clips, stride=0)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_are_exact_whatever_precision_is_used_around_them(clips, prefetch):
    exact = loader(clips)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = loader(clips, prefetch=prefetch)
        found = [*rounded.epoch(1), *rounded.views("5x3")]
    for one, other in zip([*exact.epoch(1), *exact.views("5x3")], found, strict=True):
        assert same(one, other)


@pytest.mark.parametrize("augment", ["light", "crop", "turn"])
def test_several_views_of_a_clip_are_different_ones_and_the_same_each_time(clips, augment):
    def batches(start=0):
        return list(loader(clips, augment=augment, views_per_clip=3, seed=5).epoch(2, start))

    found = batches()
    assert [tuple(batch.video.shape) for batch in found] == [(3, 3, 3, 4, 16, 16)] * 3
    assert [len(batch.index) for batch in found] == [3] * 3
    for batch in found:
        for views in batch.video:
            assert not torch.equal(views[0], views[1])
            assert not torch.equal(views[1], views[2])
    assert all(same(a, b) for a, b in zip(found[1:], batches(1), strict=True))


def test_views_of_a_clip_are_of_that_clip():
    frames = [np.full((6, 16, 16, 3), 20 * i, np.uint8) for i in range(8)]  # each video has a grey of its own
    several = loader(clip_set(InMemory(frames)), augment="crop", views_per_clip=2, batch=4)
    for batch in several.epoch(0):
        for row, views in zip(batch.index.tolist(), batch.video, strict=True):
            torch.testing.assert_close(views, torch.full_like(views, 20 * row / 255))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("fits", ["padded", "as they are", "no"])
@pytest.mark.parametrize("augment", ["none", "light", "crop", "turn"])
def test_a_gpu_sees_what_the_cpu_sees_whether_or_not_all_videos_fit(clips, fits, augment):
    here, there = loader(clips, augment=augment), loader(clips, augment=augment, device="cuda")
    assert there.resident.whole
    if fits == "as they are":
        there.resident = Resident(clips.videos, "cuda", limit_bytes=there.resident.bytes)
        assert there.resident.whole
        assert there.resident._frames is None
    if fits == "no":
        there = loader(clips, augment=augment, device="cuda", prefetch=2)
        there.resident = Resident(clips.videos, "cuda", limit_bytes=0)
        assert not there.resident.whole
    pairs = [*zip(here.epoch(1), there.epoch(1), strict=True), *zip(here.views("5x3"), there.views("5x3"), strict=True)]
    assert len(pairs) == 7
    for one, other in pairs:
        assert other.video.device.type == "cuda"
        assert torch.equal(one.index, other.index)
        torch.testing.assert_close(one.video, other.video.cpu(), atol=2e-3, rtol=0)
