"""`motion`: only what changed is shown, in streams and in clips alike."""

import json

import av
import numpy as np
import pytest
import torch

import vidveil
from vidveil import load
from vidveil.core.errors import UsageError
from vidveil.core.frame import Frame, SafeFrame
from vidveil.data.readers.make_ucf101_5 import write_video


def frame(index: int, luma: np.ndarray, *, full_range: bool = False, after_gap: bool = False) -> Frame:
    height, width = luma.shape
    picture = av.VideoFrame(width, height, "yuv420p")
    made = Frame(index=index, pts=index, duration=1, width=width, height=height, picture=picture, full_range=full_range)
    made.after_gap = after_gap
    for plane, value in zip(made.planes, (luma, 90, 200), strict=True):
        plane[:] = value
    return made


def scene(seed: int, *, low: int, high: int) -> np.ndarray:
    coarse = np.random.default_rng(seed).integers(low, high, (6, 8), dtype=np.uint8)
    return coarse.repeat(8, 0).repeat(8, 1)


def walls(count: int = 4, *, step: int = 4) -> list[np.ndarray]:
    """A bright square that goes right, before a wall that stands still."""
    wall = scene(0, low=30, high=150)
    pictures = [wall.copy() for _ in range(count)]
    for i, picture in enumerate(pictures):
        picture[10:20, 5 + step * i : 15 + step * i] = 220
    return pictures


def shown(spec: str, pictures: list[np.ndarray], **options: bool) -> list[SafeFrame]:
    return list(load(spec).stream(frame(i, luma, **options) for i, luma in enumerate(pictures)))


def test_what_stands_still_is_black_and_nothing_has_a_colour():
    safe = shown("motion", walls())
    assert len(safe) == 4
    assert np.all(safe[0].planes[0] == 16)  # nothing to compare with
    for one in safe[1:]:
        luma, u, v = one.planes
        assert np.all(luma[25:] == 16)
        assert luma[12, 5:45].max() == 235
        assert np.all(u == 128)
        assert np.all(v == 128)
        assert one.hidden is None


def test_what_differs_by_more_than_noise_is_shown_four_times_as_bright_in_either_range():
    first = walls()[0]
    second = first.copy()
    second[30:40, 30:60] += 10
    place = np.s_[30:40, 30:60]
    assert np.all(shown("motion", [first, second])[1].planes[0][place] == 16 + 4 * 4)
    assert np.all(shown("motion", [second, first], full_range=True)[1].planes[0][place] == 4 * 4)
    second[place] -= 4
    assert np.all(shown("motion", [first, second])[1].planes[0] == 16)


def test_blocks_have_one_brightness():
    (_, second, *_) = shown("motion:8", walls())
    cells = second.planes[0].reshape(6, 8, 8, 8)
    assert np.all(cells == cells[:, :1, :, :1])
    assert np.ptp(cells) > 0


@pytest.mark.parametrize("spec", ["motion", "motion:7"])
def test_a_clip_shows_what_a_stream_shows(spec):
    pictures = walls()
    clip = torch.from_numpy(np.stack(pictures)).float().div(255).expand(3, -1, -1, -1)
    theirs = load(spec).anonymize(clip).video
    ours = np.stack([one.planes[0] for one in shown(spec, pictures, full_range=True)])
    assert theirs.shape == clip.shape
    np.testing.assert_allclose(theirs[1].numpy() * 255, ours, atol=4.5)  # a block's mean is rounded before it grows


BLACK = np.full((48, 64), 16, np.uint8)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (scene(1, low=0, high=255), scene(2, low=0, high=255)),
        (scene(1, low=90, high=130), scene(2, low=90, high=130)),  # as bright as each other
        (BLACK, scene(1, low=16, high=60)),  # out of black: the difference is the picture
        (scene(1, low=16, high=60), BLACK),
        (scene(1, low=20, high=60) // 2, scene(1, low=20, high=60)),  # the light comes on
    ],
    ids=["another scene", "another, as bright", "out of black", "into black", "light"],
)
@pytest.mark.parametrize("spec", ["motion", "motion:8"])
def test_a_cut_is_no_motion(spec, before, after):
    """The difference of two pictures that have nothing to do with each other shows both."""
    assert np.all(shown(spec, [before, after])[1].planes[0] == 16)
    clip = torch.from_numpy(np.stack([before, after])).float().div(255).expand(3, -1, -1, -1)
    assert not load(spec).anonymize(clip).video.any()


