"""A checkpoint as a method: it draws as the network that was trained, over videos of any length and size."""

import json

import av
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from tests import media
from tests.detect.stage import TURNS, Discs, frame_of, matrix_of, stored_as
from tests.evaluation.masked import people
from tests.methods import made_checkpoint
from tests.methods.known_masks import frames
from tests.methods.made_checkpoint import FRAMES, SIZE, clips, drawing_network
from vidveil import load
from vidveil.cli.app import app
from vidveil.core.errors import UsageError, WeightsError
from vidveil.core.yuv import rgb, yuv
from vidveil.detect.settings import DETECTORS
from vidveil.methods.anonymized_data import Setting, anonymized, check_method
from vidveil.methods.learned import stream as stretch
from vidveil.methods.learned.anonymizer import tuned
from vidveil.methods.learned.cells import laid_over
from vidveil.methods.learned.drawings import resized
from vidveil.methods.learned.windows import Plan, frames_of, small_picture
from vidveil.methods.masking.masker import TubeletMasker
from vidveil.methods.stprivacy.anonymizer import STPrivacyAnonymizer, read_network
from vidveil.models import checkpoint
from vidveil.models.checkpoint import find
from vidveil.models.layers.tubelets import over_pixels

CELL = 8


pytestmark = pytest.mark.usefixtures("runs")


def kept(runs, name="mine", stride=2, data="puppets", **changes):
    """The network that was trained; its checkpoint is that of the run `name`."""
    made = drawing_network(**changes)
    made_checkpoint.write(runs / name / "checkpoint", made, name, data=data, stride=stride)
    return made


@pytest.mark.parametrize("changes", [{}, {"select": "clip"}, {"tubelet_frames": 1}, {"alpha": 0.5}])
@pytest.mark.parametrize("keep", [None, 0.9])
def test_a_loaded_checkpoint_draws_as_the_network_that_was_trained(runs, changes, keep):
    made = kept(runs, **changes)
    method = load("stprivacy:mine")
    assert isinstance(method, STPrivacyAnonymizer)
    video = clips(3)
    wanted, stays, scores = made.draw(video, keep)
    found = method.anonymize_batch(video, keep=keep)
    torch.testing.assert_close(found.video, wanted)
    assert torch.equal(found.mask, over_pixels(stays, made.tubelet))
    torch.testing.assert_close(found.scores, over_pixels(scores, made.tubelet))
    assert 0 < stays.float().mean() < 1


def test_without_anonymization_it_is_a_mask_over_the_filmed_pixels(runs):
    kept(runs, anonymize=False)
    method = load("mine")
    assert type(method) is TubeletMasker
    video = clips(frames=9, height=50, width=70)
    found = method.anonymize_batch(video)
    shown = found.mask.unsqueeze(1).expand_as(video)
    assert torch.equal(found.video[shown], video[shown])
    assert not found.video[~shown].any()


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
    assert found.about() == made.about()


def test_a_checkpoint_of_another_shape_is_refused(runs):
    made = kept(runs)
    recipe = {"name": "mine", "stride": 2}
    checkpoint.write(
        runs / "mine" / "checkpoint", "stprivacy", {**made.about(), "sparsify": False}, made.state_dict(), recipe=recipe
    )
    with pytest.raises(WeightsError, match="does not hold a stprivacy network of this version"):
        load("mine")


def test_a_manifest_gets_the_runs_name_and_the_hash(runs):
    kept(runs, stride=3)
    method = load(str(runs / "mine" / "checkpoint"))
    assert method.spec == "stprivacy:mine"
    assert method.weights == f"mine {find('mine').sha256[:16]}"
    assert method.knobs == {"keep": 0.7, "privacy_weight": None, "fill": "black", "stride": 3}
    assert "draws what it keeps" in method.caution(720)


def test_bytes_give_bytes(runs):
    kept(runs)
    video = (clips() * 255).round().to(torch.uint8)
    found = load("mine").anonymize_batch(video)
    assert found.video.dtype == torch.uint8
    again = load("mine").anonymize_batch(video.float() / 255)
    assert torch.equal(found.video, (again.video * 255).round().to(torch.uint8))


