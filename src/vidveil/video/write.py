"""Write safe frames into a file: MP4 with H.264, or a picture.

Timestamps, rotation, pixel shape and colour tags are always carried over from the source, sound and tags only on
request. The file is written under a temporary name, which the caller renames.
"""

from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path

import av
import cv2
import numpy as np
from av.codec.context import Flags
from av.container import OutputContainer
from av.video.stream import VideoStream

from vidveil.core.errors import OutputError
from vidveil.core.frame import FULL_RANGE, SafeFrame
from vidveil.core.rotation import turn
from vidveil.core.yuv import yuv
from vidveil.video.audio import SideTracks
from vidveil.video.probe import OF_THE_FORMAT, open_source
from vidveil.video.read import Reader
from vidveil.video.x264 import CRF, PRESET

MAX_SIDE = 16_384
MAX_RATIO = 4096  # of the numerator and denominator of a pixel shape: FFmpeg rounds larger ones for H.264


class Mp4Writer:
    """H.264 in MP4, index in front. The header is written with the first frame, when size and rotation are known.

    `redrawn` says that frames are upright and have another size than the source: pixels get the shape with which
    players show the source's aspect ratio, the source's rotation is not carried over, and colours are stored in full
    resolution (4:4:4), since pictures that were drawn pixel by pixel would lose most of theirs in 4:2:0.
    """

    def __init__(
        self,
        path: Path,
        reader: Reader,
        *,
        audio: str = "drop",
        metadata: str = "drop",
        preset: str = PRESET,
        crf: int = CRF,
        redrawn: bool = False,
        comment: str | None = None,
    ) -> None:
        self._path, self._reader, self._redrawn, self._comment = path, reader, redrawn, comment
        self._audio, self._metadata = audio, metadata
        self._preset, self._crf = preset, crf
        self._output: OutputContainer | None = None
        self._stream: VideoStream | None = None
        self.tracks: SideTracks | None = None
        self.size: tuple[int, int] | None = None
        """Width and height of what is written, before padding."""
        self.padded: tuple[int, int] | None = None
        self.frames = 0

    def write(self, frame: SafeFrame) -> None:
        if not isinstance(frame, SafeFrame):
            raise TypeError("only what an anonymizer made may be written")  # raw frames are refused here
        if self._output is None:
            self._begin(frame)
        assert self._output is not None
        assert self._stream is not None
        assert frame.picture is not None
        time_base = self._reader.info.time_base
        if self.tracks is not None:
            self.tracks.mux_until(frame.pts * time_base)
        picture = full_colour(frame, self._reader) if self._redrawn else frame.picture
        for name, value in self._reader.colours.items():  # a black frame has none
            setattr(picture, name, value)
        picture.pts, picture.time_base, picture.duration = frame.pts, time_base, frame.duration
        self._output.mux(self._stream.encode(picture))
        self.frames += 1

    def finish(self) -> None:
        if self._output is None or self._stream is None:
            return
        self._output.mux(self._stream.encode(None))
        if self.tracks is not None:
            self.tracks.finish()
            self.tracks.close()
        self._output.close()
        self._output = None

    def abort(self) -> None:
        """Close the file in any state."""
        output, self._output = self._output, None
        if self.tracks is not None:
            self.tracks.close()
        if output is not None:
            with suppress(av.error.FFmpegError, OSError, ValueError):  # the file is discarded
                output.close()

    def _begin(self, frame: SafeFrame) -> None:
        assert frame.picture is not None
        info, like = self._reader.info, frame.picture
        flags = "+faststart+use_metadata_tags" if self._metadata == "keep" else "+faststart"
        options = {
            "movflags": flags,
            "fflags": "+bitexact",  # no tag with the muxer's name, no date
            "movie_timescale": str(_timescale(info.time_base)),  # so that a late start is exact
        }
        try:
            av.codec.Codec("libx264", "w")
        except ValueError as error:
            raise OutputError("this build of PyAV has no H.264 encoder: pip install --force-reinstall av") from error
        if max(like.width, like.height) > MAX_SIDE:
            raise OutputError(f"{like.width} × {like.height} pixels are more than H.264 can hold")
        self._output = output = av.open(f"file:{self._path}", "w", format="mp4", options=options)
        rate = info.rate if info.rate <= 240 else Fraction(25)
        stream = output.add_stream(
            "libx264", rate=rate, options={"preset": self._preset, "crf": str(self._crf), "bf": "2"} | _steady()
        )
        stream.width, stream.height, stream.pix_fmt = like.width, like.height, "yuv444p" if self._redrawn else "yuv420p"
        stream.time_base = info.time_base
        context = stream.codec_context
        context.time_base = info.time_base
        context.flags |= Flags.frame_duration
        context.thread_type = "FRAME"  # PyAV's default makes x264 cut pictures into slices: slower, and larger files
        for name, value in self._reader.colours.items():
            setattr(context, name, value)
        ratio, matrix = self._reader.pixel_shape, self._reader.matrix
        if self._redrawn:
            ratio, matrix = pixel_shape(self._reader, frame.width, frame.height), None
        if ratio is not None:
            context.sample_aspect_ratio = ratio
        if matrix is not None:
            stream.set_display_matrix(matrix)
        self.size = (frame.width, frame.height)
        if (like.width, like.height) != (frame.width, frame.height):
            self.padded = (like.width, like.height)
        self._stream = stream
        if self._comment is not None:
            output.metadata["comment"] = self._comment
        if self._audio != "drop" or self._metadata == "keep":
            self._carry_over(output)
        output.start_encoding()

    def _carry_over(self, output: OutputContainer) -> None:
        reader = self._reader
        origin = reader.info.origin
        self.tracks = SideTracks(
            reader.source,
            output,
            audio=self._audio,
            everything=self._metadata == "keep",
            origin=origin,
            shift=reader.shift,
            begin=None if reader.start is None else reader.start + origin,
            end=None if reader.end is None else reader.end + origin,
        )
        if not self.tracks.kept:
            self.tracks.close()
            self.tracks = None
        if self._metadata == "keep":
            with open_source(reader.source) as container:
                output.metadata.update({k: v for k, v in container.metadata.items() if k not in OF_THE_FORMAT})
                if reader.start is None and reader.end is None:
                    output.set_chapters(container.chapters())


