"""The network against a plain transcription of the paper, and what its options promise."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.methods.dual_cls.test_weights import picture_vit
from tests.methods.made_checkpoint import stronger
from vidveil.core.errors import RecipeError, UsageError, WeightsError
from vidveil.methods.masking.masker import TubeletMasker
from vidveil.methods.stprivacy import model as stprivacy
from vidveil.methods.stprivacy.model import Network, STPrivacy, stage_count
from vidveil.methods.stprivacy.token_retention import Predictor, averages, sampled, sparsity
from vidveil.methods.stprivacy.train import MaskedViT, load_picture_weights
from vidveil.models.layers.tubelets import cut, over_pixels

WIDTH, HEADS = 24, 3
SEGMENTS, PLACES = 4, 16


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Four blocks, a predictor before each but the first; 4 × 4 × 4 tubelets."""
    monkeypatch.setitem(stprivacy.SIZES, "tiny", (WIDTH, 4, HEADS, 8))


def built(**changes: Any) -> STPrivacy:
    torch.manual_seed(5)
    network = {"size": "tiny", "frames": 8, "side": 32, "actions": 5}
    return stronger(STPrivacy(Network(**network | changes)), 0.2)


def clips(count: int = 2, frames: int = 8, side: int = 32) -> Tensor:
    return torch.rand(count, 3, frames, side, side, generator=torch.Generator().manual_seed(11))


# ---- eq. 1 to 7


def log_z(predictor: Predictor, x: Tensor, decision: Tensor) -> Tensor:
    """Equations 1 to 5 of one clip: tokens (L, N, D), Î (L, N) → (L, N, 2)."""
    third = x.shape[2] // 3
    weight, bias = predictor.mix.weight, predictor.mix.bias
    mlps = [
        lambda token, i=i: F.gelu(
            F.linear(predictor.norm(token), weight[i * third :][:third], bias[i * third :][:third])
        )
        for i in range(3)
    ]
    rows = []
    for segment in range(len(x)):
        row = []
        for place in range(x.shape[1]):
            local = mlps[0](x[segment, place])
            inside = [decision[segment, n] * mlps[1](x[segment, n]) for n in range(x.shape[1])]
            spatio = sum(inside) / (decision[segment].sum() if decision[segment].any() else 1)
            everywhere = [decision[s, n] * mlps[2](x[s, n]) for s in range(len(x)) for n in range(x.shape[1])]
            spatem = sum(everywhere) / decision.sum()
            row.append(predictor.mlp(torch.cat([local, spatio, spatem])).softmax(-1).log())
        rows.append(torch.stack(row))
    return torch.stack(rows)


