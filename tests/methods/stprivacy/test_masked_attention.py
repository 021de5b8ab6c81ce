"""Masked attention against equations 8 to 10 written out, with gradients, and against attention over who is left."""

import math

import pytest
import torch
from torch import Tensor

from vidveil.methods.stprivacy.masked_attention import MaskedAttention, masked_attention

BATCH, HEADS, COUNT, WIDTH = 3, 2, 11, 5
KEPT = {"some": 0.6, "most": 0.9, "few": 0.2, "none": 0.0, "all": 1.0}


def tensors(share: float, dtype: torch.dtype = torch.float32) -> tuple[list[Tensor], Tensor]:
    torch.manual_seed(3)
    qkv = [(1.5 * torch.randn(BATCH, HEADS, COUNT, WIDTH, dtype=dtype)).requires_grad_() for _ in range(3)]
    decision = (torch.rand(BATCH, COUNT) < share).to(dtype).requires_grad_()
    return qkv, decision


def plain(q: Tensor, k: Tensor, v: Tensor, decision: Tensor) -> Tensor:
    """Equations 8, 9 and 10, number by number."""
    clips = []
    for clip in range(len(q)):
        heads = []
        for head in range(q.shape[1]):
            rows = []
            for i in range(q.shape[2]):
                weights = []
                for j in range(q.shape[2]):
                    score = q[clip, head, i] @ k[clip, head, j] / math.sqrt(q.shape[3])
                    mask = torch.ones((), dtype=q.dtype) if i == j else decision[clip, j]
                    weights.append(score.exp() * mask)
                total = torch.stack(weights).sum()
                rows.append(sum(w / total * v[clip, head, j] for j, w in enumerate(weights)))
            heads.append(torch.stack(rows))
        clips.append(torch.stack(heads))
    return torch.stack(clips)


