"""The moments that are assigned to an action, against a plain loop over moments."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from vidveil.tasks.detection.targets import NONE, assign, grid

CLASSES = 3


def plain_targets(
    length: int, levels: int, events: list[tuple[float, float, int]]
) -> list[tuple[set[int], float, float]]:
    """Of every moment: its classes and distances."""
    found = []
    for level in range(levels):
        stride = 2**level
        low = 0 if level == 0 else 2 * stride
        high = np.inf if level == levels - 1 else 4 * stride
        for t in range(0, length, stride):
            best: list[tuple[float, float, int]] = []
            for start, end, label in events:
                middle = (start + end) / 2
                inside = max(start, middle - 1.5 * stride) < t < min(end, middle + 1.5 * stride)
                if not (inside and low <= max(t - start, end - t) < high):
                    continue
                if not best or end - start < best[0][1] - best[0][0] - 1e-3:
                    best = [(start, end, label)]
                elif abs((end - start) - (best[0][1] - best[0][0])) <= 1e-3:
                    best.append((start, end, label))
            if best:
                found.append(({label for _, _, label in best}, t - best[0][0], best[0][1] - t))
            else:
                found.append((set(), 0.0, 0.0))
    return found


def table(*videos: list[tuple[float, float, int]]) -> Tensor:
    out = torch.full((len(videos), max(map(len, videos)), 3), float(NONE))
    for i, events in enumerate(videos):
        if events:
            out[i, : len(events)] = torch.tensor(events)
    return out


def whole(length: int, levels: int, videos: int = 1) -> Tensor:
    return torch.ones(videos, len(grid(length, levels).at), dtype=torch.bool)


@pytest.mark.parametrize("levels", [1, 3, 6])
@pytest.mark.parametrize("seed", range(5))
def test_targets_are_those_of_a_plain_loop(seed, levels):
    draws, length = np.random.default_rng(seed), 90
    videos = []
    for count in (0, 1, 12):
        starts = np.round(draws.uniform(-0.5, 80, count) * 4) / 4  # quarters: edges of ranges are met exactly
        ends = np.minimum(starts + np.round(draws.uniform(0.5, 45, count) * 4) / 4, 89.5)
        videos.append([(s, e, int(c)) for s, e, c in zip(starts, ends, draws.integers(0, CLASSES, count), strict=True)])
    found = assign(grid(length, levels), table(*videos), whole(length, levels, 3), CLASSES)
    for i, events in enumerate(videos):
        for m, (classes, left, right) in enumerate(plain_targets(length, levels, events)):
            assert set(found.classes[i, m].nonzero().flatten().tolist()) == classes
            assert found.distances[i, m].tolist() == pytest.approx([left, right])
            assert bool(found.positive[i, m]) == bool(classes)


@given(start=st.floats(-0.5, 50), lasts=st.floats(2.5, 120), levels=st.integers(1, 6))
def test_every_action_of_some_length_has_moments_and_each_is_inside_it(start, lasts, levels):
    found = assign(grid(200, levels), table([(start, start + lasts, 1)]), whole(200, levels), CLASSES)
    assert found.positive.any()
    assert (found.distances[found.positive] > 0).all()
    np.testing.assert_allclose(found.distances[found.positive].sum(1), lasts, rtol=1e-4)


def test_the_shortest_action_wins():
    found = assign(grid(40, 1), table([(1.0, 39.0, 0), (18.0, 22.0, 2)]), whole(40, 1), CLASSES)
    assert found.classes[0, 20].tolist() == [0, 0, 1]
    assert found.distances[0, 20].tolist() == [2, 2]


def test_the_same_seconds_may_show_two_actions_at_once():
    found = assign(grid(40, 1), table([(18.0, 22.0, 2), (18.0, 22.0, 0)]), whole(40, 1), CLASSES)
    assert found.classes[0, 20].tolist() == [1, 0, 1]


def test_padding_is_never_positive():
    mask = whole(40, 3)
    mask[0, 20] = False
    found = assign(grid(40, 3), table([(17.0, 22.5, 0)]), mask, CLASSES)
    assert not found.positive[0, 20]
    assert found.positive[0, 19]
    assert not found.classes[0, 20].any()


def test_without_any_action_all_is_background():
    found = assign(grid(10, 2), torch.zeros(2, 0, 3), whole(10, 2, 2), CLASSES)
    assert found.classes.shape == (2, 15, CLASSES)
    assert not found.classes.any()
    assert not found.positive.any()
