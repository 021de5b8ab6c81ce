"""What attention maps learn from: votes of single tubelets, which add up, and masks with gradients."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.methods.dual_cls.model import Selection
from vidveil.methods.dual_cls.supervision import (
    SCALE,
    Votes,
    attention_loss,
    attribution_shares,
    random_tubelets,
    straight_through,
    sum_votes,
    vote_strength,
)
from vidveil.models.layers.tubelets import cut_into_clips, over_pixels

GRID, TUBELET = (2, 4, 4), (2, 4, 4)
COUNT = math.prod(GRID)
WIDTH = 16
OUTPUTS = {"action": 3, "attributes": 2}


class Flat(nn.Module):
    """(N, 3, t, p, p) → (N, 1, 1, WIDTH): all pixels at once."""

    def __init__(self):
        super().__init__()
        self.all = nn.Linear(3 * math.prod(TUBELET), WIDTH)

    def forward(self, tiles: Tensor) -> Tensor:
        return self.all(tiles.flatten(1))[:, None, None]


def voter(*, random_votes: bool = False) -> Votes:
    torch.manual_seed(0)
    made = Votes(Flat(), TUBELET, WIDTH, OUTPUTS)
    if random_votes:
        for head in made.heads.values():
            nn.init.normal_(head.weight)
    return made


def world(clips: int) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Grey noise in which three tubelets show the action by their colour, and three both attributes by two corners.

    Clips, labels, and (B, 3) where the tubelets of each question are.
    """
    tiles = 0.5 + 0.1 * torch.randn(clips, COUNT, 3, *TUBELET)
    action, attributes = torch.randint(0, 3, (clips,)), torch.randint(0, 2, (clips, 2)).float()
    places = torch.rand(clips, COUNT).argsort(1)
    here, its = torch.arange(clips)[:, None], {"action": places[:, :3], "attributes": places[:, 3:6]}
    tiles[here, its["action"], action[:, None]] += 2
    for number, corner in enumerate((0, 3)):
        sign = (attributes[:, number] * 4 - 2).view(-1, 1, 1, 1)
        tiles[here, its["attributes"], :, :, corner, corner] += sign
    cells = tiles.view(clips, *GRID, 3, *TUBELET).permute(0, 4, 1, 5, 2, 6, 3, 7)  # (B, 3, L, t, h, p, w, p)
    video = cells.reshape(clips, 3, GRID[0] * 2, GRID[1] * 4, GRID[2] * 4)
    return video, {"action": action, "attributes": attributes}, its


def voting_loss(votes: dict[str, Tensor], shown: Tensor, labels: dict[str, Tensor]) -> Tensor:
    attributes = F.binary_cross_entropy_with_logits(sum_votes(votes["attributes"], shown), labels["attributes"])
    return attributes + F.cross_entropy(sum_votes(votes["action"], shown), labels["action"])


