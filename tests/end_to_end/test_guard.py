"""Nobody slips through: films with heads whose places are known go through the whole pipeline, and outputs are checked.

`done.bad` lists the frames of an output in which a head shows.
"""

import numpy as np
import pytest

from tests.detect.hiding import HIDDEN, hide
from tests.detect.stage import (
    BLUE,
    GREEN,
    MAGENTA,
    RED,
    YELLOW,
    Discs,
    Film,
    Head,
    Shot,
    matrix_of,
    still,
    turned,
    walk,
)
from vidveil.app.jobs import Status
from vidveil.detect.settings import DETECTORS


@pytest.fixture(autouse=True)
def _discs(monkeypatch):
    monkeypatch.setitem(DETECTORS, "discs", Discs)


def film(*heads, **knobs):
    frames = knobs.pop("frames", 50)
    shot = {name: knobs.pop(name) for name in ("pole", "flashes", "light") if name in knobs}
    return Film(shots=[Shot(heads, frames, **shot)], **knobs)


def test_the_stage_shows_heads_where_nobody_hides_them(tmp_path):
    shown = hide(film(Head(walk(60, 80, 30))), tmp_path, method="stride:1", region="frame")
    assert shown.exposed.min() > 0.9


def test_a_head_is_hidden_in_every_frame_and_the_rest_stays(tmp_path):
    done = hide(film(Head(walk(60, 80, 30))), tmp_path)
    assert not done.bad
    assert max(done.changed(i).mean() for i in range(50)) < 0.15
    assert min(done.touched(i, 60 + 30 * i / 25, 80) for i in range(50)) > 0.9
    assert done.manifest["detection"]["tracks"] == 1


HURRY = 1.5 * 28 / 0.2
"""Pixels per second: one and a half widths of a head from key frame to key frame."""


def hurries_on(t):
    """Stands while it is turned away, then hurries on. In a gap nobody knows when: all of the way must be hidden."""
    return (70 + 60 * min(max(t - 1.2, 0) / 0.2, 1), 80)


def swings(phase):
    """To and fro, turning on key frames, or between them."""

    def way(t):
        swing = (t + phase) % 1.2
        return (60 + HURRY * min(swing, 1.2 - swing), 80)

    return way


def jumps(moment):
    """From one place to another within one frame."""
    return lambda t: (60 + 32 * (t > moment), 80)


def bow(t):
    """Between two key frames, the first of which is missing."""
    return (40 + 180 * (min(max(t, 0.4), 0.6) - 0.4), 80 + 300 * max(0, 0.1 - abs(t - 0.5)))


def uneven():
    """Somebody who walks through a video of uneven rate, and turns away for a while."""
    steps = np.random.default_rng(5).choice([8, 20, 40, 90, 240], 50)
    ticks = np.concatenate([[0], np.cumsum(steps)[:-1]]).tolist()
    return film(Head(walk(40, 80, 150_000 / ticks[-1]), turned((1.0, 1.5))), ticks=ticks)


SCENES = {
    "turned away before they were found": film(Head(still(100, 80), turned((0, 0.9)))),
    "turned away, standing, then in a hurry": film(Head(hurries_on, turned((0.6, 1.4)))),
    # 28 pixels wide at 80 pixels per second behind 30 pixels: gone, or half gone, for 0.7 s
    "behind a pole": film(Head(walk(40, 80, 80)), pole=(100, 130)),
    "entering at the border between key frames": film(Head(lambda t: (-20 + 100 * (t - 0.44), 80))),
    "there for a moment": film(Head(still(120, 80, since=0.52, until=0.84))),
    "starting just after a key frame": film(Head(jumps(0.43)), frames=30),
    "starting just before a key frame": film(Head(jumps(0.57)), frames=30),
    "a bow over a lost frame": film(Head(bow), broken=(11,)),
    "an uneven rate": uneven(),
    **{
        f"fast at {rate} frames per second": film(Head(walk(20, 80, HURRY)), frames=rate, rate=rate, width=320)
        for rate in (10, 25, 60)
    },
    **{
        f"fast, to and fro, at {rate} frames per second, phase {phase}": film(
            Head(swings(phase)), frames=2 * rate, rate=rate
        )
        for rate in (10, 25, 60)
        for phase in (0.0, 0.1)
    },
    **{
        f"turned away at {rate} frames per second": film(
            Head(walk(60, 80, 40), turned((0.6, 1.0))), frames=2 * rate, rate=rate
        )
        for rate in (10, 60)
    },
    **{
        f"at the corner of {width} × {height}": film(
            Head(walk(width - 40, height - 12, 20)), frames=30, width=width, height=height
        )
        for width, height in ((241, 161), (240, 161), (241, 160))
    },
    "a flash on the very last frame": film(Head(still(100, 80), turned((1.96, 9))), flashes=(49,)),
}


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())
def test_a_head_shows_in_no_frame(tmp_path, scene):
    assert not hide(scene, tmp_path).bad


