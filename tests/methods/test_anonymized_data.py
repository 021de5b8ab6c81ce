"""Videos after a method: the right pixels, made once, with what was kept next to them."""

from contextlib import nullcontext
from threading import Thread

import cv2
import numpy as np
import pytest
import torch

from tests.evaluation.masked import FRAMES, SIDE, SIZE, Masker, digest, loader, people
from tests.evaluation.toy import toy
from tests.methods import made_checkpoint
from vidveil.core.errors import UsageError
from vidveil.core.tubelets import kept_count
from vidveil.data.store.anonymized import forget, forgotten_at_the_end, kept_as_filmed
from vidveil.data.store.files import store_lock
from vidveil.data.store.videos import VideoStore
from vidveil.evaluation.measures.ground_truth import Truth
from vidveil.evaluation.measures.measure import Measure
from vidveil.methods import Anonymized
from vidveil.methods import anonymized_data as conditions
from vidveil.methods.anonymized_data import AT_ONCE, WORKERS, Setting, anonymized, check_method
from vidveil.methods.masking.baselines import Grid


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def data(tmp_path):
    return people(tmp_path, clips=12)  # 84 clips: more than are shown at a time


class Dimmed:
    """A method that leaves half of the light, in whole bytes. Counts the clips."""

    name = spec = "dimmed"
    weights = None

    def __init__(self):
        self.clips = 0

    def anonymize(self, clip, *, keep=None, privacy_weight=None):
        assert keep is None
        assert privacy_weight is None
        self.clips += 1
        return Anonymized((clip * 255 / 2).floor() / 255)


def tensor(frames):
    return torch.from_numpy(frames.copy()).permute(3, 0, 1, 2).float() / 255


def shown(video):
    return (video * 255).round().permute(1, 2, 3, 0).numpy()


def test_a_learned_method_sees_many_clips_at_a_time_and_each_comes_out_as_by_itself(data, monkeypatch):
    masker = Masker()
    loader(monkeypatch, masker)
    after = anonymized(data, Setting(method="masker", keep=0.25))
    assert masker.batches == [AT_ONCE, len(data) - AT_ONCE]
    alone = Masker()
    for row in (0, AT_ONCE - 1, AT_ONCE, len(data) - 1):
        expected = alone.anonymize(tensor(data.videos.frames(row)), keep=0.25)
        np.testing.assert_array_equal(after.videos.frames(row), shown(expected.video))
        kept = Grid(2, SIDE).pixels(after.videos.side("kept", row), (FRAMES, SIZE, SIZE))
        np.testing.assert_array_equal(kept.astype(bool), expected.mask.numpy())


def test_kept_pixels_are_untouched_and_the_others_are_black(data, monkeypatch):
    loader(monkeypatch, Masker())
    after = anonymized(data, Setting(method="masker", keep=0.25))
    kept = Grid(2, SIDE).pixels(after.videos.side("kept", 5), (FRAMES, SIZE, SIZE)).astype(bool)
    assert kept.mean() == 0.25
    np.testing.assert_array_equal(after.videos.frames(5)[kept], data.videos.frames(5)[kept])
    assert not after.videos.frames(5)[~kept].any()


def test_a_finished_set_is_found_again_and_only_looked_at(data, monkeypatch):
    masker = Masker()
    loader(monkeypatch, masker)
    first = anonymized(data, Setting(method="masker", keep=0.25))
    number = first.videos.folder.stat().st_ino
    masker.batches.clear()
    second = anonymized(data, Setting(method="masker", keep=0.25))
    assert second.videos.folder.stat().st_ino == number
    assert sum(masker.batches) <= len(data)  # a look at the first and the last ones, not all anew


@pytest.mark.parametrize(
    "changed",
    [{"keep": 0.5}, {"privacy_weight": 1.0}, {"privacy_weight": float("inf")}, {"fill": "mean"}],
    ids=lambda changed: next(iter(changed)),
)
def test_another_knob_is_another_set(data, monkeypatch, changed):
    loader(monkeypatch, Masker())
    before = {"method": "masker", "keep": 0.25}
    first, second = (anonymized(data, Setting(**knobs)) for knobs in (before, before | changed))
    assert first.videos.folder != second.videos.folder
    assert digest(first) != digest(second)


