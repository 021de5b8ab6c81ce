"""Sources in, anonymized files and their manifests out; one job a file, and a failure of one never touches another.

A job writes under a temporary name that ends in `.part`, and takes the real name only when everything is on disk:
manifest first, video last. Whatever interrupts it leaves no file that could be taken for a finished one.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import IO, Protocol

from av.error import FFmpegError

from vidveil import __version__
from vidveil.errors import InputError, OutputError, UsageError, VidveilError
from vidveil.methods import DEFAULT, Anonymizer, load
from vidveil.video.buffered import ahead
from vidveil.video.frame import Frame, SafeFrame
from vidveil.video.manifest import HiddenFrames, Manifest, Order, file_hash, read_manifest, versions
from vidveil.video.preview import PreviewWriter
from vidveil.video.read import Reader
from vidveil.video.sources import Kind, Refusal, Source, find, name_outputs
from vidveil.video.write import CRF, PRESET, ImageWriter, Mp4Writer

AHEAD_BYTES = 64 << 20  # of pictures between two stages, and
AHEAD_FRAMES = 12  # no more than this many


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What holds for all files of a run."""

    audio: str = "drop"
    """`drop`, `keep` or `distort`."""
    metadata: str = "drop"
    """`drop` or `keep`."""
    start: Fraction | None = None
    """Seconds, on the clock a player shows."""
    end: Fraction | None = None
    overwrite: bool = False
    dry_run: bool = False
    preview: Path | None = None
    device: str = "cpu"
    preset: str = PRESET
    crf: int = CRF

    def __post_init__(self) -> None:
        if self.audio not in ("drop", "keep", "distort"):
            raise UsageError(f"audio is drop, keep or distort, not {self.audio!r}")
        if self.metadata not in ("drop", "keep"):
            raise UsageError(f"metadata is drop or keep, not {self.metadata!r}")
        if not 0 <= self.crf <= 51:
            raise UsageError(f"crf is from 0 (lossless) to 51, not {self.crf}")
        if self.start is not None and self.start < 0:
            raise UsageError("the start lies before the beginning")
        if self.end is not None and self.end <= (self.start or 0):
            raise UsageError("the end lies before the start")


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
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.error is None


class Watcher(Protocol):
    """Whoever shows progress. All calls come from one thread."""

    def note(self, line: str) -> None: ...
    def begin(self, name: str, length: int | None) -> None: ...
    def advance(self) -> None: ...
    def end(self, outcome: Outcome) -> None: ...


class _Nobody:
    def note(self, line: str) -> None: ...
    def begin(self, name: str, length: int | None) -> None: ...
    def advance(self) -> None: ...
    def end(self, outcome: Outcome) -> None: ...


def anonymize(
    *sources: str | Path,
    output: str | Path | None = None,
    method: str | Anonymizer = DEFAULT,
    options: Options | None = None,
    watcher: Watcher | None = None,
) -> list[Outcome]:
    """Anonymize files, folders, globs, cameras and streams; an outcome for each, in order.

    Does not raise for a file that fails: its outcome says so, and the others are done.
    """
    anonymizer = load(method) if isinstance(method, str) else method
    options = options or Options()
    watcher = watcher or _Nobody()
    found, refused, passed_over = find(map(str, sources))
    if passed_over:
        watcher.note(f"{passed_over} files that are neither video nor image by their names were passed over")
    named, clashes = name_outputs(found, None if output is None else str(output))
    if options.preview is not None:
        _check_preview(options.preview, found, named)
    outcomes = []
    for refusal in (*refused, *clashes):
        outcomes.append(Outcome(refusal.name, Status.FAILED, error=refusal.error))
        watcher.end(outcomes[-1])
    for source, path in named:
        outcomes.append(_guarded(source, path, anonymizer, options, watcher))
        watcher.end(outcomes[-1])
    return outcomes


def _check_preview(preview: Path, found: list[Source], named: list[tuple[Source, Path]]) -> None:
    if len(found) > 1:
        raise UsageError("--preview takes one source")
    if preview.suffix.lower() != ".mp4":
        raise UsageError("the preview's name must end in .mp4")
    files = [source.path for source in found if not source.live] + [path for _, path in named]
    if preview.resolve() in [file.resolve() for file in files]:
        raise UsageError("the preview would replace the source or the output")


def _guarded(source: Source, path: Path, method: Anonymizer, options: Options, watcher: Watcher) -> Outcome:
    try:
        return _job(source, path, method, options, watcher)
    except VidveilError as error:
        return Outcome(source.name, Status.FAILED, path, error)
    except OSError as error:
        return Outcome(source.name, Status.FAILED, path, OutputError(_plain(error)))
    except FFmpegError as error:
        carried = options.audio != "drop" or options.metadata != "drop"
        hint = "; without --audio and --metadata it may work" if carried else ""
        reason = (error.strerror or type(error).__name__).lower()
        return Outcome(source.name, Status.FAILED, path, OutputError(f"cannot be written ({reason}){hint}"))
    except Exception as error:
        bug = VidveilError(f"internal error, please report it: {type(error).__name__}: {error}")
        bug.__cause__ = error
        return Outcome(source.name, Status.FAILED, path, bug)


