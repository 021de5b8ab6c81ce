"""A learned method that is not ours: what it gets by extending the classes that all learned methods share."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import vidveil
from tests import media
from tests.detect.stage import Discs
from tests.evaluation.masked import FRAMES, SIZE
from tests.evaluation.stopped import bits, events, same, stop_at
from tests.methods.known_masks import frames
from tests.methods.learned import blend
from tests.methods.learned.blend import BlendNetwork, BlendRecipe, Shape
from vidveil import load
from vidveil.app.jobs import Options
from vidveil.app.run_recipe import carry_out
from vidveil.cli.app import app
from vidveil.cli.train import _say_what_next
from vidveil.core.anonymizer import Anonymized, Anonymizer, Chain
from vidveil.core.errors import DeviceError, UsageError
from vidveil.core.recipe import read_for
from vidveil.core.registry import METHODS, TRAININGS, Method
from vidveil.detect.settings import DETECTORS
from vidveil.methods.anonymized_data import Setting, anonymized, check_method
from vidveil.methods.learned import train as train_method
from vidveil.methods.learned.anonymizer import learned_in, tuned
from vidveil.methods.learned.windows import small_picture
from vidveil.models import checkpoint
from vidveil.models.checkpoint import find
from vidveil.training import health

RECIPE = BlendRecipe(
    name="mine", data="puppets", frames=FRAMES, size=SIZE, epochs=3, batch=4, checkpoint_seconds=0.0, deploy_stride=1,
    seed=1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _registered(runs, monkeypatch, data):  # noqa: ARG001
    monkeypatch.setitem(METHODS, "blend", blend.METHOD)
    monkeypatch.setitem(TRAININGS, "blend", blend.RUNNABLE)
    monkeypatch.setattr(train_method, "load_data", lambda *_, **__: data)
    torch.set_num_threads(1)


def train(**changes):
    return carry_out(replace(RECIPE, **changes))


def made(runs, *, floor=0.2, method="blend", data="puppets", **about):
    """A checkpoint as training leaves one; with a high floor it has learned nothing."""
    torch.manual_seed(3)
    network = BlendNetwork(Shape(side=SIZE, width=4)).eval()
    recipe = {"name": "mine", "method": method, "data": data, "stride": 1}
    about = {"recipe": recipe, "metrics": {"masked_top1": 0.5}, "floors": {"masked_top1": floor}, **about}
    checkpoint.write(runs / "mine" / "checkpoint", method, network.about(), network.state_dict(), **about)
    return network


@pytest.fixture
def film(tmp_path):
    return media.Film(frames=20, width=64, height=48).make(tmp_path / "film.mp4")


def command(film, *words):
    return CliRunner().invoke(app, ["anonymize", str(film), "--method", "blend:mine", *map(str, words)])


def manifest(film):
    return json.loads(film.with_name("film_anonymized.json").read_text())


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


# ---- streams and files


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 30])
def test_a_stream_shows_what_a_clip_of_its_pictures_shows_and_draws_each_once(runs, monkeypatch, count, stride):
    network = made(runs)
    method = blend.ImageToImage("mine", network, stride=stride)
    raw = list(frames(count, SIZE, SIZE))
    pictures = torch.from_numpy(np.stack([small_picture(frame, SIZE) for frame in raw], 1))  # (3, T, size, size)
    wanted = method.anonymize(pictures).video
    drawn, forward = [], BlendNetwork.forward
    monkeypatch.setattr(BlendNetwork, "forward", lambda self, clips: drawn.append(len(clips)) or forward(self, clips))
    safe = list(method.stream(iter(raw)))
    assert sum(drawn) == -(-count // stride)
    assert [(frame.index, frame.hidden, frame.heat) for frame in safe] == [(i, None, None) for i in range(count)]
    for i, frame in enumerate(safe):
        luma = (16 + 219 * torch.einsum("chw,c->hw", wanted[:, i], torch.tensor([0.299, 0.587, 0.114]))).numpy()
        assert np.abs(frame.planes[0][:SIZE, :SIZE] - luma).max() <= 1


def test_a_lost_frame_is_black_and_those_that_repeat_it_show_the_picture_before(runs):
    method = blend.ImageToImage("mine", made(runs), stride=2)
    raw = list(frames(20, SIZE, SIZE))
    raw[16].picture, raw[16].lost = None, "could not be decoded"  # the first of a window
    safe = list(method.stream(iter(raw)))
    assert [frame.index for frame in safe if frame.hidden] == [16]
    assert safe[17].planes[0].min() > 20


def test_a_file_is_written_and_its_manifest_says_by_which_method_weights_and_device(runs, film):
    made(runs)
    (outcome,) = vidveil.anonymize(film, method="blend:mine")
    assert outcome.ok
    order, about = manifest(film)["order"], manifest(film)
    assert (order["method"], order["weights"], order["knobs"]) == ("blend:mine", find("mine").weights, {"stride": 1})
    assert about["device"] == ("cuda" if torch.cuda.is_available() else "cpu")
    assert about["mask"] is None
    assert about["warnings"] == [
        "blend:mine draws what it shows: measure with `vidveil evaluate` how much that reveals about people",
        "blend:mine was trained on synthetic people: on other videos it is an experiment",
    ]
    before, after = media.lumas(film), media.lumas(film.with_name("film_anonymized.mp4"))
    assert after.shape == before.shape
    assert after.std() > 1


def test_the_command_takes_it_to_the_device_and_refuses_what_it_cannot_do(runs, film, tmp_path):
    made(runs)
    done = command(film, "--device", "cpu", "--size", "network")
    assert done.exit_code == 0, done.output
    assert media.lumas(film.with_name("film_anonymized.mp4")).shape == (20, SIZE, SIZE)
    for words, message in (
        (("--device", "cuda:99"), "no such CUDA device"),
        (("--keep", "0.5"), "has no keep: leave it out"),
        (("--heatmap", tmp_path / "heat.mp4"), "blend:mine has none"),
        (("--region", "faces"), "does not work on regions"),
    ):
        refused = command(film, *words, "--overwrite")
        assert refused.exit_code == 1
        assert message in str(refused.exception)


@pytest.mark.parametrize(("floor", "nothing"), [(0.47, True), (0.2, False)])
def test_a_method_that_learned_nothing_says_so_on_the_terminal_and_in_the_manifest(runs, film, floor, nothing):
    made(runs, floor=floor)
    done = command(film)
    assert done.exit_code == 0, done.output
    warning = "blend:mine predicted the action no better than chance: train it longer"
    assert (warning in " ".join(done.output.split())) == nothing
    assert (warning in manifest(film)["warnings"]) == nothing


def test_hiding_faces_on_top_silences_none_of_its_warnings(runs, film, monkeypatch):
    monkeypatch.setitem(DETECTORS, "discs", Discs)
    made(runs, floor=0.47)
    assert command(film, "--also-hide", "discs").exit_code == 0
    warnings = "\n".join(manifest(film)["warnings"])
    for part in ("draws what it shows", "synthetic people", "no better than chance", "--also-hide marks where"):
        assert part in warnings


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


# ---- methods of other packages that extend nothing but Anonymizer


class Inverted(Anonymizer):
    """Learned, as far as anybody can see: it has a checkpoint."""

    def anonymize(self, clip, *, keep=None, privacy_weight=None):
        assert keep is privacy_weight is None
        return Anonymized(1 - clip)

    def stream(self, frames):
        for frame in frames:
            yield frame.paint(lambda source, target, _: np.subtract(255, source, out=target))


@pytest.fixture
def inverted(runs, monkeypatch):
    entry = Method(lambda found: Inverted(f"inverted:{found.name}"), "inverted:RUN", "", learned="on video")
    monkeypatch.setitem(METHODS, "inverted", entry)
    made(runs, method="inverted", floor=0.47, data="ucf101_5")
    return load("inverted:mine")


def test_a_method_of_its_own_class_gets_the_weights_and_warnings_of_its_checkpoint(inverted, film):
    assert inverted.weights == find("mine").weights
    assert vidveil.anonymize(film, method=Chain([inverted, load("blur:strong")]), region="frame")[0].ok
    assert manifest(film)["order"]["weights"] == inverted.weights
    done = CliRunner().invoke(app, ["anonymize", str(film), "--method", "inverted:mine", "--overwrite"])
    assert done.exit_code == 0, done.output
    warning = "inverted:mine predicted the action no better than chance: train it longer"
    assert manifest(film)["warnings"] == [warning]
    assert warning in " ".join(done.output.split())


def test_a_method_of_its_own_class_is_evaluated_a_clip_at_a_time(inverted, data, tmp_path, monkeypatch):
    assert inverted.limits
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    after = anonymized(data, Setting(method="inverted:mine"))
    assert np.array_equal(after.videos.frames(3), 255 - data.videos.frames(3))


def test_a_heatmap_in_python_is_refused_too(runs, film, tmp_path):
    made(runs)
    with pytest.raises(UsageError, match="scores of learned methods with a mask, and blend:mine has none"):
        vidveil.anonymize(film, method="blend:mine", options=Options(heatmap=tmp_path / "heat.mp4"))
