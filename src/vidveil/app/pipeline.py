"""From a source to a whole file: reader, anonymizer and writer, each in a thread, and a manifest of what they did."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from threading import Event
from typing import Any

from vidveil.app.cautions import Writer, warnings_of
from vidveil.app.frame_counts import FrameCounts
from vidveil.app.interrupts import interrupts_as
from vidveil.app.manifest import Manifest, Order, place, versions
from vidveil.app.naming import output_suffix
from vidveil.app.options import Options
from vidveil.app.preview import HeatmapWriter, PreviewWriter
from vidveil.app.task import Task
from vidveil.core.errors import DetectorError, InputError
from vidveil.core.file_hash import file_hash
from vidveil.core.frame import Frame, SafeFrame
from vidveil.detect.settings import RegionSource
from vidveil.detect.tracks_file import RecordedTracks, TracksWriter, made_for, without
from vidveil.video.buffered import ahead
from vidveil.video.read import Reader
from vidveil.video.sources import Kind, Source
from vidveil.video.write import ImageWriter, Mp4Writer

AHEAD_BYTES = 64 << 20  # of pictures between two stages, and
AHEAD_FRAMES = 12  # no more than this many


@dataclass(frozen=True, slots=True)
class Parts:
    """The temporary names under which files are written; None for those that were not asked for."""

    output: Path
    preview: Path | None = None
    heatmap: Path | None = None
    tracks: Path | None = None


def process(
    source: Source,
    parts: Parts,
    order: Order,
    task: Task,
    begin: Callable[[int | None], None],
    advance: Callable[[], None],
) -> Manifest:
    """Everything between opening the source and a whole file under a temporary name."""
    options, method, regions = task.options, task.method, task.region_source
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
        if isinstance(regions, RecordedTracks):
            regions.check(_made_for(hashing, options))
            regions.refuse_missing(options.detection.leave_visible)
        writer = _writer(source, parts.output, reader, options)
        stack.callback(writer.abort)
        views: list[PreviewWriter] = []
        for make, part in (PreviewWriter, parts.preview), (HeatmapWriter, parts.heatmap):
            if part is not None:
                views.append(make(part, reader, method.keeps, preset=options.preset, crf=options.crf))
                stack.callback(views[-1].abort)
        tracks = None
        if parts.tracks is not None:
            tracks = TracksWriter(parts.tracks)
            stack.callback(tracks.abort)
        begin(None if options.start or options.end else reader.info.length)
        missing = set(options.detection.leave_visible)
        searched = None
        if regions is not None:
            searched = _Searched(regions, tracks, frozenset(missing), missing)
        counts = _pump(reader, searched, task, writer, views, advance)
        if not writer.frames:
            raise InputError("no frame lies between start and end" if reader.report.frames == 0 else "no frame is left")
        for warning in warnings_of(task, source, reader, writer, counts):
            reader.report.warn(warning)
        for number in sorted(missing):
            reader.report.warn(f"--leave-visible {number}: there is no such track")
        writer.finish()
        for view in views:
            view.finish()
        if tracks is not None:
            tracks.finish(_made_for(hashing, options))
        manifest = _manifest(source, order, options, reader, writer, counts)
        if regions is not None:
            found = {"looked_for": list(regions.looks_for), "weights": list(regions.weights)}
            manifest.detection = found | regions.findings.as_dict()
            if regions.weights:
                manifest.versions["onnxruntime"] = version("onnxruntime")
        if order.knobs is not None:
            manifest.versions["torch"] = version("torch")
        if hashing is not None:
            manifest.input |= {"sha256": hashing.result(), "place": place(source.path, parts.output.parent)}
        return manifest


def _made_for(hashing: "Future[str] | None", options: Options) -> dict[str, Any]:
    return made_for(None if hashing is None else hashing.result(), options.start, options.end)


def _writer(source: Source, part: Path, reader: Reader, options: Options) -> Writer:
    redrawn = options.size == "network"
    if source.kind is Kind.IMAGE:
        return ImageWriter(part, reader, output_suffix(source), redrawn=redrawn)
    return Mp4Writer(
        part,
        reader,
        audio=options.audio,
        metadata=options.metadata,
        preset=options.preset,
        crf=options.crf,
        redrawn=redrawn,
    )


@dataclass(frozen=True, slots=True)
class _Searched:
    """Frames → the same frames with their regions."""

    regions: RegionSource
    tracks: TracksWriter | None
    visible: frozenset[int]
    """Tracks that are not hidden."""
    missing: set[int]
    """Those of them that have not been met."""

    def __call__(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        found: Iterable[Frame] = self.regions.follow(frames)  # at once: what is stopped later is this stream
        if self.tracks is not None:
            found = self.tracks.record(found)
        if self.visible:
            found = without(found, self.visible, self.missing)
        return self._counted(found)

    def _counted(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        for frame in frames:
            self.regions.findings.frame_done(frame)
            yield frame


def _pump(
    reader: Reader,
    searched: _Searched | None,
    task: Task,
    writer: Writer,
    views: Sequence[PreviewWriter],
    advance: Callable[[], None],
) -> FrameCounts:
    """Reader, anonymizer and writer, each in a thread of its own, a few frames apart."""
    counts = FrameCounts()
    failed: DetectorError | None = None
    depth = _depth(reader)
    frames: Iterable[Frame] = reader
    for view in views:
        frames = _remembered(frames, view)
    with ExitStack() as stack:
        raw = stack.enter_context(ahead(frames, depth))
        if searched is not None:
            raw = stack.enter_context(ahead(searched(raw), depth))
        safe: Iterator[SafeFrame] = stack.enter_context(ahead(task.method.stream(raw), depth))
        stack.callback(reader.stop)  # before anybody waits for its thread,
        if searched is not None:
            stack.callback(searched.regions.stop)  # or for a detector
        if reader.source.live:
            stack.enter_context(interrupts_as(reader.stop))
        try:
            for frame in safe:
                writer.write(frame)
                for view in views:
                    view.write(frame)
                counts.add(frame)
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
    return counts


def _remembered(frames: Iterable[Frame], view: PreviewWriter) -> Iterator[Frame]:
    for frame in frames:
        view.remember(frame)
        yield frame


def _depth(reader: Reader) -> int:
    picture = max(1, reader.info.width * reader.info.height * 3 // 2)
    return max(2, min(AHEAD_FRAMES, AHEAD_BYTES // picture))


def _manifest(
    source: Source,
    order: Order,
    options: Options,
    reader: Reader,
    writer: Writer,
    counts: FrameCounts,
) -> Manifest:
    info, report, tracks = reader.info, reader.report, writer.tracks
    kept = [] if tracks is None else list(tracks.kept)
    dropped = list(info.streams)
    for name in kept:
        if name in dropped:
            dropped.remove(name)
    noise = options.audio == "distort"
    keeps_tags = options.metadata == "keep" and source.kind is not Kind.IMAGE
    return Manifest(
        input={
            "name": "stream" if source.kind is Kind.STREAM else source.name,  # a URL names a place
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
            "hidden": counts.hidden,
            "times_corrected": report.corrected_times,
            "resized": report.resized,
            "deinterlaced": report.deinterlaced,
        },
        hidden=counts.hidden_runs,
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
        mask=counts.mask,
        incomplete=report.cut_short,
        warnings=list(report.warnings),
    )