def test_a_predictor_is_equations_1_to_5_and_so_are_its_gradients():
    torch.manual_seed(0)
    predictor, x = Predictor(12), torch.randn(2, 3, 4, 12, requires_grad=True)
    decision = (torch.rand(2, 3, 4) < 0.5).float()
    decision[1, 2] = 0  # a segment with nobody left
    decision.requires_grad_()
    segment = torch.arange(12).div(4, rounding_mode="floor").expand(2, -1)
    found = predictor(x.flatten(1, 2), segment, 3, decision.flatten(1)).view(2, 3, 4, 2)
    wanted = torch.stack([log_z(predictor, *clip) for clip in zip(x, decision, strict=True)])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    pull = torch.randn_like(found)
    inputs = [x, decision, *predictor.parameters()]
    fast, slow = (torch.autograd.grad((each * pull).sum(), inputs) for each in (found, wanted))
    for ours, theirs in zip(fast, slow, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_a_segment_or_a_clip_with_nobody_left_has_the_mean_0():
    x, segment = torch.randn(1, 6, 4), torch.tensor([[0, 0, 0, 1, 1, 1]])
    decision = torch.tensor([[1.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    means = averages(x, segment, 2, decision)[0]
    torch.testing.assert_close(means[:3], (x[0, 0] + x[0, 2]).div(2).expand(3, -1))
    assert not means[3:].any()
    assert not averages(x, None, 1, torch.zeros(1, 6)).any()


def test_the_draw_is_equation_6_hard_forwards_and_a_softmax_backwards():
    logits = torch.randn(5, 7, 2, requires_grad=True)
    pull = torch.randn(5, 7)
    torch.manual_seed(1)
    ours = sampled(logits.log_softmax(-1))
    torch.manual_seed(1)
    noise = -torch.empty_like(logits).exponential_().log()
    soft = torch.stack([((z + g).exp() / (z + g).exp().sum())[0] for z, g in zip(
        logits.log_softmax(-1).view(-1, 2), noise.view(-1, 2), strict=True
    )]).view(5, 7)  # fmt: skip
    assert set(ours.detach().unique().tolist()) == {0.0, 1.0}
    assert torch.equal(ours.detach(), (soft > 0.5).float())
    (fast,), (slow,) = (torch.autograd.grad((each * pull).sum(), logits, retain_graph=True) for each in (ours, soft))
    torch.testing.assert_close(fast, slow)
    torch.manual_seed(1)
    theirs = F.gumbel_softmax(logits.log_softmax(-1), tau=1.0, hard=True)[..., 0]
    torch.testing.assert_close(ours, theirs)


def test_a_token_is_drawn_as_often_as_it_is_likely():
    torch.manual_seed(2)
    for share in (0.1, 0.5, 0.85):
        z = torch.tensor([share, 1 - share]).log().expand(4000, 2)
        assert sampled(z).mean().item() == pytest.approx(share, abs=0.03)


def test_sparsity_is_equation_7():
    torch.manual_seed(3)
    decisions = [(torch.rand(2, 3, 5) < 0.6).float() for _ in range(3)]
    per_clip = []
    for clip in range(2):
        total = 0.0
        for m in range(1, 4):
            for segment in range(3):
                mean = sum(decisions[m - 1][clip, segment, n].item() for n in range(5)) / 5
                total += (mean - 0.7**m) ** 2
        per_clip.append(total / (3 * 3))
    assert sparsity(decisions, 0.7).item() == pytest.approx(sum(per_clip) / 2)


def test_sparsity_of_whole_segments_is_not_made_up_for_by_others():
    half = torch.zeros(1, 2, 4)
    half[0, 0] = 1
    assert sparsity([half], 0.5) == 0.25
    even = torch.tensor([1.0, 1.0, 0.0, 0.0]).expand(1, 2, 4)
    assert sparsity([even], 0.5) == 0


# ---- the whole network


def attend(q: Tensor, k: Tensor, v: Tensor, decision: Tensor) -> Tensor:
    """Equations 8 to 10 of one clip: (M, D) each, Î (M,) → (M, D). What multiplies a dropped Î, which is 0, is as it
    would be with that token back: Z + exp(S) in the place of Z."""
    mask = torch.where(torch.eye(len(q), dtype=torch.bool), torch.ones(()), decision.expand(len(q), -1))
    heads = []
    for q_, k_, v_ in zip(*(part.view(len(part), HEADS, -1).unbind(1) for part in (q, k, v)), strict=True):
        strength = (q_ @ k_.T / math.sqrt(q_.shape[1])).exp()
        total = (strength * mask).sum(1, keepdim=True).detach()
        weights = strength * torch.where(mask > 0.5, 1.0, total / (total + strength.detach())) * mask
        heads.append(weights / weights.sum(1, keepdim=True) @ v_)
    return torch.cat(heads, 1)


def plain(net: STPrivacy, clip: Tensor, noise: Sequence[Tensor]) -> tuple[Tensor, list[Tensor], Tensor]:
    """One clip (3, T, H, W) under given Gumbel noise, each (M, 2): the action's logits, each Î, the video shown."""
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    picture = (clip - mean.view(3, 1, 1, 1)) / deviation.view(3, 1, 1, 1)
    grown = F.conv3d(picture[None], net.patch_embed.proj.weight, net.patch_embed.proj.bias, stride=net.tubelet)[0]
    places = net.pos_embed[0].T.view(WIDTH, 1, net.grid[1], net.grid[2])
    x = (grown + places + net.time_embed[0].T.view(WIDTH, -1, 1, 1)).flatten(1).T  # (M, D)
    decision, decisions = torch.ones(len(x)), []
    for number, block in enumerate(net.blocks):
        if number in (1, 2, 3):
            z = log_z(net.predictors[number - 1], x.view(SEGMENTS, PLACES, -1), decision.view(SEGMENTS, PLACES))
            soft = (z.view(-1, 2) + noise[number - 1]).softmax(-1)[:, 0]
            decision = decision * ((soft > 0.5).float() - soft.detach() + soft)
            decisions.append(decision)
        q, k, v = block.attn.qkv(block.norm1(x)).chunk(3, -1)
        x = x + block.attn.proj(attend(q, k, v, decision))
        x = x + block.mlp(block.norm2(x))
    action = net.action_head(net.norm((x * decision[:, None]).sum(0) / decision.sum()))
    video = torch.zeros_like(clip)
    for number, pixels in enumerate(net.decoder(net.norm(x)).sigmoid()):
        segment, row, column = (int(i) for i in torch.unravel_index(torch.tensor(number), net.grid))
        cell = pixels.view(3, *net.tubelet) * decision[number]
        video[:, 2 * segment : 2 * segment + 2, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] = cell
    return action, decisions, video


def drawn_by(seed: int, count: int) -> list[Tensor]:
    torch.manual_seed(seed)
    return [-torch.empty(count, 64, 2).exponential_().log() for _ in range(3)]


def test_while_it_learns_the_network_is_the_paper_written_out_with_its_gradients():
    net, video = built().train(), clips(1)
    noise = drawn_by(9, 1)
    torch.manual_seed(9)
    output = net(video)
    action, decisions, shown = plain(net, video[0], [each[0] for each in noise])
    torch.testing.assert_close(output.action[0], action, atol=1e-4, rtol=1e-4)
    for ours, theirs in zip(output.decisions, decisions, strict=True):
        assert torch.equal(ours.detach().flatten(), theirs.detach().round())
        assert 0 < ours.mean() < 1
    torch.testing.assert_close(net.shown(output)[0], shown, atol=1e-5, rtol=1e-4)
    pull = torch.randn_like(shown)
    parameters = list(net.parameters())
    fast, slow = (
        torch.autograd.grad(logits.square().sum() + (video_ * pull).sum(), parameters)
        for logits, video_ in ((output.action, net.shown(output)[0]), (action, shown))
    )
    for (name, _), ours, theirs in zip(net.named_parameters(), fast, slow, strict=True):
        scale = theirs.abs().max()
        assert scale > 0, name
        torch.testing.assert_close(ours / scale, theirs / scale, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("select", ["clip", "segment"])
@pytest.mark.parametrize("alpha", [0.7, 0.4, 1.0])
def test_taking_tokens_out_gives_the_values_of_masking_them(select, alpha):
    net, video = built(), clips()
    with torch.no_grad():
        pruned = net(video, alpha, select)
        masked = net.masked(video, pruned.decisions)
    torch.testing.assert_close(net.shown(pruned), net.shown(masked), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(pruned.action, masked.action, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(pruned.scores, masked.scores, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("select", ["clip", "segment"])
def test_each_stage_keeps_the_most_likely_of_those_that_are_left(select):
    net, video = built(), clips(1)
    with torch.no_grad():
        output = net(video, 0.6, select)
        live = torch.ones(SEGMENTS, PLACES)
        for stage, kept in enumerate(output.decisions, 1):
            likely = likelihoods(net, video, output.decisions[: stage - 1])  # (L, N)
            groups = [live.bool()] if select == "clip" else [mask_of(live, segment) for segment in range(SEGMENTS)]
            wanted = torch.zeros(SEGMENTS, PLACES)
            for group in groups:
                count = stage_count(group.numel() if select == "clip" else PLACES, 0.6, stage)
                order = sorted(group.nonzero().tolist(), key=lambda place: -likely[tuple(place)].item())
                for place in order[:count]:
                    wanted[tuple(place)] = 1
            assert torch.equal(kept[0], wanted)
            live = wanted


def mask_of(live: Tensor, segment: int) -> Tensor:
    mask = torch.zeros_like(live, dtype=torch.bool)
    mask[segment] = live[segment] > 0
    return mask


def likelihoods(net: STPrivacy, video: Tensor, before: Sequence[Tensor]) -> Tensor:
    """z of the next stage after these, by masking."""
    x, stage = net.embed(video), len(before)
    for number in range(stage + 1):
        decision = before[number - 1].flatten(1) if number else None
        x = net.blocks[number](x, decision)
    decision = before[-1][0] if before else torch.ones(SEGMENTS, PLACES)
    return log_z(net.predictors[stage], x[0].view(SEGMENTS, PLACES, -1), decision)[..., 0]


def test_of_49_tubelets_of_a_segment_34_24_and_16_stay():
    assert [stage_count(49, 0.7, m) for m in (1, 2, 3)] == [34, 24, 16]
    net = STPrivacy(Network(size="vit_ti", frames=4, side=112, actions=2)).eval()
    with torch.no_grad():
        output = net(clips(1, 4, 112))
        over_clip = net(clips(1, 4, 112), select="clip")
    assert [each.sum(2).unique().tolist() for each in output.decisions] == [[34], [24], [16]]
    assert [each.sum().item() for each in over_clip.decisions] == [math.floor(98 * 0.7**m) for m in (1, 2, 3)]


@pytest.mark.parametrize(
    ("count", "alpha", "wanted"),
    [
        (392, 0.7, (274, 192, 134)), (392, 0.9, (352, 317, 285)), (10, 0.1, (1, 1, 1)), (100, 0.1, (10, 1, 1)),
        (1000, 0.1, (100, 10, 1)), (64, 0.5, (32, 16, 8)), (7, 1.0, (7, 7, 7)), (125, 0.2, (25, 5, 1)),
    ],
)  # fmt: skip
def test_a_stage_keeps_the_floor_of_its_share_and_at_least_one(count, alpha, wanted):
    assert tuple(stage_count(count, alpha, m) for m in (1, 2, 3)) == wanted


def test_predictors_stand_before_each_quarter_but_the_first():
    assert STPrivacy(Network(size="vit_ti", actions=2)).stages == (3, 6, 9)
    assert STPrivacy(Network(size="mini", frames=8, side=64, actions=2)).stages == (2, 4, 6)


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("size", ["mini", "vit_ti"])
def test_tubelets_are_as_long_as_asked_for(size, times):
    side = 32 if size == "mini" else 64
    net = STPrivacy(Network(size=size, frames=8, side=side, actions=3, tubelet_frames=times))
    assert net.grid == (8 // times, 4, 4)
    output = net(clips(2, 8, side))
    assert output.decisions[2].shape == (2, 8 // times, 16)
    assert net.shown(output).shape == (2, 3, 8, side, side)
    recognizer = MaskedViT(net.network, {"action": 3})
    assert recognizer(output.pixels, output.decision)["action"].shape == (2, 3)


def test_what_is_dropped_is_black_and_what_stays_is_drawn():
    net, video = built(), clips()
    shown, kept, scores = net.draw(video, 0.6)
    pixels = cut(shown, net.tubelet).flatten(1, 2)  # (B, M, 3·t·p·p)
    assert kept.shape == scores.shape == (2, 4, 4, 4)
    assert not pixels[~kept.flatten(1)].any()
    assert (pixels[kept.flatten(1)] > 0).all()
    assert (shown < 1).all()
    decision = net.decide(video, 0.6)
    assert torch.equal(decision.kept, kept)
    torch.testing.assert_close(decision.scores, scores)


def test_without_anonymization_what_stays_is_shown_as_it_was_filmed():
    net, video = built(anonymize=False), clips()
    assert net.decoder is None
    shown, kept, _ = net.draw(video)
    assert 0 < kept.float().mean() < 1
    assert torch.equal(shown, video * over_pixels(kept, net.tubelet).unsqueeze(1))
    net.train()
    output = net(video)
    assert net.shown(output).requires_grad
    assert torch.equal(output.pixels, video)


def test_without_sparsification_nothing_is_dropped():
    net, video = built(sparsify=False), clips()
    assert len(net.predictors) == 0
    shown, kept, _ = net.draw(video)
    assert kept.all()
    assert net.decide(video).kept.all()
    torch.testing.assert_close(net.shown(net.train()(video)), shown)
    assert net.own == {}
    with pytest.raises(UsageError, match="drops no tubelets"):
        net.decide(video, 0.5)


def test_a_later_stage_stands_higher_and_within_a_stage_who_is_more_likely():
    net, video = built(), clips()
    with torch.no_grad():
        output = net(video, 0.6, "clip")
    dropped = [output.scores[decision.flatten(1) == 0] for decision in output.decisions]
    last = output.scores[output.decision > 0.5]
    assert (dropped[0] < 1).all()
    assert last.min() > 2
    for number, clip in enumerate(output.scores):
        kept = output.decision[number] > 0.5
        assert clip[kept].min() >= clip[~kept].max()


@pytest.mark.parametrize("select", ["clip", "segment"])
def test_a_clip_does_not_depend_on_its_neighbours(select):
    net, video = built(select=select), clips(5)
    together = net.draw(video)
    for number in range(5):
        for whole, alone in zip(together, net.draw(video[number : number + 1]), strict=True):
            torch.testing.assert_close(whole[number], alone[0], atol=1e-5, rtol=1e-5)


def test_decisions_are_random_in_training_alone():
    net, video = built(), clips()
    assert torch.equal(net.draw(video)[0], net.draw(video)[0])
    net.train()
    assert not torch.equal(net(video).decisions[0], net(video).decisions[0])


def test_a_dropped_tubelet_gets_a_gradient_by_which_it_may_come_back():
    net, video = built(), clips()
    with torch.no_grad():
        chosen = [each.clone() for each in net(video).decisions]
    for each in chosen:
        each.requires_grad_()
    net.masked(video, chosen).action.square().sum().backward()
    for each in chosen:
        assert each.grad[each == 0].any()


def test_recognizers_see_nothing_of_what_is_dropped():
    torch.manual_seed(0)
    for size in ("tiny", "mini"):
        recognizer = MaskedViT(Network(size=size, frames=8, side=32, actions=3), {"action": 3, "identity": 4}).eval()
        video, decision = clips(), (torch.rand(2, 64) < 0.4).float()
        hidden = over_pixels(decision.view(2, 4, 4, 4) == 0, recognizer.tubelet).unsqueeze(1)
        expected = recognizer(video, decision)
        for other in (torch.rand_like(video), torch.zeros_like(video)):
            for name, logits in recognizer(torch.where(hidden, other, video), decision).items():
                torch.testing.assert_close(logits, expected[name], atol=1e-5, rtol=1e-5)
        shown = torch.where(hidden, video, torch.rand_like(video))
        assert not torch.allclose(recognizer(shown, decision)["action"], expected["action"], atol=1e-4)


def test_a_masker_takes_alpha_for_its_keep_rate_and_refuses_a_privacy_weight():
    net, video = built(anonymize=False), clips()
    method = TubeletMasker("st", net)
    assert method.knobs["keep"] == 0.7
    assert method.knobs["privacy_weight"] is None
    for keep, alpha in ((None, 0.7), (0.5, 0.5)):
        found = method.anonymize_batch(video, keep=keep)
        assert torch.equal(found.mask, over_pixels(net.decide(video, alpha).kept, net.tubelet))
    with pytest.raises(UsageError, match="leave out privacy_weight"):
        method.anonymize_batch(video, privacy_weight=0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": "vit_xl"}, "no network is called 'vit_xl'; there are mini"),
        ({"tubelet_frames": 3}, "tubelet_frames is 1, 2 or 4"),
        ({"alpha": 0.0}, r"alpha is a share in \(0, 1\]"),
        ({"alpha": 1.1}, r"alpha is a share in \(0, 1\]"),
        ({"select": "frame"}, "select is clip or segment"),
        ({"sparsify": False, "anonymize": False}, "the video stays as it was filmed"),
    ],
)
def test_networks_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(RecipeError, match=message):
        replace(built().network, **changes)


@pytest.mark.parametrize(("alpha", "select"), [(0.0, None), (1.5, None), (None, "frame")])
def test_a_call_that_makes_no_sense_is_refused(alpha, select):
    with pytest.raises(UsageError, match="keep is a share"):
        built()(clips(), alpha, select)


# ---- published weights


def test_a_pictures_transformer_fills_the_backbone_of_the_network_and_of_its_recognizers():
    tensors = picture_vit(WIDTH, 4, side=6, patch=8)
    for net, left in (
        (built(), {"action_head", "decoder", "predictors"}),
        (MaskedViT(built().network, {"action": 2}), {"heads"}),
    ):
        assert {name.split(".")[0] for name in load_picture_weights(net, tensors)} == left
        assert torch.equal(net.blocks[2].mlp.fc1.weight, tensors["blocks.2.mlp.fc1.weight"].float())
        assert not net.time_embed.any()


def test_equal_frames_give_the_embedding_of_the_picture():
    net, tensors = built(), picture_vit(WIDTH, 4, side=4, patch=8)
    load_picture_weights(net, tensors)
    picture = torch.rand(1, 3, 32, 32)
    tensors = {name: tensor.float() for name, tensor in tensors.items()}
    standard = net.standardize(picture.unsqueeze(2))[:, :, 0]
    patches = F.conv2d(standard, tensors["patch_embed.proj.weight"], tensors["patch_embed.proj.bias"], stride=8)
    tokens = patches.flatten(2).transpose(1, 2) + tensors["pos_embed"][:, 1:]  # (1, 16, D)
    x = net.embed(picture.unsqueeze(2).expand(-1, -1, 8, -1, -1))
    torch.testing.assert_close(x, tokens.repeat(1, 4, 1), atol=1e-3, rtol=1e-3)


def test_weights_of_another_width_are_refused():
    with pytest.raises(UsageError, match="does not fit"):
        load_picture_weights(built(), picture_vit(WIDTH + 1, 4, side=4, patch=8))


def test_published_weights_fill_a_vit_s(monkeypatch):
    from vidveil.weights import weights
    from vidveil.weights.tensors import read_tensors

    monkeypatch.setenv("VIDVEIL_OFFLINE", "1")
    try:
        tensors = read_tensors(weights("vits14"))
    except WeightsError:
        pytest.skip("vits14 is not on disk: vidveil fetch vits14")
    net = STPrivacy(Network(size="vit_s", frames=16, side=112, actions=3)).eval()
    assert {name.split(".")[0] for name in load_picture_weights(net, tensors)} == {
        "action_head", "decoder", "predictors",
    }  # fmt: skip
    assert net.decide(torch.rand(1, 3, 16, 112, 112)).kept.sum() == 8 * 16