def test_knobs_are_those_of_every_call_and_the_wrong_ones_are_refused(runs):
    kept(runs)
    method = tuned(load("mine"), keep=0.5)
    assert isinstance(method, STPrivacyAnonymizer)
    assert torch.equal(method.anonymize_batch(clips()).video, load("mine").anonymize_batch(clips(), keep=0.5).video)
    with pytest.raises(UsageError, match="leave out privacy_weight"):
        load("mine").anonymize_batch(clips(), privacy_weight=0.5)
    with pytest.raises(UsageError, match="has no privacy_weight"):
        tuned(load("mine"), privacy_weight=0.5).anonymize_batch(clips())
    with pytest.raises(UsageError, match="keep is a share"):
        load("mine").anonymize_batch(clips(), keep=1.5)
    kept(runs, "whole", sparsify=False)
    with pytest.raises(UsageError, match="drops no tubelets"):
        load("whole").anonymize_batch(clips(), keep=0.5)
    assert load("whole").anonymize_batch(clips()).mask.all()


# ---- clips of any length and size


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9, 13, 30])
def test_frames_are_drawn_by_the_first_window_that_covers_them_and_hidden_by_any(runs, length):
    made = kept(runs)
    method, video = load("mine"), clips(1, length)
    shown, stays = torch.zeros_like(video), torch.ones(length, 4, 4, dtype=torch.bool)
    done = set()
    for window in Plan(FRAMES, 2, 2).windows(length):
        drawn, each, _ = made.draw(video[:, :, list(window.samples)])
        for layer, (begin, end) in enumerate(window.spans):
            for frame in range(begin, end):
                stays[frame] &= each[0, layer]
                if frame not in done:
                    before = [i for i in (2 * layer, 2 * layer + 1) if window.samples[i] <= frame]
                    shown[:, :, frame] = drawn[:, :, before[-1] if before else 2 * layer]
                    done.add(frame)
    found = method.anonymize_batch(video)
    assert done == set(range(length))
    assert torch.equal(found.mask[0, :, ::CELL, ::CELL], stays)
    torch.testing.assert_close(found.video, shown * over_pixels(stays[None], (1, CELL, CELL)).unsqueeze(1))


def test_frames_between_those_that_are_shown_to_the_network_repeat_the_one_before(runs):
    kept(runs)
    found = load("mine").anonymize(clips(1, 40)[0]).video
    same = [bool((found[:, i] == found[:, i + 1]).all()) for i in range(39)]
    assert all(same[i] for i in range(0, 39, 2))
    assert not any(same[i] for i in range(1, 39, 2))


@pytest.mark.parametrize(("height", "width"), [(48, 64), (33, 21), (100, 40), (16, 16)])
def test_a_clip_of_another_size_is_drawn_at_its_own_size_and_no_hidden_cell_shows(runs, height, width):
    kept(runs)
    method, video = load("mine"), clips(2, 7, height, width)
    found = method.anonymize_batch(video)
    assert found.video.shape == video.shape
    assert 0 <= found.video.min() <= found.video.max() <= 1
    small, stays, _ = method.drawn(video, None, None)
    mask = laid_over(stays, height, width)
    assert torch.equal(found.mask, mask)
    torch.testing.assert_close(found.video, resized(small, height, width) * mask.unsqueeze(1))
    assert not found.video[~mask.unsqueeze(1).expand_as(video)].any()


def test_no_filmed_pixel_passes(runs):
    kept(runs)
    video = clips(2, 7, 48, 64)
    found = load("mine").anonymize_batch(video)
    assert (found.video != video).float().mean() > 0.99


def test_a_clip_does_not_depend_on_its_neighbours(runs):
    kept(runs)
    method, video = load("mine"), clips(3, 7, 48, 64)
    together = method.anonymize_batch(video)
    for number in range(3):
        alone = method.anonymize(video[number])
        torch.testing.assert_close(together.video[number], alone.video, atol=1e-5, rtol=1e-5)
        assert torch.equal(together.mask[number], alone.mask)


