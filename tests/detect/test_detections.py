"""What a detector may return, and what is nonsense."""

from time import monotonic

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidveil.core.errors import DetectorError
from vidveil.detect.detections import MOST_CANDIDATES, MOST_FOUND, Cells, check_boxes, likely_boxes, without_doubles

SIZE = 64


def likely(boxes, scores, threshold=0.15, probabilities=None, *, listed=True):
    boxes, scores = np.array(boxes, np.float32).reshape(-1, 4), np.array(scores, np.float32)
    return likely_boxes(Cells(scores, boxes.__getitem__, probabilities, listed=listed), threshold, SIZE, SIZE)


GOOD = (10.0, 10.0, 30.0, 30.0)
NONSENSE = {
    "a score that is no number": ([GOOD], [np.nan], "scores that are not finite"),
    "an infinite score": ([GOOD, GOOD], [0.9, np.inf], "scores that are not finite"),
    "a score of minus infinity": ([GOOD, GOOD], [0.9, -np.inf], "scores that are not finite"),
    "a logit": ([GOOD], [4.0], "not from 0 to 1"),
    "a logit below the threshold": ([GOOD], [-4.0], "not from 0 to 1"),
    "a percentage": ([GOOD], [90.0], "not from 0 to 1"),
    "a coordinate that is no number": ([(10, np.nan, 30, 30)], [0.9], "boxes that are not finite"),
    "an infinite box": ([(10, 10, np.inf, 30)], [0.9], "boxes that are not finite"),
    "a box next to a good one": ([GOOD, (10, 10, np.nan, 30)], [0.9, 0.5], "boxes that are not finite"),
    "right before left": ([(30, 10, 10, 30)], [0.9], "end before they begin"),
    "bottom before top": ([(10, 30, 30, 10)], [0.9], "end before they begin"),
    "far on the right": ([(10, 10, 2 * SIZE + 1, 30)], [0.9], "far outside"),
    "far below": ([(10, 10, 30, 3e30)], [0.9], "far outside"),
    "far on the left": ([(-SIZE - 1, 10, 30, 30)], [0.9], "far outside"),
    "far above": ([(10, -1e9, 30, 30)], [0.9], "far outside"),
    "boxes of another picture's size": ([(90, 20, 110, 40), GOOD], [0.9, 0.5], "outside of the picture"),
    "a box above the picture": ([(20, -50, 40, -20)], [0.9], "outside of the picture"),
    "somebody with the score of rows without a box": ([GOOD, GOOD], [-1, 0.2], "a score of -1"),
    "shares of the picture": ([(0.1, 0.2, 0.5, 0.9), (0, 0, 1.1, 1.2)], [0.9, 0.5], "shares of the picture"),
    "boxes without an area": ([(30, 30, 30, 30)], [0.9], "smaller than a pixel"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_no_empty_picture_but_an_error(name):
    boxes, scores, reason = NONSENSE[name]
    with pytest.raises(DetectorError, match=reason):
        likely(boxes, scores)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=50), st.integers(0, 49), st.sampled_from([np.nan, np.inf, -np.inf])
)
def test_a_score_that_is_not_finite_is_found_wherever_it_is(scores, at, bad):
    scores[at % len(scores)] = bad
    with pytest.raises(DetectorError, match="not finite"):
        likely([GOOD] * len(scores), scores)


@given(
    st.lists(st.tuples(st.floats(-60, 120), st.floats(-60, 120), st.floats(0, 60), st.floats(0, 60)), max_size=20),
    st.floats(0.15, 1.001),
)
def test_what_is_not_refused_is_finite_in_order_and_about_the_picture(rows, score):
    boxes = [(x, y, x + w, y + h) for x, y, w, h in rows]
    try:
        found = likely(boxes, [score] * len(boxes))
    except DetectorError:
        return
    assert np.isfinite(found).all()
    assert (found[:, 2:4] >= found[:, :2]).all()
    assert (np.abs(found[:, :4]) <= 2 * SIZE).all()
    assert len(found) > 0 or not rows


def test_cells_below_the_threshold_may_hold_anything_in_their_boxes():
    boxes = [GOOD, (np.nan, 0, 0, 0), (0, 0, np.inf, 1), (9, 9, 1, 1)]
    assert likely(boxes, [0.9, 0.1, 0.0, 0.14])[:, :4].tolist() == [list(GOOD)]


def test_what_rounds_to_a_probability_and_rows_that_fill_up_are_no_nonsense():
    rows = [GOOD, GOOD, (0, 0, 0, 0), (-1, -1, -1, -1)]
    assert likely(rows, [1.0005, -0.0005, -1.0, -1.0])[:, 4].tolist() == pytest.approx([1.0005])
    assert likely([], []).shape == (0, 5)


@pytest.mark.parametrize(("boxes", "scores"), [([], []), ([(0, 0, 0, 0)] * 3, [-1, -1, -1])])
def test_a_network_that_looks_at_cells_always_says_something_of_each(boxes, scores):
    with pytest.raises(DetectorError, match=r"returned (nothing|scores that are not from 0 to 1)"):
        likely(boxes, scores, listed=False)


def test_a_box_in_the_black_that_was_added_is_no_nonsense():
    box = np.array([[10, 90, 30, 110, 0.9]], np.float32)
    check_boxes(box, SIZE, SIZE, (2 * SIZE, SIZE))
    with pytest.raises(DetectorError, match="outside of the picture"):
        check_boxes(box, SIZE, SIZE)


def test_numbers_behind_the_scores_are_checked_too():
    with pytest.raises(DetectorError, match="not finite"):
        likely([GOOD], [0.5], probabilities=np.array([[0.5, np.nan]]))
    with pytest.raises(DetectorError, match="not from 0 to 1"):
        likely([GOOD], [0.5], probabilities=np.array([[0.5, 7.0]]))


def test_a_box_may_stick_out_by_the_size_of_the_picture():
    found = np.array([[-SIZE, -SIZE, 2 * SIZE, 2 * SIZE, 0.9]], np.float32)
    check_boxes(found, SIZE, SIZE)


def test_thousands_of_boxes_are_an_error_and_soon():
    began = monotonic()
    with pytest.raises(DetectorError, match=r"more than 20,000 boxes"):
        likely([GOOD] * (MOST_CANDIDATES + 1), [0.9] * (MOST_CANDIDATES + 1))
    side = np.arange(119) * 1.6  # 14,161 boxes next to each other
    corners = np.stack(np.meshgrid(side, side), 2).reshape(-1, 2)
    boxes = np.concatenate([corners, corners + 1.55], 1)
    with pytest.raises(DetectorError, match=r"more than 1,000 boxes"):
        likely_boxes(Cells(np.full(len(boxes), 0.9), boxes.__getitem__), 0.15, 200, 200)
    assert monotonic() - began < 10
    assert len(corners) > MOST_FOUND


@pytest.mark.timeout(20)
def test_a_box_that_does_not_overlap_itself_is_looked_at_once():
    point = np.array([[5, 5, 5, 5, 0.9], [5, 5, 5, 5, 0.8]], np.float32)
    assert len(without_doubles(point)) == 2
