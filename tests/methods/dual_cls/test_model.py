"""The network against a plain transcription of the paper, and what its options promise."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.methods.made_checkpoint import stronger
from vidveil.core.errors import RecipeError, UsageError
from vidveil.methods.dual_cls import model as dual_cls
from vidveil.methods.dual_cls.model import DualCLS, Network
from vidveil.models.layers import fused_attention
from vidveil.models.layers.tubelets import over_pixels, paint

MODES: dict[str, dict[str, Any]] = {
    "paper": {},
    "no fusion": {"fusion": False},
    "reference": {"reference": True},
    "detector": {"privacy_attention": "detector"},
    "smooth": {"smooth": True},
    "decode": {"fusion": False, "output": "decode"},
}
WIDTH, HEADS = 24, 3


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Four blocks, the last behind the last selection; 4 × 4 × 4 tubelets."""
    monkeypatch.setitem(dual_cls.SIZES, "tiny", (WIDTH, 4, HEADS, (1, 2, 3), (2, 8, 8)))


def built(mode: str = "paper", **changes: Any) -> DualCLS:
    torch.manual_seed(5)
    network = {"size": "tiny", "frames": 8, "side": 32, "actions": 5, "budget": {"attributes": 4}, "keep": 0.7}
    return stronger(DualCLS(Network(**(network | MODES[mode] | changes))), 0.2)


def clips(count: int = 2, frames: int = 8, side: int = 32) -> Tensor:
    return torch.rand(count, 3, frames, side, side, generator=torch.Generator().manual_seed(11))


