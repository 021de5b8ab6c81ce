"""Live sources: what is joined midway, cut off, away for a while, and back with another clock."""

import threading
import time
from collections.abc import Iterator
from fractions import Fraction

import av
import numpy as np
import pytest

from tests.camera import camera
from tests.media import Film, detail, level
from vidveil.core.errors import InputError
from vidveil.core.frame import Frame
from vidveil.video import live
from vidveil.video.live import ClockReading, ConnectionState, LiveClock, backlog_first, begins_midway
from vidveil.video.read import Reader
from vidveil.video.sources import Kind, Source

TICK, RATE = Fraction(1, 90_000), Fraction(25)
STEP = 3600


def read(url: str, **how) -> tuple[list[Frame], Reader]:
    with Reader(Source(Kind.STREAM, url, "camera"), **how) as reader:
        return list(reader), reader


def clock_at(*times: int) -> LiveClock:
    clock = LiveClock(TICK, RATE)
    for pts in times:
        clock.next(pts, STEP)
    return clock


@pytest.mark.parametrize("begins", [0, 5_000, 10**9, -77])
def test_after_a_gap_time_goes_on_by_as_much_as_it_took(begins):
    clock = clock_at(0, STEP, 2 * STEP)
    clock.resume(begins, 270_000)
    found = [clock.next(begins + i * STEP, STEP) for i in range(3)]
    assert found == [2 * STEP + 270_000 + i * STEP for i in range(3)]
    assert clock.corrected == 0


def test_after_a_gap_a_source_without_times_goes_on_by_steps():
    clock = clock_at(0, STEP)
    clock.resume(None, 270_000)
    assert [clock.next(None, 0) for _ in range(2)] == [STEP + 270_000, STEP + 270_000 + STEP]


@pytest.mark.parametrize("gap", [0, -500_000, 10])
def test_a_gap_is_never_shorter_than_a_frame(gap):
    clock = clock_at(0, STEP)
    clock.resume(40, gap)
    assert clock.next(40, STEP) == 2 * STEP


def test_what_was_sent_before_the_gap_ended_comes_after_what_was_shown():
    clock = clock_at(0, STEP)
    clock.resume(900_000, 180_000)  # a server that begins with the last ten seconds, of which eight are known
    found = [clock.next(pts, STEP) for pts in (0, STEP, 2 * STEP)]
    assert found == [2 * STEP, 3 * STEP, 4 * STEP]


def test_a_gap_fits_into_an_mp4():
    clock = clock_at(0, STEP)
    clock.resume(0, 1 << 40)
    assert clock.next(0, STEP) < 1 << 31


def packet(pts: int | None) -> av.Packet:
    made = av.Packet(b"x")
    made.pts, made.time_base = pts, TICK
    return made


@pytest.fixture
def arriving(monkeypatch):
    """Packets that come after waits, on a clock of their own: (wait in seconds, pts)."""
    now = 1000.0
    monkeypatch.setattr(live, "monotonic", lambda: now)

    def arrive(*packets: tuple[float, int | None]) -> Iterator[av.Packet]:
        nonlocal now
        for wait, pts in packets:
            now += wait
            yield packet(pts)

    return arrive


def test_the_first_packet_that_is_waited_for_gives_the_time(arriving):
    piled_up = [(0.0, i * STEP) for i in range(20)]
    sightings: list[ClockReading] = []
    packets = backlog_first(arriving(*piled_up, (0.03, 20 * STEP), (0.2, 21 * STEP)), sightings.append, STEP)
    assert [p.pts for p in packets] == [i * STEP for i in range(22)]
    assert sightings == [(20 * STEP, 1000.03)]


def test_a_source_that_sends_faster_than_life_does_not_hold_up_its_packets(arriving):
    sightings: list[ClockReading] = []
    packets = backlog_first(arriving(*((0.004, i * STEP) for i in range(10_000))), sightings.append, STEP)
    next(packets)
    assert sightings[0].at < 1001.1


def test_packets_without_a_time_get_one_from_those_that_follow(arriving):
    packets = backlog_first(arriving((0, None), (0.1, None), (0, 9_000), (0.1, 12_600)), lambda _: None, STEP)
    assert [p.pts for p in packets] == [1_800, 5_400, 9_000, 12_600]


