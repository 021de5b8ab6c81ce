"""Losses against a plain loop over moments."""

import math

import pytest
import torch

from vidveil.tasks.detection.losses import Positives, diou, focal, overlap, total
from vidveil.tasks.detection.network import TriDetOutput
from vidveil.tasks.detection.targets import Targets


def plain_focal(logit: float, truth: float) -> float:
    p = 1 / (1 + math.exp(-logit))
    return -0.25 * (1 - p) ** 2 * math.log(p) if truth else -0.75 * p**2 * math.log(1 - p)


def plain_iou(predicted: list[float], truth: list[float]) -> tuple[float, float]:
    """IoU, and the DIoU loss, of segments around 100."""
    (a, b), (c, d) = ((100 - left, 100 + right) for left, right in (predicted, truth))
    shared = max(0.0, min(b, d) - max(a, c))
    iou = shared / ((b - a) + (d - c) - shared)
    return iou, 1 - iou + ((a + b) / 2 - (c + d) / 2) ** 2 / (max(b, d) - min(a, c)) ** 2


def moments(seed: int = 0, batch: int = 2, count: int = 7, classes: int = 3) -> tuple[TriDetOutput, Targets]:
    draws = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(batch, count, classes, generator=draws)
    distances = 9 * torch.rand(batch, count, 2, generator=draws) + 0.1
    mask = torch.rand(batch, count, generator=draws) < 0.8
    positive = (torch.rand(batch, count, generator=draws) < 0.5) & mask
    truth = (9 * torch.rand(batch, count, 2, generator=draws) + 0.1) * positive[..., None]
    labels = torch.randint(classes, (batch, count), generator=draws)
    hot = torch.nn.functional.one_hot(labels, classes).float() * positive[..., None]
    return TriDetOutput(logits.requires_grad_(), distances.requires_grad_(), mask), Targets(hot, truth, positive)


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_the_sum_that_a_loop_makes(seed):
    output, targets = moments(seed)
    wanted = 0.0
    for i in range(2):
        for t in range(7):
            if not output.mask[i, t]:
                continue
            iou = loss = 0.0
            if targets.positive[i, t]:
                iou, loss = plain_iou(output.distances[i, t].tolist(), targets.distances[i, t].tolist())
            wanted += loss
            for c in range(3):
                truth = targets.classes[i, t, c].item()
                wanted += (iou**0.2 if truth else 1.0) * plain_focal(output.logits[i, t, c].item(), truth)
    assert total(output, targets).item() == pytest.approx(wanted, rel=1e-5)


def test_iou_and_its_loss_are_those_of_segments():
    output, targets = moments(9, count=20)
    for i, t in targets.positive.nonzero().tolist():
        iou, loss = plain_iou(output.distances[i, t].tolist(), targets.distances[i, t].tolist())
        assert overlap(output.distances, targets.distances)[i, t].item() == pytest.approx(iou, rel=1e-5)
        assert diou(output.distances, targets.distances)[i, t].item() == pytest.approx(loss, rel=1e-5)


def test_diou_of_equal_segments_is_0_and_of_empty_ones_is_finite():
    some = torch.tensor([3.0, 4.0])
    assert diou(some, some).item() == 0
    assert diou(torch.zeros(2), torch.zeros(2)).item() == 1


def test_no_gradient_reaches_distances_through_the_weights_of_classes():
    """Otherwise a network could lower its loss by predicting worse segments."""
    output, targets = moments()
    nowhere = targets._replace(positive=torch.zeros_like(targets.positive))
    total(output, nowhere).backward()
    assert output.logits.grad.abs().max() > 0
    assert not output.distances.grad.any()


def test_padding_has_no_loss():
    output, targets = moments()
    total(output, targets).backward()
    assert not output.logits.grad[~output.mask].any()
    assert not output.distances.grad[~targets.positive].any()


@pytest.mark.parametrize("logit", [-100.0, 100.0])
def test_extreme_logits_have_finite_losses_and_gradients(logit):
    logits = torch.full((2,), logit, requires_grad=True)
    each = focal(logits, torch.tensor([0.0, 1.0]))
    each.sum().backward()
    assert each.isfinite().all()
    assert logits.grad.isfinite().all()


def test_the_number_of_positives_is_a_running_mean_from_the_first_batch_on():
    mean = Positives()
    counts = [5, 0, 20]
    found = [mean(torch.arange(30)[None] < count).item() for count in counts]
    assert found == pytest.approx([5, 0.9 * 5 + 0.1 * 1, 0.9 * 4.6 + 0.1 * 20])
    mean.eval()
    assert mean(torch.ones(1, 30)).item() == pytest.approx(found[-1])  # evaluation does not update the mean
    assert mean.mean.item() == pytest.approx(found[-1])
    assert Positives().eval()(torch.ones(1, 30)).item() == 30
