"""`vidveil train` of an adapter, on a store of made features."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from tests.evaluation.made_features import WIDTH, made, read
from tests.evaluation.made_videos import anomaly_videos, detection_videos
from tests.evaluation.stopped import bits, events, same, stop_at
from vidveil.app.run_recipe import carry_out
from vidveil.core.errors import DataError, RecipeError, TrainingError, UsageError
from vidveil.core.recipe import as_values
from vidveil.core.recipe import read as read_recipe
from vidveil.methods import trained
from vidveil.methods.feature_adapter import load_adapter
from vidveil.methods.splavu import run as train_adapter
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.methods.splavu.run import run, validation_metrics
from vidveil.methods.splavu.train import IdentityPretraining, SplavuNetworks
from vidveil.models.checkpoint import find
from vidveil.training.runs import list_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made(tmp_path_factory.mktemp("features") / "store")


@pytest.fixture(autouse=True)
def _one_thread(runs):  # noqa: ARG001
    torch.set_num_threads(1)


@pytest.fixture
def recipe(folder):
    return SplavuRecipe(
        name="mine", data=f"features:{folder}", heads=2, groups=4, erase=0.5, batch=24, epochs=3, lr=2e-3,
        checkpoint_seconds=0.0,
    )  # fmt: skip


PUBLISHED = {"reference": True, "erase": 0.0, "adapter": "mlp", "identity_epochs": 2}


def interrupt(recipe, network, step):
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, network, step)
        with pytest.raises(KeyboardInterrupt):
            run(recipe)


def resumed_is_whole(runs, recipe):
    run(recipe, resume=True)
    run(replace(recipe, name="whole"))
    return same(bits(runs, "mine"), bits(runs, "whole"))


@pytest.mark.parametrize("changes", [{}, PUBLISHED, {"reference": True, "erase": 0.0}, {"adapter": "mlp"}])
def test_training_leaves_a_checkpoint_that_is_the_trained_adapter(runs, recipe, monkeypatch, changes):
    joints = []
    monkeypatch.setattr(
        train_adapter, "SplavuNetworks", lambda *words: joints.append(SplavuNetworks(*words)) or joints[-1]
    )
    made_run = run(replace(recipe, **changes))
    assert made_run.folder == runs / "mine" / "checkpoint"
    assert made_run.method == "splavu"
    assert find("mine").about["recipe"] == as_values(replace(recipe, **changes))
    assert str(runs) not in (made_run.folder / "checkpoint.json").read_text()
    trained = joints[0].adapter
    z = torch.randn(5, WIDTH)
    for name in ("splavu:mine", "mine"):
        adapter, encoder = load_adapter(name)
        assert encoder == "made"
        assert same(adapter.state_dict(), trained.state_dict())
        assert torch.equal(adapter(z), trained.eval()(z))
    assert (adapter(z) - z).abs().max() > 1e-4
    (info,) = list_runs()
    assert (info.name, info.state) == ("mine", "done")


def test_an_adapter_learns_in_mixed_precision_too(runs, recipe):
    run(replace(recipe, name="finer"))
    run(replace(recipe, precision="bf16-mixed"))
    assert not same(bits(runs, "mine"), bits(runs, "finer"))
    assert all(torch.isfinite(tensor).all() for tensor in bits(runs, "mine").values())


def test_few_training_videos_are_reported(recipe, folder, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        train_adapter, "too_few", lambda shape, videos: asked.append((shape.erase, videos)) or "too few"
    )
    run(recipe, console=Console(file=sys.stdout, width=300))
    assert asked == [(0.5, len(read(folder).labels.indices("train")))]
    assert "warning: too few\n" in capsys.readouterr().out


def test_the_command_trains_an_adapter_where_the_recipe_is_one(recipe):
    assert carry_out(recipe).method == "splavu"


def test_validation_is_reported_and_chooses_nothing(runs, recipe, folder):
    made_run = run(replace(recipe, epochs=4, lr=0.02))
    assert made_run.metrics.keys() == {"moved", "action_top1"}
    assert made_run.metrics["action_top1"] > 0.9
    assert made_run.floors == {"action_top1": pytest.approx(1 / 3)}
    epochs = [event for event in events(runs, "mine") if event["event"] == "epoch"]
    assert [event["epoch"] for event in epochs] == [1, 2, 3, 4]
    assert epochs[-1]["moved"] == made_run.metrics["moved"]  # the last epoch is what is kept
    (finished,) = (event for event in events(runs, "mine") if event["event"] == "finished")
    assert finished["best_epoch"] == 4
    data, adapter = read(folder), load_adapter("mine")[0]
    z = data.clips.even(data.labels.indices("val"))
    moved = float((adapter(z.flatten(0, 1)) - z.flatten(0, 1)).pow(2).mean() / z.pow(2).mean())
    assert made_run.metrics["moved"] == pytest.approx(moved, rel=1e-4)


def test_latent_consistency_holds_features_where_they_are(recipe):
    moved = {}
    for weight in (0.0, 1000.0):
        found = run(replace(recipe, name=f"w{weight:g}", erase=0.0, latent_weight=weight, epochs=8, lr=0.02))
        moved[weight] = found.metrics["moved"]
    assert moved[1000.0] < 0.3 * moved[0.0]


@pytest.mark.parametrize(("changes", "step"), [
    ({}, 0), ({}, 4), ({}, 8), ({"adapter": "mlp"}, 4), ({"budget": "supervised"}, 5),
])  # fmt: skip
def test_a_training_that_was_stopped_goes_on_to_the_bit(runs, recipe, changes, step):
    recipe = replace(recipe, **changes)
    interrupt(recipe, SplavuNetworks, step)
    assert list_runs()[0].state == "interrupted"
    with pytest.raises(UsageError, match="no checkpoint"):
        load_adapter("mine")
    assert resumed_is_whole(runs, recipe)


@pytest.mark.parametrize(("kind", "step"), [(IdentityPretraining, 3), (SplavuNetworks, 5)])
def test_one_that_was_stopped_while_or_after_the_identity_was_learned_goes_on_to_the_bit(runs, recipe, kind, step):
    recipe = replace(recipe, **PUBLISHED)
    interrupt(recipe, kind, step)
    assert resumed_is_whole(runs, recipe)


def test_a_training_that_ended_before_its_checkpoint_was_written_is_not_done_again(recipe, monkeypatch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained.checkpoint, "write", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(recipe)
    monkeypatch.setattr(SplavuNetworks, "forward", lambda *_: pytest.fail("it learned again"))
    again = run(recipe, resume=True)
    assert again.metrics.keys() == {"moved", "action_top1"}


def test_only_an_mlp_as_published_learns_the_identity_first(runs, recipe):
    fits = {}
    for name, changes in {
        "ours": {"adapter": "mlp"},
        "attention": PUBLISHED | {"adapter": "attention"},
        "mlp": PUBLISHED,
        "at_once": PUBLISHED | {"identity_epochs": 0},
    }.items():
        run(replace(recipe, name=name, epochs=1, **changes))
        fits[name] = [event["fit"] for event in events(runs, name) if event["event"] == "started"]
    assert fits == {
        "ours": ["ours"], "attention": ["attention"], "mlp": ["identity", "mlp"], "at_once": ["at_once"],
    }  # fmt: skip


def test_the_identity_is_nearer_after_it_was_learned(runs, recipe, monkeypatch):
    monkeypatch.setattr(train_adapter, "IDENTITY_RATE", 2e-2)
    run(replace(recipe, **PUBLISHED | {"identity_epochs": 20}, epochs=1))
    epochs = [event for event in events(runs, "mine") if event["event"] == "epoch" and event["fit"] == "identity"]
    assert len(epochs) == 20
    assert epochs[-1]["train_loss"] < 0.8 * epochs[0]["train_loss"]


def test_without_validation_videos_there_is_nothing_to_tell(tmp_path, recipe):
    bare = made(tmp_path / "bare", people=(6, 0, 3))
    found = run(replace(recipe, data=f"features:{bare}"))
    assert found.metrics == {}
    assert found.floors == {}


def test_several_actions_at_once_are_scored_by_cmap_and_have_no_largest_class(recipe, folder):
    data = read(folder)
    shown = np.eye(3, dtype=np.float32)[data.labels.action]
    labels = replace(data.labels, action=np.full(len(shown), -1), action_labels=shown)
    several = replace(data, labels=labels)
    metrics = validation_metrics(SplavuNetworks(replace(recipe, erase=0.0), several, "cpu"), several)
    assert metrics.keys() == {"moved", "action_cmap"}
    assert train_adapter.floors(metrics, several) == {}


def test_other_features_under_a_begun_run_are_refused(tmp_path, recipe):
    interrupt(recipe, SplavuNetworks, 2)
    other = made(tmp_path / "other", people=(6, 3, 3))
    with pytest.raises(UsageError, match="data was"):
        run(replace(recipe, data=f"features:{other}"), resume=True)


def test_what_cannot_be_learned_is_refused_before_a_run_is_made(runs, recipe, tmp_path):
    still = made(tmp_path / "still", static=0)
    with pytest.raises(RecipeError, match="no static clips"):
        run(replace(recipe, data=f"features:{still}"))
    with pytest.raises(DataError, match="no store of features"):
        run(replace(recipe, data=f"features:{tmp_path / 'nowhere'}"))
    assert not runs.exists()


SEVERAL = {
    "tasks": ("action", "detection", "anomaly"), "encoder": "made", "detection_data": "these", "anomaly_data": "those",
    "videos": 4, "detection_width": 16, "anomaly_widths": (64, 64, 64), "data_seed": 5,
}  # fmt: skip


@pytest.fixture
def asked(folder, monkeypatch):
    """Whole videos out of the made store, and what they were asked for with."""
    data, asked = read(folder), []

    def loads(make):
        return lambda *words, **named: asked.append((words, named)) or make(data)

    monkeypatch.setattr(train_adapter, "load_detection_videos", loads(detection_videos))
    monkeypatch.setattr(train_adapter, "load_anomaly_videos", loads(anomaly_videos))
    return asked


def test_several_tasks_learn_with_one_adapter_and_are_scored_on_validation(runs, recipe, asked):
    found = run(replace(recipe, **SEVERAL | {"videos": 8}, epochs=20, lr=5e-3, validate_every=20))
    assert [words for words, _ in asked] == [("these", "made"), ("those", "made")]
    common = {"frames": 8, "size": 64, "stride": 1, "half": False, "root": None, "seed": 5, "strict": False}
    assert asked[0][1] == asked[1][1] == common | {"device": "cpu"}
    assert found.metrics.keys() == {"moved", "action_top1", "detection_map", "anomaly_video_auc", "anomaly_frame_auc"}
    assert min(found.metrics[name] for name in ("action_top1", "detection_map", "anomaly_video_auc")) > 0.9
    assert found.floors == {"action_top1": pytest.approx(1 / 3), "anomaly_video_auc": 0.5, "anomaly_frame_auc": 0.5}
    assert bits(runs, "mine").keys() == load_adapter("mine")[0].state_dict().keys()  # of the adapter, and no more


@pytest.mark.parametrize(("changes", "step"), [
    ({}, 1), ({}, 7), ({"tasks": ("anomaly",), "adapter": "mlp"}, 4), ({"tasks": ("detection",)}, 5),
])  # fmt: skip
def test_a_training_with_whole_videos_goes_on_to_the_bit(runs, recipe, asked, changes, step):
    recipe = replace(recipe, **SEVERAL | changes)
    interrupt(recipe, SplavuNetworks, step)
    assert resumed_is_whole(runs, recipe)
    assert len(asked) == 3 * len(recipe.whole_videos)


@pytest.mark.usefixtures("asked")
def test_a_training_does_not_go_on_with_other_whole_videos(folder, recipe, monkeypatch):
    interrupt(replace(recipe, **SEVERAL), SplavuNetworks, 4)
    other = detection_videos(read(folder), (9, 4, 4))
    monkeypatch.setattr(train_adapter, "load_detection_videos", lambda *_, **__: other)
    with pytest.raises(TrainingError, match="other data"):
        run(replace(recipe, **SEVERAL), resume=True)


def test_several_tasks_learn_in_mixed_precision_too(runs, recipe, asked):
    run(replace(recipe, **SEVERAL, precision="bf16-mixed"))
    assert all(torch.isfinite(tensor).all() for tensor in bits(runs, "mine").values())
    assert len(asked) == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
def test_several_tasks_learn_on_an_accelerator(runs, recipe, asked):
    found = run(replace(recipe, **SEVERAL, device="cuda"))
    assert all(torch.isfinite(tensor).all() for tensor in bits(runs, "mine").values())
    assert {"detection_map", "anomaly_video_auc"} <= found.metrics.keys()
    assert {named["device"] for _, named in asked} == {"cuda"}


def test_the_action_alone_asks_for_no_whole_videos(recipe, asked):
    run(replace(recipe, **SEVERAL | {"tasks": ("action",)}))
    assert asked == []


def written(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(f"verb: train\nmethod: splavu\nname: mine\ndata: features:somewhere\n{text}\n")
    return path


def test_a_recipe_is_read_from_its_file(tmp_path):
    found = read_recipe(written(tmp_path, "erase: 1\ntasks: []\nlr: 1e-4"), ["temperature=0.2"])
    assert isinstance(found, SplavuRecipe)
    assert (found.erase, found.tasks, found.lr, found.temperature) == (1.0, (), 1e-4, 0.2)


@pytest.mark.parametrize(("line", "words"), [
    ("erasee: 0.5", "nothing is called 'erasee'; did you mean erase?"),
    ("budget: statics", "budget must be static or supervised or none"),
    ("reference: true", "erase: 0"),
])  # fmt: skip
def test_a_mistake_in_a_recipe_is_refused_with_what_was_probably_meant(tmp_path, line, words):
    with pytest.raises(RecipeError, match=words.replace("?", r"\?")):
        read_recipe(written(tmp_path, line))