def test_an_outage_is_no_motion_though_the_frame_after_it_was_left_out():
    pictures = walls(6)
    frames = [frame(i, luma, after_gap=i == 3) for i, luma in enumerate(pictures)]
    safe = list(load("stride:2 | motion").stream(frames))
    assert safe[1].planes[0].max() > 200
    assert np.all(safe[2].planes[0] == 16)  # frame 4: the outage was before 3


def test_nothing_is_compared_with_a_frame_that_is_black_or_lost_or_before_a_gap():
    """Against black, the difference would be the picture itself."""
    first, second, third, fourth = walls()
    lost = Frame(index=1, pts=1, duration=1, width=64, height=48, lost="could not be decoded")
    black = frame(1, second).black("was not looked at")
    for between in (lost, black):
        safe = list(load("motion").stream([frame(0, first), between, frame(2, third), frame(3, fourth)]))
        assert safe[1].hidden is not None
        assert np.all(safe[2].planes[0] == 16)
        assert safe[3].planes[0].max() > 200
    gap = list(load("motion").stream([frame(0, first), frame(1, second, after_gap=True)]))
    assert np.all(gap[1].planes[0] == 16)


def test_a_frame_of_another_size_begins_anew():
    safe = list(load("motion").stream([frame(0, walls()[0]), frame(1, np.full((32, 32), 99, np.uint8))]))
    assert np.all(safe[1].planes[0] == 16)


def test_knobs_and_words_that_it_does_not_have_are_refused():
    with pytest.raises(UsageError, match="a whole number from 1 to 4096"):
        load("motion:0")
    with pytest.raises(UsageError, match="are settings of learned methods"):
        load("motion").anonymize(torch.zeros(3, 2, 8, 8), keep=0.5)


def test_fine_motion_of_large_pictures_gets_a_caution():
    assert "weak" in load("motion").caution(720)
    assert load("motion:24").caution(720) is None


@pytest.mark.parametrize("spec", ["motion", "figure", "motion | blur:weak"])
def test_frames_that_had_none_to_compare_with_are_marked(spec):
    pictures = [*walls(3), scene(9, low=0, high=255), *walls(3)]
    safe = shown(spec, pictures)
    assert [one.index for one in safe if one.blank] == [0, 3, 4]
    assert not any(one.hidden for one in safe)


@pytest.mark.parametrize(
    ("pictures", "warning"),
    [
        (walls(8), None),
        (walls(1), "all 1 frames are black: they had none before them to compare with"),
        ([*walls(4), scene(9, low=0, high=255), *walls(4)], "3 of 9 frames are black"),
    ],
    ids=["motion", "one frame", "cuts"],
)
def test_a_file_says_how_many_frames_are_black_unless_it_is_the_first_alone(tmp_path, pictures, warning):
    write_video(tmp_path / "film.mp4", np.stack(pictures)[..., None].repeat(3, -1))
    vidveil.anonymize(tmp_path / "film.mp4", method="motion:8")
    manifest = json.loads((tmp_path / "film_anonymized.json").read_text())
    found = [line for line in manifest["warnings"] if "frames are black" in line]
    assert (not found) if warning is None else found[0].startswith(warning)


def panned(count: int) -> list[np.ndarray]:
    """A wall of soft blocks before a camera that turns."""
    wall = np.random.default_rng(4).integers(60, 200, (12, 40)).astype(np.uint8).repeat(8, 0).repeat(8, 1)
    return [np.ascontiguousarray(wall[:, 3 * i : 3 * i + 96]) for i in range(count)]


@pytest.mark.parametrize("spec", ["motion", "figure", "recast | blur:weak"])
def test_frames_in_which_all_of_the_picture_moves_are_told_from_those_in_which_somebody_does(spec):
    assert [one.everywhere for one in shown(spec, panned(6))] == [False, *[True] * 5]
    assert not any(one.everywhere for one in shown(spec, walls(6)))


@pytest.mark.parametrize(("pictures", "warned"), [(panned(8), True), (walls(8), False)], ids=["camera", "somebody"])
def test_a_file_says_that_the_place_shows_where_the_camera_moves(tmp_path, pictures, warned):
    write_video(tmp_path / "film.mp4", np.stack(pictures)[..., None].repeat(3, -1))
    vidveil.anonymize(tmp_path / "film.mp4", method="figure:8")
    manifest = json.loads((tmp_path / "film_anonymized.json").read_text())
    found = [line for line in manifest["warnings"] if "if that is the camera, the place shows" in line]
    assert bool(found) == warned
    if warned:
        assert found[0].startswith("in 7 of 8 frames something moves all over the picture")
