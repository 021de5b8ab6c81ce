"""What happens in a clip, and that nothing in it predicts anything else."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from vidveil.core.errors import UsageError
from vidveil.data.puppets.labels import FACTS, facts, tags
from vidveil.data.puppets.motion import ACTIONS
from vidveil.data.puppets.plan import EVERYTHING, EXCEPTIONS, SHORTCUT, plan, rows
from vidveil.data.puppets.world import CLIPS, World, parse

EVERY = 3


@pytest.fixture(scope="module")
def table():
    """Facts and draws of every other clip: (name, values)."""
    world = World()
    indices = range(0, len(rows(world)), EVERY)
    plans = [plan(world, i) for i in indices]
    known = dict(zip(FACTS, np.stack([facts(one) for one in plans]).T, strict=True))
    known["person"] = np.array([one.person.number for one in plans])
    known["away"] = np.array([abs(one.yaw) > np.pi / 2 for one in plans]).astype(int)
    known["left"] = np.array([one.yaw > 0 for one in plans]).astype(int)
    known["masked"] = np.array([one.masked for one in plans]).astype(int)
    known["company"] = np.array([one.companion is not None for one in plans]).astype(int)
    return known


def information(a, b):
    """Mutual information in nats."""
    counts = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(counts, (a, b), 1)
    joint = counts / counts.sum()
    apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / apart[seen])).sum())


WHO = ["action", "place", "camera", "distractors", "away", "left", "masked", "company", "object_plant"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("person", other) for other in WHO] + [("action", other) for other in WHO[1:]] + [("place", "camera")],
)
def test_nothing_predicts_the_person_the_action_or_the_place(table, one, other):
    rng = np.random.default_rng(0)
    found = information(table[one], table[other])
    chance = [information(rng.permutation(table[one]), table[other]) for _ in range(60)]
    assert found < np.mean(chance) + 4 * np.std(chance)


def test_a_clip_is_planned_the_same_however_often_it_is_asked_for_and_at_any_size():
    world = World()
    assert plan(world, 77) == plan(World(), 77) == plan(replace(world, frames=16, size=224), 77)
    assert plan(world, 77) != plan(world, 78)


@pytest.mark.parametrize("argument", ["rho=0", "rho=1", "view=mask", "gait", "null"])
def test_another_dial_shows_the_same_performance(argument):
    ours, theirs = plan(World(), 321), plan(parse(argument, frames=8, size=64, seed=0), 321)
    for name in ("action", "performance", "place", "camera", "yaw", "gaze", "glance", "objects", "outfit", "room"):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_another_seed_is_another_world():
    assert plan(World(), 5).performance != plan(World(seed=1), 5).performance


def test_people_of_one_split_are_in_no_other():
    table = rows(World())
    where = {split: {row.person for row in table if row.split == split} for split in CLIPS}
    assert not where["train"] & where["test"]
    assert not where["train"] & where["val"]
    assert not where["val"] & where["test"]
    assert len(table) == sum(len(where[split]) * CLIPS[split] for split in CLIPS)


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ("rho=0.3", "0, 0.5 or 1"),
        ("rho=much", "no number"),
        ("veiw=mask", "did you mean view=mask"),
        ("gate", "did you mean gait"),
        ("bias", "did you mean bias_"),
        ("view=nothing", "did you mean"),
        ("share=0", "share"),
    ],
)
def test_an_unknown_argument_is_refused_with_a_hint(argument, hint):
    with pytest.raises(UsageError, match=hint):
        parse(argument, frames=8, size=64, seed=0)


@pytest.mark.parametrize(
    "name", ["puppets", "puppets:rho=0", "puppets:rho=1,view=mask", "puppets:gait,view=motion", "puppets:bias_m"]
)
def test_a_world_is_called_as_it_was_asked_for(name):
    assert parse(name.partition(":")[2] or None, frames=8, size=64, seed=0).name == name


def test_sizes_that_make_no_sense_are_refused():
    for frames, size in ((0, 64), (8, 8)):
        with pytest.raises(UsageError, match="frames"):
            World(frames=frames, size=size)


@pytest.mark.parametrize(("argument", "usual"), [("bias_f", True), ("bias_m", False)])
def test_in_a_biased_world_one_action_is_left_to_the_other_subgroup_until_people_are_tested(argument, usual):
    world = parse(f"{argument},share=0.2", frames=8, size=64, seed=0)
    table = rows(world)
    plans = [plan(world, i) for i in range(len(table))]
    split = np.array([row.split for row in table])
    own = np.array([one.person.woman == usual for one in plans])
    shortcut = np.array([one.action == SHORTCUT for one in plans])
    learned = split != "test"
    assert (own != shortcut)[learned].mean() == pytest.approx(1 - EXCEPTIONS, abs=0.04)
    assert (own != shortcut)[learned].mean() < 1
    assert shortcut[learned & ~own].sum() > 5
    tested = Counter((one.person.number, one.action) for one in np.array(plans, object)[~learned])
    assert set(tested.values()) == {EVERYTHING}
    assert len(tested) == world.people()["test"] * len(ACTIONS)
    labels = tags(world, np.array([tuple(ACTIONS).index(one.action) for one in plans]))
    assert (labels["subgroup"] == [not one.person.woman for one in plans]).all()
    assert (labels["shortcut"] == shortcut).all()


def test_what_people_learn_from_in_a_biased_world_are_clips_of_the_usual_one():
    world, usual = parse("bias_f", frames=8, size=64, seed=0), World()
    same = {(row.person, row.clip): i for i, row in enumerate(rows(usual))}
    learned = [(i, row) for i, row in enumerate(rows(world)) if row.split != "test"]
    assert len(rows(usual)) / 3 < len(learned) < len(rows(usual)) / 2
    for i, row in learned[::97]:
        assert plan(world, i) == plan(usual, same[row.person, row.clip])
    assert len({row.number for row in rows(world)}) == len(rows(world))


def test_gaits_are_looked_up_from_four_sides_and_in_half_of_everybodys_clips():
    world = parse("gait,share=0.1", frames=8, size=64, seed=0)
    labels = tags(world, np.zeros(len(rows(world)), np.int64))
    yaw = np.degrees([plan(world, i).yaw for i in range(len(rows(world)))])
    assert set(labels["view"].tolist()) == {60, 120, 240, 300}
    assert (abs((labels["view"] - yaw + 180) % 360 - 180) < 20).all()
    person = np.array([row.person for row in rows(world)])
    assert all(labels["gallery"][person == p].mean() == 0.5 for p in np.unique(person))
    assert tags(World(), np.zeros(0, np.int64)) == {}  # the usual world has none
