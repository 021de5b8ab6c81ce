"""Nobody slips through: films with heads whose places are known, through the whole pipeline, evaluated by the output."""

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
    seen = hide(film(Head(walk(60, 80, 30))), tmp_path, method="stride:1", region="frame")
    assert seen.exposed.min() > 0.9


def test_a_head_is_hidden_in_every_frame_and_the_rest_stays(tmp_path):
    done = hide(film(Head(walk(60, 80, 30))), tmp_path)
    assert not done.bad
    assert max(done.changed(i).mean() for i in range(50)) < 0.15
    assert min(done.touched(i, 60 + 30 * i / 25, 80) for i in range(50)) > 0.9
    assert done.manifest["detection"]["tracks"] == 1


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


def test_a_head_that_turned_away_before_it_was_seen_is_hidden_backwards(tmp_path):
    done = hide(film(Head(still(100, 80), turned((0, 0.9)))), tmp_path)
    assert not done.bad


def test_who_turns_away_stands_and_then_hurries_on_stays_hidden(tmp_path):
    """In a gap nobody knows when they moved: all of the way must be hidden."""

    def way(t):
        return (70 + 60 * min(max(t - 1.2, 0) / 0.2, 1), 80)

    done = hide(film(Head(way, turned((0.6, 1.4)))), tmp_path)
    assert not done.bad


def test_somebody_behind_a_pole_is_hidden_on_both_sides_of_it(tmp_path):
    # 28 pixels wide at 80 pixels per second behind 30 pixels: gone, or half gone, for 0.7 s
    done = hide(film(Head(walk(40, 80, 80)), pole=(100, 130)), tmp_path)
    assert not done.bad


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


def test_a_face_that_enters_at_the_border_between_key_frames_is_hidden_from_its_first_pixel(tmp_path):
    done = hide(film(Head(lambda t: (-20 + 100 * (t - 0.44), 80))), tmp_path)
    assert not done.bad


def test_a_face_that_is_there_for_a_moment_only_is_hidden(tmp_path):
    done = hide(film(Head(still(120, 80, since=0.52, until=0.84))), tmp_path)
    assert not done.bad


@pytest.mark.parametrize("rate", [10, 25, 60])
def test_fast_movement_is_followed(tmp_path, rate):
    speed = 1.5 * 28 / 0.2
    done = hide(film(Head(walk(20, 80, speed)), frames=rate, rate=rate, width=320), tmp_path)
    assert not done.bad


@pytest.mark.parametrize("phase", [0.0, 0.1])
@pytest.mark.parametrize("rate", [10, 25, 60])
def test_fast_movement_that_turns_back_is_followed(tmp_path, rate, phase):
    """To and fro at 1.5 widths in 0.2 s, turning on key frames, or between them."""
    speed = 1.5 * 28 / 0.2

    def way(t):
        swing = (t + phase) % 1.2
        return (60 + speed * min(swing, 1.2 - swing), 80)

    done = hide(film(Head(way), frames=2 * rate, rate=rate), tmp_path)
    assert not done.bad


@pytest.mark.parametrize("late", [False, True])
def test_a_start_within_a_moment_is_found_on_either_side_of_the_middle(tmp_path, late):
    """From one place to another within one frame, just after a key frame or just before the next."""

    def way(t):
        return (60 + 32 * (t > (0.57 if late else 0.43)), 80)

    assert not hide(film(Head(way), frames=30), tmp_path).bad


@pytest.mark.parametrize("rate", [10, 60])
def test_other_frame_rates_change_nothing(tmp_path, rate):
    done = hide(film(Head(walk(60, 80, 40), turned((0.6, 1.0))), frames=2 * rate, rate=rate), tmp_path)
    assert not done.bad


def test_a_video_of_uneven_rate_is_followed_by_its_clock(tmp_path):
    steps = np.random.default_rng(5).choice([8, 20, 40, 90, 240], 50)
    ticks = np.concatenate([[0], np.cumsum(steps)[:-1]]).tolist()
    seconds = ticks[-1] / 1000
    done = hide(film(Head(walk(40, 80, 150 / seconds), turned((1.0, 1.5))), ticks=ticks), tmp_path)
    assert not done.bad


@pytest.mark.parametrize("name", ["90", "180", "270", "mirrored", "transposed"])
def test_a_turned_video_is_searched_upright_and_hidden_in_the_right_place(tmp_path, name):
    done = hide(film(Head(walk(40, 40, 50, 20)), frames=30, matrix=matrix_of(name)), tmp_path)
    assert not done.bad
    assert max(done.changed(i).mean() for i in range(30)) < 0.15


@pytest.mark.parametrize("size", [(241, 161), (240, 161), (241, 160)])
def test_odd_sizes_are_hidden_up_to_the_last_pixel(tmp_path, size):
    done = hide(film(Head(walk(size[0] - 40, size[1] - 12, 20)), frames=30, width=size[0], height=size[1]), tmp_path)
    assert not done.bad


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


def test_fast_movement_is_followed_over_frames_that_cannot_be_decoded(tmp_path):
    """A bow between two key frames, of which the first frame is missing."""

    def way(t):
        return (40 + 180 * (min(max(t, 0.4), 0.6) - 0.4), 80 + 300 * max(0, 0.1 - abs(t - 0.5)))

    done = hide(film(Head(way), broken=(11,)), tmp_path)
    assert not done.bad


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


def test_a_flash_on_the_very_last_frame_is_no_cut(tmp_path):
    head = Head(still(100, 80), turned((1.96, 9)))
    done = hide(film(head, flashes=(49,)), tmp_path)
    assert not done.bad


def test_no_region_crosses_a_cut_and_both_frames_beside_it_are_searched(tmp_path):
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
    told = done.manifest["hidden"]
    assert told
    assert {run["why"] for run in told} == {"could not be searched (RuntimeError)"}
    assert done.black(20)
    assert not done.black(0)
    assert not done.black(49)


def test_a_detector_that_always_breaks_leaves_no_output(tmp_path):
    outcome = hide(film(Head(still(100, 80), lambda _: YELLOW), frames=30), tmp_path).outcome
    assert outcome.status is Status.FAILED
    assert str(outcome.error) == "5 searches in a row failed: RuntimeError: yellow"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.mp4"]
