"""The fast attention against a plain one: all n × n weights, a mask, a softmax."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from vidveil.methods.dual_cls.attention import DualCLSAttention, PrivacyReader, average_neighbours

WIDTH, HEADS, LIVE, FUSED = 24, 3, 17, 2
MODES = {
    "paper": {"tokens": 2},
    "reference": {"tokens": 2, "isolated": False},
    "detector": {"tokens": 1, "hidden_cls": True},
}


def plain(attention: DualCLSAttention, x: Tensor) -> tuple[Tensor, Tensor]:
    """(B, N, D) and the weights of the CLS rows, mean over heads: (B, C, N)."""
    count, cls = x.shape[1], attention.tokens
    forbidden = torch.zeros(count, count, dtype=torch.bool)
    if cls == 2 and attention.isolated:
        forbidden[0, 1] = forbidden[1, 0] = True
    if attention.hidden_cls:
        forbidden[cls:, :cls] = True
    out, maps = [], []
    for head in F.linear(x, attention.qkv.weight, attention.qkv.bias).view(len(x), count, 3, HEADS, -1).unbind(3):
        q, k, v = head.unbind(2)  # (B, N, d)
        logits = torch.einsum("bnd,bmd->bnm", q, k) / q.shape[-1] ** 0.5
        weights = logits.masked_fill(forbidden, -torch.inf).softmax(-1)
        out.append(weights @ v)
        maps.append(weights[:, :cls])
    return F.linear(torch.cat(out, -1), attention.proj.weight, attention.proj.bias), torch.stack(maps).mean(0)


def built(mode: str) -> tuple[DualCLSAttention, Tensor]:
    torch.manual_seed(7)
    attention = DualCLSAttention(WIDTH, HEADS, **MODES[mode])
    return attention, torch.randn(2, attention.tokens + LIVE + FUSED, WIDTH, requires_grad=True)


@pytest.mark.parametrize("mode", MODES)
def test_output_and_maps_are_those_of_a_masked_softmax(mode):
    attention, x = built(mode)
    seen = attention(x, LIVE)
    out, weights = plain(attention, x)
    live = weights[..., attention.tokens : attention.tokens + LIVE]
    torch.testing.assert_close(seen.out, out, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(seen.maps, live / live.sum(-1, keepdim=True), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_those_of_a_masked_softmax(mode):
    attention, x = built(mode)
    torch.manual_seed(9)
    pull = torch.randn(2, x.shape[1], WIDTH)
    push = torch.randn(2, attention.tokens, LIVE)
    wanted = [x, *attention.parameters()]
    seen = attention(x, LIVE)
    fast = torch.autograd.grad((seen.out * pull).sum() + (seen.maps * push).sum(), wanted)
    out, weights = plain(attention, x)
    live = weights[..., attention.tokens : attention.tokens + LIVE]
    slow = torch.autograd.grad((out * pull).sum() + (live / live.sum(-1, keepdim=True) * push).sum(), wanted)
    for ours, theirs in zip(fast, slow, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_maps_sum_to_one_over_live_tubelets_whatever_the_fused_ones_attract():
    attention, x = built("paper")
    louder = x.detach().clone()
    louder[:, -FUSED:] = 20 * louder[:, :FUSED]  # as loud as can be
    maps = attention(louder, LIVE).maps
    assert maps.shape == (2, 2, LIVE)
    torch.testing.assert_close(maps.sum(-1), torch.ones(2, 2))
    assert (maps >= 0).all()


@pytest.mark.parametrize(("mode", "seen"), [("paper", False), ("reference", True)])
def test_a_class_token_sees_the_other_in_reference_alone(mode, seen):
    attention, x = built(mode)
    changed = x.detach().clone()
    changed[:, 1] += 3
    before, after = attention(x, LIVE).out, attention(changed, LIVE).out
    assert torch.equal(before[:, 0], after[:, 0]) is not seen
    assert not torch.allclose(before[:, 2:], after[:, 2:])  # tubelets see both


def test_with_a_detector_no_tubelet_sees_a_class_token():
    attention, x = built("detector")
    changed = x.detach().clone()
    changed[:, 0] += 3
    before, after = attention(x, LIVE).out, attention(changed, LIVE).out
    assert torch.equal(before[:, 1:], after[:, 1:])
    assert not torch.allclose(before[:, 0], after[:, 0])


def test_maps_are_taken_before_dropout():
    torch.manual_seed(7)
    attention = DualCLSAttention(WIDTH, HEADS, attention_dropout=0.5, dropout=0.5)
    x = torch.randn(2, 2 + LIVE, WIDTH)
    dropped, whole = attention(x, LIVE), attention.eval()(x, LIVE)
    assert torch.equal(dropped.maps, whole.maps)
    assert not torch.allclose(dropped.out, whole.out)


def test_a_reader_attends_as_a_plain_softmax_and_leaves_the_trunk_alone():
    torch.manual_seed(3)
    reader = PrivacyReader(WIDTH, HEADS, torch.nn.Linear(WIDTH, WIDTH))
    token = torch.randn(2, 1, WIDTH, requires_grad=True)
    keys, values = (torch.randn(2, LIVE + FUSED, WIDTH, requires_grad=True) for _ in range(2))
    out, look = reader(token, keys, values, LIVE)
    q, k, v = (part.unflatten(2, (HEADS, -1)) for part in (reader.query(reader.norm1(token)), keys, values))
    weights = (torch.einsum("bqhd,bnhd->bhqn", q, k) / (WIDTH // HEADS) ** 0.5).softmax(-1)
    read = token + reader.proj(torch.einsum("bhqn,bnhd->bqhd", weights, v).flatten(2))
    live = weights.mean(1)[..., :LIVE]
    torch.testing.assert_close(out, read + reader.mlp(reader.norm2(read)), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(look, live / live.sum(-1, keepdim=True), atol=1e-6, rtol=1e-5)
    (out.sum() + look.square().sum()).backward()
    assert keys.grad is None
    assert values.grad is None
    assert token.grad is not None


def test_half_precision_hands_out_maps_in_full_precision():
    attention, x = built("paper")
    seen = attention.bfloat16()(x.bfloat16(), LIVE)
    assert seen.out.dtype == torch.bfloat16
    assert seen.maps.dtype == torch.float32
    torch.testing.assert_close(seen.maps.sum(-1), torch.ones(2, 2))


class Copies(TorchDispatchMode):
    """How many numbers were copied, at most at once."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if function in (torch.ops.aten.clone.default, torch.ops.aten.copy_.default):
            self.most = max(self.most, out.numel())
        return out