def test_every_frame_of_a_window_has_a_picture_of_its_own_layer():
    for plan in (Plan(4, 2, 2), Plan(8, 4, 3), Plan(4, 1, 1), Plan(16, 2, 5)):
        for length in range(1, 3 * plan.span):
            for window in plan.windows(length):
                for frame, layer, picture in frames_of(window, plan.depth):
                    begin, end = window.spans[layer]
                    assert begin <= frame < end
                    assert picture // plan.depth == layer
                    assert window.samples[picture] <= frame or picture % plan.depth == 0


# ---- streams


def reasons_of(safe):
    return [frame.hidden for frame in safe]


@pytest.mark.parametrize("count", [1, 3, 4, 8, 9, 16, 25])
def test_a_stream_shows_what_a_clip_of_its_pictures_shows(runs, count):
    kept(runs)
    method, raw = load("mine"), list(frames(count, SIZE, SIZE))
    pictures = np.stack([small_picture(frame, SIZE) for frame in raw], 1)  # (3, T, size, size)
    wanted = method.anonymize(torch.from_numpy(pictures))
    safe = list(method.stream(iter(raw)))
    assert [frame.index for frame in safe] == list(range(count))
    assert reasons_of(safe) == [None] * count
    for i, frame in enumerate(safe):
        assert np.array_equal(frame.heat.kept, wanted.mask[i, ::CELL, ::CELL].numpy())
        luma = (16 + 219 * torch.einsum("chw,c->hw", wanted.video[:, i], torch.tensor([0.299, 0.587, 0.114]))).numpy()
        assert np.abs(frame.planes[0][:SIZE, :SIZE] - luma).max() <= 1


@pytest.mark.parametrize(("width", "height"), [(64, 48), (65, 47)])
def test_hidden_cells_of_a_stream_are_black_in_all_planes_and_nothing_else_is_filmed(runs, width, height):
    kept(runs)
    raw = list(frames(20, width, height))
    hidden = 0
    for before, after in zip(raw, load("mine").stream(iter(raw)), strict=True):
        assert after.hidden is None
        black = ~laid_over(torch.from_numpy(after.heat.kept), height, width).numpy()  # (H, W)
        hidden += black.sum()
        for shrink, value, source, target in zip((1, 2, 2), (16, 128, 128), before.planes, after.planes, strict=True):
            mine = target[: source.shape[0], : source.shape[1]]
            assert (mine[black[::shrink, ::shrink]] == value).all()
            assert (mine == source).mean() < 0.1  # by chance
    assert hidden


