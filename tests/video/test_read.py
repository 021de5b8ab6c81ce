"""The reader gives every frame, at its own time, whatever the file."""

import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from tests.media import Film, level, times
from vidveil.core.errors import InputError
from vidveil.core.frame import Frame
from vidveil.video.connection import DAMAGED, UNDECODABLE, Connection
from vidveil.video.live import ConnectionState
from vidveil.video.read import Reader
from vidveil.video.sources import find


def read(path: Path, **how: Any) -> tuple[list[Frame], Reader]:
    (source,), refused, _ = find([str(path)])
    assert not refused
    with Reader(source, **how) as reader:
        return list(reader), reader


def seconds(frames: list[Frame], reader: Reader) -> list[Fraction]:
    return [frame.pts * reader.info.time_base for frame in frames]


def grey(frame: Frame) -> float:
    return float(frame.rgb().mean())


def look(frame: Frame) -> int | None:
    return None if frame.picture is None else round(grey(frame))


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt"),
    [
        ("a.mp4", "libx264", "yuv420p"),
        ("a.mp4", "libx265", "yuv420p"),
        ("a.mkv", "ffv1", "yuv420p"),
        ("a.webm", "libvpx-vp9", "yuv420p"),
        ("a.avi", "mpeg4", "yuv420p"),
        ("a.mov", "mjpeg", "yuvj422p"),
        ("a.mov", "prores_ks", "yuv422p10le"),
        ("a.ts", "mpeg2video", "yuv420p"),
        ("a.flv", "libx264", "yuv420p"),
        ("a.mkv", "libx264", "yuv444p"),
        ("a.mkv", "libx264", "yuv420p10le"),
        ("a.gif", "gif", "rgb8"),
        ("a.h264", "libx264", "yuv420p"),
        ("a.y4m", "wrapped_avframe", "yuv420p"),
    ],
)
def test_whatever_codec_and_container_pictures_come_once_each_in_order_and_as_8_bit_420(tmp_path, name, codec, pix_fmt):
    film = Film(frames=12, codec=codec, pix_fmt=pix_fmt)
    frames, _ = read(film.make(tmp_path / name))
    assert [frame.index for frame in frames] == list(range(12))
    for i, frame in enumerate(frames):
        assert frame.picture.format.name in ("yuv420p", "yuvj420p")
        assert abs(grey(frame) - level(i)) < (30 if codec == "gif" else 4), i


PTS = [0, 7, 13, 40, 41, 100, 230, 231]
CLOCKS = {
    "a.mkv": (Film(pts=PTS, time_base=Fraction(1, 1000)), [Fraction(pts, 1000) for pts in PTS]),  # variable
    "a.mp4": (Film(frames=48, rate=Fraction(24000, 1001)), [Fraction(1001 * i, 24000) for i in range(48)]),
    "a.h264": (Film(frames=10, rate=25), [Fraction(i, 25) for i in range(10)]),  # it has none: they are filled in
    # late on its clock: times are counted from its start
    "a.ts": (
        Film(pts=[900_000 + 3600 * i for i in range(8)], time_base=Fraction(1, 90_000)),
        [Fraction(i, 25) for i in range(8)],
    ),
}


@pytest.mark.parametrize(("name", "film", "expected"), [(name, *clock) for name, clock in CLOCKS.items()])
def test_times_of_frames_are_exact(tmp_path, name, film, expected):
    frames, reader = read(film.make(tmp_path / name))
    assert seconds(frames, reader) == expected


def test_a_video_that_begins_after_its_sound_keeps_its_delay_where_the_sound_is_kept(tmp_path):
    film = Film(pts=[5000 + 400 * i for i in range(8)], time_base=Fraction(1, 10_000), sound="aac", sound_first=True)
    path = film.make(tmp_path / "a.mp4")
    frames, reader = read(path, sound=True)
    assert seconds(frames, reader)[0] == Fraction(1, 2)
    frames, reader = read(path)
    assert seconds(frames, reader)[0] == 0


