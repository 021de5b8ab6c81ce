"""The learning rate by hand; what decays and what learns slower."""

import math

import pytest
from torch import nn

from vidveil.core.errors import RecipeError
from vidveil.training.options import Options
from vidveil.training.schedule import check_backbone, parameter_groups, rate


def test_the_rate_rises_in_a_line_and_falls_as_a_cosine():
    rates = [rate(step, total=12, warmup=4) for step in range(13)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates[6] == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert rates[8] == pytest.approx(0.5)
    assert rates[12] == pytest.approx(0, abs=1e-12)
    assert rates[4:] == sorted(rates[4:], reverse=True)


def test_without_warm_up_training_starts_at_the_peak():
    assert rate(0, total=5, warmup=0) == 1


def test_a_warm_up_longer_than_training_never_reaches_the_peak():
    assert [rate(step, total=2, warmup=4) for step in range(2)] == [0.25, 0.5]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.recognizer = nn.Sequential(nn.Conv3d(3, 1, 3), nn.BatchNorm3d(1), nn.MultiheadAttention(4, 1))
        self.cls_token = nn.Parameter(nn.init.zeros_(nn.Linear(4, 1).weight.data[None]))
        self.head = nn.Linear(4, 1)


def names_by_group(net, options):
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    return [
        ({names[id(p)] for p in g["params"]}, g["weight_decay"], g["scale"]) for g in parameter_groups(net, options)
    ]


def test_only_matrices_and_kernels_decay():
    decayed = set().union(
        *(names for names, decay, _ in names_by_group(Net(), Options(weight_decay=0.1)) if decay == 0.1)
    )
    assert decayed == {
        "recognizer.0.weight",
        "recognizer.2.in_proj_weight",
        "recognizer.2.out_proj.weight",
        "head.weight",
    }


def test_the_backbone_learns_slower_than_the_head():
    groups = names_by_group(Net(), Options(backbone_lr=0.1))
    for names, _, scale in groups:
        assert all(name.startswith("recognizer.") == (scale == 0.1) for name in names)
    assert {scale for _, _, scale in groups} == {0.1, 1.0}


def test_frozen_parameters_are_left_out():
    net = Net()
    net.recognizer.requires_grad_(False)
    learning = set().union(*(names for names, _, _ in names_by_group(net, Options())))
    assert learning == {"cls_token", "head.weight", "head.bias"}


def test_a_network_that_cannot_learn_and_a_backbone_that_is_not_there_are_errors():
    with pytest.raises(RecipeError, match="requires_grad"):
        parameter_groups(Net().requires_grad_(False), Options())
    with pytest.raises(RecipeError, match=r"backbone_lr=0\.5"):
        check_backbone(nn.Linear(2, 2), Options(backbone_lr=0.5))
