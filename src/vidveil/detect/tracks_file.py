"""Tracks on disk, as JSON lines: to look at, to edit, and to render from. Fields: docs/detection.md."""

import json
import shutil
from array import array
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from vidveil.core.bounded import json_lines, kind_of, reason
from vidveil.core.errors import InputError, UsageError
from vidveil.core.frame import Box, Frame, Region
from vidveil.core.rotation import turn_of
from vidveil.core.text import printable
from vidveil.detect.moments import Findings

LAYOUT = 1
SHAPES = ("ellipse", "box")
FARTHEST = 1_000_000
SIDE, FRAMES, MOST_TRACK = 1 << 20, 1 << 40, 1 << 53
MOST_REGIONS, MOST_A_FRAME = 10_000_000, 10_000
MOST_WORDS, LONGEST = 10_000, 200
USUAL = (("kind", "edited"), ("source", "edited"))
MADE_FOR = {"video": "video", "start": "--start", "end": "--end"}
"""What else the header may hold: the beginning of the video's SHA-256, and the part that was taken of it."""


def made_for(sha256: str | None, start: object, end: object) -> dict[str, Any]:
    start, end = (None if time is None else str(time) for time in (start, end))
    return {"video": sha256 and sha256[:16], "start": start, "end": end}


_UNSEARCHED = (Region(box=None, kind="nobody knows", track=0, score=0.0, source="unsearched"),)


