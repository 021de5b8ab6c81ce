"""Every way of training: which loss reaches which network."""

import math
from dataclasses import replace

import pytest
import torch

from tests.evaluation.masked import FRAMES, SIZE
from vidveil.core.errors import RecipeError
from vidveil.data.loader import Loader
from vidveil.methods.dual_cls import model as dual_cls
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.dual_cls.train import SHARE_LEVELS, WARMUP_LEVELS, DualCLSNetworks
from vidveil.methods.learned.train import BatchesWithProgress

RECIPE = DualCLSRecipe(
    name="t", data="puppets", frames=FRAMES, size=SIZE, network="mini", budget=("attributes", "identity"), keep=0.8
)
WAYS = {
    "heads/reversed": {"train_on": "heads", "privacy_attention": "reversed"},
    "heads/plain": {"train_on": "heads", "privacy_attention": "plain"},
    "heads/detector": {"train_on": "heads", "privacy_attention": "detector"},
    "heads/reference": {"train_on": "heads", "privacy_attention": "reversed", "reference": True, "smooth": False},
    "pixels/reversed": {"train_on": "pixels", "privacy_attention": "reversed"},
    "pixels/detector": {"train_on": "pixels", "privacy_attention": "detector"},
    "attribution/plain": {"train_on": "attribution", "privacy_attention": "plain"},
    "attribution/detector": {"train_on": "attribution", "privacy_attention": "detector"},
    "both/plain": {"train_on": "both", "privacy_attention": "plain"},
    "both/sharp": {"train_on": "both", "smooth": False},
    "decode": {"train_on": "pixels", "privacy_attention": "reversed", "output": "decode", "fusion": False},
}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setitem(dual_cls.SIZES, "mini", (24, 3, 3, (1, 2, 3), (2, 8, 8)))


def networks_of(data, way, **changes):
    torch.manual_seed(7)
    return DualCLSNetworks(replace(RECIPE, **WAYS[way] | changes), data, "cpu")


def total(made, batch, progress, number=0.5):
    """The loss of a batch at this progress of training."""
    setting = made.setting(progress, number)
    return sum(made(batch.video, batch.index, torch.tensor(progress), setting).values())


def moved(module):
    """Names of the parameters that a backward pass has reached."""
    return {name for name, p in module.named_parameters() if p.grad is not None and bool(p.grad.any())}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_a_finite_loss_whose_gradients_reach_all_networks(data, batch, way):
    made = networks_of(data, way)
    loss = total(made, batch, 0.5)
    loss.backward()
    assert loss.ndim == 0
    assert loss.isfinite()
    assert all(p.grad is None or p.grad.isfinite().all() for p in made.parameters())
    trained = moved(made)
    learning = [name for name in ("utility", "attacker", "votes") if getattr(made, name) is not None]
    expected = {"heads": [], "pixels": ["utility", "attacker"], "attribution": ["votes"]}
    expected["both"] = expected["pixels"] + expected["attribution"]
    assert learning == expected[made.recipe.train_on]
    wanted = [f"anonymizer.{part}" for part in ("blocks.0.attn.qkv.weight", "action_head.weight", "cls_token")]
    wanted += [f"anonymizer.budget_heads.{name}.weight" for name in ("attributes", "identity")]
    if made.utility is not None:
        wanted += ["utility.heads.action.weight", "attacker.heads.attributes.weight", "attacker.heads.identity.weight"]
    wanted += [f"votes.heads.{name}.weight" for name in ("action", "attributes", "identity") if made.votes is not None]
    wanted += ["anonymizer.decoder.weight"] if way == "decode" else []
    assert {*wanted} <= trained


@pytest.mark.parametrize("way", ["heads/reversed", "pixels/reversed"])
def test_a_few_steps_make_the_loss_smaller(data, batch, way):
    made = networks_of(data, way, share_range=(0.5, 0.5), label_smoothing=0.0)
    optimizer = torch.optim.Adam(made.parameters(), 3e-3)
    losses = []
    for _ in range(12):
        losses.append(total(made, batch, 0.0))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])


def budget_gradients(made, batch, progress):
    """Of the privacy heads' part of the loss alone: the action head does not listen."""
    made.zero_grad()
    made.action.loss = lambda logits, _: 0 * logits.sum()
    total(made, batch, progress).backward()
    return {name: p.grad.clone() for name, p in made.anonymizer.named_parameters() if p.grad is not None}