def test_odd_sizes_are_read_as_they_are(tmp_path):
    film = Film(width=63, height=47, codec="ffv1")
    frames, _ = read(film.make(tmp_path / "a.mkv"))
    assert (frames[0].width, frames[0].height) == (63, 47)
    assert frames[0].rgb().shape == (47, 63, 3)


def test_ten_bits_and_hdr_are_reported(tmp_path):
    film = Film(pix_fmt="yuv420p10le", color={"color_trc": 16, "color_primaries": 9, "colorspace": 9})
    _, reader = read(film.make(tmp_path / "a.mkv"))
    assert any("10-bit" in warning for warning in reader.report.warnings)
    assert any("HDR (PQ)" in warning for warning in reader.report.warnings)


def test_interlaced_video_is_deinterlaced_frame_by_frame(tmp_path):
    frames, reader = read(Film(frames=15, interlaced=True, height=64).make(tmp_path / "a.mp4"))
    assert len(frames) == 15
    assert reader.report.deinterlaced == 15
    assert [frame.index for frame in frames] == list(range(15))
    assert np.allclose([grey(frame) for frame in frames[1:-1]], [level(i) for i in range(1, 14)], atol=12)


def test_rotation_is_noted(tmp_path):
    _, reader = read(Film(rotation=90).make(tmp_path / "a.mp4"))
    assert reader.matrix is not None
    assert abs(reader.matrix[1]) == 65536


def test_text_in_a_broken_encoding_is_no_obstacle(tmp_path):
    path = Film(tags={"title": "Zürich"}).make(tmp_path / "a.mkv")
    path.write_bytes(path.read_bytes().replace("Zürich".encode(), b"Z\xfc\xffrich"))
    frames, reader = read(path)
    assert len(frames) == 20
    assert "title" in reader.info.tags


def test_a_file_without_a_duration_is_read_to_its_end(tmp_path):
    path = tmp_path / "live.mkv"
    Film(frames=30, options={"live": "1"}, format="matroska").make(path)
    frames, reader = read(path)
    assert len(frames) == 30
    assert reader.report.cut_short is None


def test_garbage_in_the_middle_becomes_frames_without_a_picture(tmp_path):
    path = Film(frames=60, width=160, height=120, options={"movflags": "faststart"}).make(tmp_path / "a.mp4")
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4000] = np.random.default_rng(0).bytes(4000)
    path.write_bytes(data)
    frames, reader = read(path)
    lost = [frame for frame in frames if frame.picture is None]
    assert len(frames) == 60
    assert lost
    assert {frame.lost for frame in lost} <= {UNDECODABLE, DAMAGED}
    assert seconds(frames, reader) == [Fraction(i, 25) for i in range(60)]
    assert all((frame.width, frame.height) == (160, 120) for frame in frames)


def test_the_size_may_change_within_a_stream(tmp_path):
    small, large = tmp_path / "s.ts", tmp_path / "l.ts"
    Film(frames=10).make(small)
    Film(frames=10, width=128, height=96).make(large)
    both = tmp_path / "both.ts"
    both.write_bytes(small.read_bytes() + large.read_bytes())
    frames, reader = read(both)
    assert {(f.width, f.height) for f in frames} == {(64, 48)}
    assert reader.report.resized >= 8


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.mp4", b"", "is empty"),
        ("text.mp4", b"this is not a video\n" * 200, "is not a video"),
        ("zeros.mp4", bytes(10_000), "is not a video"),
        ("playlist.mp4", b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nother.ts\n", "is not a video"),
        ("concat.mp4", b"ffconcat version 1.0\nfile other.mp4\n", "is not a video"),
    ],
)
def test_what_is_no_video_is_refused_in_plain_words(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        read(path)


def test_sound_without_a_picture_is_refused(tmp_path):
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as output:
        stream = output.add_stream("aac", rate=48_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 48_000), np.float32), "fltp", "mono")
        frame.sample_rate = 48_000
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    with pytest.raises(InputError, match="sound but no video"):
        read(path)


def test_a_header_without_frames_is_refused(tmp_path):
    path = tmp_path / "none.mkv"
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        output.start_encoding()
    with pytest.raises(InputError, match=r"no frame|no video|not a video"):
        read(path)


