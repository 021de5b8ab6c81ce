"""What a contact sheet shows: the right frame, the right part of it, and nothing of the user's replaced."""

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.app.manifests import moment, write_manifest
from tests.media import DETAIL, Film, level
from vidveil.app.contact_sheet import CAPTION, GAP, HEIGHT, MARGIN, OUTLINE, TITLE, WIDTH, pictures, write_sheet
from vidveil.app.review import read_review
from vidveil.core.errors import InputError, OutputError
from vidveil.video.read import Reader
from vidveil.video.sources import Kind, Source, is_sheet

SPOT = (300, 80, 360, 130)  # left, top, right, bottom, as stored


def sheet(output: Path, *moments: dict, limit: int = 60, **other) -> NDArray[np.uint8]:
    review = read_review(write_manifest(output, *moments, **other))
    write_sheet(review, review.sheet, limit)
    drawn = cv2.imread(str(review.sheet))
    assert drawn is not None
    return np.asarray(drawn[..., ::-1], np.uint8)


def tile(drawn: NDArray[np.uint8], row: int = 0, column: int = 0) -> NDArray[np.uint8]:
    """The picture of one tile, without its caption."""
    y, x = TITLE + row * (HEIGHT + CAPTION + GAP), MARGIN + column * (WIDTH + GAP)
    return drawn[y : y + HEIGHT, x : x + WIDTH]


