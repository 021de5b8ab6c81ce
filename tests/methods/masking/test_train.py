"""`vidveil train` of a method, on people that are drawn in no time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.evaluation.masked import FRAMES, SIZE
from tests.evaluation.stopped import bits, events, same, stop_at
from vidveil import load
from vidveil.core.errors import DataError, RecipeError, UsageError
from vidveil.core.recipe import as_values
from vidveil.data.loader import Loader
from vidveil.methods import trained
from vidveil.methods.dual_cls import model as dual_cls
from vidveil.methods.dual_cls import train as dual_cls_training
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.dual_cls.train import DualCLSNetworks, run
from vidveil.methods.learned import train as train_method
from vidveil.methods.learned.validation import validation_floors, validation_metrics
from vidveil.models.checkpoint import find
from vidveil.training.runs import list_runs

RECIPE = DualCLSRecipe(
    name="mine", data="puppets", frames=FRAMES, size=SIZE, network="mini", keep=0.8, epochs=2, batch=4,
    budget=("attributes", "identity"), checkpoint_seconds=0.0, dropout=0.1,
)  # fmt: skip
TRUTHS = {"identity_hidden", "action_kept", "score_auroc", "score_auroc_all"}


@pytest.fixture(autouse=True)
def _small(runs, monkeypatch, data):  # noqa: ARG001
    monkeypatch.setitem(dual_cls.SIZES, "mini", (24, 3, 3, (1, 2, 3), (2, 8, 8)))
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: data)
    torch.set_num_threads(1)


def test_a_network_learns_on_preprocessed_video_and_remembers_the_method(monkeypatch):
    seen = []
    forward = DualCLSNetworks.forward
    monkeypatch.setattr(
        DualCLSNetworks, "forward", lambda self, video, *rest: seen.append(video) or forward(self, video, *rest)
    )
    run(replace(RECIPE, preprocess="motion:8", augment="none", epochs=1))
    assert all(torch.equal(video[:, 0], video[:, 2]) for video in seen)  # grey
    assert any(video.any() for video in seen)
    assert load("dual_cls:mine").preprocess.spec == "motion:8"


@pytest.mark.parametrize("preprocess", ["random", "nothing", "figure:1"])
def test_a_preprocessing_method_that_does_not_exist_is_refused_before_anything_is_made(runs, preprocess):
    with pytest.raises(UsageError):
        run(replace(RECIPE, preprocess=preprocess))
    assert not runs.exists()


def test_a_decoder_draws_from_what_was_filmed_and_from_nothing_else():
    with pytest.raises(RecipeError, match="leave out preprocess"):
        replace(RECIPE, preprocess="figure", output="decode", train_on="pixels", fusion=False)


def test_training_leaves_a_checkpoint_that_is_the_trained_network(runs, data, monkeypatch):
    built = []
    monkeypatch.setattr(
        dual_cls_training, "DualCLSNetworks", lambda *given: built.append(DualCLSNetworks(*given)) or built[-1]
    )
    made = run(RECIPE)
    assert made.folder == runs / "mine" / "checkpoint"
    assert made.method == "dual_cls"
    found = find("mine")
    assert found.about["recipe"] == as_values(RECIPE)
    assert found.about["metrics"] == made.metrics
    assert found.about["data"]["name"] == "puppets"
    assert same(found.tensors(), built[0].anonymizer.state_dict())  # not the votes
    video = torch.from_numpy(data.videos.frames(0).copy()).permute(3, 0, 1, 2)[None] / 255
    wanted = built[0].anonymizer.decide(video).kept
    mask = load("dual_cls:mine").anonymize_batch(video).mask
    assert torch.equal(mask[:, ::2, ::8, ::8], wanted)
    assert str(runs) not in (made.folder / "checkpoint.json").read_text()
    (info,) = list_runs()
    assert (info.name, info.state) == ("mine", "done")


def test_validation_reports_what_masks_hide_and_chooses_nothing(runs):
    made = run(replace(RECIPE, train_on="both", epochs=3))
    assert made.metrics.keys() == {"action_top1", "masked_top1", "tubelets_kept"} | TRUTHS
    assert made.floors.keys() == {"action_top1", "masked_top1", "identity_hidden", "action_kept", "score_auroc"}
    assert all(0 <= value <= 1 for value in made.metrics.values())
    epochs = [event for event in events(runs, "mine") if event["event"] == "epoch"]
    assert len(epochs) == 3
    assert epochs[-1]["identity_hidden"] == made.metrics["identity_hidden"]
    finished = next(event for event in events(runs, "mine") if event["event"] == "finished")
    assert (finished["best_epoch"], finished["best"]) == (3, None)


def test_metrics_on_validation_come_with_their_chance_levels(data):
    kept = {"action_top1": 0.5, "tubelets_kept": 0.8, "identity_hidden": 0.6, "action_kept": 0.9, "score_auroc": 0.7}
    labels = data.action[data.indices("val")].tolist()
    most = max(map(labels.count, labels)) / len(labels)
    at_random = {"action_top1": most, "identity_hidden": 0.2, "action_kept": 0.8, "score_auroc": 0.5}
    assert validation_floors(kept, data) == pytest.approx(at_random)
    assert validation_floors({"masked_top1": 0.5}, data) == pytest.approx({"masked_top1": most})


def test_metrics_of_masks_on_validation_count_pixels(data):
    networks = DualCLSNetworks(replace(RECIPE, train_on="heads"), data, "cpu")
    loader = Loader(data, data.indices("val"), frames=FRAMES, size=SIZE, batch=5, order="sequential")
    kept = torch.ones(2, 4, 4, dtype=torch.bool)
    kept[:, 0, 1] = False  # the face
    kept[0, 2, 1] = False  # the arm, half of the time

    class FixedMask(torch.nn.Module):
        grid, tubelet = (2, 4, 4), (2, 8, 8)

        def forward(self, video):
            labels = torch.nn.functional.one_hot(torch.zeros(len(video), dtype=torch.long), 2).float()
            flat = kept.flatten().expand(len(video), -1)
            return dual_cls.DualCLSOutput(labels, labels, flat, flat.float(), [], labels)

    networks.anonymizer = FixedMask()
    found = validation_metrics(networks, loader, data)
    assert found["identity_hidden"] == 1
    assert found["action_kept"] == 0.5
    assert found["action_top1"] == 0.5  # it always predicts left
    assert found["score_auroc"] == 0.75
    strided = Loader(data, data.indices("val"), frames=FRAMES, size=SIZE, stride=2, batch=5, order="sequential")
    assert validation_metrics(networks, strided, data).keys() == {
        "action_top1",
        "tubelets_kept",
    }  # truth is of other frames


@pytest.mark.parametrize(
    ("changes", "stops"),
    [
        ({"train_on": "attribution"}, (1, 4)),
        ({"train_on": "pixels", "privacy_attention": "detector", "ema": 0.9}, (2,)),
        ({"train_on": "heads", "privacy_attention": "reversed"}, (5,)),
    ],
)
def test_training_that_is_stopped_and_resumed_is_the_same_to_the_bit(runs, monkeypatch, changes, stops):
    recipe = replace(RECIPE, **changes)
    whole = run(replace(recipe, name="whole"))
    for number, step in enumerate(stops):
        with monkeypatch.context() as patch:
            stop_at(patch, DualCLSNetworks, step - sum(stops[:number]))
            with pytest.raises(KeyboardInterrupt):
                run(replace(recipe, name="stopped"), resume=number > 0)
    resumed = run(replace(recipe, name="stopped"), resume=True)
    begun = [event["step"] for event in events(runs, "stopped") if event["event"] == "resumed"]
    assert begun == list(stops)
    assert same(bits(runs, "whole"), bits(runs, "stopped"))
    assert resumed.metrics == whole.metrics


def test_another_seed_is_another_network(runs):
    for seed in (0, 1):
        run(replace(RECIPE, name=f"s{seed}", seed=seed, train_on="heads", epochs=1))
    assert not same(bits(runs, "s0"), bits(runs, "s1"))


def test_a_run_that_died_after_training_writes_its_checkpoint_without_training_again(runs, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(trained.checkpoint, "write", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(RECIPE)
    stop_at(monkeypatch, DualCLSNetworks, 0)
    made = run(RECIPE, resume=True)
    assert made.metrics.keys() >= TRUTHS
    assert (runs / "mine" / "checkpoint" / "weights.safetensors").is_file()


def test_a_name_is_used_once(runs, monkeypatch):
    run(replace(RECIPE, train_on="heads", epochs=1))
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: pytest.fail("clips were decoded for nothing"))
    with pytest.raises(UsageError, match="run 'mine' is done"):
        run(replace(RECIPE, train_on="heads", epochs=1))
    assert (runs / "mine").is_dir()


def test_a_budget_that_the_data_do_not_name_is_refused_before_a_run_begins(runs, data, monkeypatch):
    nobody = replace(data, person=data.person * 0 - 1)
    plain = replace(data, attributes=data.attributes[:, :0], attribute_names=())
    neither = replace(plain, person=nobody.person)
    unknown = replace(data, attributes=data.attributes * np.nan)
    for changed, message in (
        (nobody, "names no people: budget: attributes"),
        (plain, "names no attributes: budget: identity"),
        (neither, "the file with its labels is missing"),
        (unknown, "knows none of the clips to train on"),
    ):
        monkeypatch.setattr(train_method, "load_data", lambda *_, found=changed, **__: found)
        with pytest.raises(RecipeError, match=message):
            run(RECIPE)
    assert not runs.exists()


@pytest.mark.parametrize("data", ["puppets:rho=0", "pa_hmdb51:frames"])
def test_a_part_that_a_set_does_not_have_is_refused_before_clips_are_drawn(monkeypatch, data):
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: pytest.fail("clips were drawn"))
    with pytest.raises(UsageError, match="part: person_crop is "):
        run(replace(RECIPE, data=data, part="person_crop"))


def test_a_network_learns_on_the_part_that_is_asked_for(monkeypatch):
    seen = []
    monkeypatch.setattr(train_method, "check_video_part", lambda *_: None)
    monkeypatch.setitem(train_method.VIDEO_PARTS, "person_crop", lambda clips: seen.append(clips) or clips)
    run(replace(RECIPE, part="person_crop", epochs=1))
    assert len(seen) == 1


def test_several_actions_at_once_are_refused_before_a_run_begins(runs, data, monkeypatch):
    shown = np.eye(len(data.actions), dtype=np.float32)[data.action]
    several = replace(data, action=data.action * 0 - 1, action_labels=shown)
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: several)
    with pytest.raises(DataError, match="shows several actions at once, and dual_cls learns one a clip"):
        run(RECIPE)
    assert not runs.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"utility": "r3d_tinny", "train_on": "pixels"}, r"did you mean r3d_tiny\?"),
        ({"output": "decode", "train_on": "pixels"}, "fusion: false"),
    ],
)
def test_a_network_that_cannot_be_built_leaves_no_run_behind(runs, changes, message):
    with pytest.raises((RecipeError, UsageError), match=message):
        run(replace(RECIPE, **changes))
    assert not runs.exists()


@pytest.mark.parametrize(
    ("changes", "message"), [({"size": 36}, "no whole number of tubelets"), ({"reference": True}, "smooth: false")]
)
def test_contradictions_are_refused_before_clips_are_drawn(monkeypatch, changes, message):
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: pytest.fail("clips were drawn"))
    with pytest.raises((RecipeError, UsageError), match=message):
        run(replace(RECIPE, **changes))


def test_a_decoder_is_trained_and_loads_as_one():
    made = run(
        replace(RECIPE, train_on="pixels", privacy_attention="reversed", output="decode", fusion=False, epochs=1)
    )
    method = load("mine")
    assert type(method).__name__ == "Decoder"
    shown = method.anonymize(torch.rand(3, FRAMES, SIZE, SIZE)).video
    assert shown.any()
    assert "masked_top1" in made.metrics
