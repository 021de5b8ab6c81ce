"""Operations counted by hand are those that PyTorch counts."""

import pytest
import torch
from dual_cls_flops import forward_flops, tokens_by_block, training_flops
from torch.utils.flop_counter import FlopCounterMode

from vidveil.methods.dual_cls.model import DualCLS, Network


def vit_b() -> DualCLS:
    with torch.device("meta"):
        return DualCLS(Network(size="vit_b", frames=16, side=224, actions=2, budget={}))


def test_the_whole_network_counts_what_pytorch_counts():
    with FlopCounterMode(display=False) as counter:
        vit_b()(torch.empty(1, 3, 16, 224, 224, device="meta"))
    ours, theirs = forward_flops(vit_b(), 0.9), counter.get_total_flops()
    assert ours == pytest.approx(theirs, rel=5e-3)
    assert ours <= theirs  # zeros that fill up matrix units for the CLS rows are work done, but no work needed


def test_the_mask_is_less_work_than_the_whole_and_training_is_nearly_three_times_as_much():
    whole = forward_flops(vit_b(), 0.9)
    assert 0.7 * whole < forward_flops(vit_b(), 0.9, mask_only=True) < 0.75 * whole
    assert 2.9 * whole < training_flops(vit_b(), 0.9) < 3 * whole


def test_tokens_are_two_class_tokens_the_live_tubelets_and_the_fused_ones():
    tokens = tokens_by_block(vit_b(), 0.9)
    assert tokens[1] == (2 + 1568, 2 + 1568)
    assert tokens[2] == (2 + 1568, 2 + 1412 + 1)
    assert tokens[-1] == (2 + 1144 + 3, 2 + 1144 + 3)