@pytest.mark.parametrize("blind", [(0.48, 0.52), (0.40, 0.44), (0.40, 0.64), (0.6, 0.84)])
def test_a_detector_that_blinks_shows_nobody(tmp_path, blind):
    """Between key frames, on one, on two in a row."""
    done = hide(film(Head(walk(60, 80, 40), turned(blind))), tmp_path)
    assert not done.bad
    assert done.manifest["detection"]["tracks"] == 1


def test_a_head_that_turns_away_stays_hidden(tmp_path):
    done = hide(film(Head(walk(60, 80, 20), turned((0.6, 1.2)))), tmp_path)
    assert not done.bad
    assert [m["what"] for m in done.manifest["detection"]["moments"]] == ["gap"]


def test_a_head_that_turns_away_and_never_back_is_held_for_a_second(tmp_path):
    done = hide(film(Head(walk(60, 80, 10), turned((0.6, 9))), frames=60), tmp_path)
    assert all(i > 25 * 1.55 for i in done.bad)
    assert done.exposed[-1] > 0.9  # not for ever


def test_two_people_crossing_are_both_hidden_and_get_new_numbers(tmp_path):
    right, left = Head(walk(40, 78, 80)), Head(walk(200, 84, -80), lambda _: RED)
    done = hide(film(right, left), tmp_path)
    assert not done.bad
    assert done.manifest["detection"]["tracks"] >= 3


def test_who_turned_away_stays_hidden_while_somebody_else_passes_close_by(tmp_path):
    quiet = Head(still(120, 70), turned((0.8, 2.0), front=RED))
    passing = Head(walk(20, 92, 80))
    done = hide(film(quiet, passing), tmp_path)
    assert done.shown_of(0)[:44].max() < HIDDEN  # held for a second after 0.8 s


@pytest.mark.parametrize("name", ["90", "180", "270", "mirrored", "transposed"])
def test_a_turned_video_is_searched_upright_and_hidden_in_the_right_place(tmp_path, name):
    done = hide(film(Head(walk(40, 40, 50, 20)), frames=30, matrix=matrix_of(name)), tmp_path)
    assert not done.bad
    assert max(done.changed(i).mean() for i in range(30)) < 0.15


def test_a_video_of_one_frame_is_searched(tmp_path):
    done = hide(film(Head(still(100, 80)), frames=1), tmp_path)
    assert not done.bad
    assert done.touched(0, 200, 30) == 0


@pytest.mark.parametrize("broken", [range(20, 24), range(20, 27), [25], range(3)])
def test_frames_that_cannot_be_decoded_are_black_and_hide_nobody_less(tmp_path, broken):
    done = hide(film(Head(walk(60, 80, 40)), broken=tuple(broken)), tmp_path)
    assert not done.bad
    assert [i for i in range(50) if done.black(i)] == list(broken)
    assert done.manifest["frames"]["hidden"] == len(broken)


def test_a_faint_find_continues_a_track_and_begins_none(tmp_path):
    faint = Head(still(180, 80), lambda _: BLUE)
    fading = Head(still(60, 80), turned((0.6, 2.0), hue=BLUE))
    done = hide(film(fading, faint), tmp_path)
    assert done.shown_of(0).max() < HIDDEN
    assert done.shown_of(1).min() > 0.9


