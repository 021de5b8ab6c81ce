"""From a source to a whole file: reader, anonymizer and writer, each in a thread, and a manifest of what they did."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Event
from typing import Any

from vidveil.app.manifest import ComparedFrames, HiddenFrames, Manifest, MaskedFrames, Order, kept_tags, place, versions
from vidveil.app.naming import output_suffix
from vidveil.app.preview import HeatmapWriter, PreviewWriter
from vidveil.core.errors import DetectorError, InputError, UsageError
from vidveil.core.file_hash import file_hash
from vidveil.core.frame import Frame, SafeFrame
from vidveil.detect.settings import DetectionSettings, RegionSource
from vidveil.detect.tracks_file import RecordedTracks, TracksWriter, made_for, without
from vidveil.methods import Anonymizer
from vidveil.methods.masking.masker import masker_in
from vidveil.video.buffered import ahead
from vidveil.video.live import interrupts_as
from vidveil.video.read import Reader
from vidveil.video.sources import Kind, Source
from vidveil.video.write import CRF, PRESET, ImageWriter, Mp4Writer

AHEAD_BYTES = 64 << 20  # of pictures between two stages, and
AHEAD_FRAMES = 12  # no more than this many
SIZES = ("original", "network")
MANIFESTS = ("full", "share", "none")
VOICES = "the sound is kept, and voices identify people: --audio drop or distort does not keep them"


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
    reconnect: float = 60.0
    """Seconds for which a live source that broke off is waited for."""
    manifest: str | None = None
    """`full`, `share` (without what identifies the source) or `none`. None: `full`, and `share` with `rename`."""
    rename: bool = False
    """Outputs get random names."""
    rename_map: Path | None = None
    """A private file that says which name each source got; with it a run can be resumed. Implies `rename`."""
    max_pixels: int | None = None
    """Larger pictures are refused. None: 100 million for images, 40 million for video."""
    overwrite: bool = False
    dry_run: bool = False
    preview: Path | None = None
    heatmap: Path | None = None
    """Where a learned method's scores are shown over the original."""
    size: str = "original"
    """`original`, or `network`: what a network draws, at the size at which it draws."""
    device: str = "cpu"
    preset: str = PRESET
    crf: int = CRF
    detection: DetectionSettings = field(default_factory=DetectionSettings)
    """Whom to look for, and what becomes of them."""

    def __post_init__(self) -> None:
        if self.audio not in ("drop", "keep", "distort"):
            raise UsageError(f"audio is drop, keep or distort, not {self.audio!r}")
        if self.metadata not in ("drop", "keep"):
            raise UsageError(f"metadata is drop or keep, not {self.metadata!r}")
        if self.manifest not in (None, *MANIFESTS):
            raise UsageError(f"manifest is {', '.join(MANIFESTS[:-1])} or {MANIFESTS[-1]}, not {self.manifest!r}")
        if self.renames and self.manifest == "full":
            raise UsageError("a full manifest holds the name that --rename hides: --manifest share, or none")
        if self.renames and self.metadata == "keep":
            raise UsageError(
                "--metadata keep writes the source's tags into outputs that --rename makes nameless: drop one"
            )
        if self.size not in SIZES:
            raise UsageError(f"size is {' or '.join(SIZES)}, not {self.size!r}")
        if not 1 <= self.crf <= 51:  # 0 is lossless, in a profile that browsers do not play
            raise UsageError(f"crf is from 1 to 51, not {self.crf}")
        if self.start is not None and self.start < 0:
            raise UsageError("the start lies before the beginning")
        if self.max_pixels is not None and self.max_pixels < 1:
            raise UsageError(f"max_pixels is at least 1, not {self.max_pixels}")
        if self.end is not None and self.end <= (self.start or 0):
            raise UsageError("the end lies before the start")

    @property
    def renames(self) -> bool:
        return self.rename or self.rename_map is not None

    @property
    def manifest_form(self) -> str:
        return self.manifest or ("share" if self.renames else "full")


