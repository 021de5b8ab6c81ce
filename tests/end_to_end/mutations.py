"""Small whole files of many formats, and ways to damage them: all of it drawn from a number, so that it comes again.

Each plane of each picture is a checkerboard of single pixels whose shades and phase differ from tile to tile. No method
but `stride` leaves that standing, so a raw picture in an output is known by its finest detail.

    python -m tests.end_to_end.mutations SEED BATCH NUMBER FOLDER     makes one damaged file again
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

os.environ.setdefault("SVT_LOG", "1")  # the encoder of AV1 would write pages to stderr

WIDTH, HEIGHT, TILE = 64, 48, 8
RATE, SOUND_RATE = 25, 48_000
HEADER = 4096  # bytes that are called the header of a file
MARK = "Quillfeather-52.5163N-13.3777E"
"""A value that several tags have: nothing else is likely to bring it into a file."""
TAGS = {"title": MARK, "comment": MARK, "location": MARK}
FINE = {"qmin": "1", "qmax": "2", "b": "20M"}
STEADY = "asm=0:mbtree=0"  # or x264's files depend on the processor, and on what lay in memory
X264 = {"preset": "veryfast", "crf": "4", "bf": "2", "g": "6", "x264-params": STEADY}


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A file before it is damaged."""

    name: str
    codec: str
    pix_fmt: str = "yuv420p"
    size: tuple[int, int] = (WIDTH, HEIGHT)
    frames: int = 12
    codec_options: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    sound: str | None = None
    tags: bool = False
    rotation: int = 0
    interlaced: bool = False

    def make(self, folder: Path) -> Path:
        path = folder / self.name
        options = {"fflags": "+bitexact", **self.options}  # without it, Matroska draws its ids at random
        with av.open(str(path), "w", options=options) as output:
            video = output.add_stream(self.codec, rate=RATE, options={"threads": "1", **self.codec_options})
            video.width, video.height, video.pix_fmt = *self.size, self.pix_fmt
            if self.rotation:
                video.set_display_rotation(self.rotation)
            if self.interlaced:
                video.codec_context.flags |= av.codec.context.Flags.interlaced_dct
            sound = output.add_stream(self.sound, rate=SOUND_RATE, layout="mono") if self.sound else None
            text = None
            if self.tags:
                output.metadata.update(TAGS)
                output.set_chapters([_chapter(0), _chapter(1)])
                text = output.add_mux_stream("mov_text")
                text.time_base = Fraction(1, 1000)
            for i, frame in enumerate(pictures(self.frames, *self.size)):
                frame = frame.reformat(format=self.pix_fmt)
                frame.pts, frame.time_base = i, Fraction(1, RATE)
                output.mux(video.encode(frame))
            output.mux(video.encode(None))
            if sound is not None:
                for packet in hum(sound, self.frames / RATE):
                    output.mux(packet)
            if text is not None:
                packet = av.Packet(len(MARK).to_bytes(2, "big") + MARK.encode())
                packet.stream, packet.pts, packet.dts, packet.duration = text, 0, 0, 200
                packet.time_base = text.time_base
                output.mux(packet)
        return path


