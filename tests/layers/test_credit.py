"""Who tells how much: credit is found from what random companies of tubelets can tell."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.layers.credit import Creditor, random_company, taught, where

GRID, TUBELET = (2, 4, 4), (2, 4, 4)
COUNT = math.prod(GRID)
UNSEEN = (-2.0, -1.0)


class Mean(nn.Module):
    """(B, 3, T, H, W) → (B, L, h·w, 8): colours of each tubelet, spread over more channels."""

    def __init__(self):
        super().__init__()
        self.more = nn.Linear(3, 8)

    def forward(self, clip: Tensor) -> Tensor:
        return self.more(F.avg_pool3d(clip, TUBELET).flatten(3).permute(0, 2, 3, 1))


def creditor() -> Creditor:
    torch.manual_seed(0)
    return Creditor(Mean(), 8, GRID, UNSEEN)


def world(clips: int) -> tuple[Tensor, Tensor]:
    """Clips, and what each tubelet truly adds to each of two questions: red ones to the first, blue to the second."""
    colour = torch.randint(0, 4, (clips, *GRID))  # red, green, blue, none
    pixels = F.one_hot(colour, 4)[..., :3].permute(0, 4, 1, 2, 3).float()
    video = pixels.repeat_interleave(2, 2).repeat_interleave(4, 3).repeat_interleave(4, 4)
    truth = torch.stack([colour == 0, colour == 2], -1).flatten(1, 3) * torch.tensor([0.2, 0.1])
    return video, truth  # (B, M, 2)


def values(truth: Tensor, shown: Tensor) -> Tensor:
    return torch.tensor(UNSEEN) + (truth * shown.unsqueeze(2)).sum(1)


def test_the_creditor_finds_which_tubelets_count_for_which_question():
    net = creditor()
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(250):
        video, truth = world(16)
        shown = random_company(COUNT, 16, 0.05, 0.6, video.device)
        loss = net.miss(net(video), shown, values(truth, shown))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    video, truth = world(32)
    with torch.no_grad():
        credit = net(video)
    for question in range(2):
        counts = truth[..., question] > 0
        share = where(credit[..., question])[counts].sum() / 32
        assert share > 0.85, f"{share:.2f} of the credit is where it belongs; by lot it would be 0.25"
        assert credit[..., question][counts].quantile(0.1) > credit[..., question][~counts].quantile(0.9)


def test_true_credits_miss_nothing_and_any_other_credits_do():
    net = creditor()
    video, truth = world(8)
    shown = random_company(COUNT, 8, 0.2, 0.8, video.device)
    fitting = truth * COUNT / 20  # in the units of `miss`
    assert net.miss(fitting, shown, values(truth, shown)).item() == pytest.approx(0, abs=1e-9)
    assert net.miss(fitting.roll(1, 1), shown, values(truth, shown)).item() > 1e-4
    other = fitting + torch.randn_like(fitting) * (1 - shown).unsqueeze(2)  # only the shown are asked about
    assert net.miss(other, shown, values(truth, shown)).item() == pytest.approx(0, abs=1e-9)


def test_at_the_start_nobody_has_credit_and_the_value_is_that_of_a_guess():
    net, (video, _) = creditor(), world(4)
    credit = net(video)
    assert credit.shape == (4, COUNT, 2)
    assert not credit.any()
    guess = torch.tensor(UNSEEN).expand(4, -1)
    assert net.miss(credit, torch.ones(4, COUNT), guess) == 0


def test_what_players_tell_is_a_fact_to_the_creditor():
    net, (video, _) = creditor(), world(4)
    told = torch.zeros(4, 2, requires_grad=True)
    net.miss(net(video), torch.ones(4, COUNT), told).backward()
    assert told.grad is None
    assert net.empty.grad.any()
    assert net.head.weight.grad.any()


@pytest.mark.parametrize(("low", "high"), [(0.05, 0.6), (0.3, 0.3), (1.0, 1.0), (0.0, 1.0)])
def test_shares_of_company_lie_between_low_and_high(low, high):
    torch.manual_seed(1)
    shown = random_company(50, 400, low, high, torch.device("cpu"))
    assert set(shown.unique().tolist()) <= {0.0, 1.0}
    counts = shown.sum(1)
    assert counts.min() >= math.floor(50 * low)
    assert counts.max() <= math.ceil(50 * high + 1e-4)
    if high > low:
        assert counts.max() - counts.min() > 0.9 * 50 * (high - low)
    often = shown.mean(0)  # every tubelet is as welcome as any other
    assert often.max() - often.min() < 0.2


def test_shares_of_credit_are_of_the_positive_part_and_none_of_nothing():
    shares = where(torch.tensor([[3.0, -5.0, 1.0], [-1.0, -2.0, 0.0]]))
    torch.testing.assert_close(shares, torch.tensor([[0.75, 0.0, 0.25], [0.0, 0.0, 0.0]]))


def test_an_attention_is_taught_best_when_it_is_the_target():
    torch.manual_seed(2)
    target = torch.rand(3, COUNT).softmax(1)
    live = torch.arange(COUNT).expand(3, -1)
    least = taught(target, target, live)
    for _ in range(20):
        other = (target.log() + 0.3 * torch.randn(3, COUNT)).softmax(1)
        assert taught(other, target, live) > least


def test_pruned_tubelets_and_fuse_tokens_are_no_part_of_the_lesson():
    target = torch.zeros(1, 6)
    target[0, :4] = torch.tensor([0.1, 0.2, 0.3, 0.4])
    live = torch.tensor([[3, 1, 6]])  # 0 and 2 are gone, and 6 stands for a fuse token
    best = torch.tensor([[2 / 3, 1 / 3, 0.0]])
    changed = target.clone()
    changed[0, [0, 2]] = torch.tensor([0.9, 0.7])
    assert taught(best, target, live) == taught(best, changed, live)
    assert taught(best, target, live) < taught(torch.tensor([[0.5, 0.5, 0.0]]), target, live)
    assert taught(best, target, live) < taught(torch.tensor([[0.6, 0.3, 0.1]]), target, live)


def test_where_nothing_has_credit_nothing_is_taught():
    attention = torch.full((2, 4), 0.25, requires_grad=True)
    loss = taught(attention, torch.zeros(2, 4), torch.arange(4).expand(2, -1))
    loss.backward()
    assert loss == 0
    assert not attention.grad.any()