@pytest.mark.parametrize("name", TURNS)
def test_turned_pictures_are_drawn_as_they_are_stored(runs, name):
    kept(runs)
    matrix = matrix_of(name)
    upright = list(load("mine").stream(frames(FRAMES, 64, 48)))
    turned = list(load("mine").stream(frames(FRAMES, 64, 48, matrix)))
    for plain, other in zip(upright, turned, strict=True):
        for wanted, found in zip(plain.planes, other.planes, strict=True):
            expected = stored_as(wanted, matrix).astype(int)
            near = np.abs(found.astype(int) - expected) <= 3
            assert near.mean() > 0.95  # a pixel of 8 bits more or less may change a choice, but does not here


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("colourspace", "number"), [("ITU709", 1), ("ITU601", 5)])
def test_colours_are_those_that_ffmpeg_gives(colourspace, number, full):
    rng = np.random.default_rng(1)
    blocks = np.kron(rng.integers(0, 256, (4, 4, 3)), np.ones((32, 32, 1))).astype(np.uint8)
    planes = yuv((blocks / 255).astype(np.float32), number, full_range=full)
    back = rgb(np.rint(planes).astype(np.uint8).transpose(1, 2, 0), number, full_range=full)
    assert np.abs(back - blocks / 255).max() < 0.02
    if not full:
        picture = av.VideoFrame.from_ndarray(blocks, "rgb24").reformat(format="yuv420p", dst_colorspace=colourspace)
        theirs = [np.frombuffer(p, np.uint8).reshape(-1, p.line_size)[:, : p.width] for p in picture.planes]
        for mine, plane, step in zip(planes, theirs, (1, 2, 2), strict=True):
            middle = slice(16 // step, None, 32 // step)
            assert np.abs(mine[16::32, 16::32] - plane[middle, middle]).max() <= 2


def test_black_is_the_frames_own_black(runs):
    kept(runs)
    raw = list(frames(4))
    for frame in raw:
        frame.full_range = True
    for frame in load("mine").stream(iter(raw)):
        black = ~laid_over(torch.from_numpy(frame.heat.kept), 48, 64).numpy()
        assert (frame.planes[0][:48, :64][black] == 0).all()


def breaking(method, at):
    """The network breaks when it is asked for the `at`-th time."""
    asked, draw = [0], method.network.draw

    def draws(*words):
        asked[0] += 1
        if asked[0] == at:
            raise RuntimeError("broken")
        return draw(*words)

    method.network.draw = draws
    return method


def test_a_network_that_breaks_blackens_the_frames_of_its_window_and_no_others(runs):
    kept(runs)
    safe = list(breaking(load("mine"), 2).stream(frames(24)))  # of windows 0-7, 4-11, 8-15 …
    assert reasons_of(safe) == [None] * 4 + ["could not be anonymized (RuntimeError)"] * 8 + [None] * 12
    assert all((frame.planes[0] == 16).all() for frame in safe if frame.hidden)


def test_a_network_that_draws_no_numbers_blackens_everything(runs):
    kept(runs)
    method = load("mine")
    method.network.decoder.bias.data.fill_(torch.nan)
    assert reasons_of(method.stream(frames(6))) == ["could not be anonymized (ValueError)"] * 6
    with pytest.raises(ValueError, match="values that are not numbers"):
        method.anonymize_batch(clips())


def test_a_frame_without_a_picture_is_black_and_its_neighbours_are_not(runs):
    kept(runs)
    raw = list(frames(20))
    for i in (0, 9, 19):
        raw[i].picture, raw[i].lost = None, "could not be decoded"
    safe = list(load("mine").stream(iter(raw)))
    assert [frame.index for frame in safe if frame.hidden] == [0, 9, 19]


def test_a_picture_that_the_network_cannot_see_is_black(runs, monkeypatch):
    kept(runs)

    def look(frame, size):
        if frame.index == 4:
            raise RuntimeError
        return small_picture(frame, size)

    monkeypatch.setattr(stretch, "small_picture", look)
    reasons = {frame.index: frame.hidden for frame in load("mine").stream(frames(12)) if frame.hidden}
    assert reasons == {4: "could not be looked at (RuntimeError)"}


def test_a_frame_waits_for_no_more_than_a_window_and_little_is_kept(runs):
    kept(runs)
    method, read = load("mine"), 0

    def counted():
        nonlocal read
        for frame in frames(80):
            read += 1
            yield frame

    assert max(read - frame.index for frame in method.stream(counted())) <= method.plan.span


def test_a_gap_begins_a_window_anew(runs):
    kept(runs)
    raw = list(frames(22))
    raw[11].after_gap = True
    whole = list(load("mine").stream(iter(raw)))
    for frame in raw:
        frame.after_gap = False
    apart = [*load("mine").stream(iter(raw[:11])), *load("mine").stream(iter(raw[11:]))]
    for one, other in zip(whole, apart, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one.planes, other.planes, strict=True))


def test_a_file_is_drawn_and_its_manifest_says_how(runs, tmp_path):
    kept(runs, data="ucf101_5")
    film = media.Film(frames=30, width=64, height=48).make(tmp_path / "film.mp4")
    done = CliRunner().invoke(app, ["anonymize", str(film), "--method", "stprivacy:mine", "--keep", "0.8"])
    assert done.exit_code == 0, done.output
    assert media.lumas(film.with_name("film_anonymized.mp4")).shape == (30, 48, 64)
    manifest = json.loads(film.with_name("film_anonymized.json").read_text())
    assert manifest["order"]["knobs"]["keep"] == 0.8
    assert 0 < manifest["mask"]["kept_area"] <= 0.8**3
    assert any("draws what it keeps" in line for line in manifest["warnings"])


