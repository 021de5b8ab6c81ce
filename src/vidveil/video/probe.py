"""Open a source safely, and describe it before decoding."""

import re
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
from av.container import InputContainer
from av.stream import Disposition, Stream
from av.video.stream import VideoStream

from vidveil.core.errors import InputError
from vidveil.video.packet_tracker import MAX_GAP_S
from vidveil.video.sources import Kind, Source
from vidveil.video.tag_names import CHAPTER, codec_tag, known_and_others

MAX_PIXELS = {Kind.IMAGE: 100_000_000, Kind.VIDEO: 40_000_000, Kind.CAMERA: 40_000_000, Kind.STREAM: 40_000_000}
"""More than 8K, and more than most photographs: a small file must not allocate gigabytes."""
TIMEOUT_S = 10.0

# Demuxers that read a single file. Not among them: playlists and scripts (HLS, concat, DASH), which would open other
# files and hosts, and text rendered as pictures (tty).
FILE_FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,m4v,h264,hevc,av1,obu,ivf,asf,flv,ogg,gif,apng,"
    "mxf,dv,mjpeg,yuv4mpegpipe,rm,nut,vc1,wtv,image2,png_pipe,jpeg_pipe,bmp_pipe,webp_pipe,tiff_pipe,"
    "mp3,wav,aac,flac,aiff,w64,amr"  # sound, so that the error says that it is sound
)
STREAM_FORMATS = FILE_FORMATS + ",rtsp,rtp,sdp,hls,mpjpeg,video4linux2,v4l2,avfoundation"
CLOCKED_FORMATS = frozenset({"mpegts", "mpeg", "rtsp", "rtp", "sdp"})
"""Formats whose clock starts anywhere: their first timestamp is never kept."""
PREROLL_S = Fraction(1, 10)
"""Sound before time 0 that decoders need and players do not play."""

DECLARING_FORMATS = frozenset({"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm", "avi", "flv", "mxf", "asf"})
"""Formats with the duration in the header. For others, FFmpeg estimates it."""
SEEKABLE_FORMATS = frozenset({"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"})

PREVIEW = "vidveil preview: shows what is hidden"
"""The comment in a preview, by which it is never taken as input."""

HDR_TRANSFERS = {16: "PQ", 18: "HLG"}


@dataclass(frozen=True, slots=True)
class Info:
    """The properties of a source by its header. Sizes are as stored: a rotation tag is not applied."""

    format: str
    codec: str
    width: int
    height: int
    rate: Fraction
    time_base: Fraction
    frames: int
    """The number in the header; 0 if there is none."""
    duration: Fraction | None
    """Seconds, from `origin`."""
    declared: Fraction | None
    """`duration`, if it is from the header and not an estimate."""
    origin: Fraction
    """Seconds on the source's clock at which picture or sound begin: players show this as 0."""
    tags: tuple[str, ...]
    """Well-known names of the file's tags, without their values."""
    unknown_tags: int
    """Number of other tags."""
    inner_tags: tuple[str, ...]
    """Well-known names of tags of streams and chapters that the file itself does not have."""
    unknown_inner_tags: int
    streams: tuple[str, ...]
    """Streams other than the picture: `audio aac`, `data gpmd`, `cover mjpeg`."""
    chapters: int

    @property
    def length(self) -> int | None:
        """Expected number of frames."""
        if self.frames:
            return self.frames
        return round(self.duration * self.rate) if self.duration else None


def open_source(source: Source, max_pixels: int | None = None) -> InputContainer:
    """The opened container. InputError with a line that says what to do.

    Pictures of more than `max_pixels` are not decoded, not even the first one, which FFmpeg may probe here.
    """
    try:
        source.location.encode()
        return _open(source, max_pixels or MAX_PIXELS[source.kind])
    except UnicodeEncodeError as error:
        raise InputError("its name is not valid UTF-8: rename it") from error
    except av.error.FFmpegError as error:
        raise InputError(_why_not_opened(source, error)) from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be opened: {error}") from error


