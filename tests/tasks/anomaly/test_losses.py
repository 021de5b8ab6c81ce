"""Each loss, compared with a loop that is written as its definition."""

import math

import pytest
import torch

from tests.tasks.anomaly.made import features
from vidveil.core.errors import RecipeError, UsageError
from vidveil.tasks.anomaly.losses import (
    LossWeights,
    anomaly_loss,
    between,
    magnitudes,
    of_videos,
    smoothness,
    sparsity,
    strongest,
    within,
)
from vidveil.tasks.anomaly.network import MGFNOutput

NORMAL, ABNORMAL, CROPS, T, C = 3, 4, 2, 9, 6


def output_for(videos, seed):
    return MGFNOutput(features(videos, T, seed=seed).sigmoid(), 5 * features(videos, CROPS, T, C, seed=seed + 100))


def by_loops(normal, abnormal, weights):
    """All of it, one video and one segment at a time."""

    def read(both):
        found, long = [], []
        for scores, crops in zip(both.scores.tolist(), both.features.tolist(), strict=True):
            m = [sum(math.hypot(*crop[t]) for crop in crops) / CROPS for t in range(T)]
            best = sorted(range(T), key=lambda t: -m[t])[: weights.top]
            found.append(sum(scores[t] for t in best) / len(best))
            long.append(sum(m[t] for t in best) / len(best))
        return found, long

    (scores_n, long_n), (scores_a, long_a) = read(normal), read(abnormal)
    likelihood = sum(math.log(1 - s) for s in scores_n) + sum(math.log(s) for s in scores_a)
    bce = -likelihood / (len(scores_n) + len(scores_a))

    def own(long):
        pairs = [(p - q) ** 2 for i, p in enumerate(long) for j, q in enumerate(long) if i != j]
        return sum(pairs) / len(pairs)

    con = 0.0
    for p in long_n:
        for u in long_a:
            apart = u - p if weights.upwards else abs(u - p)
            con += max(0.0, weights.margin - apart) ** 2 / (len(long_n) * len(long_a))
    smooth = sparse = 0.0
    for scores in abnormal.scores.tolist():
        for t in range(T - 1):
            smooth += (scores[t + 1] - scores[t]) ** 2 / len(long_a)
        for score in scores:
            sparse += score / len(long_a)
    compared = weights.between * con + own(long_a) + own(long_n)
    return bce + weights.magnitude * compared + weights.smooth * smooth + weights.sparse * sparse


@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize("changed", [{}, {"margin": 2.0, "between": 3.0}, {"magnitude": 1.0, "smooth": 1.0, "top": 1}])
def test_the_whole_is_the_sum_of_its_definitions(changed, upwards):
    normal, abnormal, weights = output_for(NORMAL, 1), output_for(ABNORMAL, 2), LossWeights(upwards=upwards, **changed)
    assert anomaly_loss(normal, abnormal, weights).item() == pytest.approx(
        by_loops(normal, abnormal, weights), rel=1e-5
    )


@pytest.mark.parametrize("margin", [2.0, 200.0])
def test_as_released_videos_are_compared_one_by_one_and_segment_by_segment(margin):
    normal, abnormal = output_for(4, 1), output_for(4, 2)
    weights = LossWeights(released=True, margin=margin, between=0.5, magnitude=2.0)

    def read(both):
        found = []
        for crops in both.features.tolist():
            long = [sum(math.hypot(*crop[t]) for crop in crops) / CROPS for t in range(T)]
            best = sorted(range(T), key=lambda t: -long[t])[: weights.top]
            found.append([sum(abs(x) for crop in crops for x in crop[t]) / CROPS for t in best])
        return found

    lows, highs = read(normal), read(abnormal)
    lacks = [max(0.0, margin - math.dist(p, u)) ** 2 for p, u in zip(lows, highs, strict=True)]
    compared = 0.5 * sum(lacks) / 4
    for own in (lows, highs):
        compared += sum(math.dist(own[i], own[i + 2]) ** 2 for i in range(2)) / 2
    without = anomaly_loss(normal, abnormal, LossWeights(magnitude=0.0)).item()
    assert anomaly_loss(normal, abnormal, weights).item() == pytest.approx(without + 2 * compared, rel=1e-5)


