"""Averages over neighbours against a loop over all pairs of tubelets."""

import pytest
import torch
from torch import Tensor
from vidveil.methods.dual_cls.neighbours import averaged

GRID = (3, 4, 5)
COUNT = 60


def by_pairs(scores: Tensor, live: Tensor) -> Tensor:
    """(m,), (m,) → (m,): the definition, a pair at a time."""
    places = [(n // 20, n // 5 % 4, n % 5) for n in live.tolist()]
    found = []
    for t, y, x in places:
        total = weight = 0.0
        for score, (t2, y2, x2) in zip(scores.tolist(), places, strict=True):
            steps = abs(t - t2), abs(y - y2), abs(x - x2)
            if max(steps) <= 1:
                w = 0.5 ** steps[0] * 0.25 ** (steps[1] + steps[2])
                total, weight = total + w * score, weight + w
        found.append(total / weight)
    return torch.tensor(found)


def some(live: int, clips: int = 2) -> tuple[Tensor, Tensor]:
    torch.manual_seed(4)
    numbers = torch.stack([torch.randperm(COUNT)[:live] for _ in range(clips)])
    return torch.randn(clips, live), numbers


@pytest.mark.parametrize("live", [1, 7, 45, COUNT])
def test_it_is_the_weighted_mean_over_live_neighbours(live):
    scores, numbers = some(live)
    wanted = torch.stack([by_pairs(*clip) for clip in zip(scores, numbers, strict=True)])
    torch.testing.assert_close(averaged(scores, numbers, GRID), wanted, atol=1e-6, rtol=1e-5)


def test_holes_and_the_rim_do_not_pull_towards_nought():
    scores, numbers = some(20)
    torch.testing.assert_close(averaged(torch.ones_like(scores), numbers, GRID), torch.ones_like(scores))


def test_who_has_no_neighbour_keeps_its_score():
    far_apart = torch.tensor([[0, 4, 15, 19, 52]])
    scores = torch.randn(1, 5)
    torch.testing.assert_close(averaged(scores, far_apart, GRID), scores)


def test_gradients_are_those_of_the_definition():
    scores, numbers = some(30, clips=1)
    ours = torch.autograd.functional.jacobian(lambda s: averaged(s, numbers, GRID), scores)[0, :, 0]
    columns = [by_pairs(row, numbers[0]) for row in torch.eye(30)]
    torch.testing.assert_close(ours, torch.stack(columns, 1), atol=1e-6, rtol=1e-5)
