"""Tasks on whole videos next to the action: their losses, their draws, and what erasing keeps for them."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.evaluation.made_features import WIDTH, directions, made, read
from tests.evaluation.made_videos import BEND, anomaly_videos, detection_videos
from tests.methods.splavu.test_train import total
from vidveil.core.errors import DataError, RecipeError
from vidveil.methods.splavu.long_videos import classes_of, fingerprint, means_of_classes
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.methods.splavu.train import SeededBatches, SplavuNetworks, chance, erasing_of, nt_xent, refuse
from vidveil.tasks import anomaly, detection
from vidveil.tasks.anomaly.segments import all_into_segments

RECIPE = SplavuRecipe(
    name="mine", data="features:made", encoder="made", heads=2, groups=4, erase=0.0, batch=10, epochs=4,
    label_smoothing=0.0, tasks=("action", "detection", "anomaly"), detection_data="made", anomaly_data="made",
    videos=4, detection_width=16, anomaly_widths=(64, 64, 64),
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return read(made(tmp_path_factory.mktemp("features") / "store"))


@pytest.fixture(scope="module")
def whole(data):
    return {"detection": detection_videos(data), "anomaly": anomaly_videos(data)}


def changed(videos, change):
    return replace(videos, features=tuple(map(change, videos.features)))


def joint(data, whole, recipe=RECIPE, **changes):
    """With opinions, in eval mode: no dropout."""
    chosen = replace(recipe, **changes)
    torch.manual_seed(0)
    found = SplavuNetworks(chosen, data, "cpu", [whole[task] for task in chosen.whole_videos])
    with torch.no_grad():
        for parameter in found.adapter.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return found.eval()


def draws(data, model, recipe=RECIPE):
    return SeededBatches(data, recipe, model.adapter, static=recipe.budget == "static", others=model.others)


def moment(data, model):
    return next(draws(data, model, model.recipe).epoch(0))


def test_each_task_adds_its_loss_and_consistency_is_the_mean_over_batches(data, whole):
    model = joint(data, whole, task_weight=2.0, budget_weight=0.7, latent_weight=30.0)
    drawn = moment(data, model)
    adapt, scale = model.adapter.adapt, model.adapter.scale
    before = [drawn.clip / scale, *(videos.clips / scale for videos in drawn.videos)]
    after = [adapt(z) for z in before]
    action = F.cross_entropy(model.heads["action"](after[0]), torch.from_numpy(data.labels.action)[drawn.rows])
    tridet, mgfn = (one.network for one in model.others)
    batch = next(detection.TrainingBatches(whole["detection"], seed=0, batch=4).epoch(0))
    adapted = torch.zeros_like(batch.features)
    adapted[batch.mask] = adapt(batch.features[batch.mask] / scale)
    detecting = tridet.loss(adapted, *batch[1:3])
    rows = next(anomaly.BalancedBatches(whole["anomaly"], batch=4, seed=0).epoch(0))
    clips, counts = whole["anomaly"].clips(rows)
    watching = mgfn.loss(*all_into_segments(adapt(clips / scale), counts).chunk(2))
    latent = torch.stack([F.mse_loss(a, b) for a, b in zip(after, before, strict=True)]).mean()
    budget = nt_xent(*(adapt(z / scale) for z in drawn.static), 0.1).clamp(max=chance(10))
    wanted = 2.0 * (action + detecting + watching) - 0.7 * budget + 30.0 * latent
    torch.testing.assert_close(total(model, drawn), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("task", ["detection", "anomaly"])
@pytest.mark.parametrize("kind", [{}, {"adapter": "mlp"}, {"reference": True}])
def test_what_a_task_wants_reaches_the_adapter_and_every_part_of_its_network(data, whole, task, kind):
    model = joint(data, whole, tasks=(task,), budget="none", latent_weight=0.0, **kind).train()
    total(model, moment(data, model)).backward()
    for part in (model.adapter, *model.others):
        found = [parameter.grad for parameter in part.parameters()]
        assert sum(float(one.abs().sum()) for one in found if one is not None) > 1e-3
    silent = joint(data, whole, tasks=(task,), budget="none", latent_weight=0.0, task_weight=0.0, **kind)
    total(silent, moment(data, silent)).backward()
    assert not any(one.grad is not None and one.grad.any() for one in silent.parameters())


def test_published_attention_looks_across_one_whole_video_at_a_time_as_in_evaluation(data, whole):
    model = joint(data, whole, tasks=("anomaly",), reference=True)
    (videos,) = moment(data, model).videos
    features = [torch.randn(3, data.width), videos.clips]
    together = model._after(features, [None, videos.counts])[1]
    first = model.adapter.adapt(videos.clips[: videos.counts[0]])
    torch.testing.assert_close(together[: videos.counts[0]], first)
    other = torch.cat([videos.clips[: videos.counts[0]], videos.clips[videos.counts[0] :] + 1])
    torch.testing.assert_close(model._after([features[0], other], [None, videos.counts])[1][: videos.counts[0]], first)

    seen = []

    def adapt(clips):
        seen.append(len(clips))
        return model.adapter.adapt(clips)

    rows = whole["anomaly"].of("val")
    model.others[0].network.predict(rows, adapt)
    assert seen == [len(row) for row in rows]


@pytest.mark.parametrize("tasks", [("detection",), ("anomaly", "detection"), ("anomaly", "action"), ()])
def test_any_subset_of_tasks_learns_and_each_has_its_own_videos(data, whole, tasks):
    model = joint(data, whole, tasks=tasks)
    drawn = moment(data, model)
    assert total(model, drawn).isfinite()
    assert [one.name for one in model.others] == [task for task in tasks if task != "action"]
    assert list(model.heads) == ["action"] * ("action" in tasks)
    assert [videos.events is not None for videos in drawn.videos] == [one.name == "detection" for one in model.others]


def test_the_networks_get_features_of_size_one(data, whole):
    big = {
        "detection": changed(whole["detection"], lambda z: 1000 * z),
        "anomaly": changed(whole["anomaly"], lambda z: 1000 * z),
    }
    larger = replace(data, clips=replace(data.clips, all=1000 * data.clips.all))
    larger = replace(larger, static=replace(data.static, all=1000 * data.static.all))
    one, other = joint(data, whole), joint(larger, big)
    assert float(other.adapter.scale) == pytest.approx(1000 * float(one.adapter.scale))
    a, b = total(other, moment(larger, other)), total(one, moment(data, one))
    torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)


def same(one, other):
    parts = [(one.clip, other.clip), (one.rows, other.rows)]
    for a, b in zip(one.videos, other.videos, strict=True):
        parts += [(a.clips, b.clips), (torch.tensor(a.counts), torch.tensor(b.counts))]
        parts += [] if a.events is None else [(a.events, b.events)]
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in parts)


def test_whole_videos_depend_on_the_seed_and_the_step_and_on_nothing_else(data, whole):
    model = joint(data, whole)
    drawn = draws(data, model)
    epoch = list(drawn.epoch(1))
    torch.rand(7), np.random.random(7)
    again = draws(data, joint(data, whole))
    assert all(same(one, other) for one, other in zip(epoch, again.epoch(1), strict=True))
    assert all(same(one, other) for one, other in zip(epoch[5:], drawn.epoch(1, 5), strict=True))
    assert not torch.equal(epoch[0].videos[0].clips[:3], next(drawn.epoch(0)).videos[0].clips[:3])
    other = next(draws(data, joint(data, whole, seed=1), replace(RECIPE, seed=1)).epoch(1))
    assert not torch.equal(epoch[0].videos[1].clips[:3], other.videos[1].clips[:3])


def test_every_training_video_takes_its_turn_and_no_other_does(data, whole):
    model = joint(data, whole)
    for one, videos in zip(model.others, whole.values(), strict=True):
        turns = len(one.draws) if one.name == "detection" else len(one.pairs)
        for begin in (0, turns):
            seen = torch.cat([lot.clips for lot in islice(one.videos(begin), turns)])
            train = {tuple(videos.features[row][0]) for row in videos.indices("train")}
            others = {tuple(z) for row in videos.indices("test") for z in videos.features[row]}
            shown = {tuple(z) for z in seen.numpy()}
            assert train <= shown
            assert not others & shown


def test_what_is_left_after_erasing_is_what_networks_beside_it_see(data, whole):
    model = joint(data, whole, erase=0.5)
    for one, videos in zip(model.others, whole.values(), strict=True):
        first = torch.from_numpy(videos.features[0])
        torch.testing.assert_close(torch.from_numpy(one.data.features[0]), model.adapter.erased(first))
        assert (torch.from_numpy(one.data.features[0]) - first).abs().max() > 0.1


@pytest.mark.parametrize("erase", [0.5, 1.0])
def test_what_tells_any_task_is_kept_where_directions_are_erased(data, whole, erase):
    def kept(tasks):
        chosen = replace(RECIPE, erase=erase, tasks=tasks)
        return erasing_of(data, chosen, [whole[task] for task in chosen.whole_videos])[1]

    ranks = {}
    for tasks in [(), ("action",), ("detection",), ("anomaly",), ("action", "detection", "anomaly")]:
        left = kept(tasks)
        ranks[tasks] = round(float(left.trace()))
        for task in set(tasks) - {"action"}:
            means = means_of_classes(whole[task])
            torch.testing.assert_close((means - means[0]) @ left, means - means[0], atol=1e-7, rtol=0)
    if erase == 1.0:  # nothing is left but these
        assert list(ranks.values()) == [0, 2, 2, 1, 5]
        apart = torch.from_numpy(directions()[0] * 3)  # of a person, and of no task
        assert (apart @ kept(("action", "detection", "anomaly"))).norm() < apart.norm()


def test_the_action_alone_is_erased_as_if_there_were_no_other_tasks(data):
    """By the equations of one task, to the bit."""
    from vidveil.methods.splavu.erasure import erasing

    mine = replace(RECIPE, erase=0.5, tasks=("action",))
    rows = data.labels.indices("train")
    clips, owners = data.clips.of(rows)
    static, whose = data.static.of(rows)
    still = torch.stack([static[whose == row].mean(0) for row in range(len(rows))])[owners]
    classes = torch.from_numpy(data.labels.action[rows])[owners]
    alone = erasing(clips, still, classes, 0.5, ridge=WIDTH / len(rows))
    for a, b in zip(erasing_of(data, mine), alone, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=0)


def test_a_feature_is_of_the_action_that_goes_on_in_its_middle(data):
    videos = detection.DetectionVideos(
        [np.zeros((6, WIDTH), np.float32), np.ones((2, WIDTH), np.float32)], [2.0, 1.0],
        [[(1.0, 5.0, 1), (7.5, 12.0, 0)], []], ["train", "test"], ("a", "b"),
    )  # fmt: skip
    assert classes_of(videos, 0).tolist() == [1, 1, 2, 2, 0, 0]
    assert classes_of(videos, 1).tolist() == [2, 2]
    seen = anomaly_videos(data)
    assert set(classes_of(seen, 1).tolist()) == {1}
    assert set(classes_of(seen, 0).tolist()) == {0}


def test_means_of_classes_are_of_training_videos_and_of_classes_that_there_are(whole):
    videos = whole["detection"]
    rows = videos.indices("train")
    z = np.concatenate([videos.features[row] for row in rows])
    label = np.concatenate([classes_of(videos, row) for row in rows])
    wanted = np.stack([z[label == number].mean(0, dtype=np.float64) for number in range(3)])
    np.testing.assert_allclose(means_of_classes(videos).numpy(), wanted, atol=1e-6)
    quiet = replace(videos, segments=[[s for s in own if s[2] != 0] for own in videos.segments])
    assert len(means_of_classes(quiet)) == 2
    assert len(videos.classes) == BEND  # which is no action here


def test_other_videos_have_another_fingerprint(whole):
    for videos in whole.values():
        changed = [z.copy() for z in videos.features]
        changed[0][0, 0] += 1
        assert fingerprint(videos) == fingerprint(replace(videos))
        assert fingerprint(videos) != fingerprint(replace(videos, features=tuple(changed)))
    seen = whole["anomaly"]
    assert fingerprint(seen) != fingerprint(replace(seen, label=1 - seen.label, frames=None))


def test_videos_that_nothing_can_be_learned_of_are_refused(data, whole):
    refuse(RECIPE, data, list(whole.values()))
    narrow = changed(whole["detection"], lambda z: z[:, :8])
    with pytest.raises(DataError, match="features of 8 numbers, features:made of 24: one encoder has to make both"):
        refuse(RECIPE, data, [narrow])
    quiet = replace(whole["detection"], segments=[[] for _ in whole["detection"].segments])
    with pytest.raises(DataError, match="nothing happens"):
        refuse(RECIPE, data, [quiet])
    calm = replace(whole["anomaly"], label=whole["anomaly"].label * 0, frames=None)
    with pytest.raises(DataError, match="no abnormal videos in train"):
        refuse(RECIPE, data, [calm])
    with pytest.raises(RecipeError, match="was made by made, and whole videos would be seen by i3d"):
        refuse(replace(RECIPE, encoder="i3d"), data, list(whole.values()))


@pytest.mark.parametrize(("changes", "words"), [
    ({"detection_data": ""}, "detection needs whole videos: detection_data=thumos14"),
    ({"anomaly_data": ""}, "anomaly needs whole videos: anomaly_data=ucf_crime"),
    ({"encoder": ""}, "detection needs the encoder"),
    ({"videos": 3}, "3 is odd"),
    ({"videos": 0}, "videos must be at least 1"),
    ({"tasks": ("action", "action")}, "once each"),
    ({"anomaly_widths": (64, 64)}, "three numbers"),
])  # fmt: skip
def test_recipes_of_tasks_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(RecipeError, match=words):
        replace(RECIPE, **changes)
    calm = {"tasks": ("action",)} | changes
    if calm["tasks"] == ("action",) and not {"videos", "anomaly_widths"} & set(changes):
        replace(RECIPE, **calm)  # who does not need them need not name them