def process(
    source: Source,
    part: Path,
    preview_part: Path | None,
    heatmap_part: Path | None,
    tracks_part: Path | None,
    order: Order,
    method: Anonymizer,
    watch: RegionSource | None,
    options: Options,
    begin: Callable[[int | None], None],
    advance: Callable[[], None],
) -> Manifest:
    """Everything between opening the source and a whole file under a temporary name."""
    with ExitStack() as stack:
        reader = stack.enter_context(
            Reader(
                source,
                start=options.start,
                end=options.end,
                reconnect=options.reconnect,
                sound=options.audio != "drop",
                keep_offset=options.metadata == "keep",
                max_pixels=options.max_pixels,
            )
        )
        hashing = None
        if not source.live:
            pool = stack.enter_context(ThreadPoolExecutor(1))
            stop = Event()
            stack.callback(stop.set)  # before the pool waits for its thread: nobody waits for a hash that is not needed
            hashing = pool.submit(file_hash, source.path, stop)
        if isinstance(watch, RecordedTracks):
            watch.check(_made_for(hashing, options))
        writer: Mp4Writer | ImageWriter
        redrawn = options.size == "network"
        if source.kind is Kind.IMAGE:
            writer = ImageWriter(part, reader, output_suffix(source), redrawn=redrawn)
        else:
            writer = Mp4Writer(
                part,
                reader,
                audio=options.audio,
                metadata=options.metadata,
                preset=options.preset,
                crf=options.crf,
                redrawn=redrawn,
            )
        stack.callback(writer.abort)
        views: list[PreviewWriter] = []
        for make, place_of_it in (PreviewWriter, preview_part), (HeatmapWriter, heatmap_part):
            if place_of_it is not None:
                views.append(make(place_of_it, reader, method.keeps, preset=options.preset, crf=options.crf))
                stack.callback(views[-1].abort)
        tracks = None
        if tracks_part is not None:
            tracks = TracksWriter(tracks_part)
            stack.callback(tracks.abort)
        begin(None if options.start or options.end else reader.info.length)
        searched = None
        missing = set(options.detection.exceptions)
        if watch is not None:
            searched = partial(_searched, watch=watch, tracks=tracks, exceptions=frozenset(missing), missing=missing)
        give_up = watch.stop if watch is not None else lambda: None
        hidden, masked, compared = _pump(reader, searched, give_up, method, writer, views, advance)
        if not writer.frames:
            raise InputError("no frame lies between start and end" if reader.report.frames == 0 else "no frame is left")
        for said in compared.warnings(writer.frames):
            reader.report.warn(said)
        side, learned = min(reader.size or (0, 0)), masker_in(method)
        caution = method.caution(side)
        if caution is None and learned is not None and learned.draws:  # a guard says nothing of what is drawn
            caution = learned.caution(side)
        if caution is not None:
            reader.report.warn(caution)
        if learned is not None and getattr(learned.scorer, "drawn", False):
            reader.report.warn(f"{learned.spec} learned on drawn people: on other videos it is an experiment")
        if learned is not None and not getattr(learned.scorer, "learned", True):
            reader.report.warn(f"{learned.spec} told no more of the action than guessing does: train it longer")
        if learned is not None and learned.draws and options.detection.guard != "none":
            reader.report.warn(f"{learned.spec} shows nothing that was filmed: the guard marks where somebody is")
        if options.audio == "keep" and any(name.startswith("audio") for name in _kept_streams(writer)):
            reader.report.warn(VOICES)
        if options.metadata == "keep" and source.kind is not Kind.IMAGE:
            info = reader.info
            if said_of_tags := kept_tags(info.tags, len(info.tags) + info.unknown_tags):
                reader.report.warn(said_of_tags)
        for number in sorted(missing):
            reader.report.warn(f"--except {number}: there is no such track")
        writer.finish()
        for view in views:
            view.finish()
        if tracks is not None:
            tracks.finish(_made_for(hashing, options))
        manifest = _manifest(source, order, options, reader, writer, hidden)
        manifest.mask = masked.told()
        if watch is not None:
            manifest.guard = {
                "looked_for": list(watch.looks_for),
                "weights": list(watch.weights),
            } | watch.findings.told()
            if watch.weights:
                manifest.versions["onnxruntime"] = version("onnxruntime")
        if order.knobs is not None:
            manifest.versions["torch"] = version("torch")
        if hashing is not None:
            manifest.input |= {"sha256": hashing.result(), "place": place(source.path, part.parent)}
        return manifest


def _made_for(hashing: "Future[str] | None", options: Options) -> dict[str, Any]:
    return made_for(None if hashing is None else hashing.result(), options.start, options.end)


def _searched(
    frames: Iterable[Frame],
    watch: RegionSource,
    tracks: TracksWriter | None,
    exceptions: frozenset[int],
    missing: set[int],
) -> Iterable[Frame]:
    """Frames with regions."""
    found: Iterable[Frame] = watch.follow(frames)
    if tracks is not None:
        found = tracks.watch(found)
    if exceptions:
        found = without(found, exceptions, missing)
    return _counted(found, watch)