def test_behind_the_reversal_the_backbone_gets_minus_what_it_would_get_and_the_head_its_own(data, batch):
    reversed_, plain = (
        budget_gradients(networks_of(data, f"heads/{way}"), batch, 1.0) for way in ("reversed", "plain")
    )
    strength = 2 / (1 + math.exp(-10)) - 1
    for name in ("budget_heads.attributes.weight", "budget_heads.identity.bias"):
        torch.testing.assert_close(reversed_[name], plain[name])
    for name in ("blocks.0.attn.qkv.weight", "patch_embed.stem.0.weight", "cls_token"):
        largest = plain[name].abs().max().item()
        assert largest > 1e-5
        torch.testing.assert_close(reversed_[name], -strength * plain[name], atol=1e-3 * largest, rtol=0)


def test_at_the_start_nothing_is_pulled_and_the_privacy_heads_learn_first(data, batch):
    gradients = budget_gradients(networks_of(data, "heads/reversed"), batch, 0.0)
    assert gradients["budget_heads.attributes.weight"].any()
    assert not gradients["blocks.0.attn.qkv.weight"].any()


def test_with_a_detector_the_privacy_loss_leaves_the_backbone_alone(data, batch):
    made = networks_of(data, "heads/detector")
    assert not made.anonymizer.network.shared_keys
    gradients = budget_gradients(made, batch, 0.9)
    theirs = (".reader.", "priv_norm.", "budget_heads.", "cls_token")
    for name, gradient in gradients.items():
        assert bool(gradient.any()) is any(part in name for part in theirs), name


def test_with_attribution_the_keys_learn_what_the_privacy_token_has_to_point_at(data, batch):
    made = networks_of(data, "attribution/detector")
    assert made.anonymizer.network.shared_keys
    output = made.anonymizer(batch.video, 0.8)
    output.selections[0].priv.square().sum().backward()
    assert {"blocks.0.attn.qkv.weight", "blocks.0.reader.query.weight"} <= moved(made.anonymizer)


@pytest.mark.parametrize(("network", "own", "other"), [("utility", "act", "priv"), ("attacker", "priv", "act")])
def test_with_a_detector_f_t_moves_the_action_attention_alone_and_f_b_the_privacy_attention(
    data, batch, network, own, other
):
    made = networks_of(data, "pixels/detector", random_masks=0.0)
    output = made.anonymizer(batch.video, 0.8)
    for chosen in output.selections:
        chosen.act.retain_grad()
        chosen.priv.retain_grad()
    pictures = dict(zip(("utility", "attacker"), made.shown_clips(batch.video, output, 1.0), strict=True))
    pictures[network].square().sum().backward()
    assert getattr(output.selections[0], own).grad.any()
    gradient = getattr(output.selections[0], other).grad
    assert gradient is None or not gradient.any()


def test_both_recognizers_see_the_same_pixels_and_pull_the_mask_in_opposite_directions(data, batch):
    made = networks_of(data, "pixels/reversed", random_masks=0.0)
    output = made.anonymizer(batch.video, 0.8)
    for_utility, for_attacker = made.shown_clips(batch.video, output, 1.0)
    assert torch.equal(for_utility, for_attacker)
    hidden = ~output.kept.view(-1, *made.anonymizer.grid)
    cells = torch.nn.functional.max_pool3d(for_utility.detach(), made.anonymizer.tubelet).amax(1)  # (B, L, h, w)
    assert hidden.any()
    assert (cells[hidden] == 0).all()
    assert (cells[~hidden] > 0).all()
    act = output.selections[0].act
    one, two = (torch.autograd.grad(video.sum(), act, retain_graph=True)[0] for video in (for_utility, for_attacker))
    assert one.any()
    torch.testing.assert_close(two, -one)


def test_random_masks_show_as_many_tubelets_and_still_teach_the_gate(data, batch):
    made = networks_of(data, "pixels/reversed", random_masks=1.0)
    output = made.anonymizer(batch.video, 0.6)
    at_random, _ = made.shown_clips(batch.video, output, 1.0)
    learned, _ = made.shown_clips(batch.video, output, 1.0, random_masks=False)
    shown = [torch.nn.functional.max_pool3d(v.detach(), (2, 8, 8)).amax(1).flatten(1) > 0 for v in (at_random, learned)]
    assert torch.equal(shown[1], output.kept)
    assert not torch.equal(*shown)
    assert torch.equal(shown[0].sum(1), shown[1].sum(1))
    assert torch.autograd.grad(at_random.sum(), output.selections[0].act)[0].any()


def with_random_votes(made):
    """At the start all votes are 0."""
    for head in made.votes.heads.values():
        torch.nn.init.normal_(head.weight, std=0.1)
    return made


