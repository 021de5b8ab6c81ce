"""A checkpoint as a method: it decides as the network that was trained, and a decoder knows what it cannot do."""

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from tests import media
from tests.evaluation.masked import people
from tests.methods import made_checkpoint
from tests.methods.known_masks import frames
from tests.methods.made_checkpoint import FRAMES, SIZE, clips, network
from vidveil import load
from vidveil.cli.app import app
from vidveil.core.anonymizer import Chain
from vidveil.core.errors import UsageError
from vidveil.methods.anonymized_data import Setting, anonymized, check_method
from vidveil.methods.dual_cls.anonymizer import Decoder, read_network
from vidveil.methods.learned.anonymizer import tuned
from vidveil.methods.masking.masker import TubeletMasker
from vidveil.models.checkpoint import find
from vidveil.models.layers.tubelets import over_pixels, paint

DECODE = {"output": "decode", "fusion": False}


pytestmark = pytest.mark.usefixtures("runs")


def kept(runs, name="mine", **changes):
    """The network that was trained; its checkpoint is that of the run `name`."""
    made = network(**changes)
    made_checkpoint.write(runs / name / "checkpoint", made, name)
    return made


@pytest.mark.parametrize(
    "changes",
    [{}, {"privacy_attention": "detector"}, {"reference": True}, {"privacy_weight": 2.0, "fusion": False}, DECODE],
)
def test_a_loaded_checkpoint_decides_as_the_network_that_was_trained(runs, changes):
    made = kept(runs, **changes)
    video = clips(3)
    method = load("dual_cls:mine")
    for keep, weight in ((None, None), (0.5, 0.0), (0.9, float("inf"))):
        wanted = made.decide(video, keep, weight)
        assert 0 < wanted.kept.float().mean() < 1
        found = method.anonymize_batch(video, keep=keep, privacy_weight=weight)
        assert torch.equal(found.mask, over_pixels(wanted.kept, made.tubelet))
        torch.testing.assert_close(found.scores, over_pixels(wanted.scores, made.tubelet))


def test_a_masked_clip_shows_the_original_where_it_is_kept_and_black_elsewhere(runs):
    kept(runs)
    video = clips()
    found = load("mine").anonymize_batch(video)
    shown = found.mask.unsqueeze(1).expand_as(video)
    assert torch.equal(found.video[shown], video[shown])
    assert not found.video[~shown].any()


def test_the_fill_is_that_of_the_recipe(runs):
    kept(runs, fill="mean")
    method = load("mine")
    assert method.fill == "mean"
    found = method.anonymize_batch(clips())
    assert torch.equal(found.video, paint(clips(), found.mask, "mean"))


def test_every_number_of_the_network_comes_from_the_file(runs):
    made = kept(runs)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    found = read_network(find("mine"))
    assert torch.equal(torch.get_rng_state(), before)  # nothing was drawn
    assert not found.training
    for (name, wanted), (same, tensor) in zip(made.state_dict().items(), found.state_dict().items(), strict=True):
        assert name == same
        assert torch.equal(tensor, wanted)
    assert not any(tensor.is_meta for tensor in (*found.parameters(), *found.buffers()))
    assert not any(parameter.requires_grad for parameter in found.parameters())
    assert found.about() == made.about()


def test_a_manifest_gets_the_runs_name_and_the_hash(runs):
    kept(runs)
    method = load(str(runs / "mine" / "checkpoint"))
    assert method.spec == "dual_cls:mine"
    assert method.weights == f"mine {find('mine').sha256[:16]}"
    assert method.knobs == {"keep": 0.7, "privacy_weight": 0.5, "fill": "black", "stride": 2}


@pytest.mark.parametrize(("deploy_stride", "stride"), [(0, 2), (5, 5)])
def test_videos_are_looked_at_as_fast_as_the_network_learned_unless_its_recipe_says_otherwise(
    runs, deploy_stride, stride
):
    made_checkpoint.write(runs / "mine" / "checkpoint", network(), "mine", deploy_stride=deploy_stride)
    assert load("dual_cls:mine").stride == stride


def test_a_decoder_draws_what_its_network_draws_and_hides_what_it_pruned(runs):
    made = kept(runs, **DECODE)
    video = clips()
    method = load("mine")
    assert isinstance(method, Decoder)
    found = method.anonymize_batch(video, keep=0.6, privacy_weight=1.0)
    with torch.inference_mode():
        wanted = made.decode(made(video, 0.6, 1.0))
    torch.testing.assert_close(found.video, wanted)
    hidden = ~found.mask.unsqueeze(1).expand_as(video)
    assert hidden.any()
    assert not found.video[hidden].any()
    assert (found.video[~hidden] != video[~hidden]).float().mean() > 0.9  # no pixel of the original passes


