"""The moments of a review as one picture, a tile for each.

Drawn from the anonymized output, never from the original: a sheet may go wherever the output may go.
"""

import math
import struct
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
from av.error import FFmpegError
from numpy.typing import NDArray

from vidveil.app.review import Review, clock, most_serious
from vidveil.core.atomic import write_bytes
from vidveil.core.errors import InputError, OutputError
from vidveil.core.frame import Box, Frame
from vidveil.core.rotation import turn_of
from vidveil.detect.moments import Moment
from vidveil.video.read import Reader
from vidveil.video.sources import IMAGE_SUFFIXES, SHEET_TAG, Kind, Source, is_sheet

SLACK_S = 0.001  # times in a manifest are rounded
WIDTH, HEIGHT, CAPTION, GAP, MARGIN, TITLE = 320, 240, 50, 6, 12, 40
CONTEXT = 4.0  # a crop is this many boxes wide and high,
LEAST = 160  # and at least so many pixels
COLUMNS = 6
BEHIND, PANEL, INK, FAINT, OUTLINE = (22, 22, 25), (38, 38, 43), (235, 235, 235), (178, 178, 186), (255, 196, 0)
FONT, FONT_SIZE = cv2.FONT_HERSHEY_SIMPLEX, 0.5

Picture = NDArray[np.uint8]
"""(H, W, 3), RGB."""


def write_sheet(review: Review, path: Path, limit: int) -> int:
    """Draw the most serious moments; how many there are on the sheet. Reads the output once, as far as is needed."""
    if path.is_symlink() or (path.exists() and not is_sheet(path)):
        raise OutputError(f"{path.name} exists and is no sheet of vidveil's: give another name with -o")
    chosen = most_serious(review.moments, limit)
    kind = Kind.IMAGE if review.output.suffix.lower() in IMAGE_SUFFIXES else Kind.VIDEO
    video = review.manifest.video
    size = (video.get("height"), video.get("width")) if video.get("padded_to") else (None, None)
    try:
        with Reader(Source(kind, str(review.output), review.output.name), keep_offset=True) as reader:
            tiles = {id(m): _tile(m, frame, size) for m, frame in pictures(reader, chosen)}
    except (InputError, FFmpegError) as error:
        reason = error.strerror if isinstance(error, FFmpegError) else str(error)
        raise InputError(f"{review.output.name} cannot be shown: {reason}") from error
    title = f"{review.output.name}   {len(chosen)} of {review.count} moments"
    _save(_sheet([tiles[id(m)] for m in chosen], title), path)
    return len(chosen)


def pictures(reader: Reader, moments: Sequence[Moment]) -> Iterator[tuple[Moment, Frame | None]]:
    """The frame at the middle of each moment; None where the output has ended before."""
    waiting = deque(sorted(moments, key=lambda m: m.middle))
    before: Frame | None = None
    for frame in reader:
        while waiting and frame.seconds > waiting[0].middle + SLACK_S:
            moment = waiting.popleft()
            yield moment, _nearer(moment, before, frame)
        if not waiting:
            return
        before = frame
    if before is not None:
        end = before.seconds + float(before.duration * reader.info.time_base)
        for moment in waiting:
            yield moment, before if moment.middle <= end + SLACK_S else None


def _nearer(moment: Moment, before: Frame | None, after: Frame) -> Frame:
    """The frame that is on screen, unless only the next one is of this moment: methods may leave frames out."""
    if before is None or (before.seconds < moment.start - SLACK_S and after.seconds <= moment.end + SLACK_S):
        return after
    return before


def _tile(moment: Moment, frame: Frame | None, size: tuple[int | None, int | None]) -> Picture:
    tile = np.full((HEIGHT + CAPTION, WIDTH, 3), PANEL, np.uint8)
    if frame is None or frame.picture is None:
        _write(tile, "no picture", WIDTH // 2 - 40, HEIGHT // 2, FAINT)
    else:
        stored = frame.rgb()[: size[0], : size[1]]  # without the padding, which a turn would put in front
        _draw(tile[:HEIGHT], turn_of(frame).upright(stored), moment.box)
    _write(tile, moment.what, 8, HEIGHT + 19, INK)
    _write(tile, f"{clock(moment.start)}   {moment.who}", 8, HEIGHT + 39, FAINT)
    return tile


def _draw(target: Picture, picture: Picture, box: Box | None) -> None:
    """The picture around the box, as large as fits, and an outline."""
    height, width = picture.shape[:2]
    x0, y0, x1, y1 = np.clip(box or (0, 0, width, height), 0, [width, height, width, height])
    tall, wide = height, width
    if box is not None:
        want = max(CONTEXT * (y1 - y0), CONTEXT * (x1 - x0) * HEIGHT / WIDTH, LEAST)
        tall, wide = min(height, round(want)), min(width, round(want * WIDTH / HEIGHT))
    left = min(max(round((x0 + x1 - wide) / 2), 0), width - wide)
    top = min(max(round((y0 + y1 - tall) / 2), 0), height - tall)
    scale = min(WIDTH / wide, HEIGHT / tall)
    shown = (max(1, round(wide * scale)), max(1, round(tall * scale)))
    crop = np.ascontiguousarray(picture[top : top + tall, left : left + wide])
    drawn = cv2.resize(crop, shown, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    if box is not None:
        corners = [round((x - left) * scale) for x in (x0, x1)], [round((y - top) * scale) for y in (y0, y1)]
        (a, c), (b, d) = corners
        cv2.rectangle(drawn, (a - 1, b - 1), (c, d), BEHIND, 4)  # dark below bright: it shows on any picture
        cv2.rectangle(drawn, (a - 1, b - 1), (c, d), OUTLINE, 2)
    y, x = (HEIGHT - shown[1]) // 2, (WIDTH - shown[0]) // 2
    target[y : y + shown[1], x : x + shown[0]] = drawn


def _write(target: Picture, text: str, x: int, y: int, colour: tuple[int, int, int]) -> None:
    text = "".join(c if c.isprintable() and c.isascii() else "?" for c in text)  # all that OpenCV has letters for
    while text and x + cv2.getTextSize(text, FONT, FONT_SIZE, 1)[0][0] > target.shape[1] - 4:
        text = text[:-1]
    cv2.putText(target, text, (x, y), FONT, FONT_SIZE, colour, 1, cv2.LINE_AA)


def _sheet(tiles: Sequence[Picture], title: str) -> Picture:
    columns = min(COLUMNS, math.ceil(math.sqrt(len(tiles))))
    rows = math.ceil(len(tiles) / columns)
    across, down = WIDTH + GAP, HEIGHT + CAPTION + GAP
    size = (TITLE + rows * down - GAP + MARGIN, 2 * MARGIN + columns * across - GAP, 3)
    sheet = np.full(size, BEHIND, np.uint8)
    _write(sheet, title, MARGIN, 26, INK)
    for i, tile in enumerate(tiles):
        y, x = TITLE + i // columns * down, MARGIN + i % columns * across
        sheet[y : y + tile.shape[0], x : x + WIDTH] = tile
    return sheet


def _save(sheet: Picture, path: Path) -> None:
    done, data = cv2.imencode(".png", np.ascontiguousarray(sheet[..., ::-1]))
    if not done:
        raise OutputError(f"{path.name} could not be encoded")
    png = data.tobytes()
    body = b"tEXt" + SHEET_TAG
    tag = struct.pack(">I", len(SHEET_TAG)) + body + struct.pack(">I", zlib.crc32(body))
    head = 33  # bytes of signature and first chunk
    write_bytes(path, png[:head] + tag + png[head:])
