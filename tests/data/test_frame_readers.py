"""Parts of videos by their times, and frames spread over all of one, by either decoder; frames tell their numbers."""

import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from vidveil.core.errors import DataError, UsageError
from vidveil.data import frame_readers
from vidveil.data.decode import decode, decoder, part_of, spread_over
from vidveil.data.frame_readers import Part, frames_in, measure
from vidveil.data.store.decoded import decoded

REAL = Path(os.environ.get("VIDVEIL_DATA", "nowhere")) / "videos"
BITS = 9
both = pytest.mark.parametrize("by", ["av", "opencv"])
containers = pytest.mark.parametrize(
    ("ending", "codec", "group"),
    [
        ("mp4", "libx264", 12),
        ("mp4", "libx264", 250),
        ("mkv", "libx264", 12),
        ("ts", "libx264", 12),
        ("avi", "mpeg4", 12),
    ],
)


def film(path: Path, *, ticks: Sequence[int], tick: Fraction, codec: str = "libx264", group: int = 12) -> Path:
    """Frame i shows the number i as bright and dark bands, at so many ticks."""
    with av.open(str(path), "w") as output:
        options = {"g": str(group), "bf": "2", "sc_threshold": "0"} if codec == "libx264" else {"g": str(group)}
        rate = 1 / tick if codec == "mpeg4" else 25
        stream = output.add_stream(codec, rate=rate, options=options)
        stream.width, stream.height, stream.pix_fmt = 16 * BITS, 48, "yuv420p"
        stream.time_base = stream.codec_context.time_base = tick
        for i, time in enumerate(ticks):
            bands = np.array([235 if i >> bit & 1 else 16 for bit in range(BITS)], np.uint8)
            picture = np.broadcast_to(np.repeat(bands, 16)[None, :, None], (48, 16 * BITS, 3))
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = time, tick
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def numbers(video: np.ndarray) -> list[int]:
    bands = video.reshape(len(video), 48, BITS, 16, 3)[:, :, :, 4:12].mean((1, 3, 4)) > 128  # (T, BITS)
    return (bands @ (1 << np.arange(BITS))).tolist()


@pytest.fixture
def ten_seconds(tmp_path):
    return film(tmp_path / "film.mp4", ticks=range(250), tick=Fraction(1, 25))


@both
@containers
def test_a_part_has_exactly_the_frames_that_are_shown_in_it(tmp_path, by, ending, codec, group):
    path = film(tmp_path / f"film.{ending}", ticks=range(250), tick=Fraction(1, 25), codec=codec, group=group)
    assert numbers(decode(path, by=by)) == list(range(250))
    for start, end in ((0, 0.4), (0.1, 0.2), (1.2, 2), (4.33, 4.61), (7.9, 8.3), (9.96, 10)):
        shown = [i for i in range(250) if start <= i / 25 < end]
        assert numbers(decode(f"{path}#t={start},{end}", by=by)) == shown


@both
def test_times_decide_where_the_rate_changes(tmp_path, by):
    """A camera that slows down: 40 ms a frame, then 100, then 20."""
    steps = np.repeat([40, 100, 20], 60)
    times = np.concatenate([[0], np.cumsum(steps)])[:-1]
    path = film(tmp_path / "film.mp4", ticks=times.tolist(), tick=Fraction(1, 1000))
    for start, end in ((2.1, 2.7), (3.0, 3.35), (8.1, 8.5), (9.0, 9.1)):
        shown = np.flatnonzero((times >= 1000 * start) & (times < 1000 * end)).tolist()
        assert numbers(decode(f"{path}#t={start},{end}", by=by)) == shown


@both
def test_times_count_from_the_first_frame(tmp_path, by):
    path = film(tmp_path / "film.mkv", ticks=range(75, 200), tick=Fraction(1, 25))
    assert numbers(decode(f"{path}#t=3.2,3.32", by=by)) == [80, 81, 82]


@both
def test_every_nth_frame_of_a_part_counts_from_its_start(ten_seconds, by):
    assert numbers(decode(f"{ten_seconds}#t=5,6", every=5, limit=3, by=by)) == [125, 130, 135]


@both
def test_a_part_may_reach_past_the_end_but_not_begin_there(ten_seconds, by):
    assert numbers(decode(f"{ten_seconds}#t=9.9,12", by=by)) == [248, 249]
    with pytest.raises(DataError, match=r"film\.mp4#t=11,12 holds no picture that can be decoded, or ends before that"):
        decode(f"{ten_seconds}#t=11,12", by=by)


