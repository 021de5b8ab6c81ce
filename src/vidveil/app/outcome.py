"""What became of each source of a run."""

import errno
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from av.error import FFmpegError

from vidveil.app.earlier import drawn_from_tracks
from vidveil.app.manifest import Manifest
from vidveil.app.options import Options
from vidveil.core.errors import InputError, OutputError, VidveilError
from vidveil.video.sources import Source


class Status(Enum):
    DONE = "done"
    INCOMPLETE = "incomplete"
    """Written, but the source broke off."""
    UP_TO_DATE = "up to date"
    WOULD_DO = "would be done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    status: Status
    output: Path | None = None
    error: VidveilError | None = None
    frames: int = 0
    hidden: int = 0
    found: str | None = None
    """What a mask left, and what was found and hidden, where somebody was looked for."""
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.error is None


def outcome_of(source: Source, path: Path, manifest: Manifest) -> Outcome:
    """The outcome of a source whose output `path` this manifest describes."""
    error = None if manifest.incomplete is None else InputError(f"{manifest.incomplete}; what is there was anonymized")
    return Outcome(
        source.label,
        Status.DONE if error is None else Status.INCOMPLETE,
        path,
        error,
        frames=manifest.frames["written"],
        hidden=manifest.frames["hidden"],
        found=_found(manifest),
        warnings=tuple(manifest.warnings),
    )


def failure(source: Source, path: Path, error: Exception, options: Options) -> Outcome:
    """The outcome of a source whose job raised this."""
    if isinstance(error, VidveilError):
        known = error
    elif isinstance(error, OSError):  # some of FFmpeg's errors are, too
        known = OutputError(_reason(error))
    elif isinstance(error, FFmpegError):
        carried = options.audio != "drop" or options.metadata != "drop"
        hint = "; without --audio and --metadata it may work" if carried else ""
        reason = (error.strerror or type(error).__name__).lower()
        known = OutputError(f"cannot be written ({reason}){hint}")
    else:
        known = VidveilError(f"internal error, please report it: {type(error).__name__}: {error}")
        known.__cause__ = error
    return Outcome(source.label, Status.FAILED, path, known)


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full: nothing was written"
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return "the output's folder cannot be written to"
    if error.errno == errno.ENAMETOOLONG:
        return "the name of the output or of its manifest is too long: give a shorter one with -o"
    return f"cannot be written ({(error.strerror or str(error) or type(error).__name__).lower()})"


def _found(manifest: Manifest) -> str | None:
    mask = f"the mask left {manifest.mask['kept_area']:.2f} of the picture" if manifest.mask else None
    return "; ".join(filter(None, (_detected(manifest), mask))) or None


def _detected(manifest: Manifest) -> str | None:
    detection = manifest.detection
    if detection is None:
        return None
    what = " and ".join(detection["looked_for"]) or "nothing"
    if drawn_from_tracks(manifest.order):
        what = "tracks"
    moments = len(detection["moments"]) + detection["moments_left_out"]
    look = f", {moments} moment{'s' if moments > 1 else ''} to look at (vidveil review)" if moments else ""
    found = "" if what == "tracks" else " found and"
    read, written = manifest.frames.get("read"), manifest.frames["written"]
    frames = "them" if read in (None, written) else f"the {read} frames read"
    return f"{what}{found} hidden in {detection['frames_with_regions']} of {frames}{look}"
