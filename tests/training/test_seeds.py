"""Generators that can be put back."""

import random

import numpy as np
import torch

from vidveil.training.seeds import restore, seeded, snapshot


def draw():
    return random.random(), random.gauss(0, 1), np.random.rand(), np.random.standard_normal(), torch.rand(1).item()


def test_a_seeded_block_draws_the_same_each_time_and_leaves_no_trace():
    with seeded(1):
        first = draw()
        after = draw()
    outside = draw()
    with seeded(1):
        assert draw() == first
        with seeded(2):
            assert draw() != first
        assert draw() == after
    assert draw() != outside


def test_a_snapshot_holds_half_drawn_pairs_of_normal_numbers():
    random.gauss(0, 1)  # of two that are made at once
    np.random.standard_normal()
    state = snapshot()
    expected = draw()
    draw()
    restore(state)
    assert draw() == expected
