"""When something was filmed does not survive: outputs begin at 0, with all intervals and with sound in step."""

import json
from fractions import Fraction
from pathlib import Path
from time import process_time

import pytest

from tests.media import Film, lumas, packets, times
from tests.whole_frame import anonymize
from vidveil.app.jobs import Options
from vidveil.video.read import Reader
from vidveil.video.sources import Kind, Source

DATE, TIME_OF_DAY = 1_700_000_000, 52_331
UNEVEN = (0, 40, 80, 130, 160, 400, 440, 480)  # ms
NEAR = Fraction(1, 500)  # FLV and Matroska count in milliseconds


def film(path: Path, offset: float, sound_after: float | None = None, **options: str) -> Path:
    """Pictures from `offset` seconds on, unevenly, and sound so many seconds later."""
    if path.suffix == ".mp4":
        options |= {"movie_timescale": "1000", "video_track_timescale": "16000"}
    more = {} if sound_after is None else {"sound": "aac", "sound_offset": offset + sound_after}
    if path.suffix == ".asf":
        more |= {"bframes": 0}  # it has times of decoding alone
    pts = [round(offset * 1000) + ms for ms in UNEVEN]
    return Film(pts=pts, time_base=Fraction(1, 1000), frames=20, options=options, **more).make(path)


def run(path: Path, **options) -> Path:
    outcome = anonymize(path, options=Options(**options))[0]
    assert outcome.error is None, outcome.error
    return outcome.output


def manifest(output: Path) -> dict:
    return json.loads(output.with_suffix(".json").read_text())


def steps(path: Path) -> list[Fraction]:
    """Seconds between each frame and the first."""
    shown = times(path)
    return [time - shown[0] for time in shown]


def delay(path: Path) -> Fraction:
    """By how much the sound begins after the picture, or before."""
    return packets(path)[0][0] - times(path)[0]


PACKET = Fraction(1024, 48_000)  # the first one may be there for the decoder alone


@pytest.mark.parametrize("offset", [DATE, TIME_OF_DAY, 5, 0.04])
@pytest.mark.parametrize("suffix", ["mp4", "mkv", "flv"])
def test_the_time_of_recording_is_dropped_and_intervals_stay(tmp_path, suffix, offset):
    path = film(tmp_path / f"a.{suffix}", offset)
    began = process_time()
    output = run(path)
    assert process_time() - began < 5  # a large number is no long video
    assert times(output)[0] == 0
    assert steps(output) == steps(path) == [Fraction(ms, 1000) for ms in UNEVEN]
    assert output.stat().st_size < 20_000
    assert manifest(output)["video"]["time_from_zero"] is True


@pytest.mark.parametrize("audio", ["drop", "keep"])
def test_times_before_0_begin_at_0_too(tmp_path, audio):
    path = film(tmp_path / "a.asf", -3, 0.1, avoid_negative_ts="disabled")
    assert times(path)[0] < -2
    output = run(path, audio=audio)
    assert times(output)[0] == 0
    assert steps(output)[:-1] == steps(path)[:-1]  # the last two have one time in the source
    assert audio == "drop" or abs(delay(output) - delay(path)) <= NEAR


@pytest.mark.parametrize("audio", ["keep", "distort"])
@pytest.mark.parametrize("sound_after", [0.2, -0.2])
@pytest.mark.parametrize("offset", [DATE, TIME_OF_DAY])
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_sound_and_picture_move_together(tmp_path, suffix, offset, sound_after, audio):
    path = film(tmp_path / f"a.{suffix}", offset, sound_after)
    output = run(path, audio=audio)
    assert abs(delay(output) - delay(path)) <= NEAR + (PACKET if audio == "distort" else 0)
    assert steps(output) == steps(path)
    assert -PACKET - NEAR <= min(times(output)[0], packets(output)[0][0]) <= NEAR
    if audio == "keep":
        assert [data for _, data in packets(output)] == [data for _, data in packets(path)]


def test_a_picture_by_itself_begins_at_0_even_where_the_sound_was_earlier(tmp_path):
    path = film(tmp_path / "a.mp4", 5, -1)
    assert times(run(path))[0] == 0
    assert times(run(path, audio="keep", overwrite=True))[0] > Fraction(9, 10)


def test_sound_whose_clock_is_hours_from_the_pictures_begins_with_it(tmp_path):
    path = film(tmp_path / "a.mkv", TIME_OF_DAY, -TIME_OF_DAY)
    output = run(path, audio="keep")
    assert times(output)[0] == 0
    assert abs(delay(output)) <= PACKET + NEAR
    assert len(packets(output)) == len(packets(path))


@pytest.mark.parametrize(("suffix", "offset"), [("mp4", TIME_OF_DAY), ("mkv", DATE), ("mkv", TIME_OF_DAY), ("flv", 5)])
def test_metadata_keep_keeps_the_time_of_recording(tmp_path, suffix, offset):
    path = film(tmp_path / f"a.{suffix}", offset, 0.2)
    output = run(path, audio="keep", metadata="keep")
    assert times(output) == times(path)
    assert abs(delay(output) - delay(path)) <= NEAR
    assert manifest(output)["video"]["time_from_zero"] is False


@pytest.mark.parametrize("metadata", ["drop", "keep"])
@pytest.mark.parametrize("suffix", ["mp4", "mkv", "flv"])
def test_a_cut_counts_from_the_beginning_as_players_do(tmp_path, suffix, metadata):
    path = film(tmp_path / f"a.{suffix}", TIME_OF_DAY, 0.03)
    output = run(path, start=Fraction(13, 100), end=Fraction(44, 100), audio="keep", metadata=metadata)
    begin = times(path)[0] if metadata == "keep" else 0
    assert [time - begin for time in times(output)] == [Fraction(ms, 1000) for ms in (0, 30, 270)]
    assert abs(lumas(output)[0].mean() - lumas(path)[3].mean()) < 2
    sound = [time - begin for time, _ in packets(output)]
    assert -PACKET - NEAR <= sound[0] <= 0
    assert Fraction(28, 100) <= sound[-1] < Fraction(31, 100)


def test_frames_are_timed_from_0_and_as_the_file_has_it_where_that_is_asked_for(tmp_path):
    path = film(tmp_path / "a.mkv", TIME_OF_DAY)
    with Reader(Source(Kind.VIDEO, str(path), "a.mkv")) as reader:
        assert [round(frame.seconds * 1000) for frame in reader] == list(UNEVEN)
        assert reader.info.length < 30
    with Reader(Source(Kind.VIDEO, str(path), "a.mkv"), keep_offset=True) as reader:
        assert next(iter(reader)).seconds == TIME_OF_DAY
