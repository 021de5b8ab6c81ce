"""A learned method that is not ours: streams, files and warnings, also of one that extends nothing but Anonymizer."""

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import vidveil
from tests import media
from tests.detect.stage import Discs
from tests.evaluation.masked import SIZE
from tests.methods.known_masks import frames
from tests.methods.learned import blend
from tests.methods.learned.blend import BlendNetwork
from tests.methods.learned.made_blend import command, made, manifest
from vidveil import load
from vidveil.app.jobs import Options
from vidveil.cli.app import app
from vidveil.core.anonymizer import Anonymized, Anonymizer, Chain
from vidveil.core.errors import UsageError
from vidveil.core.registry import METHODS, Method
from vidveil.detect.settings import DETECTORS
from vidveil.methods.anonymized_data import Setting, anonymized
from vidveil.methods.learned.windows import small_picture
from vidveil.models.checkpoint import find

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
        "blend:mine draws every pixel: measure with `vidveil evaluate` how much that reveals about people",
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
    for part in ("draws every pixel", "synthetic people", "no better than chance", "--also-hide marks where"):
        assert part in warnings


def test_a_heatmap_in_python_is_refused_too(runs, film, tmp_path):
    made(runs)
    with pytest.raises(UsageError, match="scores of learned methods with a mask, and blend:mine has none"):
        vidveil.anonymize(film, method="blend:mine", options=Options(heatmap=tmp_path / "heat.mp4"))


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


def test_a_method_without_its_checkpoint_says_where_one_is(runs):
    with pytest.raises(UsageError, match=r"blend needs a checkpoint: blend:RUN"):
        load("blend")
    with pytest.raises(UsageError, match=r"`vidveil train dual_cls_puppets`, then dual_cls:dual_cls_puppets"):
        load("dual_cls")
    made(runs)
    (runs / "mine").rename(runs / "blend")
    with pytest.raises(UsageError, match=r"such as that of the run blend: blend:blend"):
        load("blend")