@pytest.mark.parametrize("way", ["attribution/plain", "attribution/detector"])
def test_with_attribution_votes_learn_from_their_losses_alone_and_the_anonymizer_from_attention_losses_alone(
    data, batch, way
):
    made = with_random_votes(networks_of(data, way))
    output = made.anonymizer(batch.video, 0.8)
    of_votes, of_attention = made.attribution_losses(batch.video, batch.index, output)
    assert len(of_votes) == 3  # the action and two budgets
    assert list(of_attention) == ["attention_action", "attention_privacy"]
    sum(of_votes.values()).backward(retain_graph=True)
    assert {name.split(".")[0] for name in moved(made)} == {"votes"}
    made.zero_grad()
    sum(of_attention.values()).backward()
    assert {name.split(".")[0] for name in moved(made)} == {"anonymizer"}


class TwoTubelets(torch.nn.Module):
    """Tubelet 5 alone votes for an action, tubelet 9 alone for what is private."""

    def forward(self, clip):
        votes = {name: torch.zeros(len(clip), 32, 2) for name in ("action", "attributes", "identity")}
        for name, each in votes.items():
            each[:, 5 if name == "action" else 9, 0] = 1
        return votes | {"attributes": votes["attributes"][..., :1]}


def test_each_attention_comes_to_where_the_votes_on_its_task_are_strong(data, batch):
    made = networks_of(data, "attribution/detector")  # two tokens of one backbone begin alike, and take longer to part
    made.votes = TwoTubelets()
    optimizer = torch.optim.Adam(made.anonymizer.parameters(), 3e-3)
    for _ in range(25):
        output = made.anonymizer(batch.video, 1.0)
        optimizer.zero_grad()
        of_votes, of_attention = made.attribution_losses(batch.video, batch.index, output)
        sum((of_votes | of_attention).values()).backward()
        optimizer.step()
    first = made.anonymizer(batch.video, 1.0).selections[0]  # at random each attention would be 1 / 32
    assert (first.act.argmax(1) == 5).all()
    assert (first.priv.argmax(1) == 9).all()
    kept = made.anonymizer(batch.video, 0.9).kept
    assert kept[:, 5].all()
    assert not kept[:, 9].any()


def test_the_votes_of_a_tubelet_depend_on_its_pixels_alone(data, batch):
    """In eval mode: while it learns, its norms know the mean of the batch."""
    made = with_random_votes(networks_of(data, "attribution/detector")).eval()
    changed = batch.video.clone()
    changed[:, :, 2:4, 8:16, 24:32] = torch.rand(6, 3, 2, 8, 8)  # second segment, second row, last column
    for name, before in made.votes(batch.video).items():
        moved_votes = (made.votes(changed)[name] - before).abs().amax((0, 2)) > 1e-6
        assert moved_votes.nonzero().tolist() == [[16 + 4 + 3]], name


def test_a_plain_token_learns_from_the_votes_on_its_own_task(data, batch):
    made = networks_of(
        data, "attribution/plain", fusion=False
    )  # a fuse token would bring gradients of later selections
    made.votes = TwoTubelets()
    output = made.anonymizer(batch.video, 0.8)
    _, losses = made.attribution_losses(batch.video, batch.index, output)
    act, priv = (
        torch.autograd.grad(loss, alpha)[0]
        for loss, alpha in zip(losses.values(), output.selections[0][1:3], strict=False)
    )
    for gradient, place in ((act, 5), (priv, 9)):
        assert (gradient[:, place] < 0).all()  # a step against it attends there more
        assert not gradient[:, [*range(place), *range(place + 1, 32)]].any()


def test_a_vote_half_as_strong_counts_half(data, batch):
    class Halved(TwoTubelets):
        def forward(self, clip):
            votes = super().forward(clip)
            for each in votes.values():
                each[:, 20] = (each[:, 5] + each[:, 9]) / 2
            return votes

    made = networks_of(data, "attribution/plain")
    made.votes = Halved()
    output = made.anonymizer(batch.video, 1.0)
    _, losses = made.attribution_losses(batch.video, batch.index, output)
    for loss, alpha, place in zip(losses.values(), output.selections[0][1:3], (5, 9), strict=False):
        wanted = -torch.autograd.grad(loss, alpha, retain_graph=True)[0] * alpha  # the target, by clip
        torch.testing.assert_close(wanted[:, 20] / wanted[:, place], torch.full((6,), 0.5), rtol=1e-3, atol=0)


@pytest.mark.parametrize(("progress", "weight"), [(0.0, 1.0), (0.25, 0.8), (1.0, 0.2)])
def test_the_weight_of_attribution_is_linear_from_its_beginning_to_its_end(data, batch, progress, weight, monkeypatch):
    made = networks_of(data, "both/plain", attribution_weight=(1.0, 0.2))
    given = []
    monkeypatch.setattr(made, "attribution_losses", lambda *words: given.append(float(words[-1])) or ({}, {}))
    total(made, batch, progress)
    assert given == pytest.approx([weight])