def test_what_came_before_a_failure_is_not_lost_with_it():
    def broken() -> Iterator[av.Packet]:
        yield packet(0)
        raise av.error.ConnectionResetError(104, "reset")

    packets = backlog_first(broken(), lambda _: None, STEP)
    assert next(packets).pts == 0
    with pytest.raises(av.error.ConnectionResetError):
        next(packets)


def test_a_source_is_tried_again_with_growing_pauses_until_it_is_there(monkeypatch):
    monkeypatch.setattr(live, "PAUSES_S", (0.02, 0.1, 0.2))
    tried: list[float] = []

    def dial() -> str:
        tried.append(time.monotonic())
        if len(tried) < 4:
            raise InputError("not yet")
        return "there"

    assert ConnectionState(60).reconnect(dial, time.monotonic() + 60) == "there"
    pauses = np.diff(tried)
    assert (pauses > (0.1, 0.2, 0.2)).all()


def test_a_source_is_given_up_in_time():
    def dial() -> str:
        raise InputError("never")

    began = time.monotonic()
    assert ConnectionState(60).reconnect(dial, began + 0.7) is None
    assert 0.7 <= time.monotonic() - began < 2


def test_who_waits_for_a_source_can_be_stopped_at_once():
    line = ConnectionState(60)
    threading.Timer(0.2, line.stop).start()
    began = time.monotonic()
    assert line.reconnect(lambda: time.sleep(0.01), began + 60) is None
    assert time.monotonic() - began < 0.45  # and not 0.5, when it would have been tried


@pytest.mark.parametrize(
    ("codec", "data", "midway"),
    [
        ("h264", b"\0\0\0\1\x67abc\0\0\1\x68de\0\0\1\x65\x88abcd", False),
        ("h264", b"\0\0\1\x65\x40abcd", True),
        ("h264", b"rest of a slice\0\0\1\x65\x40abcd", True),
        ("h264", b"rest of a slice", True),
        ("h264", b"\0\0\1\x41\x9aabcd", False),
        ("hevc", b"\0\0\0\1\x40\1abc\0\0\1\x26\1\xafabcd", False),
        ("hevc", b"\0\0\1\x26\1\x2fabcd", True),
        ("mjpeg", b"rest of a picture", False),
    ],
)
def test_a_packet_shows_whether_the_beginning_of_its_picture_is_missing(codec, data, midway):
    assert begins_midway(av.Packet(data), codec, None) is midway


def whole(frame: Frame) -> bool:
    """Whether a picture is one of the film, all of it."""
    assert frame.picture is not None
    luma = frame.planes[0]
    bands = luma.reshape(4, -1, luma.shape[1])
    greys = np.array([level(i) if frame.full_range else 16 + level(i) * 219 / 255 for i in range(24)])
    return bool(detail(bands).min() > 55 and np.ptp(bands.mean((1, 2))) < 2 and np.abs(greys - luma.mean()).min() < 2)


@pytest.mark.parametrize(
    ("name", "codec"), [("a.ts", "libx264"), ("a.ts", "libx265"), ("a.ts", "mpeg4"), ("a.h264", "libx264")]
)
@pytest.mark.parametrize("share", [0.31, 0.42, 0.5])
def test_a_stream_joined_and_cut_off_midway_shows_whole_pictures_only(tmp_path, name, codec, share):
    data = Film(frames=90, width=160, height=120, codec=codec, gop=15).make(tmp_path / name).read_bytes()
    with camera(data[int(share * len(data)) : int((share + 0.45) * len(data))]) as url:
        frames, reader = read(url, reconnect=0)
    assert len(frames) > 10
    assert all(whole(frame) for frame in frames)  # and what came before a key picture is left out
    assert reader.report.cut_short == "was lost (connection reset by peer)"


@pytest.mark.parametrize("share", [0.61, 0.63, 0.65])
@pytest.mark.parametrize(
    ("name", "codec", "layout"), [("a.ts", "libx265", "yuv420p"), ("a.mjpeg", "mjpeg", "yuvj420p")]
)
def test_half_a_packet_is_not_made_into_half_a_picture(tmp_path, name, codec, layout, share):
    film = Film(frames=30, width=320, height=240, codec=codec, pix_fmt=layout, gop=1)
    data = film.make(tmp_path / name).read_bytes()
    with camera(data[: int(share * len(data))], stays=0.3) as url:
        frames, _ = read(url, reconnect=0)
    assert len(frames) > 10
    assert all(frame.picture is None or whole(frame) for frame in frames)