def _open(source: Source, max_pixels: int) -> InputContainer:
    options = {"protocol_whitelist": "file", "format_whitelist": FILE_FORMATS, "probesize": "10000000"}
    options["max_pixels"] = ffmpeg_limit(max_pixels)
    file, format_, timeout = source.location, None, None
    if source.live:
        options["protocol_whitelist"] = "tcp,udp,rtp,rtsp,rtsps,rtmp,rtmps,http,https,tls,crypto,srt"
        options["format_whitelist"] = STREAM_FORMATS
        timeout = (TIMEOUT_S, TIMEOUT_S)
    if source.kind is Kind.STREAM and file.startswith("rtsp"):
        options["rtsp_transport"] = "tcp"
    if source.kind is Kind.CAMERA:
        options["protocol_whitelist"] = "file"
        file, format_ = (file, "avfoundation") if sys.platform == "darwin" else (f"/dev/video{int(file)}", "v4l2")
    if not source.live:
        file = f"file:{file}"  # otherwise a colon in a name would mean a protocol
        options["pattern_type"] = "none"  # and %d a numbered series
    return av.open(
        file, "r", format=format_, options=options, metadata_errors="replace", timeout=timeout, buffer_size=1 << 16
    )


def ffmpeg_limit(max_pixels: int) -> str:
    """A limit for FFmpeg, which counts rows padded to 64 pixels. What passes because of that is checked separately."""
    return str(min(max_pixels + 64 * 65_536, 2**31 - 1))


def check_size(source: Source, stream: VideoStream, max_pixels: int) -> None:
    """InputError if the header declares more than `max_pixels`: nothing is decoded."""
    size = stream.width, stream.height
    if not all(size) and not source.live:
        size = _refused_size(source, max_pixels)
    if size[0] * size[1] > max_pixels:
        more = f"{max_pixels / 1e6:g} million" if max_pixels >= 100_000 else f"{max_pixels:,}"
        raise InputError(
            f"shows {size[0]} × {size[1]} pixels, more than {more}: --max-pixels {size[0] * size[1]} allows it"
        )


def _refused_size(source: Source, max_pixels: int) -> tuple[int, int]:
    """Width and height of pictures that FFmpeg refused because of their size, from its log; else 0, 0."""
    before = av.logging.get_level(), av.logging.get_skip_repeated()
    av.logging.set_level(av.logging.ERROR)
    av.logging.set_skip_repeated(False)
    try:
        with av.logging.Capture() as logged:
            open_source(source, max_pixels).close()
    finally:
        av.logging.set_level(before[0])
        av.logging.set_skip_repeated(before[1])
    for _, _, line in logged:
        if found := re.match(r"Picture size (\d+)x(\d+) ", line):
            return int(found[1]), int(found[2])
    return 0, 0


def turned_by_exif(path: Path) -> tuple[int, ...] | None:
    """The display matrix of a picture's EXIF orientation; None if there is none, or it changes nothing."""
    with path.open("rb") as file:
        head = file.read(1 << 18)
    for mark in (b"Exif\0\0", b"eXIf", b"EXIF"):  # JPEG, PNG, WebP
        at = head.find(mark)
        tiff = head[at + len(mark) :] if at >= 0 else b""
        tiff = tiff[6:] if tiff.startswith(b"Exif\0\0") else tiff
        order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
        if order is None:
            continue
        with suppress(struct.error):
            (directory,) = struct.unpack_from(order + "I", tiff, 4)
            (entries,) = struct.unpack_from(order + "H", tiff, directory)
            for i in range(entries):
                tag, _, _, value = struct.unpack_from(order + "HHIH", tiff, directory + 2 + 12 * i)
                if tag == 0x0112:
                    return _orientation(value)
    return None


def _orientation(value: int) -> tuple[int, ...] | None:
    one = 1 << 16  # rows of (a, b, c, d): x' = a·x + c·y, y' = b·x + d·y
    turns = {
        2: (-one, 0, 0, one),
        3: (-one, 0, 0, -one),
        4: (one, 0, 0, -one),
        5: (0, one, one, 0),
        6: (0, one, -one, 0),
        7: (0, -one, -one, 0),
        8: (0, -one, one, 0),
    }
    if value not in turns:
        return None
    a, b, c, d = turns[value]
    return (a, b, 0, c, d, 0, 0, 0, 1 << 30)


def _why_not_opened(source: Source, error: av.error.FFmpegError) -> str:
    if source.kind is Kind.CAMERA:
        return f"no such camera ({_reason(error)})"
    if source.kind is Kind.STREAM:
        return f"cannot be reached ({_reason(error)})"
    if source.path.stat().st_size == 0:
        return "is empty"
    if isinstance(error, (av.error.InvalidDataError, av.error.ArgumentError, av.error.EOFError)):
        return "is not a video or image that can be read, or its beginning or index is damaged"
    return f"cannot be opened ({_reason(error)})"


