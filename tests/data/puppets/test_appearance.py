"""People, and what of them the dial shows."""

import numpy as np
import pytest

from vidveil.data.puppets.appearance import (
    ACTION,
    BOTH,
    IDENTITY,
    MOVING,
    NEITHER,
    PERSONAL,
    STILL,
    appearance,
    plain,
    walker,
)
from vidveil.data.puppets.people import everybody
from vidveil.data.puppets.world import RHOS, World

HEAD = ("head_skin", "face", "hair", "hair_colour", "glasses", "hat", "head_kind")
TORSO = ("torso", "torso_2", "pattern", "emblem", "bare", "torso_kind")
LIMBS = ("arm", "leg", "skirt")


def appearances(rho, seed=0):
    return [appearance(person, outfit, rho) for person in everybody(World(seed=seed)) for outfit in person.outfits]


def variety(found, names):
    return {name: len({repr(getattr(one, name)) for one in found}) for name in names}


def test_there_are_enough_people_and_nobody_of_test_is_anywhere_else():
    world = World()
    counts = world.people()
    assert sum(counts.values()) >= 120
    assert counts["test"] >= 30
    people = everybody(world)
    assert [person.number for person in people] == list(range(sum(counts.values())))
    assert len({repr(person.face) for person in people}) == len(people)
    outfits = [outfit.number for person in people for outfit in person.outfits]
    assert outfits == list(range(len(outfits)))
    assert {len(person.outfits) for person in people} == {2, 3}


def test_another_seed_is_other_people():
    ours, others = everybody(World()), everybody(World(seed=1))
    assert not {repr(person.face) for person in ours} & {repr(person.face) for person in others}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_traits_are_common_enough_in_every_split_and_do_not_follow_each_other(seed):
    people, first = everybody(World(seed=seed)), 0
    for count in World().people().values():
        part = people[first : first + count]
        first += count
        assert 0.3 <= np.mean([person.dark for person in part]) <= 0.6
        assert 0.3 <= np.mean([person.woman for person in part]) <= 0.6
        assert 0.3 <= np.mean([outfit.nude for person in part for outfit in person.outfits]) <= 0.6
    traits = np.array([[person.dark, person.woman] for person in people], float)
    assert abs(np.corrcoef(traits.T)[0, 1]) < 0.25


def test_cues_belong_to_one_family_and_half_of_each_is_personal_in_the_middle():
    assert not set(STILL) & set(MOVING)
    assert PERSONAL[0.0] == set(STILL)
    assert PERSONAL[1.0] == set(MOVING)
    assert len(PERSONAL[0.5] & set(STILL)) == len(STILL) // 2
    assert len(PERSONAL[0.5] & set(MOVING)) == len(MOVING) // 2


def test_without_moving_cues_all_limbs_look_and_move_alike():
    found = appearances(0.0)
    assert set(variety(found, (*LIMBS, "style")).values()) == {1}
    assert variety(found, ["torso"])["torso"] > 200
    limbs = ("upper_arm", "forearm", "thigh", "shin", "arm_width", "leg_width")
    assert len({tuple(getattr(one.build, name) for name in limbs) for one in found}) == 1


def test_without_still_cues_all_heads_and_torsos_look_alike():
    found = appearances(1.0)
    assert set(variety(found, (*HEAD, *TORSO)).values()) == {1}
    assert variety(found, ["arm", "leg", "style"])["leg"] > 200
    shapes = ("torso", "shoulders", "chest", "waist", "depth", "head")
    assert len({tuple(getattr(one.build, name) for name in shapes) for one in found}) == 1
    assert len({(one.style.slouch, one.style.sway, one.style.bow) for one in found}) == 1


@pytest.mark.parametrize("rho", RHOS)
def test_pixels_are_of_the_kind_that_their_cues_say(rho):
    for one in appearances(rho)[:60]:
        still = NEITHER if rho == 1 else IDENTITY
        assert (one.head_kind, one.torso_kind) == (still, still)
        assert one.leg.kind == (ACTION if rho == 0 else BOTH)
        assert one.arm.kind == (BOTH if rho == 1 else ACTION)
        assert one.arm.end_kind == one.arm.skin_kind == (ACTION if rho == 0 else BOTH)


@pytest.mark.parametrize("rho", RHOS)
def test_every_private_attribute_is_drawn_somewhere(rho):
    people = everybody(World())
    for trait in ("dark", "woman"):
        groups = ([p for p in people if getattr(p, trait) is value] for value in (True, False))
        sides = [{_about(appearance(p, p.outfits[0], rho), trait) for p in group} for group in groups]
        assert sides[0] != sides[1]
    for person in people:
        for outfit in person.outfits:
            shown = appearance(person, outfit, rho)
            assert outfit.nude == (shown.bare != "none" or shown.arm.cover == 0)


def _about(shown, trait):
    if trait == "dark":
        return sum(shown.head_skin) < 330 or sum(shown.arm.skin) < 330
    return shown.skirt, shown.hair, shown.build.hips > 0.062


def test_where_gait_is_all_there_is_only_the_style_differs():
    found = [walker(person) for person in everybody(World())]
    assert set(variety(found, (*HEAD, *TORSO, *LIMBS, "build")).values()) == {1}
    assert variety(found, ["style"])["style"] == len(found)
    assert found[0].build == plain().build