@pytest.mark.parametrize("kept", KEPT)
def test_the_output_is_that_of_equations_8_to_10(kept):
    qkv, decision = tensors(KEPT[kept])
    torch.testing.assert_close(masked_attention(*qkv, decision), plain(*qkv, decision), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kept", KEPT)
def test_gradients_are_those_of_equations_8_to_10_but_at_dropped_tokens(kept):
    qkv, decision = tensors(KEPT[kept])
    pull = torch.randn(BATCH, HEADS, COUNT, WIDTH)
    fast = torch.autograd.grad((masked_attention(*qkv, decision) * pull).sum(), [*qkv, decision])
    slow = torch.autograd.grad((plain(*qkv, decision) * pull).sum(), [*qkv, decision])
    live = decision > 0.5
    for ours, theirs in zip((*fast[:3], fast[3][live]), (*slow[:3], slow[3][live]), strict=True):
        scale = theirs.abs().max().clamp(min=1) if theirs.numel() else 1
        torch.testing.assert_close(ours / scale, theirs / scale, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kept", ["some", "most", "few", "none"])
def test_a_dropped_token_gets_how_much_would_change_if_it_alone_came_back(kept):
    qkv, decision = tensors(KEPT[kept])
    pull = torch.randn(BATCH, HEADS, COUNT, WIDTH)
    (found,) = torch.autograd.grad((masked_attention(*qkv, decision) * pull).sum(), decision)
    with torch.no_grad():
        before = plain(*qkv, decision)
        for clip, token in (decision < 0.5).nonzero().tolist():
            back = decision.clone()
            back[clip, token] = 1
            change = ((plain(*qkv, back) - before) * pull)[clip].sum()
            assert found[clip, token] == pytest.approx(change.item(), abs=1e-4)


def test_loud_dropped_tokens_do_not_drown_the_others():
    torch.manual_seed(8)
    q, k, v = (torch.randn(1, 4, 392, 16) * (4 if number < 2 else 1) for number in range(3))
    decision = (torch.rand(1, 392) < 0.4).float().requires_grad_()
    (masked_attention(q, k, v, decision) * torch.randn(1, 4, 392, 16)).sum().backward()
    live = decision.detach()[0] > 0.5
    assert decision.grad[0, ~live].abs().max() < 10 * decision.grad[0, live].abs().max()


def test_a_dropped_token_that_would_help_is_told_so():
    """Its value is where the output should go: a step against the gradient brings it back."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 1, 6, 4)
    v = torch.zeros(1, 1, 6, 4)
    v[:, :, 4] = 1.0
    decision = torch.tensor([[1.0, 1.0, 1.0, 1.0, 0.0, 0.0]], requires_grad=True)
    (1 - masked_attention(q, k, v, decision)[:, :, :4]).square().sum().backward()
    assert decision.grad[0, 4] < 0
    assert decision.grad[0, 5] == pytest.approx(0, abs=1e-6) or decision.grad[0, 5] > decision.grad[0, 4]


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_kept_rows_are_those_of_attention_without_the_dropped_tokens(share):
    torch.manual_seed(4)
    attention, x = MaskedAttention(24, 3), torch.randn(2, 20, 24)
    kept = torch.stack([torch.randperm(20)[: int(20 * share)] for _ in range(2)])  # (B, k)
    decision = torch.zeros(2, 20).scatter(1, kept, 1.0)
    places = kept.unsqueeze(2).expand(-1, -1, 24)
    masked = attention(x, decision).gather(1, places)
    torch.testing.assert_close(masked, attention(x.gather(1, places)), atol=1e-5, rtol=1e-5)


def test_a_dropped_token_sees_those_who_are_live_and_itself_and_nobody_sees_it():
    torch.manual_seed(5)
    attention, x = MaskedAttention(24, 3), torch.randn(1, 9, 24)
    decision = torch.ones(1, 9)
    decision[0, [2, 7]] = 0
    before, changed = attention(x, decision), x.clone()
    changed[0, 2] = torch.randn(24)
    moved = ((attention(changed, decision) - before).abs().amax(2) > 1e-6)[0]
    assert moved.nonzero().flatten().tolist() == [2]
    changed = x.clone()
    changed[0, 0] = torch.randn(24)
    assert ((attention(changed, decision) - before).abs().amax(2) > 1e-6).all()


def test_with_everybody_live_it_is_plain_attention():
    torch.manual_seed(6)
    attention, x = MaskedAttention(24, 3), torch.randn(2, 9, 24)
    torch.testing.assert_close(attention(x, torch.ones(2, 9)), attention(x), atol=1e-5, rtol=1e-5)


def test_very_loud_tokens_leave_all_numbers_finite():
    torch.manual_seed(7)
    q, k, v = ((30 * torch.randn(1, 1, 16, 4)).requires_grad_() for _ in range(3))
    decision = (torch.arange(16) % 2).float()[None].requires_grad_()
    out = masked_attention(q, k, v, decision)
    out.sum().backward()
    assert out.isfinite().all()
    assert all(part.grad.isfinite().all() for part in (q, k, v, decision))


def test_no_n_by_n_numbers_are_kept_for_the_way_back():
    count = 64
    q, k, v = (torch.randn(2, 2, count, 8, requires_grad=True) for _ in range(3))
    decision = (torch.rand(2, count) < 0.5).float().requires_grad_()
    floats = []

    def note(tensor):
        if tensor.is_floating_point():
            floats.append(tensor.shape)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        masked_attention(q, k, v, decision)
    assert floats
    assert not [shape for shape in floats if shape[-2:] == (count, count) and shape[1] > 1]


def test_in_bfloat16_the_gradient_of_the_decision_is_near_that_of_32_bits():
    qkv, decision = tensors(0.6)
    pull = torch.randn(BATCH, HEADS, COUNT, WIDTH)
    (wanted,) = torch.autograd.grad((masked_attention(*qkv, decision) * pull).sum(), decision)
    small = [part.detach().bfloat16().requires_grad_() for part in qkv]
    out = masked_attention(*small, decision)
    (found,) = torch.autograd.grad((out.float() * pull).sum(), decision)
    assert out.dtype == torch.bfloat16
    assert found.dtype == torch.float32
    assert (found - wanted).norm() < 0.05 * wanted.norm()
