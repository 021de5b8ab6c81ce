"""A learned method that is not ours: how it is trained and evaluated by what all learned methods share."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import vidveil
from tests import media
from tests.evaluation.masked import FRAMES, SIZE
from tests.evaluation.stopped import bits, events, same, stop_at
from tests.methods.known_masks import frames
from tests.methods.learned import blend
from tests.methods.learned.blend import BlendNetwork, BlendRecipe, Shape
from tests.methods.learned.made_blend import command, made, manifest
from vidveil import load
from vidveil.app.run_recipe import carry_out
from vidveil.cli.train import _say_what_next
from vidveil.core.anonymizer import Chain
from vidveil.core.errors import DeviceError, UsageError
from vidveil.core.recipe import read_for
from vidveil.methods.anonymized_data import Setting, anonymized, check_method
from vidveil.methods.learned.anonymizer import learned_in, tuned
from vidveil.models.checkpoint import find
from vidveil.training import health

RECIPE = BlendRecipe(
    name="mine", data="puppets", frames=FRAMES, size=SIZE, epochs=3, batch=4, checkpoint_seconds=0.0, deploy_stride=1,
    seed=1,
)  # fmt: skip


def train(**changes):
    return carry_out(replace(RECIPE, **changes))


# ---- training


def test_each_network_learns_with_an_optimizer_of_its_own_and_the_anonymizer_is_kept(runs):
    found = train()
    epochs = [event for event in events(runs, "mine") if event["event"] == "epoch"]
    assert len(epochs) == 3
    assert {f"{name}/train_loss" for name in ("anonymizer", "recognizer", "attacker")} <= epochs[0].keys()
    assert {"anonymizer/train_loss/action", "anonymizer/train_loss/privacy"} <= epochs[0].keys()
    assert bits(runs, "mine").keys() == BlendNetwork(Shape(side=SIZE, width=4)).state_dict().keys()
    start = BlendNetwork(Shape(side=SIZE, width=4))
    assert not same(bits(runs, "mine"), start.state_dict())
    assert found.method == "blend"
    assert not found.shows_filmed


def test_a_recipe_of_this_method_is_read_as_every_other_one(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("verb: train\nmethod: blend\ndata: puppets\nwidth: 6\n")
    assert read_for("train", path, ["epochs=2"]) == BlendRecipe(name="mine", data="puppets", width=6, epochs=2)


def test_the_epoch_with_the_best_trade_off_is_kept_with_its_metrics_and_floors(runs):
    found = train(epochs=4)
    rows = [event for event in events(runs, "mine") if event["event"] == "epoch"]
    best = max(rows, key=lambda row: (row["tradeoff"], row["epoch"]))  # of equal ones the later
    assert found.metrics == {name: best[name] for name in found.metrics}
    assert found.metrics.keys() == {"masked_top1", "attacker_attributes", "output_spread", "tradeoff"}
    assert found.floors.keys() == {"masked_top1", "attacker_attributes"}
    assert find("mine").about["metrics"] == found.metrics
    assert 0 < found.metrics["output_spread"] < 1


def test_an_earlier_epoch_may_be_the_best_and_its_weights_are_kept(runs, monkeypatch):
    scores = iter([0.1, 0.9, 0.5, 0.9])  # of three epochs; the last is measured again on what is kept
    seen = []

    def more(self, metrics, floors):  # noqa: ARG001
        seen.append({name: tensor.clone() for name, tensor in self.anonymizer.state_dict().items()})
        return {"tradeoff": next(scores)}

    monkeypatch.setattr(blend.BlendNetworks, "more_metrics", more)
    found = train()
    assert found.metrics["tradeoff"] == 0.9
    assert same(bits(runs, "mine"), seen[1])
    assert not same(bits(runs, "mine"), seen[2])


@pytest.mark.parametrize("stops", [(1, 9), (14,)])
def test_training_that_is_stopped_and_resumed_is_the_same_to_the_bit(runs, monkeypatch, stops):
    whole = train(name="whole")
    for number, calls in enumerate(stops):
        with monkeypatch.context() as patch:
            stop_at(patch, BlendNetwork, calls)
            with pytest.raises(KeyboardInterrupt):
                carry_out(replace(RECIPE, name="stopped"), resume=number > 0)
    resumed = carry_out(replace(RECIPE, name="stopped"), resume=True)
    assert any(event["event"] == "resumed" and event["step"] > 0 for event in events(runs, "stopped"))
    assert same(bits(runs, "whole"), bits(runs, "stopped"))
    assert resumed.metrics == whole.metrics


def test_outputs_that_are_all_alike_are_reported_to_the_user_and_with_every_output(film, monkeypatch, capsys):
    monkeypatch.setattr(BlendNetwork, "forward", lambda self, clips: clips * 0 + self.up.bias.sigmoid().mean())
    found = train(epochs=1)
    (problem,) = [problem for problem in found.problems if "collapsed" in problem]
    assert problem in find("mine").about["problems"]
    _say_what_next(found, None)
    assert f"warning: {problem}" in capsys.readouterr().err
    assert command(film).exit_code == 0
    assert any("had a problem in its training: outputs collapsed" in line for line in manifest(film)["warnings"])


def test_health_knows_the_spread_by_the_name_that_validation_gives_it():
    rows = [{"epoch": 1, "train_loss": 1.0, "output_spread": 0.0}]
    assert any("collapsed" in problem for problem in health.problems(rows, []))


# ---- clips


def test_a_loaded_checkpoint_draws_as_the_network_that_was_trained(runs):
    network = made(runs)
    method = load("blend:mine")
    assert method.weights == find("mine").weights
    clips = torch.rand(2, 3, 7, SIZE, SIZE)
    found = method.anonymize_batch(clips)
    with torch.no_grad():
        torch.testing.assert_close(found.video, network(clips))
    assert found.mask is found.scores is None
    assert found.video.dtype == clips.dtype
    whole = method.anonymize_batch((clips * 255).round().to(torch.uint8)).video
    assert whole.dtype == torch.uint8
    assert (whole.float() / 255 - found.video).abs().max() < 2.1 / 255


@pytest.mark.parametrize(("length", "height", "width"), [(1, 48, 64), (9, 33, 21), (30, SIZE, SIZE)])
def test_clips_keep_their_length_and_size_and_each_picture_is_drawn_once(runs, monkeypatch, length, height, width):
    made(runs)
    drawn, forward = [], BlendNetwork.forward
    monkeypatch.setattr(BlendNetwork, "forward", lambda self, clips: drawn.append(len(clips)) or forward(self, clips))
    clip = torch.rand(3, length, height, width)
    shown = load("blend:mine").anonymize(clip).video
    assert shown.shape == clip.shape
    assert 0 <= shown.min() <= shown.max() <= 1
    assert sum(drawn) == length


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        (lambda clips: clips * torch.nan, "not numbers"),
        (lambda clips: clips[..., :-1], "instead of"),
        (lambda clips: clips[:0], "instead of"),
    ],
)
def test_a_network_that_draws_nonsense_gives_no_clip_and_black_frames(runs, monkeypatch, film, spoiled, message):
    made(runs)
    monkeypatch.setattr(BlendNetwork, "forward", lambda _, clips: spoiled(clips))
    with pytest.raises(ValueError, match=message):
        load("blend:mine").anonymize(torch.rand(3, 4, SIZE, SIZE))
    done = command(film)
    assert done.exit_code == 0, done.output
    assert manifest(film)["hidden"] == [{"first": 0, "last": 19, "why": "could not be anonymized (ValueError)"}]
    assert media.lumas(film.with_name("film_anonymized.mp4")).max() < 20


def test_knobs_that_it_does_not_have_are_refused_and_a_device_that_is_not_there(runs):
    made(runs)
    method = load("blend:mine")
    for refused in (lambda: tuned(method, keep=0.5), lambda: method.anonymize(torch.rand(3, 4, 8, 8), keep=0.5)):
        with pytest.raises(UsageError, match="blend:mine has no keep: leave it out"):
            refused()
    assert method.knobs == {"stride": 1}
    with pytest.raises(DeviceError, match="no such CUDA device"):
        tuned(method, device="cuda:99")
    moved = tuned(Chain([method, load("blur:weak")]), device="cpu")
    assert str(moved.device) == "cpu"
    assert learned_in(moved).limits == method.limits  # nothing is lost on the way
    with pytest.raises(UsageError, match="is learned itself"):
        blend.ImageToImage("second", method.network, preprocess="blend:mine")


def test_it_is_preprocessed_where_it_was_trained_so(runs):
    network = made(runs)
    network.limits = ()
    method = blend.ImageToImage("after", network, preprocess="solid")
    assert not method.anonymize(torch.rand(3, 4, SIZE, SIZE)).video.any()
    assert {frame.hidden for frame in method.stream(frames(5, SIZE, SIZE))} == {None}
    assert method.alone().anonymize(torch.rand(3, 4, SIZE, SIZE)).video.any()
    assert method.knobs["preprocess"] == "solid"


# ---- evaluations


def test_an_evaluation_sees_what_the_method_shows(runs, data, tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    network = made(runs)
    check_method(Setting(method="blend:mine"))
    with pytest.raises(UsageError, match="leave fill out"):
        check_method(Setting(method="blend:mine", fill="mean"))
    after = anonymized(data, Setting(method="blend:mine"))
    assert not after.videos.sides
    for row in (0, len(data) - 1):
        clip = torch.from_numpy(data.videos.frames(row).copy()).movedim(-1, 0)[None] / 255
        with torch.no_grad():
            wanted = (network(clip)[0] * 255).movedim(0, -1).numpy()
        assert np.abs(after.videos.frames(row) - wanted).max() <= 1


def test_it_is_measured_by_the_protocol_of_clips(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    made(runs)
    results = vidveil.evaluate(
        "blur_puppets", "data=puppets:rho=0,share=0.05", "frames=4", f"size={SIZE}", "batch=16", "epochs=1",
        "attacker_epochs=1", "permutations=200", "resamples=50", "attackers=[resnet_tiny]", "seeds=[0]", "controls=[]",
        "method=blend:mine", "name=measured",
    )  # fmt: skip
    (point,) = results.points
    assert point.method == "blend:mine"
    assert {"action_top1", "linkage_rank1_raw_gallery"} <= point.metrics.keys()
    assert "tubelets_kept" not in point.metrics