def _reason(error: av.error.FFmpegError) -> str:
    return (error.strerror or type(error).__name__).lower()


def picture_stream(container: InputContainer) -> VideoStream:
    """The first video stream that is not a cover picture or a thumbnail."""
    still = Disposition.attached_pic | Disposition.timed_thumbnails
    for stream in container.streams.video:
        if not stream.disposition & still:
            if stream.codec_context is None:
                raise InputError("its video codec is not known to this build of FFmpeg")
            return stream
    raise InputError("holds sound but no video" if container.streams.audio else "holds no video")


def describe(container: InputContainer, stream: VideoStream) -> Info:
    if container.metadata.get("comment") == PREVIEW:
        raise InputError("is a preview that vidveil made, with originals in it: it is never taken as input")
    rate = next((r for r in (stream.average_rate, stream.guessed_rate) if r and 0 < r <= 1000), Fraction(25))
    time_base = stream.time_base or Fraction(1, 90_000)
    origin = _origin(container, stream)
    duration = Fraction(container.duration, 1_000_000) if container.duration and container.duration > 0 else None
    tags, unknown_tags = known_and_others(_tags(container))
    inner_tags, unknown_inner_tags = known_and_others(_inner_tags(container))
    if duration is not None and "matroska" in container.format.name and duration > origin:
        duration -= origin  # its header says when the last stream ends; others say how long the streams are
    return Info(
        format=container.format.name,
        codec=stream.codec_context.name,
        width=stream.width,
        height=stream.height,
        rate=rate,
        time_base=time_base,
        frames=stream.frames,
        duration=duration,
        declared=duration if container.format.name in DECLARING_FORMATS else None,
        origin=origin,
        tags=tags,
        unknown_tags=unknown_tags,
        inner_tags=inner_tags,
        unknown_inner_tags=unknown_inner_tags,
        streams=tuple(_stream_name(s) for s in container.streams if s is not stream),
        chapters=len(container.chapters()),
    )


def _origin(container: InputContainer, picture: VideoStream) -> Fraction:
    """Seconds at which the picture begins or, if that is earlier, the sound.

    Sound that begins hours before the picture is on another clock. Sound just before 0 is preroll of its decoder.
    """
    first = _start(picture)
    earliest = first
    for stream in container.streams.audio:
        start = _start(stream)
        if start is not None and -PREROLL_S <= start < 0:
            start = Fraction(0)
        if start is not None and (first is None or start >= first - MAX_GAP_S):
            earliest = start if earliest is None else min(earliest, start)
    return earliest or Fraction(0)


def _start(stream: Stream) -> Fraction | None:
    if stream.start_time is None or stream.time_base is None:
        return None
    return Fraction(stream.start_time * stream.time_base)


def reach(source: Source) -> Fraction:
    """Seconds at which the last packet of any stream ends."""
    end = Fraction(0)
    with open_source(source) as container:
        packets = container.demux()
        with suppress(av.error.FFmpegError, IndexError):
            for packet in packets:
                if packet.pts is not None:
                    end = max(end, (packet.pts + (packet.duration or 0)) * packet.time_base)
    return end


OF_THE_FORMAT = frozenset({"major_brand", "minor_version", "compatible_brands"})


def _tags(container: InputContainer) -> set[str]:
    return container.metadata.keys() - OF_THE_FORMAT


def _inner_tags(container: InputContainer) -> set[str]:
    names: set[str] = set()
    for stream in container.streams:
        names |= {name for name, value in stream.metadata.items() if (name, value) != ("language", "und")}
    for chapter in container.chapters():
        names |= {CHAPTER + name for name in chapter["metadata"]}
    return names - container.metadata.keys() - OF_THE_FORMAT


def _stream_name(stream: Stream) -> str:
    kind: str = stream.type
    if stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails):
        kind = "cover"
    tag = stream.codec_context.name if stream.codec_context else _codec_tag(stream)
    return f"{kind} {tag}".strip()


def _codec_tag(stream: Stream) -> str:
    try:
        return codec_tag(stream.codec_tag.strip("\0 "))
    except (AttributeError, UnicodeDecodeError):
        return ""
