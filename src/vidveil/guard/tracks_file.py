"""Tracks on disk, as JSON lines: to look at, to edit, and to render from. Fields: docs/guard.md."""

import json
import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from vidveil.errors import InputError, UsageError
from vidveil.guard.moments import Findings
from vidveil.guard.view import turn_of
from vidveil.video.frame import Frame, Region

LAYOUT = 1
SHAPES = ("ellipse", "box")
FARTHEST = 1_000_000
MADE_FOR = {"video": "video", "start": "--start", "end": "--end"}
"""What else the header may hold: the beginning of the video's SHA-256, and the part that was taken of it."""


def made_for(sha256: str | None, start: object, end: object) -> dict[str, Any]:
    return {"video": sha256 and sha256[:16], "start": start and str(start), "end": end and str(end)}


_UNSEARCHED = (Region(box=None, kind="nobody knows", track=0, score=0.0, source="unsearched"),)


class TracksWriter:
    """Writes the regions of frames as they pass; the header, which counts them, comes last and stands first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Without a name, so that nothing is left of it, however this process ends.
        self._body = TemporaryFile("w+", encoding="utf-8", dir=path.parent)  # noqa: SIM115 - closed by finish or abort
        self._frames = 0
        self._size = (0, 0)

    def watch(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        for frame in frames:
            self._frames = frame.index + 1
            self._size = turn_of(frame).size
            for region in _UNSEARCHED if frame.regions is None or frame.picture is None else frame.regions:
                self._body.write(json.dumps(_told(frame, region)) + "\n")
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


def _told(frame: Frame, region: Region) -> dict[str, Any]:
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
    """Regions from a file instead of from detectors: exactly what it says, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._regions: dict[int, list[Region]] = {}
        self.findings = Findings()
        try:
            with path.open(encoding="utf-8-sig") as file:
                lines = ((at, line) for at, line in enumerate(file, 1) if line.strip())
                _, first = next(lines, (0, ""))
                self.width, self.height, self.frames = self._header(first)
                for at, line in lines:
                    frame, region = self._line(at, line)
                    self._regions.setdefault(frame, []).append(region)
        except OSError as error:
            raise UsageError(f"{path.name} cannot be read ({(error.strerror or str(error)).lower()})") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{path.name} is no tracks file: not UTF-8") from error
        self.looks_for = sorted({region.kind for regions in self._regions.values() for region in regions})
        self.weights: list[str] = []

    def check(self, made_for: dict[str, Any]) -> None:
        """Refuse another video, or another part of it, where the header says what it was made for."""
        for name, what in MADE_FOR.items():
            if name in self.header and self.header[name] != made_for[name]:
                raise InputError(
                    f"{self._name} was made for another {what}; whoever is sure takes {name!r} off its first line"
                )

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
            frame.regions = tuple(self._regions.get(frame.index, ()))
            yield frame
        if count < self.frames:
            raise InputError(
                f"has {count} frames, but {self._name} was made for {self.frames}: of another video, or another "
                "--start and --end"
            )

    def _header(self, line: str) -> tuple[int, int, int]:
        try:
            header = json.loads(line)
            self.header: dict[str, Any] = header
            layout, width, height, frames = (header[name] for name in ("tracks", "width", "height", "frames"))
            if layout == LAYOUT and all(type(v) is int and v > 0 for v in (width, height, frames)):
                return width, height, frames
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        raise UsageError(
            f'{self._name} is no tracks file: its first line must be {{"tracks": {LAYOUT}, "width": …, "height": …, '
            '"frames": …}'
        )

    def _line(self, at: int, line: str) -> tuple[int, Region]:
        try:
            found = json.loads(line)
            box = found["box"]
            if box is not None:
                if not isinstance(box, list) or len(box) != 4 or not all(type(v) in (int, float) for v in box):
                    raise ValueError("a box is four numbers or null")
                x0, y0, x1, y1 = (float(v) for v in box)
                if max(map(abs, box)) > FARTHEST:
                    raise ValueError(f"the box reaches further than {FARTHEST} pixels")
                if x1 <= 0 or y1 <= 0 or x0 >= self.width or y0 >= self.height:
                    raise ValueError(f"the box lies outside of the picture, {self.width} × {self.height} pixels")
                if x0 < x1 <= 1 and y0 < y1 <= 1:
                    raise ValueError("the box is smaller than a pixel: pixels are expected, not shares of the picture")
                if not (x0 < x1 and y0 < y1):
                    raise ValueError("the box has no area: left, top, right, bottom are expected")
                box = (x0, y0, x1, y1)
            shape = found.get("shape", "box")
            if shape not in SHAPES:
                raise ValueError(f"shape is {' or '.join(SHAPES)}")
            frame, track = found["frame"], found["track"]
            if type(frame) is not int or frame < 0 or type(track) is not int:
                raise ValueError("frame and track are whole numbers")
            if frame >= self.frames:
                raise ValueError(f"the header counts {self.frames} frames, from 0")
            region = Region(
                box=box,
                shape=shape,
                kind=str(found.get("kind", "edited")),
                track=track,
                score=float(found.get("score", 0.0)),
                source=str(found.get("source", "edited")),
            )
        except KeyError as error:
            raise UsageError(f"{self._name}, line {at}: {error.args[0]} is missing") from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{self._name}, line {at}: {error}") from error
        return frame, region


def without(frames: Iterable[Frame], tracks: Collection[int], missing: set[int]) -> Iterator[Frame]:
    """Frames in which these tracks are not hidden. A frame that is hidden whole because of them stays hidden.

    Tracks that are met are taken off `missing`.
    """
    for frame in frames:
        if frame.regions:
            missing.difference_update(region.track for region in frame.regions)
            frame.regions = tuple(r for r in frame.regions if r.track not in tracks or r.box is None)
        yield frame