def extent(mask: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    y, x = np.nonzero(mask)
    return x.min(), y.min(), x.max() + 1, y.max() + 1


def spotted(path: Path, width: int = 640, height: int = 480, rotation: int = 0) -> Path:
    """Grey pictures with one white rectangle."""
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=25, options={"crf": "5"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        if rotation:
            stream.set_display_rotation(rotation)
        picture = np.full((height, width, 3), 60, np.uint8)
        picture[SPOT[1] : SPOT[3], SPOT[0] : SPOT[2]] = 255
        for i in range(5):
            frame = av.VideoFrame.from_ndarray(picture, "rgb24")
            frame.pts = i
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def test_a_tile_shows_the_frame_at_the_middle_of_its_moment(tmp_path):
    output = Film(frames=20).make(tmp_path / "a.mp4")
    drawn = sheet(output, moment(first=2, last=6, rate=25), moment(first=15, last=15, rate=25))
    assert tile(drawn).mean() == pytest.approx(level(4), abs=2)
    assert tile(drawn, 0, 1).mean() == pytest.approx(level(15), abs=2)


def test_a_time_that_was_rounded_down_does_not_show_the_frame_before(tmp_path):
    output = Film(frames=20, rate=30).make(tmp_path / "a.mp4")
    assert moment(first=10, last=10)["from"] < 10 / 30
    assert tile(sheet(output, moment(first=10, last=10))).mean() == pytest.approx(level(10), abs=2)


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [(4, 6, 5), (6, 9, 5), (8, 11, 10), (1, 3, 0), (1, 14, 5)],
    ids=["on it", "none of its own", "after its middle", "before the second", "several"],
)
def test_of_an_output_with_frames_left_out_a_frame_of_the_moment_is_shown_if_there_is_one(tmp_path, first, last, shown):
    frames = range(0, 20, 5)  # as stride:5 leaves them, on the clock of all
    output = Film(pts=list(frames), time_base=Fraction(1, 25)).make(tmp_path / "a.mp4")
    drawn = sheet(output, moment(first=first, last=last, rate=25))
    assert tile(drawn).mean() == pytest.approx(level(frames.index(shown)), abs=2)


def test_a_moment_after_the_end_has_no_picture(tmp_path):
    output = Film(frames=20).make(tmp_path / "a.mp4")
    drawn = sheet(output, moment(first=19, last=19, rate=25), moment(first=90, last=90, rate=25))
    assert tile(drawn).mean() == pytest.approx(level(19), abs=2)
    assert np.median(tile(drawn, 0, 1)) < 60


def test_the_output_is_read_no_further_than_is_needed(tmp_path):
    output = Film(frames=200).make(tmp_path / "a.mp4")
    review = read_review(write_manifest(output, moment(first=10, last=10, rate=25)))
    with Reader(Source(Kind.VIDEO, str(output), output.name)) as reader:
        assert len(list(pictures(reader, review.moments))) == 1
        assert reader.report.frames == 12


@pytest.mark.parametrize(
    ("rotation", "box"),
    [
        (0, SPOT),
        (90, (80, 640 - 360, 130, 640 - 300)),
        (-90, (480 - 130, 300, 480 - 80, 360)),
        (180, (640 - 360, 480 - 130, 640 - 300, 480 - 80)),
    ],
)
def test_the_outline_lies_around_what_the_box_means_on_the_upright_picture(tmp_path, rotation, box):
    output = spotted(tmp_path / "a.mp4", rotation=rotation)
    drawn = tile(sheet(output, moment(first=0, last=2, rate=25, box=list(box)))).astype(int)
    white = extent(drawn.min(-1) > 200)
    line = extent(np.abs(drawn - OUTLINE).max(-1) < 30)
    assert np.abs(np.subtract(line, white)).max() <= 5


def test_padding_is_not_part_of_the_picture_that_boxes_lie_on(tmp_path):
    output = spotted(tmp_path / "a.mp4", 400, 300, rotation=180)
    video = {"width": 375, "height": 281, "padded_to": [400, 300]}  # far more than there ever is, so that it shows
    box = [375 - 360, 281 - 130, 375 - 300, 281 - 80]
    drawn = tile(sheet(output, moment(first=0, last=2, rate=25, box=box), video=video)).astype(int)
    white, line = extent(drawn.min(-1) > 200), extent(np.abs(drawn - OUTLINE).max(-1) < 30)
    assert np.abs(np.subtract(line, white)).max() <= 5


@pytest.mark.parametrize(("side", "shown"), [(10, 15), (40, 60), (80, 60)])
def test_a_crop_shows_four_boxes_of_context_and_at_least_160_pixels(tmp_path, side, shown):
    output = spotted(tmp_path / "a.mp4", 1280, 960)
    box = [400, 400, 400 + side, 400 + side]
    drawn = tile(sheet(output, moment(first=0, last=2, rate=25, box=box))).astype(int)
    left, top, right, bottom = extent(np.abs(drawn - OUTLINE).max(-1) < 30)
    assert right - left == pytest.approx(shown + 4, abs=1)  # the line is outside, two pixels wide
    assert bottom - top == pytest.approx(shown + 4, abs=1)


@pytest.mark.parametrize("box", [[-50, -50, 5, 5], [60, 40, 1e30, 1e30], [30, 30, 10, 10], [900, 900, 950, 950]])
def test_a_box_that_lies_outside_or_is_inside_out_still_gets_a_tile(tmp_path, box):
    output = Film(frames=5).make(tmp_path / "a.mp4")
    drawn = sheet(output, moment(first=0, last=0, rate=25, box=box))
    assert np.median(tile(drawn)[:, WIDTH // 2]) == pytest.approx(level(0), abs=DETAIL + 5)


def test_tiles_stand_in_rows_and_no_more_than_the_limit_are_drawn(tmp_path):
    output = Film(frames=20).make(tmp_path / "a.mp4")
    moments = [moment(first=i, last=i, rate=25) for i in range(12)]
    drawn = sheet(output, *moments, limit=5)
    assert drawn.shape[:2] == (
        TITLE + 2 * (HEIGHT + CAPTION) + GAP + MARGIN,
        2 * MARGIN + 3 * WIDTH + 2 * GAP,
    )


def test_a_picture_has_a_sheet_as_well(tmp_path):
    output = tmp_path / "photo_anonymized.png"
    cv2.imwrite(str(output), np.full((48, 64, 3), 120, np.uint8))
    assert tile(sheet(output, moment(first=0, last=0))).mean() == pytest.approx(120, abs=2)


def test_a_sheet_is_drawn_anew_and_knows_itself(tmp_path):
    output = Film(frames=5).make(tmp_path / "a.mp4")
    first = sheet(output, moment(first=0, last=0))
    again = sheet(output, moment(first=0, last=0), moment(first=1, last=1))
    assert again.shape != first.shape
    assert is_sheet(tmp_path / "a_review.png")
    assert {path.name for path in tmp_path.iterdir()} == {"a.mp4", "a.json", "a_review.png"}


def test_a_picture_of_the_users_is_never_replaced(tmp_path):
    output = Film(frames=5).make(tmp_path / "a.mp4")
    cv2.imwrite(str(tmp_path / "a_review.png"), np.zeros((9, 9, 3), np.uint8))
    before = (tmp_path / "a_review.png").read_bytes()
    with pytest.raises(OutputError, match="no sheet of vidveil's"):
        sheet(output, moment(first=0, last=0))
    assert (tmp_path / "a_review.png").read_bytes() == before


def test_an_output_that_cannot_be_decoded_is_an_error_and_leaves_no_sheet(tmp_path):
    output = tmp_path / "a.mp4"
    with pytest.raises(InputError, match=r"a\.mp4 cannot be shown"):
        sheet(output, moment(first=0, last=0))
    assert {path.name for path in tmp_path.iterdir()} == {"a.mp4", "a.json"}
