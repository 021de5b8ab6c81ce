"""Safe frames into a file: MP4 with H.264, or a picture.

Nothing is carried over from the source but what is asked for: timestamps, rotation, shape of pixels and colours always,
sound and tags if the user wants them. The file grows under a temporary name; whoever made the writer renames it.
"""

from collections.abc import Sequence
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

from vidveil.errors import OutputError
from vidveil.guard.view import quarter_turns
from vidveil.video.audio import SideTracks
from vidveil.video.frame import SafeFrame
from vidveil.video.probe import OF_THE_FORMAT, open_source
from vidveil.video.read import Reader

PRESETS = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
MAX_SIDE = 16_384
PRESET, CRF = "veryfast", 20


class Mp4Writer:
    """H.264 in MP4, index in front. The header is written with the first frame, when size and rotation are known."""

    def __init__(
        self,
        path: Path,
        reader: Reader,
        *,
        audio: str = "drop",
        metadata: str = "drop",
        preset: str = PRESET,
        crf: int = CRF,
    ) -> None:
        self._path, self._reader = path, reader
        self._audio, self._metadata = audio, metadata
        self._preset, self._crf = preset, crf
        self._output: OutputContainer | None = None
        self._stream: VideoStream | None = None
        self.tracks: SideTracks | None = None
        self.padded: tuple[int, int] | None = None
        self.frames = 0

    def write(self, frame: SafeFrame) -> None:
        if not isinstance(frame, SafeFrame):
            raise TypeError("only what an anonymizer made may be written")  # raw frames end here
        if self._output is None:
            self._begin(frame)
        assert self._output is not None
        assert self._stream is not None
        assert frame.picture is not None
        time_base = self._reader.info.time_base
        if self.tracks is not None:
            self.tracks.mux_until(frame.pts * time_base)
        picture = frame.picture
        for name, value in self._reader.colours.items():  # a black frame has none of its own
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
        """Let go of the file, whatever state it is in."""
        output, self._output = self._output, None
        if self.tracks is not None:
            self.tracks.close()
        if output is not None:
            with suppress(av.error.FFmpegError, OSError, ValueError):  # it is thrown away
                output.close()

    def _begin(self, frame: SafeFrame) -> None:
        assert frame.picture is not None
        info, like = self._reader.info, frame.picture
        flags = "+faststart+use_metadata_tags" if self._metadata == "keep" else "+faststart"
        options = {
            "movflags": flags,
            "fflags": "+bitexact",  # no tag with the muxer's name, no clock
            "movie_timescale": str(_timescale(info.time_base)),  # so that a late start is exact, too
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
        stream.width, stream.height, stream.pix_fmt = like.width, like.height, "yuv420p"
        stream.time_base = info.time_base
        context = stream.codec_context
        context.time_base = info.time_base
        context.flags |= Flags.frame_duration
        context.thread_type = "FRAME"  # PyAV's default makes x264 cut pictures into slices: slower, and larger files
        for name, value in self._reader.colours.items():
            setattr(context, name, value)
        ratio = self._reader.pixel_shape
        if ratio is not None:
            context.sample_aspect_ratio = ratio
        if self._reader.matrix is not None:
            stream.set_display_matrix(self._reader.matrix)
        if (like.width, like.height) != (frame.width, frame.height):
            self.padded = (like.width, like.height)
        self._stream = stream
        if self._audio != "drop" or self._metadata == "keep":
            self._carry_over(output)
        output.start_encoding()

    def _carry_over(self, output: OutputContainer) -> None:
        reader = self._reader
        end = None if reader.end is None else reader.end + reader.info.origin
        self.tracks = SideTracks(
            reader.source,
            output,
            audio=self._audio,
            everything=self._metadata == "keep",
            shift=reader.shift,
            end=end,
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
    """Options without which x264 gives different files for the same pictures now and then.

    Its AVX-512 code for macroblock trees reads past the ends of its rows, so that the size of the first frame depends
    on what lay in memory. Its AVX2 code does not, and was as fast in our measurements.
    """
    cpu = Path("/proc/cpuinfo")
    return {"x264-params": "asm=avx2"} if cpu.exists() and "avx512" in cpu.read_text() else {}


def _timescale(time_base: Fraction) -> int:
    """The one that the MP4 muxer will choose for the track."""
    scale = time_base.denominator
    while scale < 10_000:
        scale *= 2
    return min(scale, 2**31 - 1)


class ImageWriter:
    """One picture, upright, without any tag: JPEG or PNG by the suffix that the output will have."""

    def __init__(self, path: Path, reader: Reader, suffix: str) -> None:
        self._path, self._reader, self._suffix = path, reader, suffix
        self.frames = 0
        self.padded: tuple[int, int] | None = None
        self.tracks: SideTracks | None = None

    def write(self, frame: SafeFrame) -> None:
        if not isinstance(frame, SafeFrame):
            raise TypeError("only what an anonymizer made may be written")
        if self.frames:
            return  # an animation that calls itself a picture: its first
        picture = upright(frame.rgb(), self._reader.matrix)[..., ::-1]
        quality = [cv2.IMWRITE_JPEG_QUALITY, 92] if self._suffix == ".jpg" else []
        done, data = cv2.imencode(self._suffix, np.ascontiguousarray(picture), quality)
        if not done:
            raise OutputError("the picture could not be encoded")
        self._path.write_bytes(data.tobytes())
        self.frames += 1

    def finish(self) -> None:
        pass

    def abort(self) -> None:
        pass


def upright(picture: np.ndarray, matrix: Sequence[int] | None) -> np.ndarray:
    """The picture as a display matrix asks for it to be shown, to the nearest quarter turn."""
    mirrored, quarters = quarter_turns(matrix)
    return np.rot90(picture[:, ::-1] if mirrored else picture, -quarters)
