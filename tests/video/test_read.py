"""The reader gives every frame, at its own time, whatever the file."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.media import Film, level, times
from vidveil.errors import InputError
from vidveil.video.frame import Frame
from vidveil.video.read import DAMAGED, UNDECODABLE, Reader
from vidveil.video.sources import find


def read(path: Path, **how: Fraction) -> tuple[list[Frame], Reader]:
    (source,), refused, _ = find([str(path)])
    assert not refused
    with Reader(source, **how) as reader:
        return list(reader), reader


def seconds(frames: list[Frame], reader: Reader) -> list[Fraction]:
    return [frame.pts * reader.info.time_base for frame in frames]


def grey(frame: Frame) -> float:
    return float(frame.rgb().mean())


def test_frames_come_once_each_and_in_order(tmp_path):
    frames, _ = read(Film(frames=24).make(tmp_path / "a.mp4"))
    assert [frame.index for frame in frames] == list(range(24))
    assert np.allclose([grey(frame) for frame in frames], [level(i) for i in range(24)], atol=2)


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
def test_whatever_codec_and_container_the_pictures_are_8_bit_420_and_complete(tmp_path, name, codec, pix_fmt):
    film = Film(frames=12, codec=codec, pix_fmt=pix_fmt)
    frames, _ = read(film.make(tmp_path / name))
    assert len(frames) == 12
    for i, frame in enumerate(frames):
        assert frame.picture.format.name in ("yuv420p", "yuvj420p")
        assert abs(grey(frame) - level(i)) < (30 if codec == "gif" else 4), i


def test_variable_frame_times_are_exact(tmp_path):
    pts = [0, 7, 13, 40, 41, 100, 230, 231]
    film = Film(pts=pts, time_base=Fraction(1, 1000), options={"video_track_timescale": "1000"})
    frames, reader = read(film.make(tmp_path / "a.mkv"))
    assert seconds(frames, reader) == [Fraction(p, 1000) for p in pts]


def test_ntsc_film_rate_does_not_drift(tmp_path):
    frames, reader = read(Film(frames=48, rate=Fraction(24000, 1001)).make(tmp_path / "a.mp4"))
    assert seconds(frames, reader) == [Fraction(1001 * i, 24000) for i in range(48)]


def test_missing_timestamps_are_filled_from_the_rate(tmp_path):
    frames, reader = read(Film(frames=10, rate=25).make(tmp_path / "a.h264"))
    assert seconds(frames, reader) == [Fraction(i, 25) for i in range(10)]


def test_a_stream_that_starts_late_on_its_clock_is_counted_from_its_start(tmp_path):
    film = Film(pts=[900_000 + 3600 * i for i in range(8)], time_base=Fraction(1, 90_000))
    frames, reader = read(film.make(tmp_path / "a.ts"))
    assert seconds(frames, reader) == [Fraction(i, 25) for i in range(8)]


def test_a_video_that_begins_after_its_sound_keeps_its_delay(tmp_path):
    film = Film(pts=[5000 + 400 * i for i in range(8)], time_base=Fraction(1, 10_000), sound="aac", sound_first=True)
    path = film.make(tmp_path / "a.mp4")
    frames, reader = read(path)
    assert seconds(frames, reader)[0] == Fraction(1, 2)


def test_odd_sizes_are_read_as_they_are(tmp_path):
    film = Film(width=63, height=47, codec="ffv1")
    frames, _ = read(film.make(tmp_path / "a.mkv"))
    assert (frames[0].width, frames[0].height) == (63, 47)
    assert frames[0].rgb().shape == (47, 63, 3)


def test_ten_bits_and_hdr_are_said(tmp_path):
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


def test_a_truncated_file_gives_what_is_there_and_says_so(tmp_path):
    path = Film(frames=60, width=160, height=120, options={"movflags": "faststart"}).make(tmp_path / "a.mp4")
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    frames, reader = read(path)
    assert 10 < len(frames) < 60
    assert "of 60 frames" in reader.report.cut_short


def test_a_truncated_matroska_says_so_too(tmp_path):
    path = Film(frames=100, width=160, height=120).make(tmp_path / "a.mkv")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    _, reader = read(path)
    assert "of 4.0 s" in reader.report.cut_short


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
