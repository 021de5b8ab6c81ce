"""What the manifest reports of whom and what was found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidveil.core.frame import Frame, Region
from vidveil.detect import moments
from vidveil.detect.moments import Findings, Span, hidden_share
from vidveil.detect.tracks import Sighting, TrackSettings, Trajectory

SIZE = (640, 480)
SCENE = Span(0.0, 10.0, 25.0)


def sighting(seconds, x=300, y=200, side=40, score=0.9, number=1):
    return Sighting(round(seconds * 25), seconds, (x, y, x + side, y + side), score, number)


def moments_of(*sightings, scene=SCENE, settings=None):
    findings = Findings()
    findings.trajectory_over(Trajectory("faces", list(sightings)), SIZE, scene, settings or TrackSettings())
    return findings.as_dict()["moments"]


def names(*sightings, **knobs):
    return [moment["what"] for moment in moments_of(*sightings, **knobs)]


def steadily(start, end, **knobs):
    return [sighting(start + 0.2 * i, **knobs) for i in range(round((end - start) / 0.2) + 1)]


def frame(index, *regions):
    return Frame(index=index, pts=index, duration=1, width=640, height=480, seconds=index / 25, regions=tuple(regions))


def region(track, box=(0, 0, 64, 48)):
    return Region(box=box, kind="faces", track=track, score=0.0, source="lost" if box is None else "detected")


def test_who_is_seen_all_along_is_no_moment():
    assert names(*steadily(0, 10)) == []


def test_a_gap_of_more_than_half_a_second_is_a_moment():
    (gap,) = moments_of(*steadily(0, 4), *steadily(5, 10))
    assert gap["what"] == "gap"
    assert (gap["first"], gap["last"], gap["from"], gap["to"]) == (100, 125, 4.0, 5.0)
    assert names(*steadily(0, 4), *steadily(4.4, 10)) == []


def test_born_and_lost_in_mid_picture_are_moments_and_at_the_border_they_are_not():
    assert names(*steadily(4, 6)) == ["first seen mid-picture", "lost mid-picture"]
    passing = [sighting(4 + 0.2 * i, x=-10 + 67 * i) for i in range(10)]
    assert names(*passing) == []


def test_who_stands_at_the_border_did_not_come_or_go_through_it():
    assert names(*steadily(4, 6, x=0)) == ["first seen mid-picture", "lost mid-picture"]


def test_a_birth_that_was_hidden_from_the_start_of_the_scene_is_no_moment():
    assert names(*steadily(0.8, 10)) == []
    assert names(*steadily(1.4, 10)) == ["first seen mid-picture"]
    assert names(*steadily(0, 9.2)) == []


def test_moments_of_birth_and_loss_are_the_time_without_a_box():
    new, lost = moments_of(*steadily(4, 6))
    assert (new["from"], new["to"]) == (2.5, 3.0)
    assert (lost["from"], lost["to"]) == (7.0, 7.5)
    assert (new["first"], new["last"]) == (62, 75)


def test_low_scores_in_a_row_and_a_single_weak_find_are_moments():
    weak = [sighting(4 + 0.2 * i, score=0.2) for i in range(3)]
    assert names(*steadily(0, 3.8), *weak, *steadily(4.6, 10)) == ["low score"]
    assert names(*steadily(0, 3.8), weak[0], *steadily(4.2, 10)) == []
    assert names(sighting(5, score=0.3)) == ["low score"]


@pytest.mark.parametrize("side", [80, 20])
def test_a_sudden_change_of_size_is_a_moment(side):
    assert names(*steadily(0, 4), *steadily(4.2, 10, side=side)) == ["sudden change of size"]


def test_black_frames_make_one_moment_for_each_run():
    findings = Findings()
    for i in range(10):
        findings.frame_done(frame(i, *([region(1, None)] if i in (2, 3, 4, 7, 8, 9) else [])))
    runs = [(m["first"], m["last"], m["box"]) for m in findings.as_dict()["moments"]]
    assert runs == [(2, 4, None), (7, 9, None)]


def test_tracks_frames_and_areas_are_counted():
    findings = Findings()
    findings.frame_done(frame(0, region(1), region(2)))
    findings.frame_done(frame(1, region(2, (0, 0, 640, 240))))
    findings.frame_done(frame(2, region(3, None)))
    findings.frame_done(frame(3))
    summary = findings.as_dict()
    assert (summary["tracks"], summary["frames_with_regions"]) == (3, 3)
    assert summary["hidden_area"] == pytest.approx((0.01 + 0.5 + 1.0 + 0) / 4, abs=0.005)


def test_too_many_moments_are_counted_and_left_out(monkeypatch):
    monkeypatch.setattr(moments, "MOST", 3)
    findings = Findings()
    for i in range(5):
        findings.trajectory_over(Trajectory("faces", [sighting(i, score=0.3)]), SIZE, SCENE, TrackSettings())
    summary = findings.as_dict()
    assert len(summary["moments"]) == 3
    assert summary["moments_left_out"] == 2


def test_moments_stand_in_order_of_time():
    findings = Findings()
    for at in (7, 3, 5):
        findings.trajectory_over(Trajectory("faces", [sighting(at, score=0.3)]), SIZE, SCENE, TrackSettings())
    assert [m["from"] for m in findings.as_dict()["moments"]] == [3, 5, 7]


@given(st.integers(0, 500), st.integers(0, 400), st.integers(30, 140), st.integers(30, 80))
def test_the_hidden_share_is_that_of_the_box(x, y, width, height):
    share = hidden_share([(x, y, x + width, y + height), (x, y, x + width, y + height)], SIZE)
    assert share == pytest.approx(width * height / (640 * 480), abs=0.01)


@pytest.mark.parametrize(
    ("box", "share"),
    [
        ((-320, -240, 320, 240), 0.25),
        ((320, 240, 960, 720), 0.25),
        ((-90, -90, -10, -10), 0),
        ((700, 100, 800, 200), 0),
    ],
)
def test_of_a_box_that_sticks_out_over_the_border_only_what_is_inside_counts(box, share):
    findings = Findings()
    findings.frame_done(frame(0, region(1, box)))
    assert findings.as_dict()["hidden_area"] == pytest.approx(share, abs=0.01)


def test_the_beginning_of_a_very_long_trajectory_is_reported_once_and_forgotten():
    findings = Findings()
    trajectory = Trajectory("faces", [*steadily(1.6, 3), *steadily(4, 6)])
    whole = list(trajectory.sightings)
    findings.trajectory_so_far(trajectory, [s for s in whole if s.seconds < 5])
    assert len(trajectory.sightings) < len(whole) / 2
    trajectory.sightings += steadily(6.2, 8)
    findings.trajectory_so_far(trajectory, [s for s in trajectory.sightings if s.seconds < 7])
    findings.trajectory_over(trajectory, SIZE, SCENE, TrackSettings())
    assert [m["what"] for m in findings.as_dict()["moments"]] == ["gap", "lost mid-picture"]
