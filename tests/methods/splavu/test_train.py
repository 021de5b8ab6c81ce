"""One joint step of training: the loss is the published one but for its cap, batches are of training videos alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.evaluation.made_features import WIDTH, clips_of, directions, made, read
from tests.methods.splavu.test_contrastive import plain
from vidveil.core.errors import DataError, RecipeError
from vidveil.methods.splavu.model import AAM, Shape
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.methods.splavu.train import IdentityPretraining, Moment, SeededBatches, SplavuNetworks, chance, refuse
from vidveil.models.layers.gradient_reversal import ramp

RECIPE = SplavuRecipe(
    name="mine", data="features:made", heads=2, groups=4, erase=0.0, batch=10, epochs=4, label_smoothing=0.0
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made(tmp_path_factory.mktemp("features") / "store")


@pytest.fixture(scope="module")
def data(folder):
    return read(folder)


def joint(data, recipe=RECIPE, **changes):
    """With opinions: at the start the adapter is the identity."""
    torch.manual_seed(0)
    found = SplavuNetworks(replace(recipe, **changes), data, "cpu")
    with torch.no_grad():
        for parameter in found.adapter.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return found


def batch(data, recipe=RECIPE, epoch=0, **changes):
    chosen = replace(recipe, **changes)
    return next(draws(data, chosen, static=chosen.budget == "static").epoch(epoch))


def draws(data, recipe=RECIPE, *, static=True):
    """Of features of which nothing is erased."""
    return SeededBatches(data, recipe, AAM(Shape(data.width, heads=2, groups=4)), static=static)


def without_test(data, value=99.0):
    """The same, but that test videos are something else."""
    clips, static = data.clips.all.clone(), data.static.all.clone()
    clips[torch.from_numpy(clips_of(data, "test"))] = value
    static[torch.from_numpy(np.repeat(data.labels.split == "test", data.static.count))] = -value
    return replace(data, clips=replace(data.clips, all=clips), static=replace(data.static, all=static))


def total(model, moment):
    """The loss of a batch."""
    return torch.stack(list(model(moment).values())).sum()


def gradients(loss, module):
    found = torch.autograd.grad(loss, list(module.parameters()), allow_unused=True, retain_graph=True)
    return torch.cat([torch.zeros(1) if one is None else one.flatten() for one in found])


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("adapter", ["attention", "mlp"])
def test_the_loss_is_that_of_the_paper_but_for_its_cap(data, adapter, reference):
    model = joint(data, adapter=adapter, reference=reference, budget_weight=0.7, latent_weight=30.0, task_weight=2.0)
    model.eval()  # no dropout
    moment = batch(data)
    scale, head = model.adapter.scale, model.heads["action"]
    z, still, other = (features / scale for features in (moment.clip, *moment.static))
    after, still, other = (model.adapter.adapt(features) for features in (z, still, other))
    labels = torch.from_numpy(data.labels.action)[moment.rows]
    logits = after @ head.weight.T + head.bias
    task = -torch.stack([row.softmax(0)[label].log() for row, label in zip(logits, labels, strict=True)]).mean()
    budget = plain(still, other, 0.1)
    latent = sum(((a - b) ** 2).sum() for a, b in zip(after, z, strict=True)) / z.numel()
    capped = budget if reference else torch.minimum(budget, torch.tensor(chance(len(z))))
    torch.testing.assert_close(total(model, moment), 2.0 * task - 0.7 * capped + 30.0 * latent, atol=1e-4, rtol=1e-4)


def test_what_is_left_after_erasing_is_what_has_to_stay_and_what_is_hidden(data):
    model = joint(data, erase=1.0)
    before = batch(data)
    moment = next(SeededBatches(data, replace(RECIPE, erase=1.0), model.adapter, static=True).epoch(0))
    torch.testing.assert_close(moment.clip, model.adapter.erased(before.clip))
    for left, whole in zip(moment.static, before.static, strict=True):
        torch.testing.assert_close(left, model.adapter.erased(whole))
    assert (moment.clip - before.clip).abs().max() > 1


def opposites(data):
    moment = batch(data)
    return moment._replace(static=(moment.static[0], -moment.static[0]))


def test_static_clips_that_are_farther_apart_than_chance_teach_nothing_more(data):
    model = joint(data, tasks=(), latent_weight=0.0)
    beyond, within = opposites(data), batch(data)
    assert total(model, beyond).item() == pytest.approx(-chance(10), abs=1e-5)
    assert not gradients(total(model, beyond), model.adapter).any()
    assert gradients(total(model, within), model.adapter).abs().max() > 1e-4
    published = joint(data, tasks=(), latent_weight=0.0, reference=True)
    assert total(published, beyond).item() < -chance(10) - 1
    assert gradients(total(published, beyond), published.adapter).abs().max() > 1e-4


@pytest.mark.parametrize("off", ["task", "budget", "latent"])
def test_a_weight_of_nothing_leaves_its_loss_out(data, off):
    moment = batch(data)
    changes = {"task": {"tasks": ()}, "budget": {"budget": "none"}, "latent": {"latent_weight": 0.0}}[off]
    whole, without = joint(data), joint(data, **changes)
    without.adapter.load_state_dict(whole.adapter.state_dict())
    moment = moment._replace(static=None) if off == "budget" else moment
    zero = joint(data, **{f"{off}_weight": 0.0})
    zero.load_state_dict(whole.state_dict())
    torch.testing.assert_close(without.adapter.adapt(moment.clip), whole.adapter.adapt(moment.clip))
    if off != "task":  # the head is drawn after the adapter, so it is the same one
        without.heads.load_state_dict(whole.heads.state_dict())
    torch.testing.assert_close(total(without, moment), total(zero, moment), atol=1e-5, rtol=1e-5)
    assert not torch.isclose(total(without, moment), total(whole, batch(data)))


def test_a_supervised_budget_teaches_its_attacker_and_turns_the_adapter_against_it(data):
    model = joint(data, budget="supervised", tasks=(), latent_weight=0.0, budget_weight=3.0)
    moment = batch(data, budget="supervised")._replace(progress=torch.tensor(0.4))
    assert moment.static is None
    after = model.adapter.adapt(moment.clip / model.adapter.scale)
    truth = torch.from_numpy(data.labels.attributes)[moment.rows]
    plainly = F.binary_cross_entropy_with_logits(model.attacker(after), truth)
    torch.testing.assert_close(total(model, moment), plainly)
    strength = 3.0 * ramp(torch.tensor(0.4))
    torch.testing.assert_close(gradients(total(model, moment), model.attacker), gradients(plainly, model.attacker))
    torch.testing.assert_close(
        gradients(total(model, moment), model.adapter),
        -strength * gradients(plainly, model.adapter),
        atol=1e-6,
        rtol=1e-4,
    )
    first = moment._replace(progress=torch.tensor(0.0))
    assert not gradients(total(model, first), model.adapter).any()  # there is nobody to deceive yet


def same(one: Moment, other: Moment) -> bool:
    parts = [(one.clip, other.clip), (one.rows, other.rows), *zip(one.static or (), other.static or (), strict=True)]
    return all(torch.equal(a, b) for a, b in parts) and one.progress == other.progress


def all_same(these, others) -> bool:
    return all(same(one, other) for one, other in zip(these, others, strict=True))


def test_batches_depend_on_the_seed_and_the_epoch_and_on_nothing_else(data):
    drawn = draws(data)
    epoch = list(drawn.epoch(2))
    torch.rand(7), np.random.random(7)
    assert len(epoch) == len(drawn) == 7  # of 72 videos
    assert all_same(epoch, list(draws(data).epoch(2)))
    assert all_same(epoch[3:], drawn.epoch(2, 3))
    assert not same(epoch[0], next(drawn.epoch(1)))
    assert not same(epoch[0], next(draws(data, replace(RECIPE, seed=1)).epoch(2)))
    assert [float(moment.progress) for moment in epoch] == pytest.approx([(2 + i / 7) / 4 for i in range(7)])


def test_each_video_is_drawn_once_an_epoch_and_never_one_of_test_or_validation(data):
    train = set(data.labels.indices("train").tolist())
    seen = []
    for epoch in range(3):
        rows = torch.cat([moment.rows for moment in draws(data).epoch(epoch)]).tolist()
        assert len(rows) == len(set(rows)) == 70
        seen += rows
    assert set(seen) == train
    other = draws(without_test(data))
    assert all_same(other.epoch(0), draws(data).epoch(0))


def test_clips_and_static_clips_are_of_the_same_video_and_two_static_ones_differ(data):
    for moment in draws(data).epoch(0):
        for i, row in enumerate(moment.rows.tolist()):
            for vectors, drawn in ((data.clips, (moment.clip,)), (data.static, moment.static)):
                own = vectors.all[vectors.first[row] : vectors.first[row] + vectors.count[row]]
                assert all((own == each[i]).all(1).any() for each in drawn)
        assert ((moment.static[0] != moment.static[1]).any(1)).all()


def test_another_clip_of_a_video_is_drawn_in_another_epoch(data):
    found = {}
    for epoch in range(6):
        for moment in draws(data).epoch(epoch):
            for row, clip in zip(moment.rows.tolist(), moment.clip, strict=True):
                found.setdefault(row, set()).add(tuple(clip.tolist()))
    assert np.mean([len(clips) > 1 for clips in found.values()]) > 0.9


def test_a_batch_is_no_larger_than_the_training_set(data):
    drawn = draws(data, replace(RECIPE, batch=512))
    assert len(drawn) == 1
    assert len(next(drawn.epoch(0)).rows) == 72


def test_test_videos_have_no_say_in_what_is_erased_and_how_large_features_are(data):
    one, other = (
        SplavuNetworks(replace(RECIPE, erase=0.5), which, "cpu").adapter for which in (data, without_test(data))
    )
    for name in ("scale", "centre", "left"):
        assert torch.equal(getattr(one, name), getattr(other, name))
    clips = data.clips.even(data.labels.indices("train"))
    assert one.scale.item() == pytest.approx(clips.pow(2).mean().sqrt().item())


def test_what_people_look_like_is_erased_and_what_they_do_is_not(data):
    model = SplavuNetworks(replace(RECIPE, erase=1.0), data, "cpu").adapter
    axes = torch.from_numpy(directions()).float()
    z = data.clips.all[torch.from_numpy(clips_of(data, "test"))]
    spread = [one @ axes[:6].T - (one @ axes[:6].T).mean(0) for one in (z, model(z))]
    assert spread[1].pow(2).mean() < 0.1 * spread[0].pow(2).mean()
    actions = np.repeat(data.labels.action, data.clips.count)[clips_of(data, "test")]
    means = [torch.stack([one[actions == a].mean(0) for a in range(3)]) for one in (z, model(z))]
    assert (means[1][0] - means[1][1]).norm() > 0.8 * (means[0][0] - means[0][1]).norm()
    nothing = SplavuNetworks(replace(RECIPE, erase=1.0, tasks=()), data, "cpu").adapter
    torch.testing.assert_close(nothing(z), nothing.centre.float().expand_as(z), atol=1e-4, rtol=1e-4)


def test_an_identity_is_learned_by_absolute_differences(data):
    model = joint(data, adapter="mlp", reference=True)
    moment = batch(data)
    x = moment.clip / model.adapter.scale
    copying = IdentityPretraining(model.adapter).eval()
    torch.testing.assert_close(copying(moment), (model.adapter.adapt(x) - x).abs().mean())


def test_what_cannot_be_learned_is_refused(data, tmp_path):
    still = replace(data, static=None)
    with pytest.raises(RecipeError, match="no static clips; without them only budget=supervised erase=0 trains"):
        refuse(RECIPE, still)
    with pytest.raises(RecipeError, match="no static clips; without them only"):
        refuse(replace(RECIPE, budget="supervised", erase=0.5), still)
    refuse(replace(RECIPE, budget="supervised"), still)
    lonely = replace(data, static=replace(data.static, count=np.ones_like(data.static.count)))
    with pytest.raises(RecipeError, match="one static clip, and budget=static compares two"):
        refuse(RECIPE, lonely)
    nameless = read(made(tmp_path / "nameless", attributes=False))
    with pytest.raises(RecipeError, match="names no attributes"):
        refuse(replace(RECIPE, budget="supervised"), nameless)
    refuse(RECIPE, nameless)
    untaught = replace(data, labels=replace(data.labels, split=np.where(data.labels.split == "train", "val", "test")))
    with pytest.raises(DataError, match="no training videos"):
        refuse(RECIPE, untaught)
    with pytest.raises(RecipeError, match="cannot be cut"):
        refuse(replace(RECIPE, reference=True, heads=5), data)


def test_several_actions_at_once_cannot_be_kept_on_purpose(data):
    shown = np.eye(3, dtype=np.float32)[data.labels.action]
    several = replace(data, labels=replace(data.labels, action=data.labels.action * 0 - 1, action_labels=shown))
    with pytest.raises(RecipeError, match="several actions at once"):
        refuse(replace(RECIPE, erase=0.5), several)
    refuse(replace(RECIPE, erase=0.5, tasks=()), several)
    refuse(RECIPE, several)
    assert total(joint(several), batch(several)).isfinite()


def test_features_that_are_all_nothing_are_refused(data):
    blank = replace(data, clips=replace(data.clips, all=torch.zeros_like(data.clips.all)))
    for erase in (0.0, 0.5):
        with pytest.raises(DataError, match="all features of training clips are 0"):
            SplavuNetworks(replace(RECIPE, erase=erase), blank, "cpu")


@pytest.mark.parametrize(("changes", "words"), [
    ({"reference": True, "erase": 0.5}, "erases nothing"),
    ({"tasks": (), "budget": "none"}, "nothing to learn"),
    ({"erase": 1.5}, "a share between 0 and 1"),
    ({"budget_weight": -1.0}, "0 or more"),
    ({"temperature": 0.0}, "above 0"),
    ({"layers": 0}, "layers must be at least 1"),
])  # fmt: skip
def test_recipes_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(RecipeError, match=words):
        replace(RECIPE, **changes)


def test_the_adapter_is_of_the_features_width(data):
    assert joint(data).adapter.shape.width == WIDTH == data.width