def attend(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """(n, D), (N, D) → (n, D) and the mean over heads of the weights (n, N)."""
    split = [y.view(len(y), HEADS, -1).transpose(0, 1) for y in (q, k, v)]
    logits = split[0] @ split[1].transpose(1, 2) / (WIDTH // HEADS) ** 0.5
    weights = logits.masked_fill(~allowed, -math.inf).softmax(-1)
    return (weights @ split[2]).transpose(0, 1).flatten(1), weights.mean(0)


def neighbour_weights(numbers: Tensor, grid: tuple[int, int, int]) -> Tensor:
    """(m,) → (m, m): how much each counts for each, with rows of the sum 1."""
    places = torch.stack(torch.unravel_index(numbers, grid), 1)
    steps = (places[:, None] - places).abs()  # (m, m, 3)
    weights = (torch.tensor([0.5, 0.25, 0.25]) ** steps).prod(2) * (steps.amax(2) <= 1)
    return weights / weights.sum(1, keepdim=True)


def plain(net: DualCLS, clip: Tensor, keep: float, weight: float) -> tuple[Tensor, Tensor, list[set[int]], Tensor]:
    """One clip (3, T, H, W), no token ever taken away: a dense mask says who is dead.

    Returns the action's logits, priv_CLS, the tubelets that each selection kept, and the final tokens of all tubelets.
    """
    mode, count = net.network, net.count
    detector = mode.privacy_attention == "detector"
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    picture = (clip - mean.view(3, 1, 1, 1)) / deviation.view(3, 1, 1, 1)
    grown = F.conv3d(picture[None], net.patch_embed.proj.weight, net.patch_embed.proj.bias, stride=net.tubelet)[0]
    places = net.pos_embed[0, 1:].T.view(WIDTH, 1, net.grid[1], net.grid[2])
    grown = grown + places + net.time_embed[0].T.view(WIDTH, -1, 1, 1)
    act, priv = net.cls_token[0] + net.pos_embed[0, 0]
    x = torch.stack([act, priv, *grown.flatten(1).T])
    next_to = (net.cls_token[0, 1] + net.pos_embed[0, 0].detach())[None]  # a detector's token
    alive = torch.ones(len(x), dtype=torch.bool)
    alive[1] = not detector
    kept: list[set[int]] = []
    for number, block in enumerate(net.blocks, 1):
        allowed = alive.expand(len(x), -1).clone()
        if not mode.reference:
            allowed[0, 1] = allowed[1, 0] = False
        if detector:
            allowed[2:, 0] = False
        allowed |= torch.eye(len(x), dtype=torch.bool)  # the dead look at themselves, and nobody looks at them
        q, k, v = block.attn.qkv(block.norm1(x)).chunk(3, -1)
        out, weights = attend(q, k, v, allowed)
        x = x + block.attn.proj(out)
        looks = weights[:2]
        if detector:
            reader, others = block.reader, alive.clone()
            others[0] = False
            read, look = attend(reader.query(reader.norm1(next_to)), k.detach(), v.detach(), others[None])
            next_to = next_to + reader.proj(read)
            next_to = next_to + reader.mlp(reader.norm2(next_to))
            looks = torch.cat([weights[:1], look])
        if number in net.prune_at:
            last = len(x) if mode.reference else 2 + count
            rivals = [place for place in range(2, last) if alive[place]]
            a_act, a_priv = looks[:, rivals] / looks[:, rivals].sum(1, keepdim=True)
            score = -a_priv if weight == math.inf else a_act - weight * a_priv
            if mode.smooth:
                score = score @ neighbour_weights(torch.tensor(rivals) - 2, net.grid).T
            order = score.argsort(descending=True)
            dropped = order[math.ceil(keep * len(rivals)) :].tolist()
            alive[[rivals[place] for place in dropped]] = False
            kept.append({place for place in range(count) if alive[2 + place]})
            if mode.fusion:
                fused = sum(a_act[place] * x[rivals[place]] for place in dropped)
                x, alive = torch.cat([x, fused[None]]), torch.cat([alive, alive.new_ones(1)])
        x = x + block.mlp(block.norm2(x))
    features = net.priv_norm(next_to[0]) if detector else net.norm(x[1])
    return net.action_head(net.norm(x[0])), features, kept, x[2 : 2 + count]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("keep", "weight"), [(0.7, 0.5), (0.4, 2.0), (0.8, math.inf)])
def test_the_network_is_the_paper_written_out(mode, keep, weight):
    net, video = built(mode), clips()
    with torch.no_grad():
        output = net(video, keep, weight)
        for number, clip in enumerate(video):
            action, features, kept, tokens = plain(net, clip, keep, weight)
            for chosen, wanted in zip(output.selections, kept, strict=True):
                stays = chosen.live[number, chosen.kept[number]]
                assert {place for place in stays.tolist() if place < net.count} == wanted
            assert set(output.kept[number].nonzero()[:, 0].tolist()) == kept[-1]
            torch.testing.assert_close(output.action[number], action, atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(output.privacy_features[number], features, atol=1e-4, rtol=1e-4)
            last = output.selections[-1]
            for place, token in zip(last.live[number, last.kept[number]], output.tokens[number], strict=True):
                if place < net.count:
                    torch.testing.assert_close(token, tokens[place], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_those_of_the_paper_written_out(mode):
    net, video = built(mode), clips(1)
    wanted = [p for name, p in net.named_parameters() if not name.startswith(("budget_heads", "decoder", "priv_norm"))]
    output = net(video)
    fast = torch.autograd.grad(
        output.action.square().sum() + output.privacy_features.square().sum(), wanted, allow_unused=True
    )
    action, features, *_ = plain(net, video[0], 0.7, 0.5)
    slow = torch.autograd.grad(action.square().sum() + features.square().sum(), wanted, allow_unused=True)
    for ours, theirs in zip(fast, slow, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-3, rtol=2e-3)


def test_a_vit_b_at_224_leaves_1412_1271_1144_of_1568():
    with torch.device("meta"):
        net = DualCLS(Network(size="vit_b", frames=16, side=224, actions=2, budget={}))
        output = net(torch.empty(1, 3, 16, 224, 224))
    assert [chosen.live.shape[1] for chosen in output.selections] == [1568, 1412, 1271]
    assert [chosen.kept.shape[1] for chosen in output.selections] == [1412, 1271, 1144]


@pytest.mark.parametrize(("mode", "counts"), [("paper", [45, 32, 23]), ("reference", [45, 33, 24])])
def test_fuse_tokens_are_not_counted_except_in_reference(mode, counts):
    output = built(mode)(clips())
    assert [chosen.kept.shape[1] for chosen in output.selections] == counts


def test_in_reference_a_fuse_token_can_be_kept_and_takes_a_tubelets_place():
    net = built("reference")
    output = net(clips(), 0.95, 0.0)
    assert (output.selections[-1].live == net.count).any()
    stays = output.selections[-1].live.gather(1, output.selections[-1].kept)
    tubelets = (stays < net.count).sum(1)
    assert torch.equal(output.kept.sum(1), tubelets)


@pytest.mark.parametrize("mode", MODES)
def test_maps_are_shares_of_the_live_tubelets(mode):
    for chosen in built(mode)(clips()).selections:
        for alpha in (chosen.act, chosen.priv):
            assert alpha.shape == chosen.live.shape
            torch.testing.assert_close(alpha.sum(1), torch.ones(2))


@pytest.mark.parametrize("mode", ["paper", "detector"])
def test_without_privacy_weight_the_action_token_ranks_alone_and_with_infinite_weight_the_privacy_token(mode):
    net = built(mode)
    for weight, rank in ((0.0, "act"), (math.inf, "priv")):
        first = net(clips(), 0.5, weight).selections[0]
        alpha = first.act if rank == "act" else -first.priv
        best = alpha.topk(first.kept.shape[1], 1).indices
        assert torch.equal(first.kept.sort(1).values, best.sort(1).values)


@pytest.mark.parametrize("fill", ["black", "mean", "temporal"])
def test_with_the_selection_frozen_hidden_pixels_reach_no_output_pixel(fill):
    net, video = built(), clips()
    shown = over_pixels(net.decide(video).kept, net.tubelet)
    changed = torch.where(shown.unsqueeze(1), video, torch.rand_like(video))
    assert not torch.equal(changed, video)
    assert torch.equal(paint(changed, shown, fill), paint(video, shown, fill))


@pytest.mark.parametrize("mode", MODES)
def test_clips_of_a_batch_get_what_they_get_alone(mode):
    net, video = built(mode), clips(3)
    together = net(video)
    for number in range(3):
        alone = net(video[number : number + 1])
        assert torch.equal(together.kept[number], alone.kept[0])
        torch.testing.assert_close(together.action[number], alone.action[0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(together.scores[number], alone.scores[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_the_mask_alone_is_the_mask_of_the_whole_network(mode):
    net, video = built(mode), clips()
    output, (kept, scores) = net(video, 0.6, 0.3), net.mask(video, 0.6, 0.3)
    assert torch.equal(output.kept, kept)
    torch.testing.assert_close(output.scores, scores)


def test_scores_rank_the_kept_above_the_dropped_and_the_longer_kept_above_the_sooner_dropped():
    net, video = built(), clips()
    output = net(video)
    for number in range(2):
        scores = output.scores[number]
        assert len(scores.unique()) == net.count
        alive = torch.ones(net.count, dtype=torch.bool)
        for chosen in output.selections:
            stays = torch.zeros(net.count, dtype=torch.bool)
            stays[chosen.live[number, chosen.kept[number]]] = True
            assert scores[alive & stays].min() > scores[alive & ~stays].max()
            alive = stays
        assert torch.equal(alive, output.kept[number])


def test_everything_kept_prunes_nothing():
    assert built()(clips(), 1.0).kept.all()


def test_with_a_detector_the_budget_loss_does_not_reach_the_backbone():
    net = built("detector")
    net.budget_heads["attributes"](net(clips()).privacy_features).square().sum().backward()
    theirs = (".reader.", "priv_norm.", "budget_heads.", "cls_token")
    for name, parameter in net.named_parameters():
        touched = parameter.grad is not None and bool(parameter.grad.any())
        assert touched is any(part in name for part in theirs), name
    assert not net.cls_token.grad[:, 0].any()  # act_CLS is the backbone's


def test_in_the_papers_mode_the_budget_loss_reaches_the_backbone():
    net = built()
    net.budget_heads["attributes"](net(clips()).privacy_features).square().sum().backward()
    assert net.blocks[0].attn.qkv.weight.grad.any()


def test_a_decoded_clip_is_black_where_tubelets_were_pruned_and_shows_each_token_in_its_place():
    net, video = built("decode"), clips()
    output = net(video)
    out = net.decode(output)
    assert out.shape == video.shape
    shown = over_pixels(output.kept.view(-1, *net.grid), net.tubelet).unsqueeze(1).expand_as(out)
    assert out[~shown].eq(0).all()
    assert out[shown].gt(0).all()
    last = output.selections[-1]
    place = int(last.live[1, last.kept[1, 3]])
    time, row, column = place // 16, place // 4 % 4, place % 4
    pixels = net.decoder(net.norm(output.tokens[1, 3])).sigmoid().view(3, 2, 8, 8)
    cell = out[1, :, 2 * time : 2 * time + 2, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
    torch.testing.assert_close(cell, pixels)
    with pytest.raises(UsageError, match="output: decode"):
        built().decode(output)


def test_drop_path_skips_whole_branches_in_training_and_none_after():
    net = built(drop_path=0.9).train()
    assert net.blocks[0].drop_path == 0
    x = torch.ones(200, 3, 2)
    out = net.blocks[-1].dropped(x)
    assert {0.0, 10.0} == set(out.flatten().round().tolist())
    assert torch.equal(net.eval().blocks[-1].dropped(x), x)


@pytest.mark.parametrize(("mode", "hopper"), [("paper", False), ("paper", True), ("detector", False)])
def test_one_graph_without_a_break_compiles(mode, hopper, monkeypatch):
    if hopper:  # the way with a chosen kernel
        monkeypatch.setattr(fused_attention, "_hopper", lambda number: number == -1)
    monkeypatch.setitem(dual_cls.SIZES, "tiny", (WIDTH, 2, HEADS, (1,), (2, 8, 8)))
    net, video = built(mode), clips()
    torch.compiler.reset()
    output = torch.compile(net, fullgraph=True, backend="eager")(video)
    assert torch.equal(output.kept, net(video).kept)
    output.action.sum().backward()
    assert net.blocks[0].attn.qkv.weight.grad is not None
    torch.compiler.reset()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"size": "vit_xl"}, "no network is called"),
        ({"reference": True, "privacy_attention": "detector"}, "no detector"),
        ({"reference": True, "smooth": True}, "averages no neighbours"),
        ({"output": "decode"}, "fusion: false"),
        ({"privacy_weight": -1.0}, "0 or more"),
        ({"privacy_weight": math.nan}, "0 or more"),
    ],
)
def test_networks_that_make_no_sense_are_refused(changes, complaint):
    with pytest.raises(RecipeError, match=complaint):
        replace(Network(actions=2, budget={}), **changes)