def test_votes_become_strong_where_the_labels_can_be_seen_without_supervision_of_places():
    net = voter()
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(300):
        video, labels, _ = world(32)
        loss = voting_loss(net(video), random_tubelets(32, COUNT, 0.5, video.device), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    video, _, places = world(64)
    with torch.no_grad():
        votes = net(video)
    for name, its in places.items():
        shares = attribution_shares(vote_strength(votes[name], several=name == "attributes"))
        share = shares.gather(1, its).sum(1).mean()
        assert share > 0.5, f"{name}: {share:.2f}; at random it would be {3 / COUNT:.2f}"


def test_a_vote_depends_on_the_pixels_of_its_tubelet_alone():
    net, (video, *_) = voter(random_votes=True).eval(), world(2)
    before = net(video)
    for place in (0, 13, COUNT - 1):
        inside = torch.zeros(2, COUNT).index_fill(1, torch.tensor([place]), 1.0)
        spot = over_pixels(inside.view(-1, *GRID), TUBELET).unsqueeze(1).bool()
        after = net(torch.where(spot, torch.rand_like(video), video))
        for name, votes in before.items():
            changed = (after[name] - votes).abs().amax(2) > 1e-6
            assert torch.equal(changed, inside.bool())


def test_a_vote_does_not_depend_on_where_its_tubelet_is():
    net, (video, *_) = voter(random_votes=True).eval(), world(2)
    turned = video.roll((2, 4, -4), (2, 3, 4))  # one tubelet along each way
    for name, votes in net(video).items():
        wanted = votes.unflatten(1, GRID).roll((1, 1, -1), (1, 2, 3)).flatten(1, 3)
        torch.testing.assert_close(net(turned)[name], wanted, atol=1e-5, rtol=1e-5)


def test_tubelets_are_cut_apart_in_their_own_order():
    video, *_ = world(2)
    tiles = cut_into_clips(video, TUBELET)
    assert tiles.shape == (2 * COUNT, 3, *TUBELET)
    place = 16 + 4 * 2 + 3  # second segment, third row, last column
    assert torch.equal(tiles[COUNT + place], video[1, :, 2:4, 8:12, 12:16])


def test_at_the_start_all_votes_are_0_and_attention_learns_nothing():
    net, (video, *_) = voter(), world(3)
    for name, votes in net(video).items():
        assert votes.shape == (3, COUNT, OUTPUTS[name])
        assert not votes.any()
        shares = attribution_shares(vote_strength(votes, several=name == "attributes"))
        assert not shares.any()
    attention = torch.full((3, COUNT), 1 / COUNT, requires_grad=True)
    loss = attention_loss(attention, shares, torch.arange(COUNT).expand(3, -1))
    loss.backward()
    assert loss.item() == 0
    assert not attention.grad.any()


def test_a_tubelet_adds_its_vote_to_any_set_of_others():
    torch.manual_seed(1)
    votes, shown = torch.randn(4, COUNT, 3), random_tubelets(4, COUNT, 0.4, torch.device("cpu"))
    shown[:, :2] = torch.tensor([0.0, 1.0])
    with_it = shown.clone()
    with_it[:, 0] = 1
    added = sum_votes(votes, with_it, 0.4) - sum_votes(votes, shown, 0.4)  # however many others are shown
    torch.testing.assert_close(added, SCALE * votes[:, 0] / (0.4 * COUNT), atol=1e-5, rtol=1e-5)


def test_only_votes_of_shown_tubelets_are_summed():
    votes = torch.tensor([[[1.0, 0.0], [5.0, 5.0], [0.0, 3.0]]])
    logits = sum_votes(votes, torch.tensor([[1.0, 0.0, 1.0]]), shown_share=0.5)
    torch.testing.assert_close(logits, SCALE * torch.tensor([[1.0, 3.0]]) / 1.5)
    assert torch.equal(sum_votes(votes, torch.zeros(1, 3)), torch.zeros(1, 2))


def test_the_strength_of_a_vote_is_its_differences_between_classes_or_its_size_for_single_questions():
    votes = torch.tensor([[[2.0, 2.0], [3.0, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]])
    torch.testing.assert_close(
        vote_strength(votes, several=False), torch.tensor([[0.0, 2.0, 0, 0, 0]])
    )  # softmax: no sum
    torch.testing.assert_close(vote_strength(votes, several=True), torch.tensor([[4.0, 4.0, 0, 0, 0]]))
    assert vote_strength(votes.bfloat16(), several=False).dtype == torch.float32


@pytest.mark.parametrize("several", [True, False])
def test_a_vote_that_most_tubelets_share_has_no_strength(several):
    votes = torch.zeros(1, 9, 3)
    votes[0, 4] = torch.tensor([1.0, -1.0, 0.5])
    shared = torch.tensor([0.7, -0.3, 2.0])  # the prior of an attribute that nearly all have
    torch.testing.assert_close(vote_strength(votes + shared, several=several), vote_strength(votes, several=several))


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 1.0])
def test_a_random_share_of_the_tubelets_is_drawn_for_each_clip(share):
    torch.manual_seed(1)
    shown = random_tubelets(400, 50, share, torch.device("cpu"))
    assert set(shown.unique().tolist()) <= {0.0, 1.0}
    assert shown.mean().item() == pytest.approx(share, abs=0.02)
    often = shown.mean(0)  # every tubelet equally often
    assert often.max() - often.min() < 0.2
    assert share == 1 or len(shown.unique(dim=0)) > 300