WHOLES = (
    Whole(name="h264.mp4", codec="libx264", codec_options=X264, frames=16),
    Whole(name="faststart.mp4", codec="libx264", codec_options=X264, options={"movflags": "faststart"}),
    Whole(name="fragments.mp4", codec="libx264", codec_options=X264, options={"movflags": "frag_keyframe+empty_moov"}),
    Whole(
        name="hevc.mp4",
        codec="libx265",
        codec_options={"preset": "ultrafast", "crf": "4", "x265-params": "log-level=none:pools=none:frame-threads=1"},
    ),
    Whole(name="tagged.mp4", codec="libx264", codec_options=X264, sound="aac", tags=True),
    Whole(name="turned.mov", codec="mjpeg", pix_fmt="yuvj422p", codec_options=FINE, rotation=90),
    Whole(name="vp8.webm", codec="libvpx", codec_options={"crf": "4", "b": "20M", "cpu-used": "8"}, sound="libopus"),
    Whole(name="vp9.mkv", codec="libvpx-vp9", codec_options={"crf": "4", "b": "20M", "cpu-used": "8"}),
    Whole(name="av1.webm", codec="libsvtav1", codec_options={"preset": "12", "crf": "4"}, frames=10),
    Whole(name="lossless.mkv", codec="ffv1", size=(63, 47), frames=10, sound="pcm_s16le"),
    Whole(name="mpeg4.avi", codec="mpeg4", codec_options={**FINE, "bf": "2"}, sound="mp2"),
    Whole(name="mpeg2.ts", codec="mpeg2video", codec_options=FINE, sound="aac"),
    Whole(name="fields.ts", codec="libx264", codec_options={**X264, "x264-params": f"{STEADY}:tff=1"}, interlaced=True),
    Whole(name="h264.flv", codec="libx264", codec_options=X264, sound="aac"),
    Whole(name="raw.h264", codec="libx264", codec_options=X264),
    Whole(name="palette.gif", codec="gif", pix_fmt="rgb8", frames=10),
    Whole(name="still.png", codec="png", pix_fmt="rgb24", frames=1, options={"update": "1"}),
    Whole(name="still.jpg", codec="mjpeg", pix_fmt="yuvj420p", frames=1, codec_options=FINE, options={"update": "1"}),
)


