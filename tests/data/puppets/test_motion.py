"""Actions as movements of joints."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidveil.data.puppets.body import ARM, LEG, Build, J, pose
from vidveil.data.puppets.motion import ACTIONS, PAIRS, angles, progress
from vidveil.data.puppets.style import SECONDS, Performance, Style

TIMES = (np.arange(16) + 0.5) * SECONDS / 16
PERFORMANCE = Performance(phase=0.2, onset=0.15, tempo=1.0, size=1.0, side=0, way=1)
MATES = {**dict(PAIRS), **{b: a for a, b in PAIRS}}

styles = st.builds(
    Style,
    stride=st.floats(0.78, 1.22),
    crouch=st.floats(0, 0.3),
    bounce=st.floats(0, 0.3),
    spring=st.floats(0.8, 2.4),
    swing=st.floats(0.72, 1.28),
    tempo=st.floats(0.82, 1.18),
    sway=st.floats(0, 0.16),
)
performances = st.builds(
    Performance,
    phase=st.floats(0, 1),
    onset=st.floats(0.08, 0.3),
    tempo=st.floats(0.93, 1.08),
    size=st.floats(0.92, 1.08),
    side=st.integers(0, 1),
    way=st.integers(0, 1),
)


def joints(action, style=Style(), performance=PERFORMANCE, yaw=0.8):  # noqa: B008
    return pose(Build(), angles(action, TIMES, style, performance), yaw).joints


def test_there_are_nineteen_actions_and_seven_pairs():
    assert len(ACTIONS) == 19
    assert len(PAIRS) == 7
    assert len(MATES) == 14


@given(style=styles, performance=performances, pair=st.sampled_from(PAIRS))
@settings(max_examples=60, deadline=None)
def test_an_action_of_a_pair_is_the_other_one_played_backwards(style, performance, pair):
    forwards, backwards = (joints(action, style, performance) for action in pair)
    np.testing.assert_allclose(forwards[::-1], backwards, atol=1e-9)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0])
def test_an_action_of_a_pair_changes_over_time_so_that_its_order_can_be_told(pair):
    forwards, backwards = (joints(action) for action in pair)
    assert np.abs(forwards - backwards).max() > 0.2


@pytest.mark.parametrize("action", [action for action in ACTIONS if action not in MATES])
def test_an_action_without_a_pair_is_like_no_other_action_in_any_order(action):
    own = joints(action)
    for other in ACTIONS:
        if other != action:
            apart = np.abs(own[:, None] - joints(other)[None]).mean(axis=(2, 3))  # frames against frames
            assert apart.min(axis=1).max() > 0.03, other


@given(style=styles, performance=performances)
@settings(max_examples=60, deadline=None)
def test_a_single_movement_begins_after_the_clip_does_and_ends_before_it(style, performance):
    edge = progress(np.array([0.0, SECONDS]), style, performance, 1.05)
    np.testing.assert_allclose(edge, [0, 1])


@given(style=styles, performance=performances, action=st.sampled_from(list(ACTIONS)))
@settings(max_examples=60, deadline=None)
def test_bones_keep_their_length_and_nothing_is_below_the_ground(style, performance, action):
    moved = joints(action, style, performance)
    build = Build()
    lengths = (build.upper_arm, build.forearm), (build.thigh, build.shin)
    for names, bones in zip((ARM, LEG), lengths, strict=True):
        for side in "lr":
            chain = moved[:, [J[f"{name}_{side}"] for name in names[:3]]]
            found = np.linalg.norm(np.diff(chain, axis=1), axis=-1)
            np.testing.assert_allclose(found, np.broadcast_to(bones, found.shape), rtol=1e-6)
    assert moved[..., 1].min() > 0


def test_whoever_walks_always_has_a_foot_on_the_ground():
    moved = joints("walking")
    feet = moved[:, [J["toe_l"], J["toe_r"], J["ankle_l"], J["ankle_r"]], 1]
    assert feet.min(axis=1).max() < 0.05


def test_whoever_has_fallen_lies():
    moved = joints("falling")
    assert moved[0, J["head"], 1] > 0.8
    assert moved[-1, J["head"], 1] < 0.2


@pytest.mark.parametrize("action", ["walking", "running"])
def test_walkers_and_runners_go_where_they_face(action):
    moved = joints(action, yaw=np.pi / 2)
    assert moved[-1, J["pelvis"], 0] - moved[0, J["pelvis"], 0] > 0.5