@pytest.mark.parametrize("hue", [GREEN, MAGENTA])
@pytest.mark.parametrize("frames", [1, 3])
def test_a_flash_is_no_cut(tmp_path, hue, frames):
    """Overexposed for a moment, in which the detector may well be blind."""
    head = Head(still(100, 80), turned((1.0, 1.0 + frames / 25), hue=hue))
    done = hide(film(head, flashes=range(25, 25 + frames)), tmp_path)
    assert not done.bad
    assert done.manifest["detection"]["tracks"] == 1


def test_no_region_crosses_a_cut_and_both_frames_next_to_it_are_searched(tmp_path):
    first = Shot([Head(walk(40, 50, 40))], 33, light=80)
    second = Shot([Head(walk(120, 120, 40))], 33, light=140)
    done = hide(Film(shots=[first, second]), tmp_path)
    assert not done.bad
    at = 33 / 25
    assert done.touched(33, 40 + 40 * at, 50) == 0
    assert done.touched(32, 120 + 40 * at, 120) == 0
    assert done.manifest["detection"]["tracks"] == 2


def test_somebody_who_turned_away_before_a_cut_is_not_held_after_it(tmp_path):
    first = Shot([Head(still(60, 80), turned((1.0, 2.0)))], 33, light=80)
    done = hide(Film(shots=[first, Shot([], 20, light=140)]), tmp_path)
    assert not done.bad
    assert done.touched(33, 60, 80) == 0


def test_on_lost_hide_blackens_until_somebody_is_found_again(tmp_path):
    done = hide(film(Head(still(100, 80), turned((0.6, 1.6))), frames=60), tmp_path, on_lost="hide")
    assert not done.bad
    black = [i for i in range(60) if done.black(i)]
    assert black == list(range(15, 40))
    assert "hidden whole" in {m["what"] for m in done.manifest["detection"]["moments"]}
    assert done.manifest["hidden"] == [{"first": 15, "last": 39, "why": "somebody was lost from sight"}]


def test_on_lost_hide_ends_after_its_time(tmp_path):
    head = Head(still(100, 80), turned((0.6, 9)))
    done = hide(film(head, frames=60), tmp_path, on_lost="hide", hide_for=0.8)
    black = [i for i in range(60) if done.black(i)]
    assert black[0] == 15
    assert len(black) in (20, 21)
    assert black == list(range(15, 15 + len(black)))


def test_on_lost_hide_does_not_mind_a_blink_or_who_leaves_through_the_border(tmp_path):
    leaving = Head(walk(160, 80, 80), turned((0.4, 0.6)))
    done = hide(film(leaving, frames=60), tmp_path, on_lost="hide")
    assert not done.bad
    assert not any(done.black(i) for i in range(60))


def test_without_a_delay_nobody_is_hidden_longer_before_they_are_found(tmp_path):
    late = Head(still(100, 80), turned((0, 1.0)))
    scene = film(late, frames=120)
    waiting = hide(scene, tmp_path)
    assert not waiting.bad
    at_once = hide(scene, tmp_path, delay=0.0, again=True)
    assert at_once.exposed[:15].min() > 0.9
    assert at_once.exposed[25:].max() < HIDDEN


def test_a_detector_that_breaks_leaves_black_and_never_a_raw_frame(tmp_path):
    broken = Head(still(100, 80), turned((0.78, 0.82), hue=YELLOW))
    done = hide(film(broken), tmp_path)
    assert not done.bad
    assert {run["why"] for run in done.manifest["hidden"]} == {"could not be searched (RuntimeError)"}
    assert done.black(20)
    assert not done.black(0)
    assert not done.black(49)


def test_a_detector_that_always_breaks_leaves_no_output(tmp_path):
    outcome = hide(film(Head(still(100, 80), lambda _: YELLOW), frames=30), tmp_path).outcome
    assert outcome.status is Status.FAILED
    assert str(outcome.error) == "5 searches in a row failed: RuntimeError: yellow"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.mp4"]
