"""A network's mask over streams of frames."""

import math

import av
import numpy as np
import pytest
import torch

from tests.detect.stage import TURNS, frame_of, matrix_of, stored_as
from tests.methods.known_masks import CELL, FRAMES, SIZE, KeepsBrightest, frames, masker, only
from vidveil.core.errors import UsageError
from vidveil.core.yuv import rgb
from vidveil.methods.learned import stream as stretch
from vidveil.methods.learned.windows import small_picture
from vidveil.methods.masking.masker import Decision


def black(frame):
    """(H, W): where luma is black."""
    return frame.planes[0][: frame.height, : frame.width] == 16


def hidden_cells(safe):
    return np.stack([~frame.heat.kept for frame in safe])


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 50])
def test_a_stream_gets_the_mask_that_a_clip_of_its_pictures_gets(count):
    raw = list(frames(count))
    pictures = np.stack([small_picture(frame, SIZE) for frame in raw], 1)  # (3, T, size, size)
    mask = masker().anonymize(torch.from_numpy(pictures)).mask[:, ::CELL, ::CELL]
    safe = list(masker().stream(iter(raw)))
    assert [frame.index for frame in safe] == list(range(count))
    assert (hidden_cells(safe) == ~mask.numpy()).all()


def test_hidden_cells_of_a_stream_are_black_in_all_planes_and_nothing_else_changes():
    raw = list(frames(20, 65, 47))
    for before, after in zip(raw, masker(only((None, 1, 2))).stream(iter(raw)), strict=True):
        for shrink, value, source, target in zip((1, 2, 2), (16, 128, 128), before.planes, after.planes, strict=True):
            y, x = np.mgrid[: source.shape[0], : source.shape[1]] * shrink
            inside = (y + 1 > 11.75) & (y < 23.5) & (x + 1 > 32.5) & (x < 48.75)
            around = (y + 1 > 8) & (y < 27) & (x + 1 > 29) & (x < 52)
            assert (target[: source.shape[0], : source.shape[1]][inside] == value).all()
            assert (target[: source.shape[0], : source.shape[1]][~around] == source[~around]).all()


def test_black_is_the_frames_own_black():
    raw = list(frames(4))
    for frame in raw:
        frame.full_range = True
    safe = list(masker(only((None, 0, 0))).stream(iter(raw)))
    assert all((frame.planes[0][:12, :16] == 0).all() for frame in safe)


def test_the_mean_of_what_is_kept_stands_in_hidden_cells():
    raw = list(frames(4))
    for frame in raw:
        frame.planes[0][:12, :16] = 235  # hidden: must not count
    safe = list(masker(only((None, 0, 0)), fill="mean").stream(iter(raw)))
    for before, after in zip(raw, safe, strict=True):
        kept = np.ones((48, 64), bool)
        kept[:12, :16] = False
        assert abs(before.planes[0][kept].mean() - after.planes[0][0, 0]) <= 0.5
        assert len(np.unique(after.planes[0][:12, :16])) == 1


def test_a_fill_that_needs_the_whole_clip_is_refused_for_streams():
    with pytest.raises(UsageError, match="temporal needs a whole clip"):
        masker(fill="temporal").stream(frames(3))


@pytest.mark.parametrize("name", TURNS)
def test_the_network_sees_turned_pictures_upright_and_the_mask_lies_where_it_looked(name):
    scorer = only((None, 0, 1))
    raw = list(frames(FRAMES, 64, 48, matrix_of(name)))
    upright = KeepsBrightest()
    list(masker(upright).stream(frames(FRAMES, 64, 48)))
    safe = list(masker(scorer).stream(iter(raw)))
    torch.testing.assert_close(scorer.calls[0][0], upright.calls[0][0], atol=0.02, rtol=0)
    expected = np.zeros((48, 64), bool)
    expected[:12, 16:32] = True
    for frame in safe:
        assert (black(frame) == stored_as(expected, matrix_of(name))).all()


