"""`vidveil train` of a method, on people that are drawn in no time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.evaluation.masked import FRAMES, SIZE, people
from tests.evaluation.stopped import bits, events, same, stop_at
from vidveil import load
from vidveil.core.errors import DataError, RecipeError, UsageError
from vidveil.core.recipe import as_values
from vidveil.data.loader import Loader
from vidveil.methods.dual_cls import model as dual_cls
from vidveil.methods.dual_cls import train as dual_cls_training
from vidveil.methods.dual_cls.recipe import DualCLSRecipe
from vidveil.methods.dual_cls.train import DualCLSNetworks, run
from vidveil.methods.masking import train as train_method
from vidveil.methods.masking.train import seen_on
from vidveil.models.checkpoint import find
from vidveil.training.runs import list_runs

RECIPE = DualCLSRecipe(
    name="mine", data="puppets", frames=FRAMES, size=SIZE, network="mini", keep=0.8, epochs=2, batch=4,
    budget=("attributes", "identity"), checkpoint_seconds=0.0, dropout=0.1,
)  # fmt: skip
TRUTHS = {"identity_hidden", "action_kept", "score_auroc", "score_auroc_all"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return people(tmp_path_factory.mktemp("drawn"))


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch, data):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setitem(dual_cls.SIZES, "mini", (24, 3, 3, (1, 2, 3), (2, 8, 8)))
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: data)
    torch.set_num_threads(1)
    return tmp_path / "runs"


def test_a_network_learns_on_what_the_method_before_leaves_and_remembers_it(monkeypatch):
    seen = []
    forward = DualCLSNetworks.forward
    monkeypatch.setattr(
        DualCLSNetworks, "forward", lambda self, video, *rest: seen.append(video) or forward(self, video, *rest)
    )
    run(replace(RECIPE, after="motion:8", augment="none", epochs=1))
    assert all(torch.equal(video[:, 0], video[:, 2]) for video in seen)  # grey
    assert any(video.any() for video in seen)
    assert load("dual_cls:mine").after.spec == "motion:8"


@pytest.mark.parametrize("after", ["random", "nothing", "figure:1"])
def test_a_method_before_that_does_not_exist_is_refused_before_anything_is_made(runs, after):
    with pytest.raises(UsageError):
        run(replace(RECIPE, after=after))
    assert not runs.exists()


def test_a_decoder_draws_from_what_was_filmed_and_from_nothing_else():
    with pytest.raises(RecipeError, match="leave out after"):
        replace(RECIPE, after="figure", output="decode", train_on="pixels", fusion=False)


def test_training_leaves_a_checkpoint_that_is_the_trained_network(runs, data, monkeypatch):
    games = []
    monkeypatch.setattr(
        dual_cls_training, "DualCLSNetworks", lambda *words: games.append(DualCLSNetworks(*words)) or games[-1]
    )
    made = run(RECIPE)
    assert made.folder == runs / "mine" / "checkpoint"
    assert made.method == "dual_cls"
    found = find("mine")
    assert found.about["recipe"] == as_values(RECIPE)
    assert found.about["metrics"] == made.metrics
    assert found.about["data"]["name"] == "puppets"
    assert same(found.tensors(), games[0].anonymizer.state_dict())  # not the reader of votes
    video = torch.from_numpy(data.videos.frames(0).copy()).permute(3, 0, 1, 2)[None] / 255
    wanted = games[0].anonymizer.decide(video).kept
    mask = load("dual_cls:mine").anonymize_batch(video).mask
    assert torch.equal(mask[:, ::2, ::8, ::8], wanted)
    assert str(runs) not in (made.folder / "checkpoint.json").read_text()
    (info,) = list_runs()
    assert (info.name, info.state) == ("mine", "done")


def test_validation_tells_what_masks_hide_and_chooses_nothing(runs):
    made = run(replace(RECIPE, train_on="both", epochs=3))
    assert made.metrics.keys() == {"action_top1", "masked_top1", "tubelets_kept"} | TRUTHS
    assert made.floors.keys() == {"action_top1", "masked_top1", "identity_hidden", "action_kept", "score_auroc"}
    assert all(0 <= value <= 1 for value in made.metrics.values())
    told = [event for event in events(runs, "mine") if event["event"] == "epoch"]
    assert len(told) == 3
    assert told[-1]["identity_hidden"] == made.metrics["identity_hidden"]
    finished = next(event for event in events(runs, "mine") if event["event"] == "finished")
    assert (finished["best_epoch"], finished["best"]) == (3, None)


def test_numbers_on_validation_come_with_what_guessing_gets(data):
    kept = {"action_top1": 0.5, "tubelets_kept": 0.8, "identity_hidden": 0.6, "action_kept": 0.9, "score_auroc": 0.7}
    labels = data.action[data.indices("val")].tolist()
    most = max(map(labels.count, labels)) / len(labels)
    at_random = {"action_top1": most, "identity_hidden": 0.2, "action_kept": 0.8, "score_auroc": 0.5}
    assert train_method.floors(kept, data) == pytest.approx(at_random)
    assert train_method.floors({"masked_top1": 0.5}, data) == pytest.approx({"masked_top1": most})


def test_what_validation_says_of_masks_is_counted_in_pixels(data):
    game = DualCLSNetworks(replace(RECIPE, train_on="heads"), data, "cpu")
    loader = Loader(data, data.indices("val"), frames=FRAMES, size=SIZE, batch=5, order="sequential")
    kept = torch.ones(2, 4, 4, dtype=torch.bool)
    kept[:, 0, 1] = False  # the face
    kept[0, 2, 1] = False  # the arm, half of the time

    class Sees(torch.nn.Module):
        grid, tubelet = (2, 4, 4), (2, 8, 8)

        def forward(self, video):
            labels = torch.nn.functional.one_hot(torch.zeros(len(video), dtype=torch.long), 2).float()
            flat = kept.flatten().expand(len(video), -1)
            return dual_cls.Output(labels, labels, flat, flat.float(), [], labels)

    game.anonymizer = Sees()
    found = seen_on(game, loader, data)
    assert found["identity_hidden"] == 1
    assert found["action_kept"] == 0.5
    assert found["action_top1"] == 0.5  # it always says left
    assert found["score_auroc"] == 0.75
    strided = Loader(data, data.indices("val"), frames=FRAMES, size=SIZE, stride=2, batch=5, order="sequential")
    assert seen_on(game, strided, data).keys() == {"action_top1", "tubelets_kept"}  # truth is of other frames


@pytest.mark.parametrize(
    ("changes", "stops"),
    [
        ({"train_on": "credit"}, (1, 4)),
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
        patch.setattr(train_method.checkpoint, "write", lambda *_, **__: 1 / 0)
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
    for changed, said in (
        (nobody, "names no people: budget: attributes"),
        (plain, "names no attributes: budget: identity"),
        (neither, "the file with its labels is missing"),
        (unknown, "knows none of the clips to train on"),
    ):
        monkeypatch.setattr(train_method, "load_data", lambda *_, found=changed, **__: found)
        with pytest.raises(RecipeError, match=said):
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
    ("changes", "said"),
    [
        ({"size": 36}, "no whole number of tubelets"),
        ({"utility": "r3d_tinny", "train_on": "pixels"}, r"did you mean r3d_tiny\?"),
        ({"output": "decode", "train_on": "pixels"}, "fusion: false"),
    ],
)
def test_a_network_that_cannot_be_built_leaves_no_run_behind(runs, changes, said):
    with pytest.raises((RecipeError, UsageError), match=said):
        run(replace(RECIPE, **changes))
    assert not runs.exists()


@pytest.mark.parametrize(
    ("changes", "said"), [({"size": 36}, "no whole number of tubelets"), ({"reference": True}, "smooth: false")]
)
def test_what_contradicts_itself_is_told_before_clips_are_drawn(monkeypatch, changes, said):
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: pytest.fail("clips were drawn"))
    with pytest.raises((RecipeError, UsageError), match=said):
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