class TracksWriter:
    """Writes the regions of frames as they pass; the header, which counts them, comes last and stands first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Without a name, so that nothing is left of it, however this process ends.
        self._body = TemporaryFile("w+", encoding="utf-8", dir=path.parent)  # noqa: SIM115 - closed by finish or abort
        self._frames = 0
        self._size = (0, 0)

    def record(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        for frame in frames:
            self._frames = frame.index + 1
            self._size = turn_of(frame).size
            for region in _UNSEARCHED if frame.regions is None or frame.picture is None else frame.regions:
                self._body.write(json.dumps(_as_dict(frame, region)) + "\n")
            yield frame

    def finish(self, made_for: dict[str, Any] | None = None) -> None:
        """`made_for` says of which video, from where to where: see `RecordedTracks.check`."""
        header = {"tracks": LAYOUT, "width": self._size[0], "height": self._size[1], "frames": self._frames}
        header |= made_for or {}
        self._body.seek(0)
        with self._body, self._path.open("w", encoding="utf-8") as file:
            file.write(json.dumps(header) + "\n")
            shutil.copyfileobj(self._body, file)

    def abort(self) -> None:
        self._body.close()


def _as_dict(frame: Frame, region: Region) -> dict[str, Any]:
    box = None if region.box is None else [round(v, 1) for v in region.box]
    return {
        "frame": frame.index,
        "time": round(frame.seconds, 4),
        "track": region.track,
        "kind": region.kind,
        "box": box,
        "shape": region.shape,
        "score": round(region.score, 3),
        "source": region.source,
    }


class RecordedTracks:
    """Regions from a file instead of from detectors: exactly what it says, and nothing else.

    They are kept in columns, of about 70 bytes a region: a day of video has millions of them.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self.findings = Findings()
        self._boxes, self._scores = array("d"), array("d")
        self._frames, self._tracks = array("q"), array("q")
        self._words: dict[tuple[str, str, str, bool], int] = {}
        """Kind, source and shape, and whether there is a box: few in a file, and each has a number."""
        self._worded = array("l")
        started = False
        try:
            for at, values in json_lines(path):
                if not started:
                    self.width, self.height, self.frames = self._header(values)
                    started = True
                elif len(self._frames) >= MOST_REGIONS:
                    raise ValueError(
                        f"line {at}: more than {MOST_REGIONS:,} regions; cut the video by --start and --end"
                    )
                else:
                    self._add(at, values)
        except OSError as error:
            raise UsageError(f"{printable(path.name)} {reason(error)}") from error
        except ValueError as error:
            if not started:
                raise self._no_tracks() from error
            raise UsageError(f"{printable(self._name)}, {error}") from error
        if not started:
            raise self._no_tracks()
        frames = np.array(self._frames, np.int64)
        self._order = np.argsort(frames, kind="stable")
        self._sorted = frames[self._order]
        self._refuse_crowds()
        self._known = list(self._words)
        self.looks_for = sorted({kind for kind, _, _, _ in self._known})
        self.weights: list[str] = []

    def check(self, made_for: dict[str, Any]) -> None:
        """Refuse another video, or another part of it, where the header says what it was made for."""
        for name, what in MADE_FOR.items():
            if name in self.header and self.header[name] != made_for[name]:
                raise InputError(
                    f"{self._name} was made for another {what}; if it fits all the same, delete {name!r} "
                    "from its first line"
                )

    def refuse_missing(self, numbers: Collection[int]) -> None:
        """UsageError for the first number that no track in the file has."""
        if not numbers:
            return
        known = sorted(set(self._tracks))
        for number in sorted(set(numbers) - set(known)):
            listed = ", ".join(map(str, known[:20])) + (" …" if len(known) > 20 else "")
            raise UsageError(f"{printable(self._name)} has no track {number}: its tracks are {listed or 'none'}")

    def stop(self) -> None:
        """Nothing here takes long enough to be given up."""

    def follow(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        self.findings = Findings()
        count = 0
        for frame in frames:
            count += 1
            size = turn_of(frame).size
            if size != (self.width, self.height):
                raise InputError(
                    f"shows {size[0]} × {size[1]} pixels, but {self._name} was made for {self.width} × {self.height}"
                )
            if frame.index >= self.frames:
                frame.picture, frame.lost = None, f"lies behind the {self.frames} frames of the tracks file"
            frame.regions = self._of(frame.index)
            yield frame
        if count < self.frames:
            raise InputError(
                f"has {count} frames, but {self._name} was made for {self.frames}: of another video, or another "
                "--start and --end"
            )

    def _of(self, frame: int) -> tuple[Region, ...]:
        """The regions of a frame, in the order of the file."""
        first, end = np.searchsorted(self._sorted, [frame, frame + 1])
        return tuple(self._region(int(row)) for row in self._order[first:end])

    def _region(self, row: int) -> Region:
        kind, source, shape, has_box = self._known[self._worded[row]]
        x0, y0, x1, y1 = self._boxes[4 * row : 4 * row + 4]
        return Region(
            box=(x0, y0, x1, y1) if has_box else None,
            shape=shape,
            kind=kind,
            track=self._tracks[row],
            score=self._scores[row],
            source=source,
        )

    def _refuse_crowds(self) -> None:
        frames, counts = np.unique(self._sorted, return_counts=True)
        crowds = frames[counts > MOST_A_FRAME]
        if crowds.size:
            raise UsageError(
                f"{printable(self._name)}: frame {crowds[0]} has more than {MOST_A_FRAME:,} regions; "
                "to hide all of it, write one whose box is null"
            )

    def _header(self, header: Any) -> tuple[int, int, int]:
        try:
            self.header: dict[str, Any] = header
            layout, width, height, frames = (header[name] for name in ("tracks", "width", "height", "frames"))
        except (TypeError, KeyError) as error:
            raise self._no_tracks() from error
        if layout != LAYOUT or not all(
            type(v) is int and 0 < v <= most for v, most in ((width, SIDE), (height, SIDE), (frames, FRAMES))
        ):
            raise self._no_tracks()
        return width, height, frames

    def _no_tracks(self) -> UsageError:
        return UsageError(
            f'{printable(self._name)} is no tracks file: its first line must be {{"tracks": {LAYOUT}, "width": …, '
            '"height": …, "frames": …}'
        )

    def _add(self, at: int, found: Any) -> None:
        try:
            self._check_and_add(found)
        except KeyError as error:
            raise ValueError(f"line {at}: {error.args[0]} is missing") from error
        except ValueError as error:
            raise ValueError(f"line {at}: {error}") from error

    def _check_and_add(self, found: Any) -> None:
        if not isinstance(found, dict):
            raise ValueError(f"an object is expected, not {kind_of(found)}")
        box, frame, track, score = found["box"], found["frame"], found["track"], found.get("score", 0.0)
        shape, kind, source = (found.get(key, usual) for key, usual in (("shape", "box"), *USUAL))
        if type(frame) is not int or frame < 0 or type(track) is not int or abs(track) > MOST_TRACK:
            raise ValueError("frame and track are whole numbers")
        if frame >= self.frames:
            raise ValueError(f"the header counts {self.frames} frames, from 0")
        if type(score) not in (int, float):
            raise ValueError("score is a number")
        if shape not in SHAPES:
            raise ValueError(f"shape is {' or '.join(SHAPES)}")
        if not all(isinstance(word, str) and len(word) <= LONGEST for word in (kind, source)):
            raise ValueError(f"kind and source are words of at most {LONGEST} characters")
        placed = None if box is None else self._clipped(self._box(box))
        if placed is not None and placed != tuple(box):
            shape = "box"  # the ellipse in a smaller box hides other pixels: all of the box hides them, too
        words = (kind, source, shape, placed is not None)
        number = self._words.setdefault(words, len(self._words))
        if number >= MOST_WORDS:
            raise ValueError(f"there are more than {MOST_WORDS} kinds and sources")
        self._boxes.extend(placed or (0.0,) * 4)
        self._scores.append(float(score))
        self._frames.append(frame)
        self._tracks.append(track)
        self._worded.append(number)

    def _box(self, box: Any) -> Box:
        if not isinstance(box, list) or len(box) != 4 or not all(type(v) in (int, float) for v in box):
            raise ValueError("a box is four numbers or null")
        x0, y0, x1, y1 = (float(v) for v in box)
        if max(map(abs, (x0, y0, x1, y1))) > FARTHEST:
            raise ValueError(f"the box reaches further than {FARTHEST} pixels")
        if x1 <= 0 or y1 <= 0 or x0 >= self.width or y0 >= self.height:
            raise ValueError(f"the box lies outside of the picture, {self.width} × {self.height} pixels")
        if x0 < x1 <= 1 and y0 < y1 <= 1:
            raise ValueError("the box is smaller than a pixel: pixels are expected, not shares of the picture")
        if not (x0 < x1 and y0 < y1):
            raise ValueError("the box has no area: left, top, right, bottom are expected")
        return x0, y0, x1, y1

    def _clipped(self, box: Box) -> Box:
        """To the picture and as much again on each side: how strongly a region is blurred goes by its size."""
        x0, y0, x1, y1 = box
        width, height = float(self.width), float(self.height)
        return max(x0, -width), max(y0, -height), min(x1, 2 * width), min(y1, 2 * height)


def without(frames: Iterable[Frame], tracks: Collection[int], missing: set[int]) -> Iterator[Frame]:
    """Frames in which these tracks are not hidden. A frame that is hidden whole because of them stays hidden.

    Tracks that are met are taken off `missing`.
    """
    for frame in frames:
        if frame.regions:
            missing.difference_update(region.track for region in frame.regions)
            frame.regions = tuple(r for r in frame.regions if r.track not in tracks or r.box is None)
        yield frame