def test_a_stream_of_a_picture_that_stands_still_does_not_flicker():
    def answer(scores):
        return Decision(scores > scores.flatten(1).median(1).values[:, None, None, None], scores)

    one = next(frames(1))
    raw = [frame_of([plane.copy() for plane in one.planes], index=i) for i in range(83)]
    hidden = hidden_cells(masker(KeepsBrightest(answer=answer)).stream(iter(raw)))
    assert 0 < hidden[0].mean() < 1
    assert (hidden == hidden[0]).all()


def test_a_frame_waits_for_no_more_than_a_window_and_no_more_pass_through_the_network_than_needed():
    scorer, read = KeepsBrightest(), 0

    def counted():
        nonlocal read
        for frame in frames(200):
            read += 1
            yield frame

    method = masker(scorer)
    longest = max(read - frame.index for frame in method.stream(counted()))
    assert longest <= method.plan.span
    assert len(scorer.calls) == math.ceil(200 / method.plan.hop) - 1


def test_a_network_that_breaks_blackens_the_frames_of_its_window_and_no_others():
    method = masker(KeepsBrightest(breaks_at=2))  # of windows 0-15, 8-23, 16-31 …
    safe = list(method.stream(frames(48)))
    reasons = [frame.hidden for frame in safe]
    assert reasons == [None] * 8 + ["could not be anonymized (RuntimeError)"] * 16 + [None] * 24
    assert all(black(frame).all() == (frame.hidden is not None) for frame in safe)


def test_a_frame_without_a_picture_is_black_and_its_neighbours_are_not():
    raw = list(frames(40))
    for i in (0, 17, 39):
        raw[i].picture, raw[i].lost = None, "could not be decoded"
    safe = list(masker().stream(iter(raw)))
    assert [frame.index for frame in safe if frame.hidden] == [0, 17, 39]
    assert {frame.hidden for frame in safe} == {None, "could not be decoded"}


def test_a_picture_that_the_network_cannot_see_is_black(monkeypatch):
    def look(frame, size):
        if frame.index == 4:
            raise RuntimeError
        return small_picture(frame, size)

    monkeypatch.setattr(stretch, "small_picture", look)
    reasons = {frame.index: frame.hidden for frame in masker().stream(frames(20)) if frame.hidden}
    assert reasons == {4: "could not be looked at (RuntimeError)"}


def test_a_gap_begins_a_window_anew():
    scorer, raw = KeepsBrightest(), list(frames(30))
    raw[11].after_gap = True
    assert [frame.index for frame in masker(scorer).stream(iter(raw))] == list(range(30))
    before, after = scorer.calls[0][0], scorer.calls[1][0]
    torch.testing.assert_close(before[0, :, -1], torch.from_numpy(small_picture(raw[9], SIZE)))
    torch.testing.assert_close(after[0, :, 0], torch.from_numpy(small_picture(raw[11], SIZE)))


def test_frames_of_another_size_in_mid_stream_are_covered_by_the_same_cells():
    raw = [*frames(10, 64, 48), *frames(10, 33, 21)]
    for i, frame in enumerate(raw):
        frame.index = i
    safe = list(masker(only((None, 3, 3))).stream(iter(raw)))
    assert (hidden_cells(safe) == hidden_cells(safe)[0]).all()
    assert black(safe[-1])[16:, 25:].all()


def test_a_small_picture_has_the_colours_that_ffmpeg_gives():
    rng = np.random.default_rng(1)
    blocks = np.kron(rng.integers(0, 256, (4, 4, 3)), np.ones((32, 32, 1))).astype(np.uint8)
    for colourspace, number in ("ITU709", 1), ("ITU601", 5):
        picture = av.VideoFrame.from_ndarray(blocks, "rgb24").reformat(format="yuv420p", dst_colorspace=colourspace)
        y, u, v = (np.frombuffer(p, np.uint8).reshape(-1, p.line_size)[:, : p.width] for p in picture.planes)
        u, v = (np.kron(plane, np.ones((2, 2))).astype(np.uint8) for plane in (u, v))
        found = rgb(np.stack([y, u, v], -1), number, full_range=False)
        assert np.abs(found - blocks / 255)[16::32, 16::32].max() < 0.03
