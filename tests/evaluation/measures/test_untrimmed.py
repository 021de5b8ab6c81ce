"""Numbers of whole videos: those that a weight gives are those of videos that are there twice."""

import numpy as np
import pytest

from vidveil.evaluation.measures.untrimmed import VideoResamples, WeightedMeanAP, anomaly_numbers, detection_numbers
from vidveil.statistics.intervals import Resamples
from vidveil.tasks.anomaly import AnomalyScores, AnomalyVideos, frame_auc, video_auc
from vidveil.tasks.detection import Detections, DetectionVideos, Spans, detection_map

VIDEOS, CLASSES = 6, 3


def made(seed, *, right=0.6):
    """Events, and detections that are near them, or anywhere."""
    rng = np.random.default_rng(seed)
    truths = rng.integers(1, 4, VIDEOS)
    video = np.repeat(np.arange(VIDEOS), truths)
    start = rng.uniform(0, 50, len(video))
    truth = Spans(
        video, np.stack([start, start + rng.uniform(2, 10, len(video))], 1), rng.integers(0, CLASSES, len(video))
    )
    near = rng.random(len(video)) < right
    span = np.concatenate(
        [truth.span[near] + rng.normal(0, 0.7, (near.sum(), 2)), rng.uniform(0, 30, (40, 2)).cumsum(1)]
    )
    whose = np.concatenate([video[near], rng.integers(0, VIDEOS, 40)])
    label = np.concatenate([truth.label[near], rng.integers(0, CLASSES, 40)])
    score = np.round(rng.random(len(span)), 1)  # with ties
    return truth, Detections(whose, span, label, score)


def several(spans, times):
    """Each video as often as it weighs, under numbers of its own."""
    parts, number = [], 0
    for video, count in enumerate(times):
        for _ in range(count):
            parts.append((np.flatnonzero(spans.video == video), number))
            number += 1
    rows = np.concatenate([which for which, _ in parts]).astype(int)
    video = np.concatenate([np.full(len(which), number) for which, number in parts]).astype(int)
    fields = {"video": video, "span": spans.span[rows], "label": spans.label[rows]}
    return Detections(**fields, score=spans.score[rows]) if isinstance(spans, Detections) else Spans(**fields)


@pytest.mark.parametrize("seed", range(8))
def test_a_video_that_weighs_twice_counts_as_if_it_were_there_twice(seed):
    truth, found = made(seed)
    weighs = WeightedMeanAP(truth, found, np.arange(VIDEOS))
    rng = np.random.default_rng(100 + seed)
    times = np.stack([np.ones(VIDEOS, int), *rng.multinomial(VIDEOS, [1 / VIDEOS] * VIDEOS, 5)])
    for row, found_of in zip(times, weighs(times.astype(float)), strict=True):
        wanted = detection_map(several(truth, row), several(found, row), CLASSES).by_threshold
        np.testing.assert_allclose(found_of, wanted, atol=1e-12)


def untrimmed(truth):
    segments = [
        [(*truth.span[i], int(truth.label[i])) for i in np.flatnonzero(truth.video == video)] for video in range(VIDEOS)
    ]
    features = [np.zeros((70, 2), np.float32)] * VIDEOS
    return DetectionVideos(features, [1.0] * VIDEOS, segments, ["test"] * VIDEOS, ("a", "b", "c"))


def drawn(count=VIDEOS, permutations=40):
    return VideoResamples(Resamples(np.arange(count), resamples=200), permutations)


def test_what_is_found_is_above_what_the_same_list_finds_in_other_videos():
    truth, found = made(0, right=1.0)
    rows = np.arange(VIDEOS)
    numbers = detection_numbers(untrimmed(truth), rows, [found, found], 0.5, drawn())
    number = numbers["detection_map"]
    assert number.measured.value.value == pytest.approx(detection_map(truth, found, CLASSES).mean)
    assert numbers["detection_map_50"].measured.value.value == pytest.approx(
        detection_map(truth, found, CLASSES).at(0.5)
    )
    assert len(number.measured.value.per_seed) == 2
    assert (
        number.measured.floor < number.measured.value.low <= number.measured.value.value <= number.measured.value.high
    )
    assert number.p <= 0.05
    assert number.kind == "utility"


def test_a_list_that_is_the_same_for_all_videos_is_not_above_its_floor():
    truth, _ = made(1)
    video = np.arange(VIDEOS)
    span = np.tile([10.0, 20.0], (VIDEOS, 1))
    same = Detections(video, span, np.zeros(VIDEOS, int), np.full(VIDEOS, 0.5))
    number = detection_numbers(untrimmed(truth), video, [same], 0.5, drawn())["detection_map"]
    assert number.measured.value.value == pytest.approx(number.measured.floor)
    assert number.p == 1


def watched(*, labelled=True, count=12):
    """Videos of 40 frames, in the odd ones of which something happens from the tenth on."""
    frames = [np.zeros(40, np.uint8) for _ in range(count)]
    for abnormal in frames[1::2]:
        abnormal[10:20] = 1
    features = tuple(np.ones((8, 2), np.float32) for _ in range(count))
    label, split = np.arange(count) % 2, np.array(["test"] * count)
    return AnomalyVideos("made", features, label, split, tuple(frames) if labelled else None)


def scores(data, *, when, seed=0):
    """Scores that know which videos are abnormal and, with `when`, at what time."""
    rng = np.random.default_rng(seed)
    segments = 0.2 * rng.random((len(data.label), 8)) + 0.5 * data.label[:, None]
    if when:
        segments[:, 2:4] += 0.2 * data.label[:, None]
    return AnomalyScores(segments, segments.max(1))


def test_knowing_the_video_and_not_the_moment_is_less_than_knowing_both():
    data = watched()
    both, half = (anomaly_numbers(data, [scores(data, when=when)], 0.9, drawn(12)) for when in (True, False))
    assert both["anomaly_video_auc"].measured.value.value == half["anomaly_video_auc"].measured.value.value == 1
    assert both["anomaly_frame_auc_when"].measured.value.value > 0.95
    assert abs(half["anomaly_frame_auc_when"].measured.value.value - 0.5) < 0.2
    assert both["anomaly_frame_auc"].p <= 0.05
    assert both["anomaly_frame_auc"].analytic == 0.5
    assert 0.5 < both["anomaly_frame_auc"].measured.floor < 0.7  # it happens at the same time in all of them


def test_numbers_are_those_of_the_task():
    data = watched()
    one, two = scores(data, when=True), scores(data, when=False, seed=1)
    numbers = anomaly_numbers(data, [one, two], 0.9, drawn(12))
    frames = [np.repeat(row, 5) for row in one.segments]
    assert numbers["anomaly_frame_auc"].measured.value.per_seed[0] == pytest.approx(frame_auc(data.frames, frames))
    assert numbers["anomaly_video_auc"].measured.value.per_seed[1] == pytest.approx(video_auc(data.label, two.videos))


def test_without_labels_of_frames_videos_alone_are_measured():
    data = watched(labelled=False)
    assert set(anomaly_numbers(data, [scores(data, when=True)], 0.9, drawn(12))) == {"anomaly_video_auc"}


def test_all_numbers_of_the_same_videos_can_be_paired():
    truth, found = made(0)
    rows, draws = np.arange(VIDEOS), drawn()
    one, two = (detection_numbers(untrimmed(truth), rows, [found], 0.5, draws) for _ in range(2))
    assert one["detection_map"].measured.value.drawn == two["detection_map_50"].measured.value.drawn
    assert one["detection_map"].others["TriDet"]["val"] == 0.5
