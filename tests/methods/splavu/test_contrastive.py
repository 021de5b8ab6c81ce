"""NT-Xent is SimCLR's formula, written out."""

import math

import pytest
import torch
from torch import Tensor

from vidveil.methods.splavu.train import chance, nt_xent


def plain(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """ℓ(i, j) of Chen et al. 2020 (eq. 1) over all pairs, both ways; their vectors lie as z_1, z_1′, z_2, z_2′, …"""
    z = torch.stack([first, second], 1).flatten(0, 1)
    total = z.new_zeros(())
    for i in range(len(z)):
        j = i + 1 if i % 2 == 0 else i - 1
        below = z.new_zeros(())
        for k in range(len(z)):
            if k != i:
                below = below + torch.exp(z[i] @ z[k] / (z[i].norm() * z[k].norm()) / temperature)
        similar = z[i] @ z[j] / (z[i].norm() * z[j].norm())
        total = total - torch.log(torch.exp(similar / temperature) / below)
    return total / len(z)


def pairs(batch: int = 5, width: int = 7, *, twice: bool = False) -> tuple[Tensor, Tensor]:
    torch.manual_seed(batch)
    first, second = 3 * torch.randn(batch, width), torch.randn(batch, width)
    if twice:
        first[1], second[1] = first[0], first[0]  # four times the same vector
    return first.requires_grad_(), second.requires_grad_()


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("batch", [2, 5])
def test_it_is_the_published_formula_and_so_are_its_gradients(batch, temperature, twice):
    first, second = pairs(batch, twice=twice)
    ours = nt_xent(first, second, temperature)
    wanted = plain(first.double(), second.double(), temperature)
    torch.testing.assert_close(ours.double(), wanted, atol=1e-5, rtol=1e-5)
    both = [torch.autograd.grad(loss, (first, second), retain_graph=True) for loss in (ours, wanted)]
    for found, gradient in zip(*both, strict=True):
        assert gradient.abs().max() > 1e-3
        torch.testing.assert_close(found, gradient, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("batch", [1, 2, 8, 512])
def test_chance_is_what_vectors_that_are_all_alike_give(batch):
    alike = torch.ones(batch, 3)
    assert nt_xent(alike, 2 * alike).item() == pytest.approx(chance(batch), abs=1e-5)
    assert chance(batch) == pytest.approx(math.log(2 * batch - 1))


def test_partners_that_are_alike_are_below_chance_and_opposite_ones_above():
    first, _ = pairs(8)
    assert nt_xent(first, first) < chance(8) < nt_xent(first, -first)


def test_the_order_of_pairs_their_sides_and_the_lengths_of_vectors_are_of_no_consequence():
    first, second = pairs(6)
    wanted, order = nt_xent(first, second), torch.tensor([3, 0, 5, 1, 2, 4])
    torch.testing.assert_close(nt_xent(first[order], second[order]), wanted)
    torch.testing.assert_close(nt_xent(second, first), wanted)
    torch.testing.assert_close(nt_xent(first * torch.arange(1, 7)[:, None], 0.01 * second), wanted)
    assert not torch.isclose(nt_xent(first, second[order]), wanted)  # who belongs to whom is


def test_half_precision_is_summed_in_full():
    first, second = (side.detach().bfloat16() for side in pairs(5))
    assert nt_xent(first, second).dtype == torch.float32
    torch.testing.assert_close(nt_xent(first, second), nt_xent(first.float(), second.float()))
