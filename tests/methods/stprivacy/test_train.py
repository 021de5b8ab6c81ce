"""The two phases of training: which loss reaches which network."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.evaluation.masked import FRAMES, SIZE
from tests.evaluation.stopped import bits, events, same, stop_at
from vidveil import load
from vidveil.core.errors import RecipeError, UsageError
from vidveil.core.recipe import as_values
from vidveil.methods.learned import train as train_method
from vidveil.methods.stprivacy import model as stprivacy
from vidveil.methods.stprivacy import train as stprivacy_training
from vidveil.methods.stprivacy.recipe import STPrivacyRecipe
from vidveil.methods.stprivacy.token_retention import sparsity
from vidveil.methods.stprivacy.train import MaskedViT, STPrivacyNetworks, run
from vidveil.models import recognizers
from vidveil.models.checkpoint import find
from vidveil.models.layers.tubelets import over_pixels

RECIPE = STPrivacyRecipe(
    name="mine", data="puppets", frames=FRAMES, size=SIZE, network="mini", budget=("attributes", "identity"),
    epochs=2, batch=4, initialise=0.5, checkpoint_seconds=0.0,
)  # fmt: skip
FIRST, SECOND = "initialise", "train"  # phases
ABLATIONS = {
    "both": {},
    "sparse": {"anonymize": False},
    "anonymous": {"sparsify": False},
    "frames": {"tubelet_frames": 1},
    "others": {"recognizer": "r3d_tiny"},
    "others sparse": {"recognizer": "r3d_tiny", "anonymize": False},
    "others anonymous": {"recognizer": "r3d_tiny", "sparsify": False},
}


@pytest.fixture(autouse=True)
def _small(runs, monkeypatch, data):  # noqa: ARG001
    monkeypatch.setitem(stprivacy.SIZES, "mini", (24, 4, 3, 8))
    monkeypatch.setitem(stprivacy_training.KEPT_VIT_DEPTHS, "mini", 2)
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: data)
    torch.set_num_threads(1)


def networks_of(data, **changes):
    torch.manual_seed(7)
    return STPrivacyNetworks(replace(RECIPE, **changes), data, "cpu")


def total(made, batch, phase):
    """The loss of a batch in this phase."""
    made.phase = phase
    return sum(made(batch.video, batch.index, torch.tensor(0.5), None).values())


def moved(module):
    """Names of the parameters that a backward pass has reached."""
    return {name for name, p in module.named_parameters() if p.grad is not None and bool(p.grad.any())}


def gradients(made):
    return {name: p.grad.clone() for name, p in made.named_parameters() if p.grad is not None}


def with_seed(seed, function, *words):
    torch.manual_seed(seed)
    return function(*words)


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_first_the_anonymizer_learns_alone_and_then_all_networks_do(data, batch, ablation):
    made = networks_of(data, **ABLATIONS[ablation])
    total(made, batch, FIRST).backward()
    first = moved(made)
    assert {name.split(".")[0] for name in first} == {"anonymizer"}
    assert "anonymizer.action_head.weight" in first
    assert not any("decoder" in name for name in first)
    made.zero_grad()
    loss = total(made, batch, SECOND)
    loss.backward()
    second = moved(made)
    assert loss.isfinite()
    assert all(p.grad is None or p.grad.isfinite().all() for p in made.parameters())
    assert {
        "utility.heads.action.weight",
        "attacker.heads.attributes.weight",
        "attacker.heads.identity.weight",
    } <= second
    assert "anonymizer.blocks.0.attn.qkv.weight" in second
    assert "anonymizer.action_head.weight" not in second
    assert ("anonymizer.decoder.weight" in second) == made.recipe.anonymize
    assert any("predictors" in name for name in second) == made.recipe.sparsify


def test_the_first_phase_is_equation_12(data, batch):
    made = networks_of(data)
    loss = with_seed(3, total, made, batch, FIRST)
    output = with_seed(3, made.anonymizer, batch.video)
    wanted = sparsity(output.decisions, 0.7) + made.action.loss(output.action, batch.index)
    torch.testing.assert_close(loss, wanted)


def test_the_second_phase_is_equation_13_for_the_anonymizer_and_their_own_losses_for_the_recognizers(data, batch):
    made = networks_of(data, action_weight=0.3, privacy_weight=0.8)
    with_seed(3, total, made, batch, SECOND).backward()
    found = gradients(made)

    def losses():
        output = with_seed(3, made.anonymizer, batch.video)
        actions, private = (recognizer(output.pixels, output.decision) for recognizer in (made.utility, made.attacker))
        privacy = sum(task.loss(private[task.name], batch.index) for task in made.budget) / len(made.budget)
        return sparsity(output.decisions, 0.7), made.action.loss(actions["action"], batch.index), privacy

    spars, action, privacy = losses()
    made.zero_grad()
    (spars + 0.3 * action - 0.8 * privacy).backward()
    wanted = {name: tensor for name, tensor in gradients(made).items() if name.startswith("anonymizer.")}
    _, action, privacy = losses()
    made.zero_grad()
    (action + privacy).backward()
    wanted |= {name: tensor for name, tensor in gradients(made).items() if not name.startswith("anonymizer.")}
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        scale = tensor.abs().max().clamp(min=1e-8)
        torch.testing.assert_close(found[name] / scale, tensor / scale, atol=1e-3, rtol=1e-3)


def test_what_is_dropped_is_hidden_from_recognizers_also_while_they_learn(data, batch):
    made = networks_of(data).train()
    output = with_seed(3, made.anonymizer, batch.video)
    mask = over_pixels(output.decision.view(-1, *made.anonymizer.grid), made.anonymizer.tubelet).unsqueeze(1) > 0.5
    others = torch.where(mask, output.pixels, torch.rand_like(output.pixels))
    assert not torch.equal(others, output.pixels)
    for recognizer in (made.utility, made.attacker):
        before, after = (recognizer(pixels, output.decision) for pixels in (output.pixels, others))
        for name, logits in before.items():
            torch.testing.assert_close(after[name], logits)


def test_any_recognizer_sees_the_shown_clip(data, batch):
    made = networks_of(data, recognizer="r3d_tiny")
    shown = []
    made.utility.register_forward_pre_hook(lambda _, words: shown.append(words[0]))
    output = with_seed(3, made.anonymizer, batch.video)
    made.predictions(made.utility, output, 1.0)
    assert torch.equal(shown[0], made.anonymizer.shown(output))


def test_recognizers_that_learned_before_start_from_published_weights_and_are_held_back(data, monkeypatch):
    asked = []

    def build(name, *, frames, size, pretrained=False):
        asked.append((name, pretrained))
        return recognizers.build("r3d_tiny", frames=frames, size=size)

    monkeypatch.setattr(stprivacy_training, "build", build)
    recipe = replace(RECIPE, recognizer="i3d:pretrained")
    stprivacy_training.check(recipe)
    made = STPrivacyNetworks(recipe, data, "cpu")
    assert asked == [("i3d", False), ("i3d", True), ("i3d", True)]
    assert stprivacy_training.published(recipe) == ("i3d",)
    held = {name for name, _ in made.named_parameters() if name.startswith(stprivacy_training.backbone(recipe))}
    assert held == {name for name, _ in made.named_parameters() if ".recognizer." in name} != set()
    assert stprivacy_training.backbone(RECIPE) == stprivacy_training.published(RECIPE) == ()


@pytest.mark.parametrize("ablation", ["both", "sparse", "anonymous"])
def test_the_backbone_of_all_three_transformers_is_held_back_where_it_was_filled(data, ablation):
    recipe = replace(RECIPE, network="vit_s", size=32, pretrained=True, **ABLATIONS[ablation])
    with torch.device("meta"):
        names = {name for name, _ in STPrivacyNetworks(recipe, data, "meta").named_parameters()}
    held = {name for name in names if name.startswith(stprivacy_training.backbone(recipe))}
    assert {name.split(".")[0] for name in held} == {"anonymizer", "utility", "attacker"}
    new = ("time_embed", "predictors.", "action_head.", "decoder.", "heads.")
    assert all(name.partition(".")[2].startswith(new) for name in names - held)


@pytest.mark.parametrize("ablation", ["both", "sparse", "others", "others sparse"])
def test_the_recognizers_losses_alone_reach_every_predictor_through_the_hard_selection(data, batch, ablation):
    made = networks_of(data, **ABLATIONS[ablation])
    for number in range(2):
        made.zero_grad()
        torch.manual_seed(4)
        output = made.anonymizer(batch.video)
        list(made.recognizer_losses(output, batch.index).values())[number].backward()
        for stage, predictor in enumerate(made.anonymizer.predictors):
            assert moved(predictor) == {name for name, _ in predictor.named_parameters()}, stage


def test_without_weights_the_recognizers_teach_the_anonymizer_nothing(data, batch):
    made = networks_of(data, action_weight=0.0, privacy_weight=0.0)
    sum(made.recognizer_losses(made.anonymizer(batch.video), batch.index).values()).backward()
    assert not moved(made.anonymizer)
    assert moved(made.utility)
    assert moved(made.attacker)


def test_clips_whose_attributes_are_unknown_teach_the_others_only(data, batch):
    labels = data.attributes.copy()
    labels[batch.index[:3]] = np.nan
    made = networks_of(replace(data, attributes=labels), budget=("attributes",))
    loss = total(made, batch, SECOND)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is None or p.grad.isfinite().all() for p in made.parameters())


@pytest.mark.parametrize("phase", [FIRST, SECOND])
def test_a_few_steps_make_the_loss_smaller(data, batch, phase):
    made = networks_of(data, label_smoothing=0.0, privacy_weight=0.0)
    optimizer = torch.optim.Adam(made.parameters(), 3e-3)
    losses = []
    for _ in range(16):
        losses.append(total(made, batch, phase).detach())
        optimizer.zero_grad()
        total(made, batch, phase).backward()
        optimizer.step()
    assert sum(losses[-4:]) < 0.9 * sum(losses[:4])


def test_sparsity_brings_the_shares_to_what_is_asked_for(data, batch):
    made = networks_of(data, alpha=0.6)
    optimizer = torch.optim.Adam(made.anonymizer.predictors.parameters(), 1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        sparsity(made.anonymizer(batch.video).decisions, 0.6).backward()
        optimizer.step()
    shares = [each.mean().item() for each in made.anonymizer(batch.video).decisions]
    assert shares == pytest.approx([0.6, 0.36, 0.216], abs=0.1)


def test_the_network_is_built_for_the_data_and_as_the_recipe_says(data):
    network = networks_of(data, alpha=0.5, select="clip", tubelet_frames=4, anonymize=False).anonymizer.network
    assert (network.frames, network.side, network.actions) == (FRAMES, SIZE, 2)
    assert (network.alpha, network.select, network.tubelet_frames, network.anonymize) == (0.5, "clip", 4, False)
    assert isinstance(networks_of(data).utility, MaskedViT)


# ---- whole trainings


def test_training_leaves_a_checkpoint_that_anonymizes(data):
    made = run(RECIPE)
    assert made.method == "stprivacy"
    assert made.metrics.keys() >= {"masked_top1", "tubelets_kept", "identity_hidden", "action_kept"}
    assert "action_top1" not in made.metrics  # its own head stood still in the second phase
    assert made.metrics["tubelets_kept"] == pytest.approx(5 / 16)
    assert made.floors.keys() >= {"masked_top1", "identity_hidden"}
    found = find("mine")
    assert found.about["recipe"] == as_values(RECIPE)
    assert not any(name.startswith(("utility", "attacker")) for name in found.tensors())
    video = torch.from_numpy(data.videos.frames(0).copy()).permute(3, 0, 1, 2)[None] / 255
    shown = load("stprivacy:mine").anonymize_batch(video)
    assert shown.mask.float().mean() == pytest.approx(5 / 16)
    assert not shown.video[~shown.mask.unsqueeze(1).expand_as(video)].any()


@pytest.mark.parametrize(
    ("changes", "stops"),
    [({}, (1, 4)), ({"recognizer": "r3d_tiny", "ema": 0.9}, (5,)), ({"anonymize": False}, (3,))],
)
def test_training_that_is_stopped_and_resumed_is_the_same_to_the_bit(runs, monkeypatch, changes, stops):
    """Three steps an epoch: the recognizers come with the fourth."""
    recipe = replace(RECIPE, **changes)
    whole = run(replace(recipe, name="whole"))
    for number, step in enumerate(stops):
        with monkeypatch.context() as patch:
            stop_at(patch, STPrivacyNetworks, step - sum(stops[:number]))
            with pytest.raises(KeyboardInterrupt):
                run(replace(recipe, name="stopped"), resume=number > 0)
    resumed = run(replace(recipe, name="stopped"), resume=True)
    found = [event["fit"] for event in events(runs, "stopped") if event["event"] == "resumed"]
    assert found == ["initialise" if step < 3 else "stopped" for step in stops if step != 3]  # 3: a phase is done
    assert same(bits(runs, "whole"), bits(runs, "stopped"))
    assert resumed.metrics == whole.metrics


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 36}, "no whole number of tubelets"),
        ({"frames": 6, "tubelet_frames": 4}, "no whole number of tubelets"),
        ({"recognizer": "r3d_tinny"}, r"did you mean r3d_tiny\?"),
        ({"recognizer": "r3d_tiny:pretrained"}, "published weights have i3d:pretrained"),
        ({"recognizer": "i3d:frozen"}, "published weights have i3d:pretrained"),
        ({"recognizer": "kept_vit:pretrained"}, "kept_vit has pretrained: true"),
    ],
)
def test_contradictions_are_refused_before_clips_are_drawn(runs, monkeypatch, changes, message):
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: pytest.fail("clips were drawn"))
    with pytest.raises(UsageError, match=message):
        run(replace(RECIPE, **changes))
    assert not runs.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": ()}, "budget must name"),
        ({"alpha": 0.0}, r"alpha is a share in \(0, 1\]"),
        ({"alpha": 1.2}, r"alpha is a share in \(0, 1\]"),
        ({"action_weight": -1.0}, "action_weight and privacy_weight are 0 or more"),
        ({"privacy_weight": -0.1}, "action_weight and privacy_weight are 0 or more"),
        ({"initialise": 1.5}, "initialise is a share of the epochs"),
        ({"initialise": 1.0}, "what is drawn is taught by the recognizers"),
        ({"sparsify": False, "anonymize": False}, "the video stays as it was filmed"),
        ({"deploy_stride": -1}, "deploy_stride is 0 or more"),
        ({"pretrained": True}, "vit_s alone"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(RecipeError, match=message):
        replace(RECIPE, **changes)


def test_with_the_first_phase_alone_a_mask_can_be_had():
    assert replace(RECIPE, anonymize=False, initialise=1.0).initialise == 1