def test_another_training_of_the_same_name_is_another_set(data, monkeypatch):
    loader(monkeypatch, Masker())
    first = anonymized(data, Setting(method="masker"))
    loader(monkeypatch, Masker(weights="masker 5678"))
    assert anonymized(data, Setting(method="masker")).videos.folder != first.videos.folder


def test_a_method_whose_code_has_changed_is_not_taken_from_the_cache(data, monkeypatch):
    loader(monkeypatch, Masker())
    first = digest(anonymized(data, Setting(method="masker", keep=0.25)))

    class Changed(Masker):
        def anonymize_batch(self, clips, *, keep=None, privacy_weight=None):
            return super().anonymize_batch(clips, keep=keep, privacy_weight=0 if privacy_weight else 1)

    loader(monkeypatch, Changed())
    assert digest(anonymized(data, Setting(method="masker", keep=0.25))) != first


def test_scores_are_no_part_of_the_fingerprint_and_pixels_are(data, monkeypatch):
    """Their last digits differ from machine to machine, and a training must be found again all the same."""
    loader(monkeypatch, Masker())
    first = anonymized(data, Setting(method="masker", keep=0.25)).videos

    class Noisy(Masker):
        def anonymize_batch(self, clips, *, keep=None, privacy_weight=None):
            found = super().anonymize_batch(clips, keep=keep, privacy_weight=privacy_weight)
            return type(found)(found.video, found.mask, found.scores + 1e-6)

    loader(monkeypatch, Noisy(weights="masker noisy"))
    second = anonymized(data, Setting(method="masker", keep=0.25)).videos
    assert not np.array_equal(first.side("scores", 0), second.side("scores", 0))
    assert first.fingerprint == second.fingerprint
    assert anonymized(data, Setting(method="masker", keep=0.5)).videos.fingerprint != first.fingerprint


def test_for_recorded_video_of_another_size_the_share_kept_is_stored_and_nothing_larger(monkeypatch):
    masker = Masker()  # made for 32 pixels; these clips have 16
    masker.scorer.tubelet = (2, 4, 4)
    loader(monkeypatch, masker)
    recorded = toy()
    after = anonymized(recorded, Setting(method="masker", keep=0.25))
    assert after.videos.sides == ("share",)
    assert after.videos.side("share", 7).tolist() == [0.25]
    assert after.videos.about["tubelet"] is None
    found = Truth(recorded, Measure(recorded, permutations=10, resamples=50)).numbers([after])
    assert list(found) == ["tubelets_kept"]
    assert found["tubelets_kept"].measured.value.value == 0.25


def test_it_is_recorded_whether_what_a_mask_keeps_is_shown_as_it_was_filmed(data, monkeypatch):
    """Only then does a mask that keeps everything leave raw video."""
    dimmed = Dimmed()
    for changes, filmed in (({}, True), ({"draws": True}, False), ({"preprocess": dimmed}, False)):
        masker = Masker(weights=f"masker {changes}")
        vars(masker).update(changes)
        loader(monkeypatch, masker, dimmed)
        mixed = [anonymized(data, Setting(method=name, keep=0.25)) for name in ("random", "masker")]
        assert kept_as_filmed(mixed) is filmed
    loader(monkeypatch, Masker())
    for name in ("random", "masker"):
        assert kept_as_filmed([anonymized(data, Setting(method=name, keep=0.25, fill="mask"))]) is False
    assert kept_as_filmed([data, anonymized(data, Setting(method="noise"))]) is None


def test_what_masks_lie_over_is_made_once_for_all_of_them(data, monkeypatch):
    dimmed = Dimmed()
    loader(monkeypatch, Masker(preprocess=dimmed), dimmed)
    some, more = (anonymized(data, Setting(method="masker", keep=keep)).videos for keep in (0.25, 0.5))
    assert dimmed.clips <= len(data) + 3 * 2 * WORKERS  # once, and some to see whether they are the same
    for row in (0, len(data) - 1):
        expected = Masker().anonymize(dimmed.anonymize(tensor(data.videos.frames(row))).video, keep=0.25)
        np.testing.assert_array_equal(some.frames(row), shown(expected.video))
        assert more.share_kept(row) == 0.5