def pictures(count: int, width: int, height: int) -> Iterator[av.VideoFrame]:
    """yuv420p pictures; from one to the next a third of the tiles changes, the rest stands."""
    rng = np.random.default_rng(0)
    sizes = ((width, height), ((width + 1) // 2, (height + 1) // 2), ((width + 1) // 2, (height + 1) // 2))
    shown = [_tiles(rng, *size) for size in sizes]
    for _ in range(count):
        frame = av.VideoFrame(width, height, "yuv420p")
        for number, (plane, (w, h)) in enumerate(zip(frame.planes, sizes, strict=True)):
            fresh, across, down = _tiles(rng, w, h), -(-w // TILE), -(-h // TILE)
            changed = np.kron(rng.random((down, across)) < 0.3, np.ones((TILE, TILE), bool))[:h, :w]
            shown[number] = np.where(changed, fresh, shown[number])
            np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[:h, :w] = shown[number]
        yield frame


def _tiles(rng: Generator, width: int, height: int) -> NDArray[np.uint8]:
    """Checkerboards of 8 × 8 pixels, each with a dark and a light shade and a phase of its own."""
    down, across = -(-height // TILE), -(-width // TILE)
    y, x = np.mgrid[:height, :width]
    dark, light, phase = (
        np.kron(rng.integers(*between, (down, across)), np.ones((TILE, TILE), int))[:height, :width]
        for between in ((30, 70), (180, 220), (0, 2))
    )
    return np.where((x + y + phase) % 2 == 0, dark, light).astype(np.uint8)


def hum(stream: av.AudioStream, seconds: float) -> Iterator[av.Packet]:
    """Packets of a low tone."""
    times = np.arange(int(SOUND_RATE * seconds)) / SOUND_RATE
    wave = (0.3 * np.sin(2 * np.pi * 220 * times)).astype(np.float32)[None]
    frame = av.AudioFrame.from_ndarray(wave, "fltp", "mono")
    frame.sample_rate, written = SOUND_RATE, 0
    cut = av.AudioResampler(stream.format.name, "mono", SOUND_RATE, stream.codec_context.frame_size or 960)
    for piece in (*cut.resample(frame), *cut.resample(None)):
        piece.pts, piece.time_base = written, Fraction(1, SOUND_RATE)
        written += piece.samples
        yield from stream.encode(piece)
    yield from stream.encode(None)


def _chapter(i: int) -> dict[str, object]:
    span = {"start": 200 * i, "end": 200 * i + 200, "time_base": Fraction(1, 1000)}
    return {"id": i, **span, "metadata": {"title": MARK}}


def make_wholes(folder: Path) -> dict[str, bytes]:
    """The undamaged files, name and content."""
    folder.mkdir(parents=True, exist_ok=True)
    return {whole.name: whole.make(folder).read_bytes() for whole in WHOLES}


@dataclass(frozen=True)
class Mutant:
    """A damaged file, and all that is needed to make it again."""

    seed: int
    batch: int
    number: int
    name: str
    content: bytes
    damage: tuple[str, ...]

    def __str__(self) -> str:
        again = f"python -m tests.end_to_end.mutations {self.seed} {self.batch} {self.number} FOLDER"
        return f"{self.name} ({'; '.join(self.damage)}): {again}"


def draw(wholes: dict[str, bytes], seed: int, batch: int, number: int) -> Mutant:
    """Damaged file `number` of a batch: each format in turn, each with one to three kinds of damage."""
    rng = np.random.default_rng([seed, batch, number])
    whole = WHOLES[(number + batch) % len(WHOLES)].name
    data, damage = bytearray(wholes[whole]), []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        kind = _KINDS[rng.integers(len(_KINDS))]
        damage.append(kind(data, rng, wholes))
    return Mutant(seed, batch, number, f"{number:04d}_{whole}", bytes(data), tuple(damage))


def _place(data: bytearray, rng: Generator) -> tuple[int, int]:
    """Where to do harm: anywhere, or one time in three in the header. Up to 64 bytes, rarely up to a quarter."""
    room = min(len(data), HEADER) if rng.random() < 1 / 3 else len(data)
    longest = max(1, len(data) // 4) if rng.random() < 0.2 else 64
    begin = int(rng.integers(max(1, room)))
    return begin, min(len(data), begin + int(rng.integers(1, longest + 1)))


def _flip(data: bytearray, rng: Generator, _: dict[str, bytes]) -> str:
    room = min(len(data), HEADER) if rng.random() < 1 / 3 else len(data)
    count = int(rng.choice([1, 2, 8, 64]))
    for at in rng.integers(0, max(1, room) * 8, count if data else 0):
        data[at // 8] ^= 1 << (at % 8)
    return f"{count} bits flipped in the first {room} bytes"


def _overwrite(data: bytearray, rng: Generator, _: dict[str, bytes]) -> str:
    begin, end = _place(data, rng)
    what = ("noise", "0x00", "0xff")[rng.integers(3)]
    data[begin:end] = {"noise": rng.bytes(end - begin), "0x00": bytes(end - begin), "0xff": b"\xff" * (end - begin)}[
        what
    ]
    return f"{begin}..{end} became {what}"


def _delete(data: bytearray, rng: Generator, _: dict[str, bytes]) -> str:
    begin, end = _place(data, rng)
    del data[begin:end]
    return f"{begin}..{end} deleted"


def _insert(data: bytearray, rng: Generator, _: dict[str, bytes]) -> str:
    begin, end = _place(data, rng)
    data[begin:begin] = rng.bytes(end - begin)
    return f"{end - begin} bytes of noise inserted at {begin}"


def _duplicate(data: bytearray, rng: Generator, _: dict[str, bytes]) -> str:
    begin, end = _place(data, rng)
    times = int(rng.choice([1, 1, 2, 20]))
    data[end:end] = data[begin:end] * times
    return f"{begin}..{end} repeated {times} times"


def _swap(data: bytearray, rng: Generator, _: dict[str, bytes]) -> str:
    length = int(rng.integers(1, max(2, len(data) // 8)))
    first, second = (int(at) for at in rng.integers(0, max(1, len(data) - length), 2))
    data[first : first + length], data[second : second + length] = (
        data[second : second + length],
        data[first : first + length],
    )
    return f"{length} bytes at {first} and {second} swapped"


def _truncate(data: bytearray, rng: Generator, _: dict[str, bytes]) -> str:
    length = int(rng.integers(0, min(len(data), HEADER) + 1 if rng.random() < 0.2 else len(data) + 1))
    del data[length:]
    return f"cut at {length}"


def _splice(data: bytearray, rng: Generator, wholes: dict[str, bytes]) -> str:
    name = sorted(wholes)[rng.integers(len(wholes))]
    other = wholes[name]
    here, there = int(rng.integers(len(data) + 1)), int(rng.integers(len(other) + 1))
    data[here:] = other[there:]
    return f"from {here} on {name} from {there} on"


def _structure(data: bytearray, rng: Generator, _: dict[str, bytes]) -> str:
    """A wrong length, type or number where the format keeps one."""
    places = list(fields(bytes(data)))
    if not places:
        return _flip(data, rng, _)
    begin, end, order = places[rng.integers(len(places))]
    old, width = int.from_bytes(data[begin:end], order), 8 * (end - begin)
    another, other_end, _order = places[rng.integers(len(places))]
    value = (
        *(0, 1, 2, 7, 8, 255, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 2**width - 1),
        *(old + 1, old - 1, old * 2, old // 2, old + 8, old ^ 1 << int(rng.integers(width))),
        *(int(rng.integers(2**31)), int.from_bytes(data[another:other_end], order), len(data)),
    )[rng.integers(21)]
    data[begin:end] = (value % 2**width).to_bytes(end - begin, order)
    return f"{begin}..{end} from {old:#x} to {value % 2**width:#x}"


_KINDS: tuple[Callable[[bytearray, Generator, dict[str, bytes]], str], ...] = (
    *(_flip, _flip, _overwrite, _overwrite, _delete, _insert, _duplicate, _swap, _truncate, _splice),
    *(_structure, _structure, _structure, _structure),
)


def fields(data: bytes) -> Iterator[tuple[int, int, str]]:
    """(begin, end, byte order) of lengths, types and numbers in MP4, Matroska and AVI; nothing for other formats."""
    if data[4:8] in (b"ftyp", b"wide", b"moov", b"mdat"):
        yield from _mp4(data, 0, len(data))
    elif data[:4] == b"\x1a\x45\xdf\xa3":
        yield from _ebml(data, 0, len(data))
    elif data[:4] == b"RIFF":
        yield from _riff(data, 0, len(data))


BOXES = frozenset(b"moov trak mdia minf stbl edts dinf udta meta ilst moof traf mvex".split())
LONG = 400  # bytes from which on a payload is pictures and sound, not numbers


def _mp4(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    while begin + 8 <= end:
        size, kind = int.from_bytes(data[begin : begin + 4], "big"), data[begin + 4 : begin + 8]
        stop = min(end, begin + size) if size >= 8 else end
        yield begin, begin + 4, "big"
        yield begin + 4, begin + 8, "big"
        if kind in BOXES:
            yield from _mp4(data, begin + (12 if kind == b"meta" else 8), stop)
        elif stop - begin < LONG:
            yield from ((at, at + 4, "big") for at in range(begin + 8, stop - 3, 4))
            yield from ((at, at + 2, "big") for at in range(begin + 8, min(stop, begin + 64) - 1, 2))
        begin = stop


MASTERS = frozenset(
    bytes.fromhex(i) for i in "1a45dfa3 18538067 114d9b74 1549a966 1654ae6b 1254c367 1f43b675 ae e0 e1 7373 a0".split()
)


def _ebml(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    while begin < end and data[begin]:
        id_end = begin + 9 - data[begin].bit_length()
        if id_end >= end or not data[id_end]:
            return
        size_end = id_end + 9 - data[id_end].bit_length()
        size = int.from_bytes(data[id_end:size_end], "big") & ((1 << 7 * (size_end - id_end)) - 1)
        stop = min(end, size_end + size)
        yield begin, id_end, "big"
        yield id_end, size_end, "big"
        if data[begin:id_end] in MASTERS:
            yield from _ebml(data, size_end, stop)
        elif 0 < stop - size_end <= 8:
            yield size_end, stop, "big"
        begin = stop


def _riff(data: bytes, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    while begin + 8 <= end:
        kind, size = data[begin : begin + 4], int.from_bytes(data[begin + 4 : begin + 8], "little")
        stop = min(end, begin + 8 + size + size % 2)
        yield begin, begin + 4, "little"
        yield begin + 4, begin + 8, "little"
        if kind in (b"RIFF", b"LIST"):
            yield from _riff(data, begin + 12, stop)
        elif size < LONG:
            yield from ((at, at + 4, "little") for at in range(begin + 8, stop - 3, 4))
        begin = stop


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        again = draw(make_wholes(Path(scratch)), *map(int, sys.argv[1:4]))
    (Path(sys.argv[4]) / again.name).write_bytes(again.content)
    print(again)
