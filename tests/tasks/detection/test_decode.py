"""From scores of moments to a list of actions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidveil.core.errors import UsageError
from vidveil.tasks.detection.decode import Decoding, decode, joined, soft_nms


def plain_soft_nms(span, score, sigma, floor):
    """One class, as Bodla et al. write it: take the best out of the rest, until none is left."""
    rest = [(float(s), tuple(map(float, x)), i) for i, (x, s) in enumerate(zip(span, score, strict=True))]
    taken = []
    while rest:
        best = max(rest, key=lambda entry: (entry[0], -entry[2]))
        rest.remove(best)
        if best[0] < floor:
            break
        taken.append((best[2], best[0]))
        changed = []
        for s, (a, b), i in rest:
            c, d = best[1]
            shared = max(0.0, min(b, d) - max(a, c))
            iou = shared / (b - a + d - c - shared)
            changed.append((s * math.exp(-(iou**2) / sigma), (a, b), i))
        rest = changed
    return taken


def segments(seed: int, count: int = 60, classes: int = 3):
    draws = np.random.default_rng(seed)
    start = draws.uniform(0, 50, count)
    span = np.stack([start, start + draws.uniform(1, 20, count)], axis=1)
    return span, draws.uniform(0, 1, count), draws.integers(0, classes, count)


@given(seed=st.integers(0, 2**20), sigma=st.sampled_from([0.1, 0.5, 2.0]), floor=st.sampled_from([0.001, 0.1]))
def test_taking_the_best_of_all_classes_is_soft_nms_class_by_class(seed, sigma, floor):
    span, score, label = segments(seed)
    taken, left = soft_nms(span, score, label, sigma=sigma, floor=floor, most=1000)
    assert (np.diff(left) <= 0).all()
    for number in range(3):
        own = np.flatnonzero(label == number)
        wanted = plain_soft_nms(span[own], score[own], sigma, floor)
        mine = [(int(i), s) for i, s in zip(taken, left, strict=True) if label[i] == number]
        assert [i for i, _ in mine] == [own[i] for i, _ in wanted]
        np.testing.assert_allclose([s for _, s in mine], [s for _, s in wanted])


def test_a_limit_on_segments_keeps_the_first_of_all():
    span, score, label = segments(1)
    every, scores = soft_nms(span, score, label, most=1000)
    some, their_scores = soft_nms(span, score, label, most=7)
    np.testing.assert_array_equal(some, every[:7])
    np.testing.assert_array_equal(their_scores, scores[:7])


def test_a_second_detection_of_the_same_seconds_loses_score_unless_it_is_of_another_class():
    span = np.array([[0.0, 10.0]] * 3)
    _, left = soft_nms(span, np.array([0.9, 0.8, 0.7]), np.array([0, 0, 1]))
    np.testing.assert_allclose(left, [0.9, 0.7, 0.8 * math.exp(-2)])


def test_only_the_best_scores_above_the_floor_are_decoded():
    scores = np.array([[0.9, 0.0009], [0.5, 0.3], [0.001, 0.7]])
    spans = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    found = decode(scores, spans, 100.0, video=4)
    np.testing.assert_allclose(found.score, [0.9, 0.7, 0.5, 0.3])
    assert found.label.tolist() == [0, 1, 0, 1]
    assert found.video.tolist() == [4] * 4
    assert decode(scores, spans, 100.0, settings=Decoding(before=2)).score.tolist() == [0.9, 0.7]
    assert decode(scores, spans, 100.0, settings=Decoding(most=1)).score.tolist() == [0.9]


def test_segments_are_cut_off_at_the_end_of_the_video_and_dropped_beyond_it():
    spans = np.array([[-3.0, 5.0], [8.0, 14.0], [11.0, 12.0]])
    found = decode(np.array([[0.9], [0.8], [0.7]]), spans, 10.0)
    assert found.span.tolist() == [[0, 5], [8, 10]]


def test_equal_scores_come_in_the_order_of_moments():
    spans = np.array([[float(2 * i), float(2 * i + 1)] for i in range(6)])
    found = decode(np.full((6, 1), 0.5), spans, 100.0, settings=Decoding(before=4))
    assert found.span[:, 0].tolist() == [0, 2, 4, 6]


def test_a_video_without_detections_gives_an_empty_list():
    found = decode(np.zeros((5, 2)), np.zeros((5, 2)), 10.0)
    assert len(found) == 0
    assert found.span.shape == (0, 2)
    assert len(joined([])) == len(joined([found, found])) == 0


def test_invalid_settings_are_refused():
    for wrong in ({"sigma": 0}, {"floor": 1}, {"most": 0}, {"before": 0}):
        with pytest.raises(UsageError, match="above 0"):
            Decoding(**wrong)