def test_start_and_end_cut_exactly(tmp_path):
    path = Film(frames=50, rate=25).make(tmp_path / "a.mp4")
    frames, reader = read(path, start=Fraction(1, 2), end=Fraction(1))
    assert seconds(frames, reader) == [t - Fraction(1, 2) for t in times(path) if Fraction(1, 2) <= t < 1]
    assert abs(grey(frames[0]) - level(13)) < 2


LONG = {
    "a.mp4": Film(frames=75, gop=10),
    "open.mp4": Film(frames=75, gop=10, codec="libx265"),
    "fragments.mp4": Film(frames=75, gop=10, options={"movflags": "frag_keyframe+empty_moov"}),
    "a.mkv": Film(frames=75, gop=10, sound="aac"),
    "a.ts": Film(frames=75, gop=10, sound="aac"),
    "a.mpg": Film(frames=75, gop=10, codec="mpeg2video"),
    "a.flv": Film(frames=75, gop=10),
    "a.h264": Film(frames=75, gop=10),
    "a.avi": Film(frames=75, gop=10),
}


@pytest.mark.parametrize(("name", "film"), LONG.items(), ids=LONG.keys())
def test_a_cut_gives_the_very_frames_of_the_whole(tmp_path, name, film):
    path = film.make(tmp_path / name)
    whole, reader = read(path)
    looks = [look(frame) for frame in whole]
    assert None not in looks
    for start, end in ((Fraction(1, 25), None), (Fraction(3, 4), None), (Fraction(27, 25), 2), (2, Fraction(11, 5))):
        frames, cut = read(path, start=Fraction(start), end=None if end is None else Fraction(end))
        wanted = [a for a, t in zip(looks, seconds(whole, reader), strict=True) if start <= t < (end or 99)]
        assert [look(frame) for frame in frames] == wanted
        assert seconds(frames, cut)[0] < Fraction(1, 20)


@pytest.mark.parametrize("codec", ["libx264", "mpeg4"])
def test_avi_whose_times_are_not_those_of_display_is_shown_in_order(tmp_path, codec):
    frames, reader = read(Film(frames=48, codec=codec, bframes=2).make(tmp_path / "a.avi"))
    assert [f.lost for f in frames] == [None] * 48
    assert np.allclose([grey(f) for f in frames], [level(i) for i in range(48)], atol=3)
    assert seconds(frames, reader) == [Fraction(i, 25) for i in range(48)]


def with_packets(whole: Path, path: Path, change: Callable[[int, bytes], bytes]) -> Path:
    """The same video, with what `change` makes of each packet's number and content."""
    with av.open(str(whole)) as source, av.open(str(path), "w") as output:
        stream = output.add_stream_from_template(source.streams.video[0])
        for i, packet in enumerate(p for p in source.demux(source.streams.video[0]) if p.size):
            copy = av.Packet(change(i, bytes(packet)))
            for name in ("pts", "dts", "duration", "time_base", "is_keyframe"):
                setattr(copy, name, getattr(packet, name))
            copy.stream = stream
            output.mux(copy)
    return path


@pytest.mark.parametrize("bad", [{5}, {5, 20, 33}, {36, 37, 38, 39}])
def test_lost_pictures_of_interlaced_video_are_counted(tmp_path, bad):
    whole = Film(frames=40, interlaced=True, codec="mpeg2video", gop=0, height=64).make(tmp_path / "whole.mkv")
    path = with_packets(
        whole, tmp_path / "a.mkv", lambda i, data: np.random.default_rng(i).bytes(len(data)) if i in bad else data
    )
    frames, _ = read(path)
    assert len(frames) == 40
    assert {f.index for f in frames if f.picture is None} == bad


READ_OFTEN = """
import sys
from vidveil.video.read import Reader
from vidveil.video.sources import find

(source,), _, _ = find([sys.argv[1]])
for _ in range(300):
    with Reader(source) as reader:
        seen = "".join("?" if frame.picture is None else "." for frame in reader)
print(seen)
"""


