"""A mask that is hard for the eye and soft for the gradient."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from vidveil.methods.dual_cls.straight_through import gate

COUNT, WEIGHT, TEMPERATURE = 12, 0.5, 0.5


class Chosen(NamedTuple):
    live: Tensor
    act: Tensor
    priv: Tensor
    kept: Tensor


def alphas(clips: int, live: int) -> tuple[Tensor, Tensor]:
    act, priv = torch.randn(2, clips, live).softmax(2)
    return act.requires_grad_(), priv.requires_grad_()


def score(act: Tensor, priv: Tensor, _live: Tensor) -> Tensor:
    return act - WEIGHT * priv


def best(act: Tensor, priv: Tensor, count: int, weight: float = WEIGHT) -> Tensor:
    return (act - weight * priv).detach().topk(count, 1, sorted=False).indices


def selections(*counts: int, clips: int = 3) -> list[Chosen]:
    """Each keeps so many of what the one before has left."""
    live = torch.arange(COUNT).expand(clips, -1)
    made = []
    for count in counts:
        act, priv = alphas(clips, live.shape[1])
        made.append(Chosen(live, act, priv, best(act, priv, count)))
        live = live.gather(1, made[-1].kept)
    return made


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(3)


@pytest.mark.parametrize("counts", [(9,), (9, 6, 4), (12, 12, 12), (1, 1)])
def test_forwards_it_is_the_hard_mask_of_the_last_selection(counts):
    chosen = selections(*counts)
    wanted = torch.zeros(3, COUNT).scatter(1, chosen[-1].live.gather(1, chosen[-1].kept), 1.0)
    assert wanted.sum() == 3 * counts[-1]
    torch.testing.assert_close(gate(chosen, COUNT, score, TEMPERATURE), wanted, atol=1e-6, rtol=0)


def test_the_gate_is_open_by_the_scores_that_were_compared():
    (chosen,) = selections(9)
    turned = Chosen(chosen.live, chosen.act, chosen.priv, best(chosen.act.flip(1), chosen.priv.flip(1), 9))
    mask = gate([turned], COUNT, lambda act, priv, _: score(act, priv, _).flip(1), TEMPERATURE)
    (slope,) = torch.autograd.grad(mask[:, 0].sum(), chosen.act)
    assert bool(slope[:, -1].all())  # tubelet 0 is evaluated by the score of the last one
    assert not slope[:, :-1].any()


@pytest.mark.parametrize(("only", "taught"), [(None, {"act", "priv"}), ("act", {"act"}), ("priv", {"priv"})])
def test_gradients_reach_the_attentions_that_are_asked_for_and_no_other(only, trained):
    chosen = selections(9, 6, 4)
    (gate(chosen, COUNT, score, TEMPERATURE, only) * torch.randn(3, COUNT)).sum().backward()
    for one in chosen:
        for name in ("act", "priv"):
            gradient = getattr(one, name).grad
            assert (gradient is not None and bool(gradient.any())) is (name in trained)


def test_wanting_a_tubelet_raises_its_action_attention_and_lowers_its_privacy_attention():
    (chosen,) = selections(6)
    (-gate([chosen], COUNT, score, TEMPERATURE)[:, 4]).sum().backward()  # a step against it shows tubelet 4 more
    assert (chosen.act.grad[:, 4] < 0).all()
    torch.testing.assert_close(chosen.priv.grad, -WEIGHT * chosen.act.grad)
    assert not chosen.act.grad[:, [0, 1, 2, 3, *range(5, COUNT)]].any()


def test_a_tubelet_that_was_dropped_early_gets_a_gradient_by_the_selection_that_dropped_it():
    chosen = selections(9, 6, 4)
    early = torch.ones(3, COUNT).scatter(1, chosen[0].live.gather(1, chosen[0].kept), 0.0)
    assert early.sum() == 9
    (gate(chosen, COUNT, score, TEMPERATURE) * early).sum().backward()
    assert torch.equal(chosen[0].act.grad != 0, early.bool())
    assert not chosen[1].act.grad.any()  # it took no part in the later ones


def test_a_tubelet_at_the_edge_learns_more_than_one_that_is_far_from_it():
    (chosen,) = selections(6, clips=1)
    gate([chosen], COUNT, score, TEMPERATURE).sum().backward()
    scores = (chosen.act - WEIGHT * chosen.priv).detach()[0].sort(descending=True)
    steps = chosen.act.grad[0][scores.indices]
    assert min(steps[5], steps[6]) > max(steps[0], steps[-1]) > 0


def test_a_lower_temperature_makes_the_gate_steeper_at_its_edge():
    (chosen,) = selections(6)
    slopes = []
    for temperature in (0.25, 1.0):
        (slope,) = torch.autograd.grad(gate([chosen], COUNT, score, temperature).sum(), chosen.act)
        slopes.append(slope.amax())
    assert slopes[0] > 2 * slopes[1]


def test_the_scale_of_the_attentions_does_not_matter_to_what_is_learned():
    (chosen,) = selections(6)
    small = Chosen(chosen.live, chosen.act / 100, chosen.priv / 100, chosen.kept)
    first, second = (
        torch.autograd.grad(gate([one], COUNT, score, TEMPERATURE).square().sum(), chosen.act)[0]
        for one in (chosen, small)
    )
    torch.testing.assert_close(first, second, atol=1e-4, rtol=1e-3)


def test_fuse_tokens_that_compete_have_no_place_in_the_mask():
    (chosen,) = selections(6)
    live = torch.cat([chosen.live[:, :-2], torch.full((3, 2), COUNT)], 1)  # two of the live are fuse tokens
    mask = gate([Chosen(live, chosen.act, chosen.priv, chosen.kept)], COUNT, score, TEMPERATURE)
    assert mask.shape == (3, COUNT)
    assert not mask[:, -2:].any()
    mask.sum().backward()
    assert not chosen.act.grad[:, -2:].any()


def test_an_infinite_weight_is_the_privacy_attention_alone():
    act, priv = alphas(3, COUNT)
    chosen = Chosen(torch.arange(COUNT).expand(3, -1), act, priv, (-priv).detach().topk(5, 1).indices)
    mask = gate([chosen], COUNT, lambda _, priv, __: -priv, TEMPERATURE)
    assert torch.equal(mask.detach().round().sum(1), torch.full((3,), 5.0))
    mask.sum().backward()
    assert act.grad is None
    assert (priv.grad < 0).all()


def test_one_last_tubelet_has_no_spread_and_yet_a_gradient_of_ordinary_size():
    act, priv = torch.ones(2, 1, requires_grad=True), torch.ones(2, 1)
    chosen = Chosen(torch.full((2, 1), 7), act, priv, torch.zeros(2, 1, dtype=torch.long))
    mask = gate([chosen], COUNT, score, TEMPERATURE)
    assert torch.equal(mask.detach(), F.one_hot(torch.tensor([7, 7]), COUNT).float())
    mask.sum().backward()
    assert ((act.grad > 0) & (act.grad < 10)).all()
