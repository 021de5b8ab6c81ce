"""Masks over what another method leaves: the network sees that, and nothing else is shown."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from tests import media
from tests.evaluation.masked import people
from tests.methods import made_checkpoint
from tests.methods.known_masks import frames
from tests.methods.made_checkpoint import FRAMES, SIZE, network
from vidveil import load
from vidveil.cli.app import app
from vidveil.core.errors import UsageError, WeightsError
from vidveil.methods.anonymized_data import Setting, anonymized
from vidveil.methods.dual_cls.anonymizer import read_network
from vidveil.methods.learned.anonymizer import tuned
from vidveil.methods.masking.masker import TubeletMasker
from vidveil.models.checkpoint import find
from vidveil.models.layers.tubelets import over_pixels, paint

pytestmark = pytest.mark.usefixtures("runs")


def trained(runs, spec):
    made = network()
    made_checkpoint.write(runs / "mine" / "checkpoint", made, preprocess=spec)
    return made


def moving():
    """A square that goes right before a wall of noise: (3, T, H, W)"""
    wall = torch.rand(3, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(3)) * 0.3 + 0.2
    video = wall.repeat(1, FRAMES, 1, 1)
    for i in range(FRAMES):
        video[:, i, 8:16, 4 + 2 * i : 12 + 2 * i] = 0.9
    return video


@pytest.mark.parametrize("spec", ["figure:8", "motion:4", "blur:strong"])
def test_a_network_that_learned_on_what_a_method_leaves_sees_and_keeps_that(runs, spec):
    made = trained(runs, spec)
    left = load(spec).anonymize(moving()).video
    assert left.any()
    wanted = over_pixels(made.decide(left[None]).kept, made.tubelet)
    found = load("mine").anonymize(moving())
    assert torch.equal(found.mask, wanted[0])
    torch.testing.assert_close(found.video, paint(left[None], wanted)[0])
    assert load("mine").knobs["preprocess"] == spec


def test_bytes_go_through_the_method_before_as_floats_do(runs):
    trained(runs, "motion:4")
    whole = (moving() * 255).round().to(torch.uint8)
    ours, theirs = load("mine").anonymize(whole).video, load("mine").anonymize(whole.float() / 255).video
    assert ours.dtype == torch.uint8
    torch.testing.assert_close(ours.float(), theirs * 255, atol=0.51, rtol=0)


def test_a_stream_goes_through_the_method_before_and_turned_knobs_keep_it(runs):
    trained(runs, "solid")
    for method in (load("mine"), load("mine").tuned(0.9, 0.0), tuned(load("mine"), keep=1.0)):
        assert all(np.all(safe.planes[0] == 16) for safe in method.stream(frames(12)))


def test_frames_that_the_method_before_leaves_out_are_left_out(runs):
    trained(runs, "solid | stride:3")
    assert [load("mine").keeps(i) for i in range(4)] == [True, False, False, True]
    assert [safe.index for safe in load("mine").stream(frames(7))] == [0, 3, 6]


@pytest.mark.parametrize(("spec", "why"), [("stride:1", "leaves pictures as they are"), ("mine", "is learned itself")])
def test_what_hides_nothing_or_is_learned_cannot_come_before_a_mask(runs, spec, why):
    trained(runs, "raw")
    made_checkpoint.write(runs / "other" / "checkpoint", network(), "other", preprocess=spec)
    with pytest.raises(UsageError, match=why):
        load("dual_cls:other")


def test_a_network_with_a_method_before_it_comes_first(runs):
    trained(runs, "figure:8")
    with pytest.raises(UsageError, match="applies figure:8 by itself, and must come first"):
        load("figure:8 | dual_cls:mine")
    assert load("dual_cls:mine | stride:2").elsewhere


def test_a_decoder_that_claims_another_method_before_it_is_refused(runs):
    made_checkpoint.write(runs / "mine" / "checkpoint", network(output="decode", fusion=False), preprocess="solid")
    with pytest.raises(WeightsError, match="draws pictures after solid"):
        load("mine")


def test_a_frame_holds_nothing_that_holds_it(runs):
    """Else pictures wait for a collector of cycles, and long videos fill the memory."""
    trained(runs, "solid")
    for safe in load("mine").stream(frames(12)):
        assert safe.heat.under is not safe
        assert safe.heat.under.heat is None


def test_what_is_kept_is_not_compared_with_the_truth_of_other_places(runs, tmp_path):
    data = people(tmp_path / "drawn")
    for spec, known in (("motion:4", True), ("figure", False)):
        trained(runs, spec)
        videos = anonymized(data, Setting(method="dual_cls:mine", keep=0.9)).videos
        assert ("kept" in videos.sides) is known
        assert 0 < videos.share_kept(0) < 1


def test_random_pruning_works_on_preprocessed_video(runs, tmp_path):
    trained(runs, "solid")
    pruned = anonymized(people(tmp_path / "drawn"), Setting(method="random:dual_cls:mine", keep=0.9))
    assert not pruned.videos.frames(0).any()


def test_people_can_be_recognised_by_eye_only_if_the_method_before_leaves_them(runs):
    for spec, warned in (("raw", True), ("figure", False), ("figure:14", True), ("blur:weak", True)):
        trained(runs, spec)
        assert (load("mine").caution(720) is not None) is warned


def test_exported_and_compiled_networks_remember_the_method_before(runs, tmp_path):
    pytest.importorskip("onnx", reason="vidveil[export] is not installed")
    from vidveil.methods.dual_cls.export import ExportedScorer, export_onnx
    from vidveil.methods.dual_cls.fast import CompiledScorer

    trained(runs, "figure:8")
    made = read_network(find("mine"))
    export_onnx(made, tmp_path / "ward.onnx")
    for scorer in (made, ExportedScorer(tmp_path / "ward.onnx"), CompiledScorer(made, device="cpu", backend="eager")):
        method = TubeletMasker("ward", scorer, device="cpu")
        assert method.preprocess.spec == "figure:8"
        assert method.elsewhere
        assert TubeletMasker("ward", scorer, device="cpu", preprocess="raw").preprocess is None


def command(*words):
    return CliRunner().invoke(app, ["anonymize", *map(str, words)])


@pytest.fixture
def film(tmp_path):
    return media.Film(frames=24).make(tmp_path / "film.mp4")


@pytest.mark.parametrize("method", ["mine", "figure", "figure | blur:weak"])
def test_guards_and_regions_are_refused_where_nothing_is_where_it_was_filmed(runs, film, method):
    trained(runs, "figure:8")
    assert "--also-hide would hide the wrong places" in str(
        command(film, "--method", method, "--also-hide", "faces").exception
    )
    assert "does not work on regions" in str(command(film, "--method", method, "--region", "faces").exception)


def test_a_mask_that_keeps_everything_of_what_is_hidden_already_is_a_mask(runs, film):
    trained(runs, "solid")
    done = command(film, "--method", "mine", "--keep", "1")
    assert done.exit_code == 0, done.output
    assert "preprocess solid" in done.output
    assert media.lumas(film.with_name("film_anonymized.mp4")).max() < 20
    order = json.loads(film.with_name("film_anonymized.json").read_text())["order"]
    assert order["knobs"]["preprocess"] == "solid"


def test_a_heatmap_shows_what_the_network_saw(runs, film, tmp_path):
    trained(runs, "solid")
    done = command(film, "--method", "mine", "--keep", "1", "--heatmap", tmp_path / "heat.mp4")
    assert done.exit_code == 0, done.output
    luma = media.lumas(tmp_path / "heat.mp4")
    assert len(luma) == 24
    assert luma.max() > 30  # colours
    assert np.median(media.detail(luma)) < 8  # and no film under them: it has 20 and more


def test_clips_of_a_set_come_out_as_a_file_of_bytes_does(runs, tmp_path, monkeypatch):
    """What masks lie over is made once, in bytes, as streams have it; a blur leaves fractions before that."""
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    made = network()
    made_checkpoint.write(runs / "mine" / "checkpoint", made, preprocess="blur:4")
    data = people(tmp_path)
    after = anonymized(data, Setting(method="dual_cls:mine", keep=0.7)).videos
    for row in (0, len(data) - 1):
        clip = torch.from_numpy(data.videos.frames(row).copy()).movedim(-1, 0)
        expected = load("mine").anonymize(clip, keep=0.7)
        np.testing.assert_array_equal(after.frames(row), expected.video.movedim(0, -1).numpy())
        assert 0 < after.share_kept(row) < 1
