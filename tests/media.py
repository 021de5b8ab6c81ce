"""Media made for tests: every odd property that real files have, on demand.

Picture i is a flat grey of `level(i)` under a checkerboard of single pixels. The grey survives every whole-frame method
and shows which picture one looks at; the checkerboard must not survive any.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

DETAIL = 40


def level(i: int) -> int:
    return 60 + 6 * (i % 24)


def picture(i: int, width: int, height: int) -> NDArray[np.uint8]:
    """(H, W, 3)"""
    y, x = np.mgrid[:height, :width]
    return np.repeat((level(i) + DETAIL * ((x + y) % 2 * 2 - 1)).astype(np.uint8)[..., None], 3, 2)


@dataclass(kw_only=True)
class Film:
    """What to make. `pts` in ticks of `time_base` fixes each frame's time; otherwise `rate` does."""

    frames: int = 20
    width: int = 64
    height: int = 48
    rate: Fraction | int = 25
    pts: Sequence[int] | None = None
    time_base: Fraction | None = None
    codec: str = "libx264"
    pix_fmt: str = "yuv420p"
    format: str | None = None
    rotation: int = 0
    sound: str | None = None
    sound_first: bool = False
    sound_offset: float = 0.0
    tags: dict[str, str] | None = None
    chapters: int = 0
    gps: bool = False
    subtitles: bool = False
    interlaced: bool = False
    bframes: int | None = None
    gop: int | None = None
    color: dict[str, int] | None = None
    ratio: Fraction | None = None
    options: dict[str, str] | None = None

    def make(self, path: Path) -> Path:
        with av.open(str(path), "w", format=self.format, options=self.options or {}) as output:
            output.metadata.update(self.tags or {})
            if self.chapters:
                output.set_chapters([_chapter(i) for i in range(self.chapters)])
            video = self._video_stream(output)
            audio = output.add_stream(self.sound, rate=48_000, layout="mono") if self.sound else None
            if audio is not None and self.sound == "wmav2":
                audio.bit_rate = 64_000
            data = output.add_data_stream("bin_data") if self.gps else None
            text = output.add_mux_stream("mov_text") if self.subtitles else None
            if text is not None:
                text.time_base = Fraction(1, 1000)
            if audio is not None and self.sound_first:
                self._write_sound(output, audio)
            self._write_pictures(output, video)
            if audio is not None and not self.sound_first:
                self._write_sound(output, audio)
            for stream, payload in ((data, b"GPS 48.8584 2.2945"), (text, b"\x00\x06secret")):
                if stream is not None:
                    packet = av.Packet(payload)
                    packet.stream, packet.pts, packet.dts, packet.duration = stream, 0, 0, 100
                    packet.time_base = stream.time_base or Fraction(1, 1000)
                    output.mux(packet)
        return path

    def _video_stream(self, output: av.container.OutputContainer) -> av.VideoStream:
        options = {"preset": "veryfast", "crf": "10", "bf": "2"} if self.codec == "libx264" else {}
        if self.bframes is not None:
            options["bf"] = str(self.bframes)
        if self.gop is not None:
            options["g"] = str(self.gop)
        if self.interlaced:
            options["x264-params"] = "tff=1"
        if self.codec == "libx265":
            options["x265-params"] = "log-level=none"
        if self.codec in ("mpeg4", "mpeg2video", "mjpeg"):
            options |= {"qmin": "1", "qmax": "2", "b": "20M"}
        video = output.add_stream(self.codec, rate=self.rate, options=options)
        video.width, video.height, video.pix_fmt = self.width, self.height, self.pix_fmt
        if self.time_base is not None:
            video.time_base = video.codec_context.time_base = self.time_base
        if self.rotation:
            video.set_display_rotation(self.rotation)
        if self.ratio is not None:
            video.codec_context.sample_aspect_ratio = self.ratio
        for name, value in (self.color or {}).items():
            setattr(video.codec_context, name, value)
        if self.interlaced:
            video.codec_context.flags |= av.codec.context.Flags.interlaced_dct
        return video

    def _write_pictures(self, output: av.container.OutputContainer, video: av.VideoStream) -> None:
        count = len(self.pts) if self.pts is not None else self.frames
        for i in range(count):
            frame = av.VideoFrame.from_ndarray(picture(i, self.width, self.height), "rgb24")
            frame = frame.reformat(format=self.pix_fmt, dst_colorspace="ITU709")
            if self.pts is not None:
                assert self.time_base is not None
                frame.pts, frame.time_base = self.pts[i], self.time_base
            else:
                frame.pts, frame.time_base = i, 1 / Fraction(self.rate)
            output.mux(video.encode(frame))
        output.mux(video.encode(None))

    def _write_sound(self, output: av.container.OutputContainer, audio: av.AudioStream) -> None:
        samples = int(48_000 * max(self.frames / self.rate, 0.2))
        wave = 0.3 * np.sin(2 * np.pi * 440 * np.arange(samples) / 48_000)
        frame = av.AudioFrame.from_ndarray(wave.astype(np.float32)[None], "fltp", "mono")
        frame.sample_rate = 48_000
        resampler = av.AudioResampler(audio.format.name, "mono", 48_000, audio.codec_context.frame_size or 1024)
        written = int(48_000 * self.sound_offset)
        for piece in (*resampler.resample(frame), *resampler.resample(None)):
            piece.pts, piece.time_base = written, Fraction(1, 48_000)
            written += piece.samples
            output.mux(audio.encode(piece))
        output.mux(audio.encode(None))


def _chapter(i: int) -> dict[str, object]:
    span = {"start": 100 * i, "end": 100 * i + 100, "time_base": Fraction(1, 1000)}
    return {"id": i, **span, "metadata": {"title": f"secret {i}"}}


def times(path: Path) -> list[Fraction]:
    """When each frame of a file is shown, in exact seconds."""
    with av.open(str(path)) as container:
        return [frame.pts * frame.time_base for frame in container.decode(video=0)]  # type: ignore[operator]


def lumas(path: Path) -> NDArray[np.uint8]:
    """(T, H, W): the luma planes of a file, as stored."""
    with av.open(str(path)) as container:
        planes = [(frame.planes[0], frame.width, frame.height) for frame in container.decode(video=0)]
        return np.stack([np.frombuffer(p, np.uint8).reshape(-1, p.line_size)[:h, :w] for p, w, h in planes])


def detail(luma: NDArray[np.uint8]) -> NDArray[np.float64]:
    """How much of the checkerboard each picture shows: 2 × DETAIL when raw, near 0 when anonymized."""
    inner = luma[..., 2:-2, 2:-2].astype(np.int16)
    return np.abs(np.diff(inner, axis=-1)).mean((-1, -2))


def packets(path: Path, kind: str = "audio") -> list[tuple[Fraction, bytes]]:
    """Time and payload of each packet of the first stream of a kind."""
    with av.open(str(path)) as container:
        stream = next(s for s in container.streams if s.type == kind)
        return [(p.pts * p.time_base, bytes(p)) for p in container.demux(stream) if p.size]  # type: ignore[operator]
