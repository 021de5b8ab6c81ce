"""What happens in a clip, and that nothing in it tells anything else."""

from dataclasses import replace

import numpy as np
import pytest

from vidveil.data.puppets.labels import FACTS, facts
from vidveil.data.puppets.plan import plan, rows
from vidveil.data.puppets.world import CLIPS, World, parse
from vidveil.errors import UsageError

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
def test_nothing_tells_the_person_the_action_or_the_place(table, one, other):
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
    for name in ("action", "turn", "place", "camera", "yaw", "gaze", "glance", "objects", "outfit", "room"):
        assert getattr(ours, name) == getattr(theirs, name), name


def test_another_seed_is_another_world():
    assert plan(World(), 5).turn != plan(World(seed=1), 5).turn


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
        ("view=nothing", "did you mean"),
        ("share=0", "share"),
    ],
)
def test_an_unknown_argument_is_refused_with_a_hint(argument, hint):
    with pytest.raises(UsageError, match=hint):
        parse(argument, frames=8, size=64, seed=0)


@pytest.mark.parametrize("name", ["puppets", "puppets:rho=0", "puppets:rho=1,view=mask", "puppets:gait,view=motion"])
def test_a_world_is_called_as_it_was_asked_for(name):
    assert parse(name.partition(":")[2] or None, frames=8, size=64, seed=0).name == name


def test_sizes_that_make_no_sense_are_refused():
    for frames, size in ((0, 64), (8, 8)):
        with pytest.raises(UsageError, match="frames"):
            World(frames=frames, size=size)