@cache
def _steady() -> dict[str, str]:
    """Options that make x264 deterministic.

    Its AVX-512 code for macroblock trees reads past the ends of its rows, so that the size of the first frame depends
    on uninitialised memory. Its AVX2 code does not, and was as fast in our measurements.
    """
    cpu = Path("/proc/cpuinfo")
    return {"x264-params": "asm=avx2"} if cpu.exists() and "avx512" in cpu.read_text() else {}


def _timescale(time_base: Fraction) -> int:
    """The timescale that the MP4 muxer will choose for the track."""
    scale = time_base.denominator
    while scale < 10_000:
        scale *= 2
    return min(scale, 2**31 - 1)


class ImageWriter:
    """One upright picture without tags: JPEG or PNG by the suffix of the output.

    `redrawn` says that it is upright already, and that colours are stored in full resolution.
    """

    def __init__(self, path: Path, reader: Reader, suffix: str, *, redrawn: bool = False) -> None:
        self._path, self._reader, self._suffix, self._redrawn = path, reader, suffix, redrawn
        self.frames = 0
        self.size: tuple[int, int] | None = None
        self.padded: tuple[int, int] | None = None
        self.tracks: SideTracks | None = None

    def write(self, frame: SafeFrame) -> None:
        if not isinstance(frame, SafeFrame):
            raise TypeError("only what an anonymizer made may be written")
        if self.frames:
            return  # an animation: only its first picture is kept
        placed = turn(frame.width, frame.height, None if self._redrawn else self._reader.matrix)
        picture = placed.upright(frame.rgb())[..., ::-1]
        quality = [cv2.IMWRITE_JPEG_QUALITY, 92] if self._suffix == ".jpg" else []
        if quality and self._redrawn:
            quality += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
        done, data = cv2.imencode(self._suffix, np.ascontiguousarray(picture), quality)
        if not done:
            raise OutputError("the picture could not be encoded")
        self._path.write_bytes(data.tobytes())
        self.size = (frame.width, frame.height)
        self.frames += 1

    def finish(self) -> None:
        pass

    def abort(self) -> None:
        pass


def full_colour(frame: SafeFrame, reader: Reader) -> av.VideoFrame:
    """The frame's pixels in YUV 4:4:4, as the colour tags of the output will say."""
    pixels = frame.rgb().astype(np.float32) / np.float32(255)
    full_range = reader.colours["color_range"] == FULL_RANGE
    planes = yuv(pixels, reader.colours["colorspace"], full_range=full_range)  # (3, H, W)
    return av.VideoFrame.from_ndarray(np.clip(np.rint(planes), 0, 255).astype(np.uint8), "yuv444p")


def pixel_shape(reader: Reader, width: int, height: int) -> Fraction | None:
    """Width over height of the pixels of an upright picture, so that it is shown in the source's shape; None for 1."""
    assert reader.size is not None
    placed = turn(*reader.size, reader.matrix)
    filmed = reader.pixel_shape or Fraction(1)
    filmed = 1 / filmed if placed.quarters % 2 else filmed
    shape = filmed * Fraction(*placed.size) * Fraction(height, width)
    longer = shape > 1
    near = max((1 / shape if longer else shape).limit_denominator(MAX_RATIO), Fraction(1, MAX_RATIO))
    return None if near == 1 else 1 / near if longer else near