def test_shares_sum_to_one_unless_all_strengths_are_0():
    shares = attribution_shares(torch.tensor([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    torch.testing.assert_close(shares, torch.tensor([[0.75, 0.0, 0.25], [0.0, 0.0, 0.0]]))


def test_the_attention_loss_is_least_at_its_target():
    torch.manual_seed(2)
    target = torch.rand(3, COUNT).softmax(1)
    live = torch.arange(COUNT).expand(3, -1)
    least = attention_loss(target, target, live)
    for _ in range(20):
        other = (target.log() + 0.3 * torch.randn(3, COUNT)).softmax(1)
        assert attention_loss(other, target, live) > least


def test_pruned_tubelets_and_fuse_tokens_do_not_count_in_the_attention_loss():
    target = torch.zeros(1, 6)
    target[0, :4] = torch.tensor([0.1, 0.2, 0.3, 0.4])
    live = torch.tensor([[3, 1, 6]])  # 0 and 2 are gone, and 6 stands for a fuse token
    best = torch.tensor([[2 / 3, 1 / 3, 0.0]])
    entropy = -sum(p * math.log(p) for p in (2 / 3, 1 / 3))  # of the target among the live, as if there were no others
    assert attention_loss(best, target, live).item() == pytest.approx(entropy, rel=1e-5)
    changed = target.clone()
    changed[0, [0, 2]] = torch.tensor([0.9, 0.7])
    assert attention_loss(best, target, live) == attention_loss(best, changed, live)
    assert attention_loss(best, target, live) < attention_loss(torch.tensor([[0.5, 0.5, 0.0]]), target, live)
    assert attention_loss(best, target, live) < attention_loss(torch.tensor([[0.6, 0.3, 0.1]]), target, live)


# ---- the straight-through mask

LIVE, WEIGHT, TEMPERATURE = 12, 0.5, 0.5


def alphas(clips: int, live: int) -> tuple[Tensor, Tensor]:
    act, priv = torch.randn(2, clips, live).softmax(2)
    return act.requires_grad_(), priv.requires_grad_()


def score(act: Tensor, priv: Tensor, _live: Tensor) -> Tensor:
    return act - WEIGHT * priv


def selection(live: Tensor, act: Tensor, priv: Tensor, kept: Tensor) -> Selection:
    return Selection(live, act, priv, score(act, priv, live), kept)


def best(act: Tensor, priv: Tensor, count: int, weight: float = WEIGHT) -> Tensor:
    return (act - weight * priv).detach().topk(count, 1, sorted=False).indices


def selections(*counts: int, clips: int = 3) -> list[Selection]:
    """Each keeps so many of what the one before has left."""
    live = torch.arange(LIVE).expand(clips, -1)
    made = []
    for count in counts:
        act, priv = alphas(clips, live.shape[1])
        made.append(selection(live, act, priv, best(act, priv, count)))
        live = live.gather(1, made[-1].kept)
    return made


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(3)


@pytest.mark.parametrize("counts", [(9,), (9, 6, 4), (12, 12, 12), (1, 1)])
def test_forwards_it_is_the_hard_mask_of_the_last_selection(counts):
    chosen = selections(*counts)
    wanted = torch.zeros(3, LIVE).scatter(1, chosen[-1].live.gather(1, chosen[-1].kept), 1.0)
    assert wanted.sum() == 3 * counts[-1]
    torch.testing.assert_close(straight_through(chosen, LIVE, score, TEMPERATURE), wanted, atol=1e-6, rtol=0)


def test_the_gate_follows_the_scores_that_were_compared():
    (chosen,) = selections(9)
    turned = selection(chosen.live, chosen.act, chosen.priv, best(chosen.act.flip(1), chosen.priv.flip(1), 9))
    mask = straight_through([turned], LIVE, lambda act, priv, _: score(act, priv, _).flip(1), TEMPERATURE)
    (slope,) = torch.autograd.grad(mask[:, 0].sum(), chosen.act)
    assert bool(slope[:, -1].all())  # tubelet 0 has the score of the last one
    assert not slope[:, :-1].any()


@pytest.mark.parametrize(("only", "trained"), [(None, {"act", "priv"}), ("act", {"act"}), ("priv", {"priv"})])
def test_gradients_reach_only_the_attentions_that_are_asked_for(only, trained):
    chosen = selections(9, 6, 4)
    (straight_through(chosen, LIVE, score, TEMPERATURE, only) * torch.randn(3, LIVE)).sum().backward()
    for one in chosen:
        for name in ("act", "priv"):
            gradient = getattr(one, name).grad
            assert (gradient is not None and bool(gradient.any())) is (name in trained)


def test_wanting_a_tubelet_raises_its_action_attention_and_lowers_its_privacy_attention():
    (chosen,) = selections(6)
    (
        -straight_through([chosen], LIVE, score, TEMPERATURE)[:, 4]
    ).sum().backward()  # a step against it shows tubelet 4 more
    assert (chosen.act.grad[:, 4] < 0).all()
    torch.testing.assert_close(chosen.priv.grad, -WEIGHT * chosen.act.grad)
    assert not chosen.act.grad[:, [0, 1, 2, 3, *range(5, LIVE)]].any()


def test_a_tubelet_that_was_dropped_early_gets_a_gradient_by_the_selection_that_dropped_it():
    chosen = selections(9, 6, 4)
    early = torch.ones(3, LIVE).scatter(1, chosen[0].live.gather(1, chosen[0].kept), 0.0)
    assert early.sum() == 9
    (straight_through(chosen, LIVE, score, TEMPERATURE) * early).sum().backward()
    assert torch.equal(chosen[0].act.grad != 0, early.bool())
    assert not chosen[1].act.grad.any()  # it took no part in the later ones


def test_a_tubelet_at_the_edge_learns_more_than_one_that_is_far_from_it():
    (chosen,) = selections(6, clips=1)
    straight_through([chosen], LIVE, score, TEMPERATURE).sum().backward()
    scores = (chosen.act - WEIGHT * chosen.priv).detach()[0].sort(descending=True)
    steps = chosen.act.grad[0][scores.indices]
    assert min(steps[5], steps[6]) > max(steps[0], steps[-1]) > 0


def test_a_lower_temperature_makes_the_gate_steeper_at_its_edge():
    (chosen,) = selections(6)
    slopes = []
    for temperature in (0.25, 1.0):
        (slope,) = torch.autograd.grad(straight_through([chosen], LIVE, score, temperature).sum(), chosen.act)
        slopes.append(slope.amax())
    assert slopes[0] > 2 * slopes[1]


def test_the_scale_of_the_attentions_does_not_change_the_gradients():
    (chosen,) = selections(6)
    small = selection(chosen.live, chosen.act / 100, chosen.priv / 100, chosen.kept)
    first, second = (
        torch.autograd.grad(straight_through([one], LIVE, score, TEMPERATURE).square().sum(), chosen.act)[0]
        for one in (chosen, small)
    )
    torch.testing.assert_close(first, second, atol=1e-4, rtol=1e-3)


def test_fuse_tokens_that_compete_have_no_place_in_the_mask():
    (chosen,) = selections(6)
    live = torch.cat([chosen.live[:, :-2], torch.full((3, 2), LIVE)], 1)  # two of the live are fuse tokens
    mask = straight_through([selection(live, chosen.act, chosen.priv, chosen.kept)], LIVE, score, TEMPERATURE)
    assert mask.shape == (3, LIVE)
    assert not mask[:, -2:].any()
    mask.sum().backward()
    assert not chosen.act.grad[:, -2:].any()


def test_an_infinite_weight_is_the_privacy_attention_alone():
    act, priv = alphas(3, LIVE)
    chosen = selection(torch.arange(LIVE).expand(3, -1), act, priv, (-priv).detach().topk(5, 1).indices)
    mask = straight_through([chosen], LIVE, lambda _, priv, __: -priv, TEMPERATURE)
    assert torch.equal(mask.detach().round().sum(1), torch.full((3,), 5.0))
    mask.sum().backward()
    assert act.grad is None
    assert (priv.grad < 0).all()


def test_one_last_tubelet_has_no_spread_and_yet_a_gradient_of_ordinary_size():
    act, priv = torch.ones(2, 1, requires_grad=True), torch.ones(2, 1)
    chosen = selection(torch.full((2, 1), 7), act, priv, torch.zeros(2, 1, dtype=torch.long))
    mask = straight_through([chosen], LIVE, score, TEMPERATURE)
    assert torch.equal(mask.detach(), F.one_hot(torch.tensor([7, 7]), LIVE).float())
    mask.sum().backward()
    assert ((act.grad > 0) & (act.grad < 10)).all()
