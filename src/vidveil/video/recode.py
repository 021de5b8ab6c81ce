"""Re-encode sound as AAC, distorted on request, with every sample at its time in the source."""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import cast

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.packet import Packet
from av.stream import Stream

from vidveil.core.errors import InputError
from vidveil.video.packet_tracker import MAX_GAP_S
from vidveil.video.vocoder import Samples, Vocoder

AAC_RATES = frozenset({16_000, 22_050, 24_000, 32_000, 44_100, 48_000})
GAP_S = Fraction(1, 50)  # less is the rounding of a coarse clock; one lost packet is more
OVERLAP_S = Fraction(1, 10)  # more than GAP_S, or clock jitter would alternate silence and cuts


class Recoder:
    """Decodes a track, makes it mono or stereo, distorts it if asked to, and encodes it to AAC.

    Where packets are missing or could not be decoded, there is silence of the same length.
    """

    def __init__(self, source: AudioStream, output: OutputContainer, *, shift: Fraction, distort: bool) -> None:
        rate = source.codec_context.sample_rate
        self._rate = rate if rate in AAC_RATES else 48_000
        self.channels = _make_decodable(source)
        """Of the source."""
        self._layout = "mono" if distort or self.channels < 2 else "stereo"
        self.stream = output.add_stream("aac", rate=self._rate, layout=self._layout)
        self.stream.time_base = Fraction(1, self._rate)
        self._source, self._shift = source, shift
        self._tick = source.time_base or Fraction(1, self._rate)
        self._resampler = self._new_resampler()
        self._vocoder = Vocoder(self._rate) if distort else None
        self._taken = Fraction(0)  # time of the next decoded sample, in samples
        self._skip = 0  # samples to drop, since they were there already
        self._written: int | None = None

    def feed(self, packet: "Packet[Stream]") -> "Iterator[Packet[Stream]]":
        yield from self._decode(packet)

    def flush(self) -> "Iterator[Packet[Stream]]":
        yield from self._decode(None)
        if self._written is None:
            return  # no sample at all: flushing the AAC encoder would never end
        for piece in self._resampler.resample(None):
            yield from self._treat(_samples(piece))
        if self._vocoder is not None:
            yield from self._encode(self._vocoder.flush()[None])
        yield from self.stream.encode(None)

    def _decode(self, packet: "Packet[Stream] | None") -> "Iterator[Packet[Stream]]":
        try:
            frames = self._source.codec_context.decode(cast("Packet[AudioStream] | None", packet))
        except av.error.FFmpegError:
            return  # the next frame's time gives the length of the silence
        for frame in frames:
            if frame.samples and frame.sample_rate:
                yield from self._keep_time(frame)
                for piece in self._resampled(frame):
                    yield from self._treat(_samples(piece))

    def _keep_time(self, frame: AudioFrame) -> "Iterator[Packet[Stream]]":
        """Write silence up to the frame, or drop the part of it that overlaps."""
        length = Fraction(frame.samples * self._rate, frame.sample_rate)
        due = self._taken if frame.pts is None else (frame.pts * self._tick - self._shift) * self._rate
        gap = round(due - self._taken)
        if self._written is None:
            self._written, self._taken = round(due), due
        elif GAP_S * self._rate < gap <= MAX_GAP_S * self._rate:
            self._taken += gap
            while gap > 0:  # second by second: memory must not grow with the gap
                piece = min(gap, self._rate)
                yield from self._treat(np.zeros((len(self.stream.layout.channels), piece), np.float32))
                gap -= piece
        elif gap < -OVERLAP_S * self._rate:
            again = min(-gap, int(length))
            self._skip += again
            self._taken -= again
        self._taken += length

    def _new_resampler(self) -> AudioResampler:
        return AudioResampler("fltp", self._layout, self._rate)

    def _resampled(self, frame: AudioFrame) -> list[AudioFrame]:
        frame.pts = None
        try:
            return self._resampler.resample(frame)
        except ValueError:  # rate or channels changed midway
            rest = self._resampler.resample(None)
            self._resampler = self._new_resampler()
            return rest + self._resampler.resample(frame)

    def _treat(self, samples: Samples) -> "Iterator[Packet[Stream]]":
        skipped = min(self._skip, samples.shape[1])
        self._skip -= skipped
        samples = samples[:, skipped:]
        yield from self._encode(samples if self._vocoder is None else self._vocoder.feed(samples[0])[None])

    def _encode(self, samples: Samples) -> "Iterator[Packet[Stream]]":
        if not samples.shape[1]:
            return
        assert self._written is not None
        frame = AudioFrame.from_ndarray(np.ascontiguousarray(samples, np.float32), "fltp", self._layout)
        frame.sample_rate, frame.pts, frame.time_base = self._rate, self._written, Fraction(1, self._rate)
        self._written += samples.shape[1]
        yield from self.stream.encode(frame)


def _samples(frame: AudioFrame) -> Samples:
    """(channels, n) of a resampled frame: PyAV reads past the planes of a frame with eight channels."""
    # Damaged sound may decode to any value, and huge values make the encoder hang.
    return np.nan_to_num(cast(Samples, frame.to_ndarray()), nan=0.0, posinf=1.0, neginf=-1.0).clip(-1, 1)


def _make_decodable(source: AudioStream) -> int:
    """The number of channels. InputError if PyAV cannot decode and mix them.

    PyAV frees a custom channel order, such as that of 7.1 in .mov, once too often: with each access to the stream's
    layout, and with each decoded frame. PCM decoders accept any order, so they get the default one for that number;
    other codecs are refused before anything is decoded.
    """
    context = source.codec_context
    name, channels, custom = _layout_of(source)
    if custom and context.name.startswith("pcm_"):
        context.options = {**context.options, "ch_layout": f"{channels} channels"}
    with suppress(av.error.FFmpegError):  # what cannot be decoded becomes silence
        context.open(strict=False)  # decoders may read a custom order from the header
        name, channels, custom = _layout_of(source)
    if custom or (channels and not _can_mix(name)):
        raise InputError(
            f"its sound has {channels} channel{'s' * (channels != 1)} in an order that cannot be read; use --audio drop"
        )
    return channels


def _layout_of(source: AudioStream) -> tuple[str, int, bool]:
    """Name of the layout, number of channels, and whether their order is a custom one."""
    layout = source.codec_context.layout
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(layout))  # kept, and so never freed: see above
    return layout.name, layout.nb_channels, " channels (" in layout.name or "ambisonic" in layout.name


def _can_mix(layout: str) -> bool:
    probe = AudioFrame("s16", layout, 64)
    probe.sample_rate = 48_000
    try:
        AudioResampler("fltp", "stereo", 48_000).resample(probe)
    except av.error.FFmpegError:
        return False
    return True