def test_large_clips_are_shown_few_at_a_time_and_one_at_least(data, monkeypatch):
    size = FRAMES * SIZE * SIZE * 3
    loader(monkeypatch, few := Masker())
    monkeypatch.setattr(conditions, "BYTES_AT_ONCE", 30 * size)
    pixels = digest(anonymized(data, Setting(method="masker", keep=0.25)))
    assert few.batches == [30, 30, 24]
    loader(monkeypatch, alone := Masker(weights="again"))
    monkeypatch.setattr(conditions, "BYTES_AT_ONCE", size // 2)
    assert digest(anonymized(data, Setting(method="masker", keep=0.25))) == pixels
    assert alone.batches == [1] * len(data)


def test_what_was_made_is_gone_once_it_is_forgotten_and_can_be_made_again(data):
    first = anonymized(data, Setting(method="random", keep=0.5))
    pixels = digest(first)
    forget([first, first])  # as the evaluators of two seeds have it
    assert not first.videos.folder.exists()
    assert not list(first.videos.folder.parent.glob("*.part"))
    assert not list(first.videos.folder.parent.glob(".*.part"))
    assert digest(first) == pixels  # who has it open reads on
    assert digest(anonymized(data, Setting(method="random", keep=0.5))) == pixels


def test_several_evaluations_find_the_same_clips_which_are_gone_at_the_end(data):
    with forgotten_at_the_end():
        with forgotten_at_the_end():
            pass  # an inner one takes nothing of the outer one along
        first = anonymized(data, Setting(method="random", keep=0.5))
        forget([first])
        assert first.videos.folder.exists()
        second = anonymized(data, Setting(method="random", keep=0.5))
        assert second.videos.made is None  # found, not made
        forget([second])
        assert first.videos.folder.exists()
    assert not first.videos.folder.exists()
    again = anonymized(data, Setting(method="random", keep=0.5))
    forget([again])  # outside: at once
    assert not again.videos.folder.exists()


def test_what_somebody_else_made_is_not_deleted(data):
    theirs = anonymized(data, Setting(method="random", keep=0.5))
    found = anonymized(data, Setting(method="random", keep=0.5))
    forget([found, data])
    assert found.videos.folder.exists()
    assert data.videos.folder.exists()
    forget([theirs])
    assert not found.videos.folder.exists()


def test_what_somebody_wrote_in_its_place_is_not_deleted(data):
    ours = anonymized(data, Setting(method="random", keep=0.5))
    videos = (ours.videos.frames(row) for row in range(len(data)))
    VideoStore.write(ours.videos.folder, videos, ours.videos.about)
    forget([ours])
    assert ours.videos.folder.exists()


def test_nothing_is_deleted_while_another_has_the_lock_to_write(data):
    after = anonymized(data, Setting(method="random", keep=0.5))
    deleting = Thread(target=forget, args=([after],))
    with store_lock(after.videos.folder):
        deleting.start()
        deleting.join(0.2)
        assert deleting.is_alive()
        assert after.videos.folder.exists()
    deleting.join(10)
    assert not after.videos.folder.exists()


def test_a_mask_over_built_in_people_of_another_size_is_kept_pixel_by_pixel(data, monkeypatch):
    masker = Masker()
    masker.scorer.size = 64
    loader(monkeypatch, masker)
    videos = anonymized(data, Setting(method="masker", keep=0.25)).videos
    assert videos.about["tubelet"] == [1, 1]
    assert videos.side("kept", 0).shape == (FRAMES, SIZE, SIZE)


@pytest.mark.parametrize("control", ["random", "moving", "centre", "oracle"])
def test_every_control_keeps_the_ceiling_of_the_share(data, control):
    videos = anonymized(data, Setting(method=control, keep=0.3)).videos
    assert [int(videos.side("kept", row).sum()) for row in (0, 40)] == [kept_count(2 * 4 * 4, 0.3)] * 2
    shown = videos.frames(40).any(-1)  # nothing in these clips is black by itself
    assert shown.mean() == pytest.approx(10 / 32)


def test_the_side_of_a_tubelet_may_be_given(data):
    assert anonymized(data, Setting(method="random:16", keep=0.5)).videos.side("kept", 0).shape == (2, 2, 2)
    assert anonymized(data, Setting(method="random", keep=0.5)).videos.side("kept", 0).shape == (2, 4, 4)


def test_hidden_tubelets_of_a_control_may_be_filled(data):
    videos = anonymized(data, Setting(method="random", keep=0.3, fill="mean")).videos
    frames = videos.frames(0)
    hidden = ~Grid(2, SIDE).pixels(videos.side("kept", 0), frames.shape).astype(bool)
    assert len(np.unique(frames[hidden], axis=0)) == 1
    assert frames[hidden].any()


def test_a_mask_can_be_shown_alone(data):
    videos = anonymized(data, Setting(method="random", keep=0.3, fill="mask")).videos
    frames = videos.frames(0)
    shown = Grid(2, SIDE).pixels(videos.side("kept", 0), frames.shape).astype(bool)
    assert (frames[shown] == 255).all()
    assert not frames[~shown].any()


def test_classical_methods_have_no_mask(data):
    assert anonymized(data, Setting(method="blur:strong")).videos.sides == ()


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"method": "raw", "keep": 0.5}, "raw has no keep: leave it out"),
        ({"method": "noise", "keep": 0.5}, "noise has no keep: leave it out"),
        ({"method": "noise", "fill": "mean"}, "leave fill out"),
        ({"method": "random", "privacy_weight": 0.5}, "no privacy attention"),
        ({"method": "random:eight"}, "as in random:8"),
        ({"method": "blur:strong", "fill": "mean"}, "hides no tubelets"),
        ({"method": "blur:strong", "privacy_weight": 0.5}, "are settings of learned methods"),
    ],
)
def test_a_knob_that_a_method_does_not_have_is_refused_beforehand(knobs, message):
    keep = [knobs.pop("keep")] if "keep" in knobs else []
    with pytest.raises(UsageError, match=message):
        check_method(Setting(**knobs), keep)


