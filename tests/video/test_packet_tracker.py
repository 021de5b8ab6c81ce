"""Which packets gave a picture, and when it is shown."""

from fractions import Fraction

import av
import pytest

from vidveil.video.packet_tracker import Clock, InOrderPacketTracker, PacketTracker


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ([0, 2, 1, 3], [0, 2, 3, 4]),  # a step back is nudged forward
        ([0, 1, 1, 2], [0, 1, 2, 3]),
        ([None, None, 5], [0, 1, 5]),
        ([500, 501, 490, 491, 492], [500, 501, 502, 503, 504]),  # a clock set back goes on where it was
        ([0, 1, 1 << 50, (1 << 50) + 1], [0, 1, 2, 3]),  # and one that leaps ahead
        ([-(1 << 62), 3], [0, 1]),
    ],
)
def test_times_always_increase(found, wanted):
    clock = Clock(Fraction(1, 25), Fraction(25))
    assert [clock.next(pts, 1) for pts in found] == wanted


def packet(pts: int, dts: int | None = None) -> av.Packet:
    made = av.Packet(b"x")
    made.pts, made.dts, made.duration = pts, dts if dts is not None else pts, 1
    return made


def lost_of(tracker: PacketTracker, key: int, *, interlaced: bool = False) -> list[int]:
    return [pending.pts for pending in tracker.settle(key, interlaced=interlaced)]


def sent(tracker: PacketTracker, *times: tuple[int, int]) -> list[int]:
    keys = []
    for pts, dts in times:
        made = packet(pts, dts)
        tracker.enter(made)
        keys.append(made.pts)
    return keys


@pytest.fixture
def tracker() -> PacketTracker:
    return PacketTracker("h264", 1, Fraction(25))


def test_pictures_in_another_order_than_packets_are_not_lost(tracker):
    a, b, c, d = sent(tracker, (0, 0), (3, 1), (1, 2), (2, 3))
    assert [lost_of(tracker, key) for key in (a, c, d, b)] == [[], [], [], []]
    assert list(tracker.rest()) == []


def test_a_packet_without_a_picture_is_lost_when_a_later_picture_is_out(tracker):
    a, b, _, d = sent(tracker, (0, 0), (1, 1), (2, 2), (3, 3))
    assert lost_of(tracker, a) == []
    assert lost_of(tracker, b) == []
    assert lost_of(tracker, d) == [2]


def test_packets_at_the_end_without_pictures_are_lost(tracker):
    a, *_ = sent(tracker, (0, 0), (1, 1), (2, 2))
    lost_of(tracker, a)
    assert [pending.pts for pending in tracker.rest()] == [1, 2]


def test_a_picture_that_comes_too_late_is_known_as_given_up(tracker):
    _, b, c = sent(tracker, (0, 0), (1, 1), (2, 2))
    assert lost_of(tracker, c) == [0, 1]
    assert tracker.gave_up(b)
    assert not tracker.gave_up(c)


def test_a_clock_that_is_set_back_loses_nothing(tracker):
    first = sent(tracker, (0, 0), (1, 1), (2, 2))
    again = sent(tracker, (0, 0), (1, 1), (2, 2))
    assert [lost_of(tracker, key) for key in (*first, *again)] == [[]] * 6
    assert [tracker.time_of(key) for key in again] == [0, 1, 2]


def test_the_same_time_twice_is_two_pictures(tracker):
    a, b = sent(tracker, (5, 5), (5, 6))
    assert a == b
    assert lost_of(tracker, a) == lost_of(tracker, b) == []
    assert list(tracker.rest()) == []


def test_the_second_field_of_a_picture_is_not_a_lost_picture():
    tracker = PacketTracker("h264", 2, Fraction(25))
    keys = sent(tracker, *((i, i) for i in range(40)))  # each picture's fields are two packets
    for key in keys[::2]:
        assert lost_of(tracker, key, interlaced=True) == []
    assert list(tracker.rest()) == []


def test_a_lost_picture_of_interlaced_video_is_lost():
    tracker = PacketTracker("mpeg2video", 2, Fraction(25))
    keys = sent(tracker, *((2 * i, 2 * i) for i in range(40)))
    lost = [pts for i, key in enumerate(keys) if i not in (1, 7, 20) for pts in lost_of(tracker, key, interlaced=True)]
    assert lost == [2, 14, 40]


def test_a_packet_that_is_never_shown_is_not_lost():
    tracker = PacketTracker("vp8", 40, Fraction(25))
    keys = []
    for pts, first_byte in ((0, 0x10), (40, 0x10), (80, 0x00), (80, 0x10)):  # the third is for the decoder alone
        made = av.Packet(bytes([first_byte]))
        made.pts = made.dts = pts
        tracker.enter(made)
        keys.append(made.pts)
    assert [lost_of(tracker, key) for key in (keys[0], keys[1], keys[3])] == [[], [], []]
    assert list(tracker.rest()) == []


def test_a_picture_that_is_to_be_repeated_is_not_lost():
    tracker = PacketTracker("mpeg4", 1, Fraction(25))
    for pts, payload in ((0, bytes(50)), (1, bytes(6)), (2, bytes(50))):
        made = av.Packet(payload)
        made.pts = made.dts = pts
        tracker.enter(made)
    assert lost_of(tracker, 0) == lost_of(tracker, 2) == []


def test_pictures_of_a_container_without_times_take_the_slots_in_order():
    tracker = InOrderPacketTracker("h264", 1, Fraction(25))
    keys = sent(tracker, *((i + 1, i) for i in range(4)))
    assert [tracker.time_of(keys[i]) for i in (0, 3, 1, 2)] == [0, 1, 2, 3]
    assert list(tracker.rest()) == []


@pytest.mark.parametrize("pts", [0, 1, -1, 12345, -(1 << 42), (1 << 42)])
@pytest.mark.parametrize("back", [0, 1, 7])
def test_times_survive_the_change_of_epochs(tracker, pts, back):
    for i in range(back):
        tracker.enter(packet(0, 10 - i))
    tracker.enter(packet(0, 10 - back))
    made = packet(pts, 11)
    tracker.enter(made)
    assert tracker.time_of(made.pts) == pts
