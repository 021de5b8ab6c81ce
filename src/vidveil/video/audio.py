"""Sound beside the picture: copied packet by packet, re-encoded where MP4 cannot carry it, or made unrecognisable.

The sound, and whatever else is kept beside the picture, is read by a demuxer of its own, as far as the picture has
been written. So neither waits for the other, however the source interleaves them, and memory does not grow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import cast

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.packet import Packet
from av.stream import Discard, Stream
from numpy.typing import NDArray

from vidveil.errors import InputError
from vidveil.video.probe import open_source
from vidveil.video.sources import Source

Samples = NDArray[np.float32]

MP4_AUDIO = frozenset({"aac", "mp3", "mp2", "ac3", "eac3", "alac", "opus", "flac", "dts"})
"""Codecs whose packets are copied as they are."""
PREROLL_S = 0.1  # what decoders of sound need from before the first moment, and players do not play
MP4_OTHERS = frozenset({"mov_text", "gpmd"})


@dataclass(slots=True)
class _Track:
    source: Stream
    target: Stream
    treat: "_Encoder | None"
    """None: packets are copied."""


class SideTracks:
    """Sound (and with `everything` subtitles and data that MP4 can carry) on the way from the source to the output."""

    def __init__(
        self,
        source: Source,
        output: OutputContainer,
        *,
        audio: str,
        everything: bool,
        shift: Fraction,
        end: Fraction | None,
    ) -> None:
        self._container = open_source(source)
        self._output = output
        self._shift = shift
        self._end = end
        self.kept: list[str] = []
        self.reencoded: list[str] = []
        self._tracks: dict[int, _Track] = {}
        for stream in self._container.streams:
            if isinstance(stream, AudioStream):
                if audio != "drop":
                    self._add_audio(stream, distort=audio == "distort")
            elif everything and stream.type in ("subtitle", "data") and _name(stream) in MP4_OTHERS:
                self._tracks[stream.index] = _Track(stream, output.add_stream_from_template(stream), None)
                self.kept.append(f"{stream.type} {_name(stream)}")
        for stream in self._container.streams:
            if stream.index not in self._tracks:
                stream.discard = Discard.all  # the picture is read by somebody else
        self._packets = self._read()
        self._next: Packet[Stream] | None = None

    def _add_audio(self, stream: AudioStream, *, distort: bool) -> None:
        name = _name(stream)
        if stream.codec_context is None:
            raise InputError("its sound has a codec that is not known to this build of FFmpeg; use --audio drop")
        if name in MP4_AUDIO and not distort:
            self._tracks[stream.index] = _Track(stream, self._output.add_stream_from_template(stream), None)
        else:
            encoder = _Encoder(stream, self._output, Vocoder(_Encoder.rate_of(stream)) if distort else None)
            self._tracks[stream.index] = _Track(stream, encoder.stream, encoder)
            self.reencoded.append(f"{name} to aac")
        self.kept.append(f"audio {name}")

    def close(self) -> None:
        self._container.close()

    def mux_until(self, seconds: Fraction | None) -> None:
        """Write everything before this time (None: everything that is left)."""
        while True:
            packet = self._next or next(self._packets, None)
            self._next = None
            if packet is None:
                return
            time = packet.dts if packet.dts is not None else packet.pts
            if seconds is not None and time is not None and time * packet.time_base - self._shift >= seconds:
                self._next = packet
                return
            self._mux(packet)

    def finish(self) -> None:
        self.mux_until(None)
        for track in self._tracks.values():
            if track.treat is not None:
                self._output.mux(track.treat.flush())

    def _read(self) -> Iterator["Packet[Stream]"]:
        last: dict[int, int] = {}
        packets = self._container.demux(*(track.source for track in self._tracks.values()))
        while True:
            try:
                packet = next(packets)
            except (StopIteration, IndexError, av.error.FFmpegError):
                return  # a damaged source: the picture's reader says so
            if not packet.size or packet.pts is None:
                continue
            begin = packet.pts * packet.time_base
            if packet.is_discard and not -PREROLL_S <= begin < 0:
                continue  # cut off by whoever edited the source: it stays cut off
            if self._shift and begin + (packet.duration or 0) * packet.time_base <= self._shift:
                continue
            if self._end is not None and begin >= self._end:
                continue
            order = packet.dts if packet.dts is not None else packet.pts
            if order <= last.get(packet.stream_index, order - 1):
                continue  # a clock that was set back: MP4 cannot say it
            last[packet.stream_index] = order
            yield packet

    def _mux(self, packet: "Packet[Stream]") -> None:
        track = self._tracks[packet.stream_index]
        shift = round(self._shift / packet.time_base)
        if track.treat is not None:
            self._output.mux(track.treat.feed(packet, shift))
            return
        packet.pts = None if packet.pts is None else packet.pts - shift
        packet.dts = None if packet.dts is None else packet.dts - shift
        packet.stream = track.target
        self._output.mux(packet)


def _name(stream: Stream) -> str:
    if stream.codec_context is not None:
        return stream.codec_context.name.removesuffix("float")  # mp3float decodes mp3
    try:
        return stream.codec_tag.strip("\0 ")
    except (AttributeError, UnicodeDecodeError):
        return ""


class _Encoder:
    """Decodes a track, treats it, and encodes it to AAC. Times come from the samples' own timestamps."""

    def __init__(self, source: AudioStream, output: OutputContainer, vocoder: "Vocoder | None") -> None:
        rate = self.rate_of(source)
        layout = "mono" if vocoder is not None or source.codec_context.channels < 2 else "stereo"
        self.stream = output.add_stream("aac", rate=rate, layout=layout)
        self.stream.time_base = Fraction(1, rate)
        self._resampler = AudioResampler("fltp", layout, rate)
        self._vocoder = vocoder
        self._rate = rate
        self._written: int | None = None

    @staticmethod
    def rate_of(source: AudioStream) -> int:
        """48 or 44.1 kHz, or the source's rate where AAC has it."""
        rate = source.codec_context.sample_rate
        return rate if rate in (16_000, 22_050, 24_000, 32_000, 44_100, 48_000) else 48_000

    def feed(self, packet: "Packet[Stream]", shift: int) -> "list[Packet[Stream]]":
        try:
            frames = cast("list[AudioFrame]", packet.decode())
        except av.error.FFmpegError:
            return []  # a hole in damaged sound stays a hole
        out: list[Packet[Stream]] = []
        for frame in frames:
            if self._written is None:
                time = (frame.pts or 0) - (shift if frame.pts is not None else 0)
                self._written = round(time * (frame.time_base or Fraction(1, self._rate)) * self._rate)
            frame.pts = None
            for piece in self._resampled(frame):
                out += self._encode(piece)
        return out

    def _resampled(self, frame: AudioFrame) -> list[AudioFrame]:
        try:
            return self._resampler.resample(frame)
        except ValueError:  # rate or channels changed midway
            self._resampler = AudioResampler("fltp", self.stream.layout.name, self._rate)
            return self._resampler.resample(frame)

    def flush(self) -> "list[Packet[Stream]]":
        out: list[Packet[Stream]] = []
        if self._written is not None:
            for piece in self._resampler.resample(None):
                out += self._encode(piece)
            if self._vocoder is not None:
                out += self._emit(self._vocoder.flush())
        return out + list(self.stream.encode(None))

    def _encode(self, piece: AudioFrame) -> "list[Packet[Stream]]":
        samples = cast(Samples, piece.to_ndarray())  # (channels, n)
        return self._emit(samples if self._vocoder is None else self._vocoder.feed(samples[0])[None])

    def _emit(self, samples: Samples) -> "list[Packet[Stream]]":
        samples = np.atleast_2d(samples)
        if not samples.shape[1]:
            return []
        assert self._written is not None
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(samples, np.float32), "fltp", self.stream.layout.name)
        frame.sample_rate, frame.pts, frame.time_base = self._rate, self._written, Fraction(1, self._rate)
        self._written += samples.shape[1]
        return list(self.stream.encode(frame))


