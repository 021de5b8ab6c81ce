"""From sightings to the box that hides somebody at any time."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vidveil.detect.tracks import (
    BRIDGE,
    EDGE_HOLD,
    Sighting,
    TrackSettings,
    Trajectory,
    clipped,
    extent,
    grown,
    joint,
    link,
    middle,
    mismatch,
    moved,
    widened,
)

SIZE = (640, 480)
corners = st.floats(-50, 600)
sides = st.floats(2, 200)


@st.composite
def boxes(draw):
    x, y = draw(corners), draw(corners)
    return x, y, x + draw(sides), y + draw(sides)


def trajectory(*places, number=1, score=0.9, step=0.2):
    """A head of 40 × 40 pixels with its middle at these places, one a key frame; None where it is missed."""
    seen = [
        Sighting(round(i * step * 25), i * step, (x - 20, y - 20, x + 20, y + 20), score, number)
        for i, place in enumerate(places)
        if place is not None
        for x, y in [place]
    ]
    return Trajectory("faces", seen)


def holds(outer, inner, slack=1e-6):
    return all(a <= b + slack for a, b in zip(outer[:2], inner[:2], strict=True)) and all(
        a >= b - slack for a, b in zip(outer[2:], inner[2:], strict=True)
    )


def box_at(a, seconds, settings=None):
    (region,) = a.regions(seconds, SIZE, settings or TrackSettings())
    return region.box


def test_a_sighting_is_hidden_where_it_was_seen():
    (region,) = trajectory((300, 200), (320, 200)).regions(0.2, SIZE, TrackSettings())
    assert (region.source, region.box, region.score) == ("detected", (300, 180, 340, 220), 0.9)


@given(seconds=st.floats(0.001, 0.199), x=st.floats(100, 500), y=st.floats(100, 400))
def test_between_two_sightings_the_straight_way_is_hidden(seconds, x, y):
    a = trajectory((300, 200), (x, y))
    share = seconds / 0.2
    there = (300 + share * (x - 300), 200 + share * (y - 200))
    assert holds(box_at(a, seconds), (there[0] - 20, there[1] - 20, there[0] + 20, there[1] + 20), 1e-3)


def test_the_further_the_way_the_wider_the_box_in_between():
    x0, y0, x1, y1 = box_at(trajectory((300, 200), (360, 200)), 0.1)
    assert x1 - x0 >= 40 + 2 * 0.1 * 60
    assert y1 - y0 == pytest.approx(40)


def test_a_gap_is_filled_and_distinguished_from_a_blink():
    blink = trajectory((300, 200), None, (300, 200))
    gap = trajectory((300, 200), None, None, None, (300, 200))
    assert [r.source for r in blink.regions(0.3, SIZE, TrackSettings())] == ["between"]
    assert [r.source for r in gap.regions(0.3, SIZE, TrackSettings())] == ["gap"]
    assert holds(box_at(gap, 0.4), widened(box_at(blink, 0.2), 2, 2))


def test_in_a_gap_all_of_the_way_is_hidden_since_nobody_knows_when_they_went():
    gap = trajectory((300, 200), None, None, None, (380, 230))
    for seconds in (0.04, 0.4, 0.76):
        assert holds(box_at(gap, seconds), joint(gap.first.box, gap.last.box))


def test_a_gap_blackens_the_frame_where_that_is_wanted():
    gap = trajectory((300, 200), None, None, None, (300, 200))
    (region,) = gap.regions(0.3, SIZE, TrackSettings(on_lost="hide"))
    assert (region.box, region.source) == (None, "lost")


def test_in_doubt_both_numbers_hide_so_that_leaving_one_visible_uncovers_nothing():
    doubtful = trajectory((300, 200), None, None, None, (300, 200))
    last = doubtful.sightings.pop()
    doubtful.add(Sighting(last.index, last.seconds, last.box, 0.9, 2))
    assert {r.track for r in doubtful.regions(0.3, SIZE, TrackSettings())} == {1, 2}
    assert {r.track for r in doubtful.regions(0.3, SIZE, TrackSettings(on_lost="hide"))} == {1, 2}


@given(lapse=st.floats(0.01, 0.99), later=st.floats(0, 0.5), back=st.booleans())
def test_a_held_box_covers_the_last_place_and_never_shrinks(lapse, later, back):
    a = trajectory((280, 200), (300, 200), (320, 200))
    later = min(lapse + later, 0.99)
    start, sign = (0.0, -1) if back else (0.4, 1)
    early, late = (box_at(a, start + sign * t) for t in (lapse, later))
    assert holds(early, a.first.box if back else a.last.box)
    assert holds(late, early)


def test_a_box_is_held_for_a_second_and_not_for_two():
    a = trajectory((300, 200), (300, 200))
    assert len(a.regions(1.19, SIZE, TrackSettings())) == 1
    assert len(a.regions(-0.99, SIZE, TrackSettings())) == 1
    assert a.regions(1.25, SIZE, TrackSettings()) == []
    assert a.regions(-1.05, SIZE, TrackSettings()) == []


def test_who_leaves_through_the_border_is_held_shortly():
    a = trajectory((560, 200), (600, 200), (625, 200))
    assert a.leaves(SIZE, at_end=True)
    assert len(a.regions(0.4 + EDGE_HOLD - 0.01, SIZE, TrackSettings())) == 1
    assert a.regions(0.4 + EDGE_HOLD + 0.01, SIZE, TrackSettings()) == []


@pytest.mark.parametrize(("x", "y"), [(300, 5), (300, 475), (5, 200), (635, 200), (637, 3)])
def test_who_stands_at_the_border_does_not_leave_and_is_held_like_anybody(x, y):
    a = trajectory((x, y), (x, y), (x, y))
    assert not a.leaves(SIZE, at_end=True)
    assert not a.leaves(SIZE, at_end=False)
    assert len(a.regions(1.39, SIZE, TrackSettings())) == 1
    assert a.regions(1.3, SIZE, TrackSettings(on_lost="hide"))[0].box is None


def test_who_walks_along_the_border_or_comes_in_does_not_leave():
    assert not trajectory((300, 20), (330, 20), (360, 20)).leaves(SIZE, at_end=True)
    inwards = trajectory((20, 200), (50, 200), (80, 200))
    assert not inwards.leaves(SIZE, at_end=True)
    assert inwards.leaves(SIZE, at_end=False)


def test_hide_blackens_only_who_was_sure_and_inside():
    hide = TrackSettings(on_lost="hide", hide_for=2.0)
    assert trajectory((300, 200), (300, 200)).regions(2.1, SIZE, hide)[0].box is None
    assert trajectory((300, 200), (300, 200)).regions(2.3, SIZE, hide) == []
    assert trajectory((560, 200), (600, 200), (625, 200)).regions(0.5, SIZE, hide)[0].box is not None
    assert trajectory((300, 200), score=0.3).regions(0.1, SIZE, hide)[0].box is not None


def test_hide_for_less_than_the_hold_goes_on_with_the_held_box():
    short = TrackSettings(on_lost="hide", hide_for=0.5)
    a = trajectory((300, 200), (300, 200))
    assert a.regions(0.6, SIZE, short)[0].box is None
    assert a.regions(0.9, SIZE, short)[0].box is not None


def test_one_weak_find_is_hidden_for_a_moment_only():
    weak = trajectory((300, 200), score=0.3)
    assert not weak.sure
    assert len(weak.regions(0.2, SIZE, TrackSettings())) == len(weak.regions(-0.2, SIZE, TrackSettings())) == 1
    assert weak.regions(0.25, SIZE, TrackSettings()) == []


def test_sightings_stay_in_order_however_they_come():
    a = Trajectory("faces", [])
    for index in (5, 1, 3, 2, 4):
        a.add(Sighting(index, index / 25, (0, 0, 9, 9), 0.9, 1))
    assert [s.index for s in a.sightings] == [1, 2, 3, 4, 5]
    assert (a.first.index, a.last.index) == (1, 5)


def test_somebody_is_expected_where_they_were_heading_and_came_from():
    a = trajectory((200, 200), (240, 200), (280, 200))
    assert 280 < middle(a.expected(0.6))[0] < 330
    assert 150 < middle(a.expected(-0.2))[0] < 200


def test_each_box_goes_to_the_nearest_trajectory():
    one, two = trajectory((100, 100)), trajectory((400, 300), number=2)
    links = link([one, two], [(385, 285, 425, 325), (82, 82, 122, 122)], 0.2)
    assert {(found.trajectory.first.number, found.at) for found in links} == {(1, 1), (2, 0)}
    assert all(found.certain for found in links)


def test_a_box_far_from_everybody_belongs_to_nobody():
    assert link([trajectory((100, 100))], [(400, 300, 440, 340)], 0.2) == []
    assert link([trajectory((100, 100))], [(20, 20, 180, 180), (98, 98, 103, 103)], 0.0) == []


def test_a_box_between_two_people_is_in_doubt():
    (found,) = link([trajectory((100, 100)), trajectory((130, 100), number=2)], [(95, 80, 135, 120)], 0.2)
    assert not found.certain


def test_a_box_at_some_distance_may_be_somebody_else_and_one_on_the_spot_is_not():
    (near,) = link([trajectory((100, 100))], [(90, 80, 130, 120)], 0.2)
    (far,) = link([trajectory((100, 100))], [(110, 80, 150, 120)], 0.2)
    assert near.certain
    assert near.cost == pytest.approx(0.25)
    assert not far.certain
    assert far.cost == pytest.approx(0.75)


def test_two_boxes_between_two_people_are_both_in_doubt():
    """If one of them may be either, so may the other: to be left visible must pass to none."""
    people = [trajectory((100, 100)), trajectory((120, 100), number=2)]
    links = link(people, [(81, 80, 121, 120), (98, 80, 138, 120)], 0.2)
    assert len(links) == 2
    assert not any(found.certain for found in links)


@given(st.lists(boxes(), max_size=5), st.lists(st.tuples(st.floats(0, 600), st.floats(0, 400)), max_size=5))
def test_no_trajectory_and_no_box_is_linked_twice(places, starts):
    trajectories = [trajectory(start, number=i) for i, start in enumerate(starts)]
    links = link(trajectories, places, 0.2)
    assert len({id(found.trajectory) for found in links}) == len({found.at for found in links}) == len(links)
    assert sorted(found.cost for found in links) == [found.cost for found in links]
    assert all(found.cost <= 0.4 for found in links if found.certain)


@given(boxes(), boxes())
def test_a_mismatch_is_the_same_both_ways_and_0_for_the_same(a, b):
    assert mismatch(a, a) == pytest.approx(0)
    assert mismatch(a, b) == pytest.approx(mismatch(b, a))
    assert mismatch(a, b) >= 0


@given(boxes(), boxes(), st.floats(0, 2))
def test_boxes_grow_and_join_as_they_should(a, b, share):
    assert holds(joint(a, b), a)
    assert holds(joint(a, b), b)
    assert holds(grown(a, share), a)
    assert middle(grown(a, share)) == pytest.approx(middle(a), abs=1e-6)
    assert extent(grown(a, share)) == pytest.approx(extent(a) * (1 + share), rel=1e-6)


@given(boxes(), st.floats(-300, 300), st.floats(-5, 5))
def test_movement_slows_down_and_keeps_its_direction(box, speed, lapse):
    x = middle(moved(box, (speed, 0), lapse))[0] - middle(box)[0]
    assert abs(x) <= abs(speed) * min(abs(lapse), 0.25) + 1e-6
    assert x * speed * lapse >= -1e-6


@given(boxes())
def test_clipped_boxes_lie_in_the_picture(box):
    x0, y0, x1, y1 = clipped(box, SIZE)
    assert 0 <= x0 <= x1 <= 640
    assert 0 <= y0 <= y1 <= 480
    assume(holds((0, 0, 640, 480), box, 0))
    assert (x0, y0, x1, y1) == box


def test_patience_lasts_as_long_as_anything_is_hidden_for_somebody():
    assert TrackSettings().patience == 1.0
    assert TrackSettings(on_lost="hide", hide_for=5).patience == 5
    assert TrackSettings(on_lost="hide", hide_for=0.1).patience == 1.0
    assert math.isclose(BRIDGE, 0.5)
