"""What to look for, and with what: from a user's options to a source of regions for the frames of a video."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from vidveil.core.errors import UsageError
from vidveil.core.file_hash import file_hash
from vidveil.core.frame import Frame, Region
from vidveil.core.text import close_to, printable
from vidveil.detect.detectors import CenterFace, Detector, Yolox
from vidveil.detect.finder import Finder
from vidveil.detect.moments import Findings
from vidveil.detect.onnx_detector import UserDetector
from vidveil.detect.tracks import TrackSettings
from vidveil.detect.tracks_file import SHAPES, RecordedTracks

if TYPE_CHECKING:
    from torch import Tensor

DETECTORS = {"faces": CenterFace, "people": Yolox}
ON_LOST = ("hold", "hide")
TRACKS = "tracks"
"""Stands for a region where a file of tracks says what is hidden."""


class RegionSource(Protocol):
    """Puts regions on frames: a `Finder`, or the tracks recorded in a file."""

    @property
    def looks_for(self) -> Sequence[str]: ...
    @property
    def weights(self) -> Sequence[str]: ...
    @property
    def findings(self) -> Findings: ...
    def follow(self, frames: Iterable[Frame]) -> Iterator[Frame]: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionSettings:
    """What is looked for, where the method works, and what is hidden on top of it."""

    region: str | None = None
    """Where the method works: `frame`, `faces`, `people`, or an ONNX file. None: faces, for methods that paint."""
    also_hide: str = "none"
    """What is hidden on top of any method: `none`, `faces`, `people`, or an ONNX file."""
    also_hide_with: str = "solid"
    """The method that hides it."""
    shape: str | None = None
    """`ellipse` or `box`; None: ellipses for faces, boxes for all else."""
    on_lost: str = "hold"
    hide_for: float = 2.0
    delay: float = 1.0
    search_every: float = 0.2
    """Seconds between two searches of the whole picture; 0: every frame."""
    tracks_in: Path | None = None
    tracks_out: Path | None = None
    leave_visible: tuple[int, ...] = ()
    """Numbers of tracks that are not hidden."""

    def __post_init__(self) -> None:
        if self.on_lost not in ON_LOST:
            raise UsageError(f"on_lost is {' or '.join(ON_LOST)}, not {self.on_lost!r}")
        if self.shape is not None and self.shape not in SHAPES:
            raise UsageError(f"shape is {' or '.join(SHAPES)}, not {self.shape!r}")
        if not 0 <= self.delay <= 10:
            raise UsageError(f"the delay is from 0 to 10 seconds, not {self.delay:g}")
        if not 0 <= self.search_every <= 1:
            raise UsageError(f"search_every is from 0 to 1 second, not {self.search_every:g}")
        if not 0 <= self.hide_for <= 3600:
            raise UsageError(f"hide_for is from 0 to 3600 seconds, not {self.hide_for:g}")
        if self.tracks_in is not None and self.tracks_out is not None:
            raise UsageError("--tracks-in and --tracks-out exclude each other: the tracks are in the file already")
        if self.tracks_in is not None and (self.region not in (None, TRACKS) or self.also_hide not in ("none", TRACKS)):
            raise UsageError("--tracks-in says what is hidden: --region and --also-hide cannot be given with it")
        if self.region == "frame" and self.also_hide == "none":
            if self.tracks_out is not None:
                raise UsageError("--tracks-out needs --region or --also-hide: nothing is looked for on the whole frame")
            if self.leave_visible:
                raise UsageError("--leave-visible needs --region or --also-hide: the whole frame has no tracks")

    @property
    def kinds(self) -> tuple[str, ...]:
        """What has to be looked for, in the words of the user."""
        if self.tracks_in is not None:
            return ()
        wanted = (self.region or "frame", self.also_hide)
        return tuple(dict.fromkeys(kind for kind in wanted if kind not in ("frame", "none")))

    def as_dict(self) -> dict[str, Any] | None:
        """For the order in the manifest: everything that changes the output, and no path. None: nothing is hidden by
        region."""
        if not self.kinds and self.tracks_in is None:
            return None
        values = asdict(self)
        del values["tracks_out"]
        values["region"], values["also_hide"] = (_name(word or "frame") for word in (self.region, self.also_hide))
        values["leave_visible"] = list(self.leave_visible)
        if self.tracks_in is not None:
            try:
                values["tracks_in"] = file_hash(self.tracks_in)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise UsageError(f"{self.tracks_in.name} cannot be read ({reason})") from error
        return values

    def region_source(self) -> RegionSource | None:
        """What puts regions on frames; None if no region is hidden."""
        if self.tracks_in is not None:
            return RecordedTracks(self.tracks_in)
        if not self.kinds:
            return None
        settings = TrackSettings(
            on_lost=self.on_lost, hide_for=self.hide_for, delay=self.delay, every=self.search_every
        )
        detectors = [detector(kind) for kind in self.kinds]
        if len({found.kind for found in detectors}) < len(detectors):
            raise UsageError("region and also_hide find the same with two detectors or sizes: give both the same word")
        if self.shape is not None:
            for found in detectors:
                found.ellipse = self.shape == "ellipse"
        return Finder(detectors, settings)


def detector(kind: str) -> Detector:
    """The detector that a user's word (`faces`, `faces:2`, `plates.onnx`) names."""
    name, colon, size = kind.partition(":")
    if name in DETECTORS:
        found = DETECTORS[name]()
        if colon:
            found.size = _times(kind, size)
        return found
    if Path(kind).suffix == ".onnx":
        return UserDetector(Path(kind))
    known = f"there are {', '.join(DETECTORS)}, or an ONNX file"
    hint = close_to(kind, (*DETECTORS, "frame", "none"), known)
    raise UsageError(f"{printable(repr(kind))} cannot be looked for; {hint}")


def _times(word: str, size: str) -> float:
    try:
        times = float(size)
    except ValueError:
        times = 0.0
    if not 1 <= times <= 10:
        raise UsageError(
            f"{printable(word)}: what stands behind the colon is how many times as large, from 1 to 10: faces:1.5"
        )
    return times


def kind_of(word: str) -> str:
    """The kind of the regions that a user's word asks for."""
    name = word.partition(":")[0]
    return name if name in DETECTORS else Path(word).stem


def _name(word: str) -> str:
    return word if Path(word).suffix != ".onnx" else Path(word).name


def regions_of(clip: "Tensor", source: RegionSource, rate: float = 25.0) -> list[tuple[Region, ...]]:
    """The regions of each frame of a clip (3, T, H, W) in [0, 1], taken to be shown at this rate."""
    import av  # datasets can be read without it

    pictures = (clip.detach().cpu().permute(1, 2, 3, 0) * 255).round().byte().numpy()  # (T, H, W, 3)
    height, width = pictures.shape[1:3]

    def frames() -> Iterator[Frame]:
        for index, picture in enumerate(pictures):
            even = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
            stored = av.VideoFrame.from_ndarray(np.ascontiguousarray(even), "rgb24").reformat(format="yuv420p")
            yield Frame(
                index=index, pts=index, duration=1, width=width, height=height, picture=stored, seconds=index / rate
            )

    hidden = (Region(box=None, kind="unsearched", track=0, score=0.0, source="unsearched"),)
    return [hidden if frame.regions is None else frame.regions for frame in source.follow(frames())]