def _plain(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full: nothing was written"
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return "the output's folder cannot be written to"
    return f"cannot be written ({(error.strerror or str(error) or type(error).__name__).lower()})"


def _job(source: Source, path: Path, method: Anonymizer, options: Options, watcher: Watcher) -> Outcome:
    if source.live and options.audio != "drop":
        raise UsageError("the sound of a live source cannot be kept")
    order = Order(
        method=method.spec,
        weights=method.weights,
        audio=options.audio,
        metadata=options.metadata,
        start=None if options.start is None else str(options.start),
        end=None if options.end is None else str(options.end),
        preset=options.preset,
        crf=options.crf,
        vidveil=__version__,
    )
    before = _fingerprint(source)
    if not options.overwrite:
        finished = _finished(source, path, order)
        if finished is not None and (options.preview is None or options.preview.exists()):
            return finished
        if options.preview is not None and options.preview.exists():
            raise OutputError(f"{options.preview.name} exists; --overwrite replaces it")
    if options.dry_run:
        return _dry_run(source, path, options)
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        part = stack.enter_context(_temporary(path))
        notes = stack.enter_context(_temporary(_manifest_path(path)))
        preview = stack.enter_context(_temporary(options.preview)) if options.preview else None
        manifest = _work(source, part, preview, order, method, options, watcher)
        if _fingerprint(source) != before:
            raise InputError("changed while it was being read: nothing was written")
        manifest.output = {"name": path.name, "sha256": file_hash(part), "bytes": part.stat().st_size}
        manifest.write(notes)
        for temporary in (part, notes):
            _to_disk(temporary)
        if preview is not None and options.preview is not None:
            preview.replace(options.preview)
        notes.replace(_manifest_path(path))
        part.replace(path)
    return _outcome(source, path, manifest)


def _outcome(source: Source, path: Path, manifest: Manifest) -> Outcome:
    error = None if manifest.incomplete is None else InputError(f"{manifest.incomplete}; what is there was anonymized")
    return Outcome(
        source.name,
        Status.DONE if error is None else Status.INCOMPLETE,
        path,
        error,
        frames=manifest.frames["written"],
        hidden=manifest.frames["hidden"],
        warnings=tuple(manifest.warnings),
    )


def _dry_run(source: Source, path: Path, options: Options) -> Outcome:
    with Reader(source, start=options.start, end=options.end) as reader:
        return Outcome(source.name, Status.WOULD_DO, path, frames=reader.info.length or 0)


def _manifest_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _fingerprint(source: Source) -> tuple[int, int] | None:
    if source.live:
        return None
    try:
        found = source.path.stat()
    except OSError as error:
        raise InputError(f"cannot be opened ({(error.strerror or str(error)).lower()})") from error
    return found.st_size, found.st_mtime_ns


def _finished(source: Source, path: Path, order: Order) -> Outcome | None:
    """The outcome of an earlier run, if its output is there, whole, and what this run would make."""
    notes = _manifest_path(path)
    manifest = read_manifest(notes)
    if manifest is None:
        in_the_way = next((p for p in (path, notes) if p.exists()), None)
        if in_the_way is not None:
            raise OutputError(
                f"{in_the_way.name} exists and no manifest says where it is from; --overwrite replaces it"
            )
        return None
    if not path.exists():
        return None
    if source.live:
        raise OutputError(f"{path.name} exists; --overwrite replaces it")
    if manifest.input["name"] != source.name:
        raise OutputError(f"{path.name} was made from {manifest.input['name']}; --overwrite replaces it")
    if manifest.order != order or path.stat().st_size != manifest.output["bytes"]:
        return None
    if file_hash(path) != manifest.output["sha256"] or file_hash(source.path) != manifest.input["sha256"]:
        return None
    return replace(_outcome(source, path, manifest), status=Status.UP_TO_DATE)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """`path` with `.part` behind it, ours alone; gone at the end unless it was renamed."""
    part = path.with_name(path.name + ".part")
    with part.open("ab") as file:  # creates it, or takes over what a killed run left
        if not _lock(file):
            raise OutputError(f"{path.name} is being written by another process")
        try:
            os.truncate(part, 0)
            yield part
        finally:
            with suppress(FileNotFoundError):
                part.unlink()


def _lock(file: IO[bytes]) -> bool:
    """Taken by the system from whoever dies, so a killed run leaves none behind."""
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _work(
    source: Source,
    part: Path,
    preview_part: Path | None,
    order: Order,
    method: Anonymizer,
    options: Options,
    watcher: Watcher,
) -> Manifest:
    """Everything between opening the source and a whole file under a temporary name."""
    with ExitStack() as stack:
        reader = stack.enter_context(Reader(source, start=options.start, end=options.end))
        hashing = None
        if not source.live:
            pool = stack.enter_context(ThreadPoolExecutor(1))
            hashing = pool.submit(file_hash, source.path)
        writer: Mp4Writer | ImageWriter
        if source.kind is Kind.IMAGE:
            writer = ImageWriter(part, reader, part.with_suffix("").suffix)
        else:
            writer = Mp4Writer(
                part, reader, audio=options.audio, metadata=options.metadata, preset=options.preset, crf=options.crf
            )
        stack.callback(writer.abort)
        preview = None
        if preview_part is not None:
            preview = PreviewWriter(preview_part, reader, preset=options.preset, crf=options.crf)
            stack.callback(preview.abort)
        watcher.begin(source.name, None if options.start or options.end else reader.info.length)
        hidden = _pump(reader, method, writer, preview, watcher)
        if not writer.frames:
            raise InputError("no frame lies between start and end" if reader.report.frames == 0 else "no frame is left")
        writer.finish()
        if preview is not None:
            preview.finish()
        return _manifest(source, order, options, reader, writer, hidden, hashing.result() if hashing else None)


def _pump(
    reader: Reader,
    method: Anonymizer,
    writer: Mp4Writer | ImageWriter,
    preview: PreviewWriter | None,
    watcher: Watcher,
) -> HiddenFrames:
    """Reader, anonymizer and writer, each in a thread of its own, a few frames apart."""
    hidden = HiddenFrames()
    depth = _depth(reader)
    frames: Iterable[Frame] = reader if preview is None else _seen(reader, preview.remember)
    with ExitStack() as stack:
        raw = stack.enter_context(ahead(frames, depth))
        safe: Iterator[SafeFrame] = stack.enter_context(ahead(method.stream(raw), depth))
        try:
            for frame in safe:
                writer.write(frame)
                if preview is not None:
                    preview.write(frame)
                if frame.hidden is not None:
                    hidden.add(frame.index, frame.hidden)
                watcher.advance()
        except KeyboardInterrupt:
            if not reader.source.live:
                raise
            # a camera has no end but this one
    return hidden


def _seen(frames: Iterable[Frame], by: Callable[[Frame], None]) -> Iterator[Frame]:
    for frame in frames:
        by(frame)
        yield frame


def _depth(reader: Reader) -> int:
    picture = max(1, reader.info.width * reader.info.height * 3 // 2)
    return max(2, min(AHEAD_FRAMES, AHEAD_BYTES // picture))


def _manifest(
    source: Source,
    order: Order,
    options: Options,
    reader: Reader,
    writer: Mp4Writer | ImageWriter,
    hidden: HiddenFrames,
    input_hash: str | None,
) -> Manifest:
    info, report, tracks = reader.info, reader.report, writer.tracks
    kept = list(tracks.kept) if tracks is not None else []
    dropped = list(info.streams)
    for name in kept:
        if name in dropped:
            dropped.remove(name)
    keeps_tags = options.metadata == "keep" and source.kind is not Kind.IMAGE
    return Manifest(
        input={
            "name": "stream" if source.kind is Kind.STREAM else source.name,  # a URL tells a place
            "sha256": input_hash,
            "bytes": None if source.live else source.path.stat().st_size,
            "format": info.format,
            "codec": info.codec,
        },
        output={},
        order=order,
        device=options.device,
        versions=versions(),
        video={
            "width": reader.size[0] if reader.size else 0,
            "height": reader.size[1] if reader.size else 0,
            "padded_to": writer.padded,
            "turned": reader.matrix is not None,
            "time_from_zero": reader.shift != 0,
        },
        frames={
            "read": report.frames,
            "written": writer.frames,
            "hidden": hidden.count,
            "times_mended": report.mended_times,
            "resized": report.resized,
            "deinterlaced": report.deinterlaced,
        },
        hidden=hidden.runs,
        dropped={
            "tags": [] if keeps_tags else list(info.tags),
            "streams": dropped,
            "chapters": 0 if keeps_tags and options.start is None and options.end is None else info.chapters,
        },
        kept={
            "tags": list(info.tags) if keeps_tags else [],
            "streams": kept,
            "reencoded": list(tracks.reencoded) if tracks is not None else [],
        },
        incomplete=report.cut_short,
        warnings=list(report.warnings),
    )


__all__ = ["Options", "Outcome", "Refusal", "Status", "Watcher", "anonymize"]
