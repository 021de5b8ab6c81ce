"""The running average by hand."""

import torch
from torch import nn

from vidveil.training.average import Average


def test_the_first_averages_forget_the_start_quickly_and_later_ones_by_the_decay():
    w = torch.zeros(1)
    average = Average({"w": w}, decay=0.5)
    expected = 0.0
    for n, decay in enumerate([1 / 10, 2 / 11, 3 / 12, 4 / 13]):
        w.fill_(n + 1)
        average.update()
        expected = decay * expected + (1 - decay) * (n + 1)
        torch.testing.assert_close(average.state["w"], torch.tensor([expected]))
    average.count = 1000  # (1 + n) / (10 + n) is above 0.5 by now
    before = average.state["w"].item()
    average.update()
    torch.testing.assert_close(average.state["w"], torch.tensor([0.5 * before + 0.5 * 4]))


def test_statistics_of_norms_are_averaged_and_counters_copied():
    norm = nn.BatchNorm1d(1)
    average = Average(dict(norm.state_dict()), decay=0.999)
    norm.running_mean.fill_(10)
    norm.num_batches_tracked.fill_(7)
    average.update()
    torch.testing.assert_close(average.state["running_mean"], torch.tensor([9.0]))
    assert average.state["num_batches_tracked"] == 7


def test_the_model_has_its_own_weights_back_to_the_bit():
    layer = nn.Linear(3, 3)
    average = Average(dict(layer.state_dict()), decay=0.9)
    with torch.no_grad():
        layer.weight.add_(1 / 3)
    own = layer.weight.clone()
    with average.in_place():
        torch.testing.assert_close(layer.weight, own - 1 / 3)
    assert torch.equal(layer.weight, own)
