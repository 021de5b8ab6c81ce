"""`recast`: a moving figure, seen from elsewhere in each scene."""

import numpy as np
import pytest
import torch

from tests.methods.test_figure import grey, room
from vidveil import load
from vidveil.core.errors import UsageError
from vidveil.methods import recast
from vidveil.methods.figure import Box, Figure
from vidveil.methods.recast import View, seen_from, view_of


def test_without_strength_it_is_the_figure_or_its_mirror_image():
    """But for what lies between pixels."""
    mirrored = set()
    for wall in range(6):
        pictures = room(wall=wall)
        plain, made = grey("figure:12", pictures), grey("recast:12,0", pictures)
        apart = [np.abs(made - one).mean() / plain.mean() for one in (plain, plain[:, :, ::-1])]
        assert min(apart) < 0.2
        mirrored.add(int(np.argmin(apart)))
    assert mirrored == {0, 1}


def test_two_recordings_are_seen_from_different_places_and_one_is_always_seen_alike():
    one, other = room(wall=1), room(wall=2)
    np.testing.assert_array_equal(grey("recast:12", one), grey("recast:12", one))
    figures = [grey("figure:12", pictures) for pictures in (one, other)]
    recasts = [grey("recast:12", pictures) for pictures in (one, other)]
    assert np.abs(recasts[0] - recasts[1]).mean() > 2 * np.abs(figures[0] - figures[1]).mean()


def test_one_scene_has_one_view_and_the_next_another(monkeypatch):
    views = []
    monkeypatch.setattr(recast, "view_of", lambda *given: views.append(view_of(*given)) or views[-1])
    grey("recast", room(6, y=10, x=10, wall=1) + room(6, y=70, x=90, wall=7))
    assert len(views) == 2
    assert views[0].gain != views[1].gain


def test_frames_in_which_nothing_moves_yet_say_nothing_about_the_view():
    """Else all videos that begin without motion would be seen from one place."""
    still = [room(1)[0]] * 5
    late = grey("recast:12", still + room())
    assert not late[:5].any()
    np.testing.assert_array_equal(late[5:][late[5:].any(axis=(1, 2))][0] > 0, grey("recast:12", room())[1] > 0)


def test_views_stay_within_their_ranges_and_fill_them():
    views = [view_of(np.full((2, 2), i, np.float32), 1.0) for i in range(400)]
    for view in views:
        stretch = np.linalg.norm(view.turn, axis=0)
        assert np.all(np.abs(np.log(stretch)) <= recast.STRETCH)
        assert abs(np.rad2deg(np.arctan2(view.turn[0, 1], view.turn[1, 1]))) <= recast.TURN
        assert np.all(np.abs(view.shift) <= recast.SHIFT)
        assert abs(np.log(view.gain)) <= recast.GAIN
    assert max(abs(np.log(view.gain)) for view in views) > 0.9 * recast.GAIN
    assert 150 < sum(np.linalg.det(view.turn) < 0 for view in views) < 250  # mirrored


def test_a_view_turns_mirrors_and_moves_what_was_filmed():
    small = np.zeros((40, 40), np.float32)
    small[8:12, 18:22] = 1  # above the middle
    box = Box(0.5, 0.5, 0.5, 1.0)

    def middle(turn, shift=(0.0, 0.0)):
        drawn = seen_from(small, box, (40, 40), View(np.array(turn, float), np.array(shift), 1.0))
        assert drawn.sum() == pytest.approx(16, rel=0.05)
        return [float(np.average(np.arange(40) + 0.5, weights=drawn.sum(axis=axis))) for axis in (0, 1)]  # x, y

    assert middle(np.eye(2)) == pytest.approx([20, 10], abs=0.1)
    assert middle(np.diag([1, -1])) == pytest.approx([20, 30], abs=0.1)
    assert middle([[0, -1], [1, 0]]) == pytest.approx([10, 20], abs=0.1)  # shown at the left is what was above
    assert middle(np.eye(2), (0.0, -0.25)) == pytest.approx([20, 15], abs=0.1)


@pytest.mark.parametrize("blocks", [2, 8, 14])
def test_blocks_are_means_of_all_pixels_also_where_these_are_many(blocks):
    small = (np.random.default_rng(0).random((256, 340)) < 0.02).astype(np.float32)  # edges of one pixel
    box, shape = Box(0.5, 0.5, 0.5, 1.0), (blocks, round(blocks * 340 / 256))
    exact = Figure("figure", str(blocks)).means(small, box, shape, small)
    made = load(f"recast:{blocks},0").means(small, box, shape, small) / view_of(small, 0).gain
    apart = min(np.abs(one - exact).mean() for one in (made, made[:, ::-1]))  # it may be mirrored
    assert apart < 0.1 * exact.mean()


def test_shapes_are_kept_where_the_picture_is_wide():
    small = np.zeros((40, 80), np.float32)
    small[16:24, 36:44] = 1
    quarter = View(np.array([[0.0, -1.0], [1.0, 0.0]]), np.zeros(2), 1.0)
    drawn = seen_from(small, Box(0.5, 0.5, 0.5, 1.0), (40, 80), quarter)
    np.testing.assert_allclose(drawn, small, atol=0.6)


def test_a_clip_shows_what_a_stream_shows():
    pictures = room(20)
    clip = torch.from_numpy(np.stack(pictures)).float().div(255).expand(3, -1, -1, -1)
    np.testing.assert_allclose(
        load("recast").anonymize(clip).video[1].numpy() * 255, grey("recast", pictures), atol=1.5
    )


def test_it_is_a_figure_with_a_caution_of_its_own():
    assert isinstance(load("recast"), Figure)
    assert load("recast").caution(720) is None
    assert load("recast").blocks == 5
    assert "N = 5 or less hides it" in load("recast:6").caution(720)
    assert "N = 10 or less hides it" in load("recast:14,0").caution(720)


@pytest.mark.parametrize("spec", ["recast:14,", "recast:14,x", "recast:14,-1", "recast:14,91", "recast:14,2.5"])
def test_how_far_it_is_turned_is_a_number_of_degrees(spec):
    with pytest.raises(UsageError, match="how many degrees it may be turned, from 0 to 90"):
        load(spec)


@pytest.mark.parametrize("spec", ["recast:1,10", "recast:,10"])
def test_blocks_are_those_of_a_figure(spec):
    with pytest.raises(UsageError, match="a whole number from 2 to 64"):
        load(spec)


def test_all_of_a_view_grows_with_the_degrees():
    turned = [view_of(np.ones((2, 2), np.float32), load(f"recast:8,{degrees}").strength) for degrees in (20, 40)]
    assert turned[1].shift == pytest.approx(2 * turned[0].shift)
    assert load("recast").strength == load("recast:8,40").strength