def test_an_oracle_without_truth_says_so():
    with pytest.raises(UsageError, match="ground-truth masks"):
        anonymized(toy(), Setting(method="oracle", keep=0.5))


@pytest.mark.parametrize(("typed", "meant"), [("movign", "moving"), ("randon", "random"), ("noisy", "noise")])
def test_a_control_that_is_misspelt_is_named(typed, meant):
    with pytest.raises(UsageError, match=rf"no method or control is called '{typed}'; did you mean {meant}\?"):
        check_method(Setting(method=typed))


def test_a_run_may_be_called_nearly_like_a_control(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))
    made_checkpoint.write(tmp_path / "random1" / "checkpoint", made_checkpoint.network())
    check_method(Setting(method="random1"))


def test_clips_painted_side_by_side_come_in_order_and_as_by_themselves(tmp_path, monkeypatch):
    data = people(tmp_path / "drawn")
    made = {}
    for workers in (1, 4):
        monkeypatch.setattr(conditions, "WORKERS", workers)
        monkeypatch.setattr(conditions.os, "cpu_count", lambda: 4)
        monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / f"cache{workers}"))
        made[workers] = anonymized(data, Setting(method="pixelate:8")).videos
    for row in range(len(data)):
        np.testing.assert_array_equal(made[1].frames(row), made[4].frames(row))


@pytest.mark.parametrize("fails", [False, True])
def test_opencv_has_one_thread_for_each_clip_that_is_worked_on_and_all_of_them_afterwards(data, monkeypatch, fails):
    seen = []

    def anonymize(_, clip, **__):
        seen.append(cv2.getNumThreads())
        if fails:
            raise UsageError("no")
        return Anonymized(clip)

    monkeypatch.setattr(conditions, "WORKERS", 2)
    monkeypatch.setattr(conditions.os, "cpu_count", lambda: 2)
    monkeypatch.setattr("vidveil.methods.motion.MotionMethod.anonymize", anonymize)
    before = cv2.getNumThreads()
    cv2.setNumThreads(3)
    try:
        with pytest.raises(UsageError) if fails else nullcontext():
            anonymized(data, Setting(method="motion"))
        assert set(seen) == {1}
        assert cv2.getNumThreads() == 3
    finally:
        cv2.setNumThreads(before)
