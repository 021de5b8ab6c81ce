"""mAP against a plain version of the evaluation of ActivityNet, one detection after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidveil.core.errors import UsageError
from vidveil.tasks.detection.decode import Detections, Spans
from vidveil.tasks.detection.metric import THRESHOLDS, detection_map


def plain_ap(truth: list[tuple], found: list[tuple], threshold: float) -> float:
    """One class: truth (video, start, end), found (video, start, end, score), no ties."""
    taken, hits = set(), []
    for video, start, end, _ in sorted(found, key=lambda entry: -entry[3]):
        best, best_iou = None, -1.0
        for number, (other, a, b) in enumerate(truth):
            shared = max(0.0, min(end, b) - max(start, a))
            iou = shared / ((end - start) + (b - a) - shared)
            if other == video and number not in taken and iou >= threshold and iou > best_iou:
                best, best_iou = number, iou
        hits.append(best is not None)
        taken.add(best)
    right, recall, precision = 0, [0.0], [0.0]
    for number, hit in enumerate(hits, 1):
        right += hit
        recall.append(right / len(truth))
        precision.append(right / number)
    recall.append(1.0)
    precision.append(0.0)
    for k in range(len(precision) - 2, -1, -1):
        precision[k] = max(precision[k], precision[k + 1])
    return sum((recall[k] - recall[k - 1]) * precision[k] for k in range(1, len(recall)))


def listed(video, span, label, score=None):
    parts = np.array(video, np.int64), np.array(span, np.float64).reshape(-1, 2), np.array(label, np.int64)
    return Spans(*parts) if score is None else Detections(*parts, np.array(score, np.float64))


def random_videos(seed: int, truths: int = 25, guesses: int = 120, videos: int = 4, classes: int = 3):
    draws = np.random.default_rng(seed)
    start = draws.uniform(0, 80, truths)
    truth = listed(
        draws.integers(0, videos, truths),
        np.stack([start, start + draws.uniform(2, 20, truths)], 1),
        draws.integers(0, classes, truths),
    )
    near = draws.integers(0, truths, guesses)
    span = np.sort(truth.span[near] + draws.normal(0, 2, (guesses, 2)), axis=1) + np.array([0, 0.01])
    label = np.where(draws.random(guesses) < 0.8, truth.label[near], draws.integers(0, classes, guesses))
    return truth, listed(truth.video[near], span, label, draws.permutation(guesses) / guesses)


@given(seed=st.integers(0, 2**20), truths=st.integers(1, 30), guesses=st.integers(0, 80))
def test_average_precision_is_that_of_activitynet(seed, truths, guesses):
    truth, found = random_videos(seed, truths, guesses)
    ours = detection_map(truth, found, 3)
    for row, threshold in enumerate(THRESHOLDS):
        for label in range(3):
            true = [(v, *s) for v, s, c in zip(truth.video, truth.span, truth.label, strict=True) if c == label]
            predicted = [
                (v, *s, p)
                for v, s, c, p in zip(found.video, found.span, found.label, found.score, strict=True)
                if c == label
            ]
            if not true:
                assert np.isnan(ours.each[row, label])
            else:
                assert ours.each[row, label] == pytest.approx(plain_ap(true, predicted, threshold))


def test_the_truth_scores_1_and_no_detections_score_0():
    truth, _ = random_videos(0)
    right = Detections(truth.video, truth.span, truth.label, np.linspace(0, 1, len(truth)))
    assert detection_map(truth, right, 3).mean == 1
    assert detection_map(truth, listed([], [], [], []), 3).mean == 0


def test_a_second_detection_of_an_action_is_wrong():
    truth = listed([0, 0], [[0, 10], [20, 30]], [0, 0])
    found = listed([0, 0, 0], [[0, 10], [0, 10], [20, 30]], [0, 0, 0], [0.9, 0.8, 0.7])
    assert detection_map(truth, found, 1, [0.5]).mean == pytest.approx((1 + 2 / 3) / 2)


def test_an_action_at_the_right_time_of_another_video_is_wrong():
    truth = listed([0], [[0, 10]], [0])
    assert detection_map(truth, listed([1], [[0, 10]], [0], [0.9]), 1).mean == 0


def test_a_worse_overlap_that_is_still_free_is_taken():
    truth = listed([0, 0], [[0, 10], [3, 13]], [0, 0])
    found = listed([0, 0], [[0, 10], [0.5, 10.5]], [0, 0], [0.9, 0.8])
    assert detection_map(truth, found, 1, [0.5]).mean == 1


@given(seed=st.integers(0, 2**20))
def test_the_order_of_a_list_does_not_change_the_map_even_with_ties(seed):
    truth, found = random_videos(seed % 50)
    span = np.round(found.span / 4) * 4 + np.array([0, 4])  # so that some have one end in common
    found = Detections(found.video, span, found.label, np.round(found.score, 1))
    draws = np.random.default_rng(seed)
    order, other = draws.permutation(len(found)), draws.permutation(len(truth))
    mixed = Detections(found.video[order], found.span[order], found.label[order], found.score[order])
    mixed_truth = Spans(truth.video[other], truth.span[other], truth.label[other])
    np.testing.assert_array_equal(detection_map(truth, found, 3).each, detection_map(mixed_truth, mixed, 3).each)


def test_equal_scores_everywhere_give_the_share_of_correct_detections():
    truth = listed([0], [[0, 10]], [0])
    found = listed([0] * 4, [[0, 10], [20, 30], [40, 50], [60, 70]], [0] * 4, [0.5] * 4)
    assert detection_map(truth, found, 1).mean == pytest.approx(0.25)


def test_a_class_that_never_occurs_is_left_out():
    truth = listed([0], [[0, 10]], [1])
    found = listed([0, 0], [[0, 10], [0, 10]], [1, 0], [0.5, 0.9])
    result = detection_map(truth, found, 3)
    assert result.mean == 1
    assert np.isnan(result.each[:, [0, 2]]).all()
    assert np.isnan(detection_map(listed([], [], []), found, 3).mean)


def test_map_is_given_at_the_computed_thresholds_only():
    truth, found = random_videos(3)
    result = detection_map(truth, found, 3)
    assert result.at(0.3) >= result.at(0.5) >= result.at(0.7)
    assert result.mean == pytest.approx(np.mean([result.at(threshold) for threshold in THRESHOLDS]))
    with pytest.raises(UsageError, match=r"not at 0\.55"):
        result.at(0.55)


def test_invalid_detections_are_refused():
    truth = listed([0], [[0, 10]], [0])
    with pytest.raises(UsageError, match="finite"):
        detection_map(truth, listed([0], [[0, 10]], [0], [np.nan]), 1)
    with pytest.raises(UsageError, match="classes go from 0 to 0"):
        detection_map(truth, listed([0], [[0, 10]], [1], [0.5]), 1)
    with pytest.raises(UsageError, match="thresholds"):
        detection_map(truth, listed([], [], [], []), 1, [])