def test_a_decoder_takes_bytes_and_gives_bytes(runs):
    kept(runs, **DECODE)
    video = (clips() * 255).round().to(torch.uint8)
    found = load("mine").anonymize_batch(video)
    assert found.video.dtype == torch.uint8
    again = load("mine").anonymize_batch(video.float() / 255)
    assert torch.equal(found.video, (again.video * 255).round().to(torch.uint8))


@pytest.mark.parametrize("shape", [(FRAMES, SIZE, 2 * SIZE), (FRAMES, SIZE // 2, SIZE // 2), (2 * FRAMES, SIZE, SIZE)])
def test_a_decoder_refuses_clips_of_another_size(runs, shape):
    kept(runs, **DECODE)
    with pytest.raises(UsageError, match=r"draws clips of 4 × 32 × 32, not .*train one with output: mask"):
        load("mine").anonymize_batch(torch.rand(1, 3, *shape))
    with pytest.raises(UsageError, match="draws clips of 4 × 32 × 32"):
        load("mine").anonymize(torch.rand(3, *shape))


def test_a_decoder_refuses_streams_also_with_its_knobs_turned(runs):
    kept(runs, **DECODE)
    for method in (load("mine"), tuned(load("mine"), keep=0.8), tuned(load("mine"), device="cpu")):
        assert isinstance(method, Decoder)
        with pytest.raises(UsageError, match="draws small clips, not videos"):
            list(method.stream(frames(4)))


def test_turned_knobs_are_those_of_every_call(runs):
    for name, changes in (("masks", {}), ("draws", DECODE)):
        kept(runs, name, **changes)
        method = tuned(load(name), keep=0.5, privacy_weight=0.0)
        assert type(method) is (TubeletMasker if name == "masks" else Decoder)
        assert method.knobs["keep"] == 0.5
        found, asked = method.anonymize_batch(clips()), load(name).anonymize_batch(clips(), keep=0.5, privacy_weight=0)
        assert torch.equal(found.video, asked.video)


@pytest.mark.parametrize("method", ["mine", "dual_cls:mine", "mine | blur:weak"])
@pytest.mark.parametrize("changes", [{}, DECODE])
def test_an_evaluation_finds_no_fault_with_a_checkpoint(runs, method, changes):
    kept(runs, **changes)
    assert isinstance(load(method), Chain) == ("|" in method)
    check_method(Setting(method=method), () if "|" in method else (0.5, 0.9))


def test_an_evaluation_is_told_beforehand_of_a_knob_that_makes_no_sense(runs):
    kept(runs)
    with pytest.raises(UsageError, match="keep is a share"):
        check_method(Setting(method="mine"), (1.5,))
    with pytest.raises(UsageError, match="there is no checkpoint 'yours'"):
        check_method(Setting(method="dual_cls:yours"))


@pytest.mark.parametrize("changes", [{}, DECODE])
def test_an_evaluation_sees_what_the_method_shows_with_the_mask_beside_it(runs, tmp_path, monkeypatch, changes):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    kept(runs, **changes)
    data = people(tmp_path, clips=2)
    after = anonymized(data, Setting(method="dual_cls:mine", keep=0.6))
    for row in (0, len(data) - 1):
        clip = torch.from_numpy(data.videos.frames(row).copy()).movedim(-1, 0)[None]  # (1, 3, T, H, W)
        wanted = load("mine").anonymize_batch(clip, keep=0.6)
        assert np.array_equal(after.videos.frames(row), wanted.video[0].movedim(0, -1).numpy())
        assert np.array_equal(after.videos.side("kept", row), wanted.mask[0, ::2, ::8, ::8].numpy())


@pytest.mark.parametrize("knobs", [[], ["--keep", "0.8"]])
def test_a_decoder_leaves_no_file_where_a_video_was_asked_for(runs, tmp_path, knobs):
    kept(runs, **DECODE)
    film = media.Film(frames=6).make(tmp_path / "film.mp4")
    done = CliRunner().invoke(app, ["anonymize", str(film), "--method", "mine", *knobs])
    assert done.exit_code == 1
    assert "draws small clips, not videos" in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["film.mp4", "runs"]