def _counted(frames: Iterable[Frame], watch: RegionSource) -> Iterator[Frame]:
    for frame in frames:
        watch.findings.frame_done(frame)
        yield frame


def _pump(
    reader: Reader,
    searched: Callable[[Iterable[Frame]], Iterable[Frame]] | None,
    give_up: Callable[[], None],
    method: Anonymizer,
    writer: Mp4Writer | ImageWriter,
    views: Sequence[PreviewWriter],
    advance: Callable[[], None],
) -> tuple[HiddenFrames, MaskedFrames, ComparedFrames]:
    """Reader, anonymizer and writer, each in a thread of its own, a few frames apart."""
    hidden, masked, compared = HiddenFrames(), MaskedFrames(), ComparedFrames()
    failed: DetectorError | None = None
    depth = _depth(reader)
    frames: Iterable[Frame] = reader
    for view in views:
        frames = _seen(frames, view.remember)
    with ExitStack() as stack:
        raw = stack.enter_context(ahead(frames, depth))
        if searched is not None:
            raw = stack.enter_context(ahead(searched(raw), depth))
        safe: Iterator[SafeFrame] = stack.enter_context(ahead(method.stream(raw), depth))
        stack.callback(reader.stop)  # before anybody waits for its thread,
        stack.callback(give_up)  # or for a detector
        if reader.source.live:
            stack.enter_context(interrupts_as(reader.stop))
        try:
            for frame in safe:
                writer.write(frame)
                for view in views:
                    view.write(frame)
                if frame.hidden is not None:
                    hidden.add(frame.index, frame.hidden)
                elif frame.heat is not None:
                    masked.add(float(frame.heat.kept.mean()))
                compared.add(frame)
                advance()
        except KeyboardInterrupt:
            if not reader.source.live:
                raise
            # a camera has no end but this one
        except DetectorError as error:
            if not reader.source.live or not writer.frames:
                raise
            failed = error  # what was recorded so far is safe, and cannot be recorded again
        if failed is None and reader.stopped and not writer.frames:
            raise KeyboardInterrupt
    if failed is not None:
        reader.report.cut_short = f"was ended: {failed}"
    return hidden, masked, compared


def _seen(frames: Iterable[Frame], by: Callable[[Frame], None]) -> Iterator[Frame]:
    for frame in frames:
        by(frame)
        yield frame


def _depth(reader: Reader) -> int:
    picture = max(1, reader.info.width * reader.info.height * 3 // 2)
    return max(2, min(AHEAD_FRAMES, AHEAD_BYTES // picture))


def _kept_streams(writer: Mp4Writer | ImageWriter) -> list[str]:
    return [] if writer.tracks is None else list(writer.tracks.kept)


def _manifest(
    source: Source,
    order: Order,
    options: Options,
    reader: Reader,
    writer: Mp4Writer | ImageWriter,
    hidden: HiddenFrames,
) -> Manifest:
    info, report, tracks = reader.info, reader.report, writer.tracks
    kept = _kept_streams(writer)
    dropped = list(info.streams)
    for name in kept:
        if name in dropped:
            dropped.remove(name)
    noise = options.audio == "distort"
    keeps_tags = options.metadata == "keep" and source.kind is not Kind.IMAGE
    return Manifest(
        input={
            "name": "stream" if source.kind is Kind.STREAM else source.name,  # a URL tells a place
            "sha256": None,
            "place": None,
            "bytes": None if source.live else source.path.stat().st_size,
            "format": info.format,
            "codec": info.codec,
        },
        output={},
        order=order,
        device=options.device,
        versions=versions(),
        video={
            "width": writer.size[0] if writer.size else 0,
            "height": writer.size[1] if writer.size else 0,
            "padded_to": writer.padded,
            "turned": reader.matrix is not None and options.size == "original",
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
            "tags": sorted((*info.inner_tags, *(() if keeps_tags else info.tags))),
            "unknown_tags": info.unknown_inner_tags + (0 if keeps_tags else info.unknown_tags),
            "streams": dropped,
            "chapters": 0 if keeps_tags and options.start is None and options.end is None else info.chapters,
        },
        kept={
            "tags": list(info.tags) if keeps_tags else [],
            "unknown_tags": info.unknown_tags if keeps_tags else 0,
            "streams": [f"{name}, replaced by noise" if noise and name.startswith("audio") else name for name in kept],
            "reencoded": list(tracks.reencoded) if tracks is not None else [],
        },
        incomplete=report.cut_short,
        warnings=list(report.warnings),
    )
