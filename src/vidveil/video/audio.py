"""Sound tracks: copied packet by packet, re-encoded where MP4 cannot carry them, or made unrecognisable.

Sound, subtitles and data are read by a separate demuxer, up to the time that the picture has reached. So neither waits
for the other, however the source interleaves them, and memory does not grow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO

import av
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.packet import Packet
from av.rational import AVRational
from av.stream import Discard, Stream

from vidveil.core.errors import InputError
from vidveil.video.packet_tracker import MAX_GAP_S
from vidveil.video.probe import PREROLL_S, open_source
from vidveil.video.recode import Recoder
from vidveil.video.sources import Source

MP4_AUDIO = frozenset({"aac", "mp3", "mp2", "ac3", "eac3", "alac", "opus", "flac", "dts"})
"""Codecs whose packets are copied as they are."""
SET_BACK_S = Fraction(1, 2)  # smaller steps back are jitter, larger ones a clock that was reset
MP4_OTHERS = frozenset({"mov_text", "gpmd"})


class _Clock:
    """The times of a track's packets. Where the clock was reset, they continue right after the last packet."""

    def __init__(self, tick: Fraction, begin: int) -> None:
        """`begin`: where the source begins. A track that begins hours before or after that is moved there."""
        self._far, self._back = int(MAX_GAP_S / tick), int(SET_BACK_S / tick)
        self._last: int | None = None
        self._due = begin
        self._offset = 0

    def correct(self, packet: "Packet[Stream]") -> None:
        time = packet.dts if packet.dts is not None else packet.pts
        if time is None:
            time = self._due - self._offset
        lead = 0 if packet.pts is None else packet.pts - time
        back = self._due - self._far if self._last is None else self._last - self._back
        if not back <= time + self._offset <= self._due + self._far:
            self._offset = self._due - time
        self._last = time + self._offset
        duration = packet.duration or 0
        self._due = self._last + (duration if 0 < duration < self._far else 1)
        packet.pts = self._last + (lead if abs(lead) <= self._back else 0)
        packet.dts = None if packet.dts is None else self._last


@dataclass(slots=True)
class _Track:
    source: Stream
    target: Stream
    clock: _Clock
    recoder: Recoder | None = None
    """None: packets are copied."""
    last: int | None = None
    """Time of the last copied packet, in ticks of the target."""


class SideTracks:
    """Copies sound, and with `everything` also the subtitles and data that MP4 can carry, from source to output."""

    def __init__(
        self,
        source: Source,
        output: OutputContainer,
        *,
        audio: str,
        everything: bool,
        origin: Fraction,
        shift: Fraction,
        begin: Fraction | None,
        end: Fraction | None,
    ) -> None:
        """Seconds on the source's clock: `origin` is where it begins, `shift` is taken off its times, and what lies
        before `begin` or after `end` is left out."""
        self._container = open_source(source)
        self._origin = origin
        self._output = output
        self._shift = shift
        self._begin, self._end = begin, end
        self.kept: list[str] = []
        self.reencoded: list[str] = []
        self._tracks: dict[int, _Track] = {}
        for stream in self._container.streams:
            if isinstance(stream, AudioStream):
                if audio != "drop":
                    self._add_audio(stream, distort=audio == "distort")
            elif everything and stream.type in ("subtitle", "data") and _name(stream) in MP4_OTHERS:
                self._add(stream, output.add_stream_from_template(stream))
                self.kept.append(f"{stream.type} {_name(stream)}")
        for stream in self._container.streams:
            if stream.index not in self._tracks:
                stream.discard = Discard.all  # the picture is read elsewhere
        self._packets = self._read()
        self._next: Packet[Stream] | None = None

    def _add_audio(self, stream: AudioStream, *, distort: bool) -> None:
        name = _name(stream)
        if stream.codec_context is None:
            raise InputError("its sound has a codec that is not known to this build of FFmpeg; use --audio drop")
        if not distort and name in MP4_AUDIO and _mp4_takes(stream):
            self._add(stream, self._output.add_stream_from_template(stream))
        else:
            recoder = Recoder(stream, self._output, shift=self._shift, distort=distort)
            self._add(stream, recoder.stream, recoder)
            folded = " (stereo)" if recoder.channels > 2 and not distort else ""
            self.reencoded.append(f"{name} to aac{folded}")
        self.kept.append(f"audio {name}")

    def _add(self, source: Stream, target: Stream, recoder: Recoder | None = None) -> None:
        tick = source.time_base or Fraction(1, 90_000)
        self._tracks[source.index] = _Track(source, target, _Clock(tick, round(self._origin / tick)), recoder)

    def close(self) -> None:
        self._container.close()

    def mux_until(self, seconds: Fraction | None) -> None:
        """Write all packets before this time (None: all that are left)."""
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
            if track.recoder is not None:
                for packet in track.recoder.flush():
                    self._output.mux(packet)

    def _read(self) -> Iterator["Packet[Stream]"]:
        packets = self._container.demux(*(track.source for track in self._tracks.values()))
        while True:
            try:
                packet = next(packets)
            except (StopIteration, IndexError, av.error.FFmpegError):
                return  # a damaged source: the picture's reader reports it
            if not packet.size or not packet.time_base:
                continue
            if packet.is_discard and (packet.pts is None or not -PREROLL_S <= packet.pts * packet.time_base < 0):
                continue  # removed by an edit list of the source
            self._tracks[packet.stream_index].clock.correct(packet)
            assert packet.pts is not None
            begin = packet.pts * packet.time_base
            if self._begin is not None and begin + (packet.duration or 0) * packet.time_base <= self._begin:
                continue
            if self._end is not None and begin >= self._end:
                continue
            yield packet

    def _mux(self, packet: "Packet[Stream]") -> None:
        track = self._tracks[packet.stream_index]
        if track.recoder is not None:
            for encoded in track.recoder.feed(packet):
                self._output.mux(encoded)
            return
        assert packet.pts is not None
        assert track.target.time_base is not None
        shift = round(self._shift / packet.time_base)
        packet.pts -= shift
        packet.dts = None if packet.dts is None else packet.dts - shift
        packet.stream = track.target
        packet.rescale_ts(AVRational(track.target.time_base))
        order = packet.dts if packet.dts is not None else packet.pts
        if track.last is not None and order <= track.last:  # in MP4, every packet is later than the one before
            order = packet.dts = track.last + 1
            packet.pts = max(packet.pts, order)
        track.last = order
        self._output.mux(packet)


def _mp4_takes(stream: AudioStream) -> bool:
    """Whether the MP4 muxer accepts the codec as it is: it refuses MP3 below 16 kHz, for example."""
    try:
        with av.open(BytesIO(), "w", format="mp4") as output:
            output.add_stream_from_template(stream)
            output.start_encoding()
    except (av.error.FFmpegError, ValueError):
        return False
    return True


def _name(stream: Stream) -> str:
    if stream.codec_context is not None:
        return stream.codec_context.codec.canonical_name  # the decoder of mp3 is called mp3float, that of dts dca
    try:
        return stream.codec_tag.strip("\0 ")
    except (AttributeError, UnicodeDecodeError):
        return ""
