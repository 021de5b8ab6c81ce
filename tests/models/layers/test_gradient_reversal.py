"""The network above learns to predict, the network below to prevent it."""

import pytest
import torch

from vidveil.models.layers.gradient_reversal import ramp, reverse_gradient


def test_forwards_nothing_changes_and_backwards_the_gradient_is_reversed():
    x = torch.randn(3, 4, requires_grad=True)
    y = reverse_gradient(x, 0.3)
    assert torch.equal(y, x)
    (y * torch.arange(4)).sum().backward()
    torch.testing.assert_close(x.grad, -0.3 * torch.arange(4.0).expand(3, 4))


def test_a_step_against_the_gradient_makes_the_head_better_and_the_backbone_worse():
    torch.manual_seed(0)
    backbone, head = torch.nn.Linear(5, 4), torch.nn.Linear(4, 1)
    x, label = torch.randn(16, 5), torch.randn(16, 1)

    def loss() -> torch.Tensor:
        return (head(reverse_gradient(backbone(x), 1.0)) - label).square().mean()

    before = loss()
    before.backward()
    for network, better in ((head, True), (backbone, False)):
        old = [parameter.detach().clone() for parameter in network.parameters()]
        with torch.no_grad():
            for parameter in network.parameters():
                parameter -= 0.01 * parameter.grad
            assert bool(loss() < before) is better
            for parameter, value in zip(network.parameters(), old, strict=True):
                parameter.copy_(value)


def test_strength_rises_from_zero_to_nearly_one():
    strengths = [float(ramp(torch.tensor(step / 20))) for step in range(21)]
    assert strengths[0] == 0
    assert strengths == sorted(strengths)
    assert strengths[-1] == pytest.approx(1, abs=1e-4)