def test_a_source_that_is_back_with_another_codec_size_and_time_base_goes_on(tmp_path):
    first = Film(frames=60, width=160, height=120, gop=5).make(tmp_path / "a.ts").read_bytes()
    other = Film(frames=60, width=192, height=144, codec="mpeg4", gop=5).make(tmp_path / "a.mkv").read_bytes()
    with camera(first, other, seconds=2.4) as url:
        frames, reader = read(url, reconnect=2)
    assert reader.report.reconnects == 1
    assert len(frames) > 100
    assert {(frame.width, frame.height) for frame in frames} == {(160, 120)}
    assert [frame.index for frame in frames] == list(range(len(frames)))
    (gap,) = [i for i, frame in enumerate(frames) if frame.after_gap]
    assert 50 < gap < 60
    steps = np.diff([frame.seconds for frame in frames])
    assert np.argmax(steps) == gap - 1
    assert 0.45 < steps[gap - 1] < 1.5
    assert np.allclose(np.delete(steps, gap - 1), 0.04, atol=0.002)
    away = f"the stream was interrupted 1 time, for {steps[gap - 1]:.1f} s in all"
    assert away in reader.report.warnings


def test_several_outages_are_reported_in_one_line(tmp_path):
    film = Film(frames=50, width=160, height=120, gop=5).make(tmp_path / "a.ts").read_bytes()
    with camera(film, film, film, seconds=1.5) as url:
        frames, reader = read(url, reconnect=1)
    assert sum(frame.after_gap for frame in frames) == reader.report.reconnects == 2
    (line,) = [line for line in reader.report.warnings if "interrupted" in line]
    assert line.startswith("the stream was interrupted 2 times, for ")


def test_a_polite_end_is_no_error_when_the_source_stays_away(tmp_path):
    film = Film(frames=50, width=160, height=120).make(tmp_path / "a.ts").read_bytes()
    with camera(film, reset=False) as url:
        _, reader = read(url, reconnect=1)
    assert reader.report.cut_short is None
    assert reader.report.warnings == ["the stream ended, and did not come back"]


def test_a_source_that_falls_silent_is_lost(tmp_path, monkeypatch):
    for module in ("probe", "connection"):
        monkeypatch.setattr(f"vidveil.video.{module}.TIMEOUT_S", 1.0)
    film = Film(frames=50, width=160, height=120).make(tmp_path / "a.ts").read_bytes()
    with camera(film, stays=8) as url, Reader(Source(Kind.STREAM, url, "camera"), reconnect=0) as reader:
        opened = time.monotonic()
        frames = list(reader)
        took = time.monotonic() - opened
    assert len(frames) > 40
    assert reader.report.cut_short == "was lost (silent for 10 s)"
    assert took < 2.5  # the parser, which lets go of what it has after a timeout, does not earn the source another one


def test_what_has_a_length_is_read_to_its_end_and_not_begun_again(tmp_path):
    film = Film(frames=50).make(tmp_path / "a.mkv").read_bytes()
    with camera(film, film, reset=False) as url:
        frames, reader = read(url, reconnect=30)
    assert len(frames) == 50
    assert reader.report.reconnects == 0
    assert reader.report.warnings == []


def test_a_reader_that_waits_ends_when_it_is_stopped(tmp_path):
    film = Film(frames=50, width=160, height=120).make(tmp_path / "a.ts").read_bytes()
    with camera(film) as url, Reader(Source(Kind.STREAM, url, "camera"), reconnect=60) as reader:
        ended: list[float] = []

        def work() -> None:
            ended.extend((len(list(reader)), time.monotonic()))

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(2.7)  # within the pause of two seconds that follows the second try
        stopped = time.monotonic()
        reader.stop()
        thread.join()
    assert ended[0] > 40
    assert ended[1] - stopped < 0.5
    assert reader.report.cut_short is None


def test_no_frame_is_waited_for_beyond_the_end_that_was_asked_for(tmp_path):
    film = Film(frames=50, width=160, height=120).make(tmp_path / "a.ts").read_bytes()
    began = time.monotonic()
    with camera(film) as url:
        _, reader = read(url, reconnect=60, end=Fraction(4))
    assert time.monotonic() - began < 10
    assert reader.report.cut_short is not None
