"""Who tells how much: tubelets vote by themselves, votes add up, and loud ones are where the answer is."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from vidveil.models.layers.attribution import (
    SCALE,
    Votes,
    apart,
    counted,
    random_company,
    trained,
    vote_strength,
    where,
)

from vidveil.models.layers.tubelets import over_pixels

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


def reader(*, opinions: bool = False) -> Votes:
    torch.manual_seed(0)
    made = Votes(Flat(), TUBELET, WIDTH, OUTPUTS)
    if opinions:
        for head in made.heads.values():
            nn.init.normal_(head.weight)
    return made


def world(clips: int) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Grey noise in which three tubelets tell the action by their colour, and three both attributes by two corners.

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


def told(votes: dict[str, Tensor], shown: Tensor, labels: dict[str, Tensor]) -> Tensor:
    attributes = F.binary_cross_entropy_with_logits(counted(votes["attributes"], shown), labels["attributes"])
    return attributes + F.cross_entropy(counted(votes["action"], shown), labels["action"])


def test_votes_become_loud_where_the_answer_is_though_nobody_says_where_that_is():
    net = reader()
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(300):
        video, labels, _ = world(32)
        loss = told(net(video), random_company(32, COUNT, 0.5, video.device), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    video, _, places = world(64)
    with torch.no_grad():
        votes = net(video)
    for name, its in places.items():
        credit = where(vote_strength(votes[name], several=name == "attributes"))
        share = credit.gather(1, its).sum(1).mean()
        assert share > 0.5, f"{name}: {share:.2f}; at random it would be {3 / COUNT:.2f}"


def test_a_vote_depends_on_the_pixels_of_its_tubelet_and_on_no_others():
    net, (video, *_) = reader(opinions=True).eval(), world(2)
    before = net(video)
    for place in (0, 13, COUNT - 1):
        inside = torch.zeros(2, COUNT).index_fill(1, torch.tensor([place]), 1.0)
        spot = over_pixels(inside.view(-1, *GRID), TUBELET).unsqueeze(1).bool()
        after = net(torch.where(spot, torch.rand_like(video), video))
        for name, votes in before.items():
            changed = (after[name] - votes).abs().amax(2) > 1e-6
            assert torch.equal(changed, inside.bool())


def test_a_vote_does_not_depend_on_where_its_tubelet_is():
    net, (video, *_) = reader(opinions=True).eval(), world(2)
    turned = video.roll((2, 4, -4), (2, 3, 4))  # one tubelet along each way
    for name, votes in net(video).items():
        wanted = votes.unflatten(1, GRID).roll((1, 1, -1), (1, 2, 3)).flatten(1, 3)
        torch.testing.assert_close(net(turned)[name], wanted, atol=1e-5, rtol=1e-5)


def test_tubelets_are_cut_apart_in_their_own_order():
    video, *_ = world(2)
    tiles = apart(video, TUBELET)
    assert tiles.shape == (2 * COUNT, 3, *TUBELET)
    place = 16 + 4 * 2 + 3  # second segment, third row, last column
    assert torch.equal(tiles[COUNT + place], video[1, :, 2:4, 8:12, 12:16])


def test_at_the_start_nobody_votes_and_nothing_is_taught():
    net, (video, *_) = reader(), world(3)
    for name, votes in net(video).items():
        assert votes.shape == (3, COUNT, OUTPUTS[name])
        assert not votes.any()
        credit = where(vote_strength(votes, several=name == "attributes"))
        assert not credit.any()
    attention = torch.full((3, COUNT), 1 / COUNT, requires_grad=True)
    loss = trained(attention, credit, torch.arange(COUNT).expand(3, -1))
    loss.backward()
    assert loss.item() == 0
    assert not attention.grad.any()


def test_what_a_tubelet_adds_is_its_vote_in_any_company():
    torch.manual_seed(1)
    votes, shown = torch.randn(4, COUNT, 3), random_company(4, COUNT, 0.4, torch.device("cpu"))
    shown[:, :2] = torch.tensor([0.0, 1.0])
    with_it = shown.clone()
    with_it[:, 0] = 1
    added = counted(votes, with_it, 0.4) - counted(votes, shown, 0.4)  # however many others are shown
    torch.testing.assert_close(added, SCALE * votes[:, 0] / (0.4 * COUNT), atol=1e-5, rtol=1e-5)


def test_only_votes_that_are_shown_are_counted_and_of_nothing_comes_nothing():
    votes = torch.tensor([[[1.0, 0.0], [5.0, 5.0], [0.0, 3.0]]])
    logits = counted(votes, torch.tensor([[1.0, 0.0, 1.0]]), share=0.5)
    torch.testing.assert_close(logits, SCALE * torch.tensor([[1.0, 3.0]]) / 1.5)
    assert torch.equal(counted(votes, torch.zeros(1, 3)), torch.zeros(1, 2))


def test_a_vote_for_one_among_many_is_loud_by_its_differences_and_a_yes_or_no_by_its_size():
    votes = torch.tensor([[[2.0, 2.0], [3.0, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]])
    torch.testing.assert_close(
        vote_strength(votes, several=False), torch.tensor([[0.0, 2.0, 0, 0, 0]])
    )  # softmax: no sum
    torch.testing.assert_close(vote_strength(votes, several=True), torch.tensor([[4.0, 4.0, 0, 0, 0]]))
    assert vote_strength(votes.bfloat16(), several=False).dtype == torch.float32


@pytest.mark.parametrize("several", [True, False])
def test_what_most_tubelets_say_alike_is_not_loud(several):
    votes = torch.zeros(1, 9, 3)
    votes[0, 4] = torch.tensor([1.0, -1.0, 0.5])
    habit = torch.tensor([0.7, -0.3, 2.0])  # the prior of an attribute that nearly all have
    torch.testing.assert_close(vote_strength(votes + habit, several=several), vote_strength(votes, several=several))


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 1.0])
def test_company_is_a_random_share_of_the_tubelets_anew_for_each_clip(share):
    torch.manual_seed(1)
    shown = random_company(400, 50, share, torch.device("cpu"))
    assert set(shown.unique().tolist()) <= {0.0, 1.0}
    assert shown.mean().item() == pytest.approx(share, abs=0.02)
    often = shown.mean(0)  # every tubelet is as welcome as any other
    assert often.max() - often.min() < 0.2
    assert share == 1 or len(shown.unique(dim=0)) > 300


def test_shares_of_credit_sum_to_one_and_are_none_of_nothing():
    shares = where(torch.tensor([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    torch.testing.assert_close(shares, torch.tensor([[0.75, 0.0, 0.25], [0.0, 0.0, 0.0]]))


def test_an_attention_is_taught_best_when_it_is_the_target():
    torch.manual_seed(2)
    target = torch.rand(3, COUNT).softmax(1)
    live = torch.arange(COUNT).expand(3, -1)
    least = trained(target, target, live)
    for _ in range(20):
        other = (target.log() + 0.3 * torch.randn(3, COUNT)).softmax(1)
        assert trained(other, target, live) > least


def test_pruned_tubelets_and_fuse_tokens_are_no_part_of_the_lesson():
    target = torch.zeros(1, 6)
    target[0, :4] = torch.tensor([0.1, 0.2, 0.3, 0.4])
    live = torch.tensor([[3, 1, 6]])  # 0 and 2 are gone, and 6 stands for a fuse token
    best = torch.tensor([[2 / 3, 1 / 3, 0.0]])
    entropy = -sum(p * math.log(p) for p in (2 / 3, 1 / 3))  # of the target among the live, as if there were no others
    assert trained(best, target, live).item() == pytest.approx(entropy, rel=1e-5)
    changed = target.clone()
    changed[0, [0, 2]] = torch.tensor([0.9, 0.7])
    assert trained(best, target, live) == trained(best, changed, live)
    assert trained(best, target, live) < trained(torch.tensor([[0.5, 0.5, 0.0]]), target, live)
    assert trained(best, target, live) < trained(torch.tensor([[0.6, 0.3, 0.1]]), target, live)