def test_attribution_without_weight_trains_the_votes_alone(data, batch):
    made = networks_of(data, "attribution/plain")
    of_votes, of_attention = made.attribution_losses(batch.video, batch.index, made.anonymizer(batch.video, 1.0), 0.0)
    sum((of_votes | of_attention).values()).backward()
    assert moved(made.votes)
    assert not moved(made.anonymizer)


def test_the_keep_rate_falls_from_1_to_r_along_a_cosine(data):
    made = networks_of(data, "heads/reversed", keep=0.6, keep_warmup=(0.2, 0.6))
    assert [made.setting(at, 0.5) for at in (0.0, 0.1, 0.2)] == [1.0] * 3
    assert made.setting(0.4, 0.5) == pytest.approx(0.8)
    assert [made.setting(at, 0.5) for at in (0.6, 0.9, 1.0)] == pytest.approx([0.6] * 3)
    rates = [made.setting(0.2 + 0.4 * i / 200, 0.5) for i in range(201)]
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) == WARMUP_LEVELS + 1  # a step is recorded for each
    cosine = [0.6 + 0.4 * 0.5 * (1 + math.cos(math.pi * i / 200)) for i in range(201)]
    assert rates == pytest.approx(cosine, abs=0.4 / WARMUP_LEVELS / 2 + 1e-6)


@pytest.mark.parametrize("way", ["pixels/detector", "attribution/detector"])
def test_drawn_keep_rates_leave_shares_in_the_range(data, way):
    made = networks_of(data, way, share_range=(0.2, 0.7))
    shares = [made.setting(0.1, i / 300) ** len(made.anonymizer.prune_at) for i in range(300)]
    assert min(shares) == pytest.approx(0.2)
    assert max(shares) == pytest.approx(0.7)
    assert len(set(shares)) == SHARE_LEVELS


def test_batches_know_how_far_training_is_wherever_it_is_taken_up(data):
    loader = Loader(data, data.indices("train"), frames=FRAMES, size=SIZE, batch=3, seed=1, augment="light")
    timed = BatchesWithProgress(loader, 5, 0, lambda _, number: number)
    assert len(timed) == 4
    whole = [list(timed.epoch(epoch)) for epoch in (0, 2)]
    assert [float(moment.progress) for moment in whole[0]] == pytest.approx([0, 0.05, 0.1, 0.15])
    assert [float(moment.progress) for moment in whole[1]] == pytest.approx([0.4, 0.45, 0.5, 0.55])
    for start in range(5):
        rest = list(timed.epoch(2, start=start))
        assert len(rest) == 4 - start
        for again, first in zip(rest, whole[1][start:], strict=True):
            assert (again.progress, again.setting) == (first.progress, first.setting)
            assert torch.equal(again.index, first.index)
            assert torch.equal(again.video, first.video)


def test_the_network_is_built_for_the_data_and_as_the_recipe_says(data):
    network = networks_of(data, "both/plain", fill="mean", privacy_weight=2.0).anonymizer.network
    assert (network.frames, network.side, network.actions) == (FRAMES, SIZE, 2)
    assert network.budget == {"attributes": 1, "identity": 2}
    assert (network.keep, network.privacy_weight, network.fill) == (0.8, 2.0, "mean")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": ()}, "budget must name"),
        ({"output": "decode", "train_on": "heads"}, "train_on: pixels"),
        ({"attribution_weight": (1.0,)}, "attribution_weight is two numbers"),
        ({"attribution_weight": (1.0, -0.1)}, "attribution_weight is two numbers"),
        ({"output": "decode", "train_on": "attribution", "fusion": False}, "train_on: pixels"),
        ({"share_range": (0.0, 0.9)}, "share_range begins above 0"),
        ({"share_range": (0.9, 0.1)}, "share_range is two rising numbers"),
        ({"share_range": (0.5,)}, "share_range is two rising numbers"),
        ({"shown_share": 0.0}, r"shown_share is in \(0, 1\]"),
        ({"shown_share": 1.5}, r"shown_share is in \(0, 1\]"),
        ({"deploy_stride": -1}, "deploy_stride is 0 or more"),
        ({"keep_warmup": (0.1, 1.5)}, "keep_warmup is two rising numbers"),
        ({"keep": 0.0}, r"keep is in \(0, 1\]"),
        ({"privacy_weight": -0.1}, "privacy_weight is 0 or more"),
        ({"pretrained": True}, "vit_s alone"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(RecipeError, match=message):
        replace(RECIPE, **changes)