def test_a_damaged_packet_of_ffv1_costs_one_picture_and_not_the_process(tmp_path):
    """FFmpeg's FFV1 destroys memory after such a packet where it decodes several frames at once; on two cores, about
    every second run of this noticed. The next test always does."""
    whole = Film(frames=6, codec="ffv1", width=63, height=47).make(tmp_path / "whole.mkv")
    path = with_packets(whole, tmp_path / "a.mkv", lambda i, data: data[: len(data) // 2] if i == 1 else data)
    # in a process of its own, or the one that would die is that of the tests
    command = [sys.executable, "-c", READ_OFTEN, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ".?....\n"


def test_ffv1_is_decoded_one_frame_at_a_time(tmp_path):
    (source,), _, _ = find([str(Film(frames=12, codec="ffv1").make(tmp_path / "a.mkv"))])
    connection = Connection(source, ConnectionState(0))
    next(connection.decoded())
    assert connection.packets == 1  # threads that each take a frame want a packet each before the first picture
    connection.close()


@pytest.mark.parametrize(
    ("name", "film", "report"),
    [
        ("a.mp4", Film(frames=100, gop=10, sound="aac", options={"movflags": "faststart"}), r"\d\d of 100 frames"),
        ("a.mkv", Film(frames=100, gop=10, sound="aac"), r"2\.\d of 4\.0 s"),
        ("a.avi", Film(frames=100, gop=10, codec="mpeg4"), r"\d\d of 100 frames"),
        ("a.flv", Film(frames=100, gop=10, sound="aac"), r"2\.\d of 4\.\d s"),
    ],
)
def test_a_file_cut_in_half_gives_what_is_there_and_says_so_whatever_its_format(tmp_path, name, film, report):
    path = film.make(tmp_path / name)
    _, reader = read(path)
    assert reader.report.cut_short is None
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    frames, reader = read(path)
    assert 40 < len(frames) < 60
    assert re.fullmatch(f"ends early or is damaged: {report} are there", reader.report.cut_short)


def test_a_file_that_an_editor_trimmed_is_whole(tmp_path):
    path = Film(frames=100, gop=10).make(tmp_path / "a.mp4")
    data = bytearray(path.read_bytes())
    at = data.index(b"elst") + 12  # version, flags, count; then the duration
    data[at : at + 4] = (int.from_bytes(data[at : at + 4], "big") // 2).to_bytes(4, "big")
    path.write_bytes(data)
    frames, reader = read(path)
    assert 45 <= len(frames) <= 55
    assert reader.report.cut_short is None


def test_sound_that_goes_on_after_the_picture_is_no_damage(tmp_path):
    for name in ("a.mp4", "a.mkv"):
        _, reader = read(Film(frames=25, sound="aac", sound_offset=3.0).make(tmp_path / name))
        assert reader.report.cut_short is None


@pytest.mark.parametrize("name", ["12:30:00.mp4", "file:a.mp4", "50%d.png", "concat:a.mp4"])
def test_names_mean_nothing_but_themselves(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    other = Film(frames=1, codec="png", pix_fmt="rgb24").make(tmp_path / "500.png")
    made = other if name.endswith("png") else Film(frames=3).make(tmp_path / "x.mp4")
    Path(name).write_bytes(made.read_bytes())
    frames, _ = read(Path(name))
    assert len(frames) == (1 if name.endswith("png") else 3)


@pytest.mark.parametrize("value", [5, 10, 128, 245, 250])
def test_rgb_keeps_its_contrast(tmp_path, value):
    path = tmp_path / "a.png"
    cv2.imwrite(str(path), np.full((32, 32, 3), value, np.uint8))
    frames, _ = read(path)
    assert abs(grey(frames[0]) - value) < 2


def test_a_lost_beginning_does_not_lose_the_colours(tmp_path):
    full_range = {"color_range": 2, "colorspace": 1, "color_trc": 1, "color_primaries": 1}
    whole = Film(frames=40, gop=20, color=full_range).make(tmp_path / "a.ts").read_bytes()
    path = tmp_path / "b.ts"
    path.write_bytes(whole[: 188 * 3] + whole[188 * 12 :])
    frames, reader = read(path)
    assert frames[0].picture is None
    assert reader.colours == full_range
    assert frames[0].full_range