class Vocoder:
    """Noise as loud as the sound was, moment by moment: when somebody speaks is left, who speaks is not.

    Pitch, harmonics and the shape of the spectrum, by which voices are told apart, are not altered but thrown away, so
    unlike with a shift of pitch there is nothing to shift back. Of every 20 ms or so one loudness remains, relative to
    that of the last seconds. More `bands` would keep more of the words, and more of the voice: with six, an attacker
    who trained on distorted speech still knew half of the speakers (benchmarks/voices.py).
    """

    LOW, HIGH = 150.0, 6000.0
    LEVEL_S = 3.0
    """Seconds over which loudness is evened out, so that a loud voice is not told from a soft one."""

    def __init__(self, rate: int, bands: int = 1) -> None:
        self._size = 1 << round(np.log2(rate * 0.032))
        self._hop = self._size // 2
        self._window = np.sin(np.pi * (np.arange(self._size) + 0.5) / self._size).astype(np.float32)
        self._noise = np.random.default_rng(0)  # the same noise each time: there is nothing in it to find
        frequencies = np.fft.rfftfreq(self._size, 1 / rate)
        edges = np.geomspace(self.LOW, min(self.HIGH, rate / 2), bands + 1)
        self._bands = [np.flatnonzero((frequencies >= a) & (frequencies < b)) for a, b in pairwise(edges)]
        self._fade = float(np.exp(-self._hop / rate / self.LEVEL_S))
        self._smooth = np.zeros(bands)
        self._level = np.full(bands, 1e-4)
        self._input = np.zeros(self._hop, np.float32)  # half a window of silence, so that nothing comes out late
        self._tail = np.zeros(self._hop, np.float32)
        self._skip = self._hop

    def feed(self, samples: Samples) -> Samples:
        """As many samples as can be finished now; `flush` gives the rest."""
        self._input = np.concatenate([self._input, samples])
        done = []
        while len(self._input) >= self._size:
            done.append(self._step(self._input[: self._size]))
            self._input = self._input[self._hop :]
        out = np.concatenate(done) if done else np.zeros(0, np.float32)
        skipped = min(self._skip, len(out))
        self._skip -= skipped
        return out[skipped:]

    def flush(self) -> Samples:
        left = len(self._input)  # what is in the input has not come out yet
        return self.feed(np.zeros(self._size, np.float32))[:left]

    def _step(self, piece: Samples) -> Samples:
        spectrum = np.abs(np.fft.rfft(piece * self._window))
        loudness = np.array([np.sqrt(np.mean(spectrum[band] ** 2)) for band in self._bands])
        self._smooth += 0.5 * (loudness - self._smooth)
        self._level = np.maximum(self._fade * self._level + (1 - self._fade) * self._smooth, 1e-4)
        gains = np.minimum(self._smooth / self._level, 4.0)
        drawn = np.zeros(len(spectrum), complex)
        for band, gain in zip(self._bands, gains, strict=True):
            drawn[band] = gain * np.exp(2j * np.pi * self._noise.random(len(band)))
        sound = (np.fft.irfft(drawn, self._size) * self._window * (0.04 * self._size**0.5)).astype(np.float32)
        out: Samples = self._tail + sound[: self._hop]
        self._tail = sound[self._hop :]
        return out
