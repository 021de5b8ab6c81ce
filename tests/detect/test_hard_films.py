"""Films that have shown somebody before: shaking, standing at the border, side by side, and seldom filmed."""

import math

import pytest

from tests.detect.hiding import HIDDEN, hide
from tests.detect.stage import RED, Film, Head, Shot, film, still, turned, walk


@pytest.mark.parametrize("phase", [0.0, 0.03, 0.05, 0.1, 0.15])
@pytest.mark.parametrize("rate", [25, 30, 60])
def test_a_shake_as_fast_as_the_searches_stays_covered(tmp_path, rate, phase):
    """0.7 sizes from one end to the other, five times a second: every search sees the same."""

    def way(t):
        return (120 + 0.35 * 28 * math.sin(2 * math.pi * 5 * (t + phase)), 80)

    assert not hide(film(Head(way), frames=rate, rate=rate), tmp_path).bad


@pytest.mark.parametrize("phase", [0.0, 0.05])
def test_a_shake_of_twice_that_stays_covered(tmp_path, phase):
    """Every frame shows them plainly, at most a quarter of their size from where they were in the frame before."""

    def way(t):
        return (120 + 0.7 * 28 * math.sin(2 * math.pi * 5 * (t + phase)), 80)

    assert not hide(film(Head(way), frames=60, rate=60), tmp_path).bad


@pytest.mark.parametrize("on_lost", ["hold", "hide"])
@pytest.mark.parametrize("place", [(120, 4), (4, 80), (236, 80), (120, 156)])
def test_a_still_face_cut_by_the_border_stays_covered_while_it_is_missed(tmp_path, place, on_lost):
    done = hide(film(Head(still(*place), turned((0.6, 1.5)))), tmp_path, on_lost=on_lost)
    assert not done.bad
    black = [i for i in range(50) if done.black(i)]
    assert black == (list(range(15, 38)) if on_lost == "hide" else [])


@pytest.mark.parametrize("on_lost", ["hold", "hide"])
def test_a_still_face_cut_by_the_border_that_is_not_found_again_is_lost_and_did_not_leave(tmp_path, on_lost):
    done = hide(film(Head(still(120, 4, until=1.5), turned((0.6, 9)))), tmp_path, on_lost=on_lost)
    assert not done.bad
    assert [i for i in range(50) if done.black(i)] == (list(range(15, 50)) if on_lost == "hide" else [])


@pytest.mark.parametrize("aside", [18, 30, 40])
@pytest.mark.parametrize("since", [0.9, 1.0, 1.2])
def test_a_neighbour_first_found_where_somebody_is_missed_leaves_both_hidden(tmp_path, aside, since):
    missed = Head(still(110, 80), turned((0.8, 2.0)))
    neighbour = Head(still(110 + aside, 80, since=since), lambda _: RED)
    done = hide(film(missed, neighbour), tmp_path)
    assert done.shown_of(0)[:44].max() < HIDDEN  # held for a second after 0.8 s
    assert done.shown_of(1).max() < HIDDEN


@pytest.mark.parametrize("away", [3, 5])
def test_one_missed_frame_in_a_film_of_a_frame_every_two_seconds_shows_nobody(tmp_path, away):
    head = Head(still(100, 80), turned((2 * away - 0.1, 2 * away + 0.1)))
    done = hide(film(head, frames=9, ticks=[2000 * i for i in range(9)]), tmp_path)
    assert not done.bad


def test_who_is_seen_once_by_a_slow_camera_is_hidden_and_only_for_a_while(tmp_path):
    head = Head(still(100, 80), turned((0, 7.9), (8.1, 99)))
    done = hide(film(head, frames=9, ticks=[2000 * i for i in range(9)]), tmp_path)
    assert done.exposed[4] < HIDDEN
    assert done.exposed[0] > 0.9
    assert done.exposed[8] > 0.9


@pytest.mark.parametrize("shots", [(15, 8, 20), (20, 9, 9, 20)])
def test_scenes_of_a_third_of_a_second_hide_everybody_and_share_no_number(tmp_path, shots):
    lights = (70, 120, 180, 40)
    made = [Shot([Head(walk(60 + 30 * i, 80, 10))], n, light=lights[i]) for i, n in enumerate(shots)]
    done = hide(Film(shots=made), tmp_path)
    assert not done.bad
    assert done.manifest["detection"]["tracks"] == len(shots)
