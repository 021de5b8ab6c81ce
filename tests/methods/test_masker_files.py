"""Learned methods from the command line: knobs, manifests, heatmaps, the guard on top."""

import json
import subprocess
import sys

import av
import pytest
from typer.testing import CliRunner

import vidveil
from tests import media
from tests.detect.stage import Discs, Film, Head, Shot, shown, still
from tests.methods import made_checkpoint
from tests.methods.known_masks import CELL, FRAMES, GRID, SIZE, clip, masker, only
from vidveil import methods
from vidveil.app.jobs import Options, Status
from vidveil.cli.app import app
from vidveil.core.anonymizer import Chain
from vidveil.core.errors import UsageError
from vidveil.detect.settings import DETECTORS
from vidveil.methods.learned.anonymizer import tuned
from vidveil.methods.masking.masker import TubeletMasker


@pytest.fixture
def film(tmp_path):
    return media.Film(frames=40, width=64, height=48).make(tmp_path / "film.mp4")


@pytest.fixture
def named(monkeypatch):
    """The method by a name, as the command line wants it."""
    entry = methods.Method(lambda spec, _: TubeletMasker(spec, only((None, 1, 1)), weights="cells 1"), "cells", "")
    monkeypatch.setitem(methods.METHODS, "cells", entry)
    return "cells"


def command(*words):
    return CliRunner().invoke(app, ["anonymize", *map(str, words)])


def manifest(path):
    return json.loads(path.with_name(f"{path.stem}_anonymized.json").read_text())


def test_a_file_is_masked_over_the_whole_frame_and_its_manifest_says_how(film, named):
    done = command(film, "--method", named, "--keep", "0.5", "--privacy-weight", "inf")
    assert done.exit_code == 0, done.output
    luma = media.lumas(film.with_name("film_anonymized.mp4"))
    assert luma.shape == (40, 48, 64)
    assert (luma[:, 14:22, 18:30] < 30).all()
    assert (media.detail(luma[:, :, 34:]) > 20).all()
    order = manifest(film)["order"]
    assert order["knobs"] == {"keep": 0.5, "privacy_weight": "inf", "fill": "black", "stride": 2}
    assert order["weights"] == "cells 1"
    assert order["detection"] is None
    assert "torch" in manifest(film)["versions"]
    assert any("recognised by eye" in line for line in manifest(film)["warnings"])


def test_the_share_that_the_mask_left_is_in_the_manifest_and_in_the_output(film, named):
    left = 1 - 1 / (GRID * GRID)
    output = command(film, "--method", named).output
    assert manifest(film)["mask"] == {"frames": 40, "kept_area": round(left, 4)}
    assert f"the mask left {left:.2f} of the picture" in output
    assert command(film, "--method", "solid", "--region", "frame", "--overwrite").exit_code == 0
    assert manifest(film)["mask"] is None


def test_turning_a_knob_is_another_order_and_the_same_order_is_done(film):
    outcomes = [vidveil.anonymize(film, method=masker(keep=keep))[0].status for keep in (0.5, 0.5, 0.6)]
    assert outcomes == [Status.DONE, Status.UP_TO_DATE, Status.DONE]


def test_an_output_with_a_guard_is_not_replaced_by_one_without(film, named, monkeypatch):
    monkeypatch.setitem(DETECTORS, "faces", Discs)
    assert command(film, "--method", named, "--also-hide", "faces").exit_code == 0
    guarded = film.with_name("film_anonymized.mp4").read_bytes()
    done = command(film, "--method", named)
    assert done.exit_code == 1
    assert (
        "hides faces, this would not look for them; --also-hide faces keeps them hidden, --overwrite replaces it"
        in done.output
    )
    assert film.with_name("film_anonymized.mp4").read_bytes() == guarded
    assert command(film, "--method", named, "--overwrite").exit_code == 0
    assert (
        command(film, "--method", named, "--also-hide", "faces").exit_code == 0
    )  # more is hidden: nothing to ask about


def test_a_network_that_was_trained_on_puppets_says_so_also_where_faces_are_hidden_on_top(film, tmp_path, monkeypatch):
    monkeypatch.setitem(DETECTORS, "faces", Discs)
    monkeypatch.chdir(tmp_path)
    for data, drawn in (("puppets:rho=0", True), ("ucf101_5", False)):
        made_checkpoint.write(tmp_path / "mine", made_checkpoint.network(), data=data)
        done = command(film, "--method", "dual_cls:mine", "--also-hide", "faces", "--overwrite")
        assert done.exit_code == 0, done.output
        assert any("was trained on synthetic people" in line for line in manifest(film)["warnings"]) == drawn
        done = command(
            film, "--method", "blur | dual_cls:mine", "--region", "frame", "--also-hide", "faces", "--overwrite"
        )
        assert done.exit_code == 0, done.output
        assert any("was trained on synthetic people" in line for line in manifest(film)["warnings"]) == drawn


@pytest.mark.parametrize(("guessed", "nothing"), [(0.47, True), (0.2, False)])
def test_a_network_that_learned_nothing_says_so(film, tmp_path, monkeypatch, guessed, nothing):
    monkeypatch.chdir(tmp_path)
    made_checkpoint.write(tmp_path / "mine", made_checkpoint.network(), floors={"action_top1": guessed})
    assert command(film, "--method", "dual_cls:mine").exit_code == 0
    assert any("than chance: train it longer" in line for line in manifest(film)["warnings"]) == nothing