@pytest.mark.parametrize("mode", MODES)
def test_keys_and_values_are_read_where_they_lie(mode):
    attention, x = built(mode)
    with torch.no_grad(), Copies() as copies:
        seen = attention(x, LIVE)
    assert copies.most < seen.keys.numel()


# ---- averages over neighbours

GRID = (3, 4, 5)
PLACES = 60


def pairwise_average(scores: Tensor, live: Tensor) -> Tensor:
    """(m,), (m,) → (m,): the definition, a pair at a time."""
    places = [(n // 20, n // 5 % 4, n % 5) for n in live.tolist()]
    found = []
    for t, y, x in places:
        total = weight = 0.0
        for score, (t2, y2, x2) in zip(scores.tolist(), places, strict=True):
            steps = abs(t - t2), abs(y - y2), abs(x - x2)
            if max(steps) <= 1:
                w = 0.5 ** steps[0] * 0.25 ** (steps[1] + steps[2])
                total, weight = total + w * score, weight + w
        found.append(total / weight)
    return torch.tensor(found)


def random_scores(live: int, clips: int = 2) -> tuple[Tensor, Tensor]:
    torch.manual_seed(4)
    numbers = torch.stack([torch.randperm(PLACES)[:live] for _ in range(clips)])
    return torch.randn(clips, live), numbers


@pytest.mark.parametrize("live", [1, 7, 45, PLACES])
def test_the_average_is_the_weighted_mean_over_live_neighbours(live):
    scores, numbers = random_scores(live)
    wanted = torch.stack([pairwise_average(*clip) for clip in zip(scores, numbers, strict=True)])
    torch.testing.assert_close(average_neighbours(scores, numbers, GRID), wanted, atol=1e-6, rtol=1e-5)


def test_holes_and_the_rim_do_not_lower_the_average():
    scores, numbers = random_scores(20)
    torch.testing.assert_close(average_neighbours(torch.ones_like(scores), numbers, GRID), torch.ones_like(scores))


def test_a_tubelet_without_neighbours_keeps_its_score():
    far_apart = torch.tensor([[0, 4, 15, 19, 52]])
    scores = torch.randn(1, 5)
    torch.testing.assert_close(average_neighbours(scores, far_apart, GRID), scores)


def test_gradients_of_the_average_are_those_of_the_definition():
    scores, numbers = random_scores(30, clips=1)
    ours = torch.autograd.functional.jacobian(lambda s: average_neighbours(s, numbers, GRID), scores)[0, :, 0]
    columns = [pairwise_average(row, numbers[0]) for row in torch.eye(30)]
    torch.testing.assert_close(ours, torch.stack(columns, 1), atol=1e-6, rtol=1e-5)