@pytest.mark.parametrize("anonymize", [True, False])
def test_a_weight_of_privacy_is_refused_before_anything_is_done(runs, tmp_path, anonymize):
    kept(runs, data="ucf101_5", anonymize=anonymize)
    film = media.Film(frames=8, width=64, height=48).make(tmp_path / "film.mp4")
    done = CliRunner().invoke(app, ["anonymize", str(film), "--method", "stprivacy:mine", "--privacy-weight", "1"])
    assert done.exit_code == 1
    assert "has no privacy_weight" in str(done.exception)
    assert not film.with_name("film_anonymized.mp4").exists()


def test_a_guard_does_not_silence_the_caution_about_drawings(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(DETECTORS, "discs", Discs)
    kept(runs, data="ucf101_5")
    film = media.Film(frames=8, width=64, height=48).make(tmp_path / "film.mp4")
    done = CliRunner().invoke(app, ["anonymize", str(film), "--method", "stprivacy:mine", "--also-hide", "discs"])
    assert done.exit_code == 0, done.output
    manifest = json.loads(film.with_name("film_anonymized.json").read_text())
    assert any("draws what it keeps" in line for line in manifest["warnings"])
    assert any("--also-hide marks where somebody is" in line for line in manifest["warnings"])


@pytest.mark.parametrize("anonymize", [True, False])
def test_everything_may_be_kept_where_it_is_drawn_anew(runs, tmp_path, anonymize):
    kept(runs, data="ucf101_5", anonymize=anonymize)
    film = media.Film(frames=8, width=64, height=48).make(tmp_path / "film.mp4")
    done = CliRunner().invoke(app, ["anonymize", str(film), "--method", "stprivacy:mine", "--keep", "1", "--dry-run"])
    assert (done.exit_code == 0) == anonymize
    assert anonymize or "hides nothing at keep 1" in str(done.exception)


# ---- evaluations


def test_masks_alone_can_be_evaluated(runs):
    made = kept(runs)
    method = load("stprivacy:mine")
    method.fill = "mask"
    video = clips(2)
    stays = over_pixels(made.draw(video)[1], made.tubelet)
    assert torch.equal(method.anonymize_batch(video).video, stays.float().unsqueeze(1).expand_as(video))


def test_an_evaluation_finds_no_fault_with_a_checkpoint(runs):
    kept(runs)
    check_method(Setting(method="stprivacy:mine"), (0.5, 0.9))
    check_method(Setting(method="mine | blur:weak"))
    with pytest.raises(UsageError, match="draws what it shows, whatever the fill"):
        check_method(Setting(method="mine", fill="mean"))
    with pytest.raises(UsageError, match="leave out privacy_weight"):
        check_method(Setting(method="mine", privacy_weight=1.0))


@pytest.mark.parametrize("changes", [{}, {"anonymize": False}, {"sparsify": False}])
def test_an_evaluation_sees_what_the_method_shows_with_its_mask(runs, tmp_path, monkeypatch, changes):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    kept(runs, **changes)
    data = people(tmp_path, clips=2)
    keep = 0.6 if changes.get("sparsify", True) else None
    after = anonymized(data, Setting(method="stprivacy:mine", keep=keep))
    for row in (0, len(data) - 1):
        clip = torch.from_numpy(data.videos.frames(row).copy()).movedim(-1, 0)[None]  # (1, 3, T, H, W)
        wanted = load("mine").anonymize_batch(clip, keep=keep)
        assert np.abs(after.videos.frames(row).astype(int) - wanted.video[0].movedim(0, -1).numpy()).max() <= 1
        assert np.array_equal(after.videos.side("kept", row), wanted.mask[0, ::2, ::8, ::8].numpy())


def test_frames_of_another_size_in_mid_stream_are_drawn_at_their_own(runs):
    kept(runs)
    raw = [*frames(6, 64, 48), *frames(6, 33, 21)]
    safe = list(load("mine").stream(frame_of(list(f.planes), index=i) for i, f in enumerate(raw)))
    assert [(frame.width, frame.height) for frame in safe] == [(64, 48)] * 6 + [(33, 21)] * 6
    assert reasons_of(safe) == [None] * 12