def test_as_released_the_gradient_reaches_the_features_and_a_single_video_has_no_other_half():
    given = [output_for(1, 1), output_for(1, 2)]
    for one in given:
        one.features.requires_grad_()
    anomaly_loss(*given, LossWeights(released=True)).backward()
    assert all(one.features.grad.abs().sum() > 0 for one in given)


def test_the_weights_are_those_of_the_paper():
    weights = LossWeights()
    assert (weights.top, weights.margin, weights.magnitude, weights.between) == (3, 200.0, 0.001, 0.001)
    assert (weights.smooth, weights.sparse) == (8e-4, 8e-3)


def test_the_segments_of_a_video_are_chosen_by_magnitude_and_not_by_score():
    long = torch.tensor([[1.0, 9.0, 3.0, 8.0, 7.0]])
    scores = torch.tensor([[0.9, 0.1, 0.9, 0.2, 0.3]])
    chosen = strongest(long, 3)
    assert sorted(chosen[0].tolist()) == [1, 3, 4]
    assert of_videos(scores, chosen).item() == pytest.approx(0.2)


def test_a_video_of_fewer_segments_than_are_chosen_gives_all():
    assert strongest(torch.rand(2, 2), 3).shape == (2, 2)


def test_magnitudes_are_lengths_and_the_mean_over_crops():
    given = torch.zeros(1, 2, 1, 2)
    given[0, 0, 0] = torch.tensor([3.0, 4.0])
    assert magnitudes(given).item() == pytest.approx(2.5)


def test_alike_ones_cost_nothing_and_a_single_one_has_nobody_to_be_unlike():
    assert within(torch.tensor([4.0, 4.0, 4.0])).item() == 0
    assert within(torch.tensor([4.0])).item() == 0
    assert within(torch.tensor([1.0, 3.0])).item() == pytest.approx(4.0)


def test_beyond_the_margin_nothing_is_asked_for_and_the_way_matters_only_upwards():
    low, high = torch.tensor([10.0, 12.0]), torch.tensor([215.0, 400.0])
    assert between(low, high, 200.0).item() == 0
    assert between(high, low, 200.0, upwards=False).item() == 0
    assert between(high, low, 200.0).item() > 200**2
    assert between(torch.tensor([0.0]), torch.tensor([50.0]), 200.0).item() == pytest.approx(150.0**2)


def test_the_contrast_lifts_abnormal_magnitudes_above_normal_ones():
    low, high = torch.tensor([12.0], requires_grad=True), torch.tensor([10.0], requires_grad=True)
    between(low, high, 200.0).backward()
    assert low.grad.item() > 0  # descending, it falls
    assert high.grad.item() < 0


def test_a_steady_score_is_smooth_and_a_score_of_nought_is_sparse():
    assert smoothness(torch.full((2, 5), 0.7)).item() == 0
    assert smoothness(torch.tensor([[0.0, 1.0, 0.0]])).item() == pytest.approx(2.0)
    assert sparsity(torch.zeros(2, 5)).item() == 0
    assert sparsity(torch.tensor([[0.5, 0.5], [1.0, 0.0]])).item() == pytest.approx(1.0)


def test_it_can_be_had_in_mixed_precision():
    normal, abnormal = output_for(NORMAL, 1), output_for(ABNORMAL, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.isfinite(anomaly_loss(normal, abnormal, LossWeights()))


def test_without_either_kind_there_is_no_loss():
    with pytest.raises(UsageError, match="needs both"):
        anomaly_loss(output_for(NORMAL, 1), MGFNOutput(torch.zeros(0, T), torch.zeros(0, CROPS, T, C)), LossWeights())


@pytest.mark.parametrize("changed", [{"top": 0}, {"margin": -1.0}, {"sparse": -1.0}])
def test_weights_that_make_no_sense_are_refused(changed):
    with pytest.raises(RecipeError):
        LossWeights(**changed)
