"""Clips as pixels, and the truth about them."""

import cv2
import numpy as np
import pytest

from vidveil.data.puppets.camera import CAMERAS
from vidveil.data.puppets.labels import labels
from vidveil.data.puppets.plan import plan, rows, sample_times
from vidveil.data.puppets.render import GREYS, render
from vidveil.data.puppets.scene import act
from vidveil.data.puppets.world import World, parse

SOME = (11, 500, 1234, 2050, 2900, 3333)


def world(argument=None, frames=8, size=64, seed=0):
    return parse(argument, frames=frames, size=size, seed=seed)


@pytest.mark.parametrize("argument", [None, "view=mask", "view=motion", "view=background", "gait", "null"])
def test_a_clip_is_the_same_every_time_and_of_the_size_asked_for(argument):
    one, other = (render(world(argument), 42) for _ in range(2))
    assert one.frames.shape == (8, 64, 64, 3)
    assert one.frames.dtype == np.uint8
    assert one.masks.shape == (8, 64, 64)
    np.testing.assert_array_equal(one.frames, other.frames)
    np.testing.assert_array_equal(one.masks, other.masks)


def test_a_larger_clip_shows_the_same_scene():
    small, large = render(world(), 7), render(world(frames=16, size=224), 7)
    assert large.frames.shape == (16, 224, 224, 3)
    shrunk = cv2.resize(large.frames[7], (64, 64), interpolation=cv2.INTER_AREA).astype(float)
    near = np.abs(shrunk - small.frames[3]).mean()  # a twentieth of a second apart
    far = np.abs(render(world(), 8).frames[3].astype(float) - small.frames[3]).mean()
    assert near < 0.4 * far


def test_all_four_kinds_of_pixels_are_there():
    kinds = np.stack([render(world(), i).masks for i in SOME])
    shares = np.bincount(kinds.ravel(), minlength=4) / kinds.size
    assert len(shares) == 4
    assert shares[0] > 0.6
    assert (shares[1:] > 0.004).all()


@pytest.mark.parametrize(("argument", "absent"), [("rho=0", 3), ("rho=1", None)])
def test_the_dial_decides_which_kinds_there_are(argument, absent):
    alone = [i for i in range(0, 3000, 37) if plan(world(argument), i).companion is None][:6]
    kinds = np.stack([render(world(argument), i).masks for i in alone])
    if absent is not None:
        assert not (kinds == absent).any()
    else:  # with all cues on limbs nothing but limbs is private
        assert not (kinds == 1).any()
        assert (kinds == 3).any()


def test_the_truth_covers_the_people_and_nothing_else():
    """Without people the picture is the same wherever the truth says that nobody is."""
    for i in SOME:
        full, empty = render(world(), i), render(world("view=background"), i)
        change = np.abs(full.frames.astype(int) - empty.frames).max(axis=-1)
        wide = np.stack([cv2.dilate(mask, np.ones((9, 9), np.uint8)) for mask in full.masks])
        ground = slice(50, 64)  # shadows are there
        apart = np.delete(change, np.r_[ground], axis=1)[np.delete(wide, np.r_[ground], axis=1) == 0]
        assert np.percentile(apart, 95) < 25  # compression spreads a little
        assert np.median(change[full.masks > 0]) > 25


def test_the_view_of_the_mask_is_the_mask():
    shown = render(world("view=mask"), 900)
    np.testing.assert_array_equal(shown.frames, np.repeat(GREYS[render(world(), 900).masks][..., None], 3, axis=-1))


def test_motion_alone_is_the_same_for_any_looks():
    """Two people who would do the same thing in the same way look the same."""
    ours, other = (render(world(argument), 77).frames for argument in ("rho=0,view=motion", "null,rho=0,view=motion"))
    np.testing.assert_array_equal(ours, other)
    assert (ours[:, 0, 0] == 0).all()


def test_whoever_is_nobody_does_not_look_like_the_person_of_that_number():
    null = world("null")
    assert plan(null, 0).person.number == plan(null, 1).person.number
    assert plan(null, 0).appearance.head_skin != plan(null, 1).appearance.head_skin


def test_people_are_large_stay_in_the_frame_and_their_faces_cover_a_tubelet():
    seen = []
    for i in range(0, len(rows(World())), 41):
        scene = act(plan(World(), i), sample_times(8))
        actor, shot = scene.cast[-1]
        frames = shot.see(actor.posed)
        seen.append(np.array([frame.points for frame in frames]))
        head = 2 * actor.appearance.build.head * shot.zoom * 64
        assert head * head * actor.appearance.face.width * np.pi / 4 >= 64
    points = np.stack(seen)
    inside = (points.real > 0) & (points.real < 1) & (points.imag > 0) & (points.imag < 1)
    assert inside.mean() > 0.97
    assert min(camera.zoom for camera in CAMERAS) >= 0.77


def test_labels_are_known_without_drawing():
    found = labels(World(), SOME)
    for k, i in enumerate(SOME):
        drawn = render(World(), i)
        np.testing.assert_array_equal(found.facts[k], drawn.facts)
        np.testing.assert_array_equal(found.attributes[k], drawn.attributes)


def test_a_face_is_seen_in_some_frames_of_a_clip_and_not_in_others():
    per_frame = labels(World(), range(0, 3400, 17)).attributes
    share = per_frame.mean(axis=1)  # (N, 5)
    partly = ((share > 0) & (share < 1)).mean(axis=0)
    assert partly[1] > 0.05
    assert partly[4] > 0.03
    assert (partly[[0, 2, 3]] == 0).all()


@pytest.mark.parametrize("argument", ["gait", "null"])
def test_where_attributes_are_not_drawn_they_are_coins(argument):
    coins = labels(world(argument), range(0, 3400, 17)).attributes
    assert (coins == coins[:, :1]).all()
    assert ((coins.mean(axis=(0, 1)) > 0.3) & (coins.mean(axis=(0, 1)) < 0.6)).all()