@pytest.mark.parametrize("option", ["--keep", "--privacy-weight"])
def test_methods_without_knobs_refuse_them(film, option):
    done = command(film, "--method", "blur:strong", option, "0.5")
    assert done.exit_code == 1
    assert "settings of learned methods, and blur:strong is none" in str(done.exception)


@pytest.mark.parametrize("keep", ["1", str(1 - 0.5 / (FRAMES // 2 * GRID**2))])
def test_a_share_at_which_nothing_is_hidden_is_refused(film, named, keep):
    done = command(film, "--method", named, "--keep", keep)
    assert done.exit_code == 1
    assert "hides nothing at keep" in str(done.exception)
    assert "--also-hide faces" in str(done.exception)
    assert not film.with_name("film_anonymized.mp4").exists()


def test_a_network_whose_own_share_hides_nothing_is_refused_until_another_is_asked_for(film, monkeypatch):
    network = made_checkpoint.network(keep=1.0)
    entry = methods.Method(lambda spec, _: TubeletMasker(spec, network, weights="all 1"), "all", "")
    monkeypatch.setitem(methods.METHODS, "all", entry)
    assert "hides nothing at keep 1" in str(command(film, "--method", "all", "--dry-run").exception)
    assert command(film, "--method", "all", "--keep", "0.9", "--dry-run").exit_code == 0


def test_with_a_guard_a_network_may_keep_everything(film, named, monkeypatch):
    monkeypatch.setitem(DETECTORS, "discs", Discs)
    done = command(film, "--method", named, "--keep", "1", "--also-hide", "discs")
    assert done.exit_code == 0, done.output


def test_in_python_a_network_may_keep_everything():
    assert masker(keep=1.0).anonymize(clip()).mask.all()


def test_a_heatmap_that_cannot_be_made_is_refused_without_a_warning_of_what_it_shows(film, tmp_path):
    done = command(film, "--method", "blur:strong", "--heatmap", tmp_path / "heat.mp4")
    assert "--heatmap shows scores of learned methods" in str(done.exception)
    assert "will show what is hidden" not in done.output


def test_a_heatmap_shows_the_original_and_says_so(film, named, tmp_path):
    done = command(film, "--method", named, "--heatmap", tmp_path / "heat.mp4", "--preview", tmp_path / "look.mp4")
    assert done.exit_code == 0, done.output
    assert "heat.mp4 will show what is hidden: do not share it" in done.output
    luma = media.lumas(tmp_path / "heat.mp4")
    assert luma.shape == (40, 48, 64)
    assert media.times(tmp_path / "heat.mp4") == media.times(film)
    assert (media.detail(luma[:, :, 34:]) > 20).all()  # the original under its colours
    assert (luma[:, 13:23, 17:31].min((1, 2)) < 28).all()  # the hatching of what is hidden
    assert (luma[:, :, 34:].min((1, 2)) > 28).all()
    with av.open(str(tmp_path / "heat.mp4")) as opened:
        assert next(opened.decode(video=0)).to_ndarray(format="rgb24").std(-1).mean() > 15  # in colours


def test_a_heatmap_of_a_method_without_scores_is_refused(film, tmp_path):
    with pytest.raises(UsageError, match="scores of learned methods"):
        vidveil.anonymize(film, method="solid", options=Options(heatmap=tmp_path / "heat.mp4"))


def test_a_heatmap_in_place_of_the_preview_is_refused(film, tmp_path):
    both = tmp_path / "both.mp4"
    with pytest.raises(UsageError, match="the same file"):
        vidveil.anonymize(film, method=masker(), options=Options(preview=both, heatmap=both))


def test_the_guard_hides_heads_on_top_of_a_mask(tmp_path, monkeypatch):
    monkeypatch.setitem(DETECTORS, "discs", Discs)
    film = Film(shots=[Shot([Head(still(60, 60)), Head(still(180, 100))])])
    source = film.make(tmp_path / "heads.mp4")
    outcome = vidveil.anonymize(source, method=masker(only((None, 3, 0))), also_hide="discs")[0]
    assert outcome.ok
    luma = media.lumas(tmp_path / "heads_anonymized.mp4")
    for picture, heads in zip(luma, film.truth(), strict=True):
        assert max(shown(picture, head) for head in heads) < 0.02
        assert (picture[122:158, 2:58] < 30).all()


def test_a_learned_method_on_a_region_is_refused_with_a_way_out(film):
    with pytest.raises(UsageError, match="--also-hide hides them on top"):
        vidveil.anonymize(film, method=masker(), region="faces")


def test_a_learned_method_has_its_place_in_a_chain(film):
    chain = Chain([masker(only((None, 0, 0))), methods.load("stride:2")])
    assert tuned(chain, keep=0.3).stages[0].keep == 0.3
    outcome = vidveil.anonymize(film, method=chain)[0]
    assert (outcome.ok, outcome.frames) == (True, 20)


def test_methods_work_on_clips_where_pyav_is_not_installed():
    script = f"""
import sys
sys.modules["av"] = None
import torch
from vidveil.methods import load
from vidveil.methods.masking.masker import Decision, Scorer, TubeletMasker

class All(Scorer):
    frames, size, tubelet = {FRAMES}, {SIZE}, (2, {CELL}, {CELL})
    def decide(self, clips, keep, privacy_weight):
        scores = torch.zeros(len(clips), 4, 4, 4)
        return Decision(scores == 0, scores)

clip = torch.rand(3, 20, 40, 50)
assert load("blur:strong").anonymize(clip).video.shape == clip.shape
assert torch.equal(TubeletMasker("all", All(), weights=None).anonymize(clip).video, clip)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