def test_a_part_must_be_one(tmp_path):
    with pytest.raises(DataError, match="ends before it begins: a part is #t=START,END in seconds"):
        decode(tmp_path / "film.mp4#t=3,3")
    with pytest.raises(DataError, match=r"film\.mp4 is not there"):
        decode(tmp_path / "film.mp4#t=3,4")
    assert part_of("a/b.mp4#t=3,4.25") == (Path("a/b.mp4"), Part(3, 4.25))
    for plain in ("#12_Epsilon.avi", "a.mp4#t=3", "a.mp4#t=,4", "a#t=1,2.mp4"):
        assert part_of(plain) == (Path(plain), None)


@both
def test_a_late_part_is_sought_and_not_decoded_from_the_beginning(ten_seconds, by, monkeypatch):
    name = f"_by_{by}"
    original, seen = getattr(frame_readers, name), []

    def counted(path, begin):
        for shown in original(path, begin):
            seen.append(shown[0])
            yield shown

    monkeypatch.setattr(frame_readers, name, counted)
    assert numbers(decode(f"{ten_seconds}#t=9,9.2", by=by)) == [225, 226, 227, 228, 229]
    assert len(seen) < 70


@both
def test_an_index_that_leads_too_far_costs_time_but_no_frame(ten_seconds, by, monkeypatch):
    name = f"_by_{by}"
    original = getattr(frame_readers, name)
    monkeypatch.setattr(frame_readers, name, lambda path, begin: original(path, begin and begin + 2))
    assert numbers(decode(f"{ten_seconds}#t=5,5.2", by=by)) == [125, 126, 127, 128, 129]


@both
@containers
def test_frames_are_spread_evenly_from_the_first_to_the_last(tmp_path, by, ending, codec, group):
    path = film(tmp_path / f"film.{ending}", ticks=range(250), tick=Fraction(1, 25), codec=codec, group=group)
    assert numbers(decode(path, spread=4, by=by)) == [0, 83, 166, 249]
    assert numbers(decode(path, spread=300, by=by)) == list(range(250))
    with pytest.raises(UsageError, match="spread over whole files, not over parts"):
        decode(f"{path}#t=1,2", spread=4, by=by)


def test_a_spread_takes_as_many_as_it_says():
    for total in (1, 2, 95, 96, 97, 191, 100_000):
        places = sorted(spread_over(total, 96))
        assert len(places) == min(96, total)
        assert places[0] == 0
        assert places[-1] == total - 1
        assert total < 3 or np.ptp(np.diff(places)) <= 1
    assert spread_over(0, 96) == frozenset()


@both
@containers
def test_a_length_is_told_in_frames_and_seconds(tmp_path, by, ending, codec, group):
    path = film(tmp_path / f"film.{ending}", ticks=range(100), tick=Fraction(1, 25), codec=codec, group=group)
    length = measure(path, by)
    assert length.frames == 100
    assert length.seconds == pytest.approx(4, abs=0.15)


@both
def test_what_is_no_video_has_no_length(tmp_path, by):
    (tmp_path / "odd.mp4").write_bytes(b"no video at all" * 100)
    with pytest.raises(DataError, match=r"odd\.mp4 cannot be decoded"):
        measure(tmp_path / "odd.mp4", by)


@pytest.mark.usefixtures("ten_seconds")
def test_a_set_may_list_parts_of_a_file_and_spread_is_another_cache(tmp_path):
    parts = ["film.mp4#t=1,1.2", "film.mp4#t=8,8.4"]
    store = decoded("toy", tmp_path, parts)
    assert [numbers(store.frames(i)) for i in range(2)] == [list(range(25, 30)), list(range(200, 210))]
    assert [shape[0] for shape in decoded("toy", tmp_path, ["film.mp4"], spread=3).shapes] == [3]
    assert [shape[0] for shape in decoded("toy", tmp_path, ["film.mp4"]).shapes] == [250]
    assert decoder() == store.about["decoder"]
    with pytest.raises(DataError, match=r"other\.mp4 is listed but not there"):
        decoded("toy", tmp_path, ["other.mp4#t=1,2"])


@pytest.mark.skipif(not REAL.is_dir(), reason="VIDVEIL_DATA has no folder videos")
def test_both_decoders_find_the_same_parts_of_real_videos():
    for path in sorted(REAL.glob("*.mp4")):
        times = [time for time, _ in frames_in(path, None, "av")]
        for start in np.random.default_rng(0).uniform(0, times[-1] - 0.5, 4).round(1):
            part = Part(start, start + 0.7)
            shown = [time for time in times if part.start <= time + frame_readers.NEAR < part.end]
            for by in ("av", "opencv"):
                assert [time for time, _ in frames_in(path, part, by)] == pytest.approx(shown, abs=1e-4)
