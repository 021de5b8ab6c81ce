"""Subgroups: top-1 of each, the gap between them, and the gap of people put in two groups at random."""

from dataclasses import replace

import numpy as np
import pytest

from tests.evaluation.toy import learned, toy
from vidveil.data.clips import ClipSet
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.measures.subgroups import subgroups
from vidveil.evaluation.points import point
from vidveil.report.tables import spoken

PEOPLE = 40


def tagged(**tags: np.ndarray) -> ClipSet:
    """40 test people of 8 clips, every second one f, and three of an unknown subgroup."""
    data = toy((2, 2, PEOPLE))
    group = data.person % 2
    group = np.where(np.isin(data.person, (4, 5, 6)), -1, group)
    return replace(data, tags={"subgroup": group, **tags})


def predicting(data: ClipSet, right: np.ndarray) -> TrainedNetwork:
    """A network that is right about these test clips and wrong about the others."""
    actions = data.action[data.indices("test")]
    guess = np.where(right, actions, 1 - actions)
    return learned(data, {"test": {"action": np.eye(2)[guess]}}, {"action": 1.0})


def measured(data: ClipSet, *rights: np.ndarray):
    measure = Measure(data, permutations=300, resamples=300)
    networks = [predicting(data, right) for right in rights]
    return subgroups(measure, measure.action({"n": networks}), networks)


def test_the_gap_is_that_of_the_two_and_stands_out_of_random_groups():
    data = tagged()
    rows = data.indices("test")
    group, number = data.tags["subgroup"][rows], np.arange(len(rows))
    right = np.where(group == 0, number % 8 < 4, True)  # women: half of their clips
    found = measured(data, right)
    assert found["action_top1_f"].measured.value.value == 0.5
    assert found["action_top1_m"].measured.value.value == 1
    gap = found["action_top1_gap"]
    assert (gap.measured.value.value, gap.note, gap.kind) == (0.5, "m is higher", "gap")
    assert gap.measured.value.interval == (0.5, 0.5)  # everybody is like their subgroup
    assert 0 < gap.measured.floor < 0.1
    assert gap.p == pytest.approx(1 / 301)
    assert found["action_top1_f"].measured.floor == 0.5  # the largest class
    assert found["action_top1_f"].per_clip is not None
    assert np.isnan(found["action_top1_f"].per_clip[0, group != 0]).all()


def test_a_gap_that_nobody_made_is_at_its_floor_and_its_interval_reaches_below_0():
    data = tagged()
    rng = np.random.default_rng(3)
    good = rng.random(PEOPLE)[data.person[data.indices("test")] - 4]  # some people are easier than others
    found = measured(data, *(rng.random(len(good)) < good for _ in range(2)))
    gap = found["action_top1_gap"]
    assert gap.measured.value.value > 0
    assert gap.measured.value.low < 0 < gap.measured.value.high
    assert gap.floor_range[0] <= gap.measured.value.value <= gap.floor_range[1]
    assert gap.p is not None
    assert gap.p > 0.05
    assert gap.measured.value.value == pytest.approx(np.mean(gap.measured.value.per_seed))


def test_the_mean_per_class_counts_a_rare_action_as_much_as_a_frequent_one():
    data = tagged()
    rows = data.indices("test")
    action = data.action.copy()
    action[rows[np.arange(len(rows)) % 8 != 7]] = 0  # seven clips of right, one of down
    data = replace(data, action=action)
    found = measured(data, action[rows] == 0)
    assert found["action_top1_f"].measured.value.value == 0.875
    assert found["action_class_mean_f"].measured.value.value == 0.5
    assert found["action_class_mean"].measured.value.value == 0.5
    assert found["action_class_mean"].measured.floor == 0.5
    assert found["action_class_mean_gap"].measured.value.value == 0


def test_a_class_that_one_subgroup_is_not_tested_on_is_no_part_of_their_gap():
    data = tagged()
    rows = data.indices("test")
    actions = ("right", "down", "up")
    action = data.action.copy()
    women = data.tags["subgroup"] == 0
    action[women & (np.arange(len(action)) % 8 == 7)] = 2  # women alone go up, and it is never predicted
    data = replace(data, action=action, actions=actions)
    network = learned(data, {"test": {"action": np.eye(3)[np.minimum(action[rows], 1)]}}, {"action": 1.0})
    measure = Measure(data, permutations=20, resamples=20)
    found = subgroups(measure, measure.action({"n": [network]}), [network])
    assert found["action_top1_gap"].measured.value.value == pytest.approx(1 / 8)
    assert found["action_class_mean_gap"].measured.value.value == 0
    assert found["action_class_mean"].measured.value.value == pytest.approx(2 / 3)


def test_the_action_with_the_shortcut_has_its_own_numbers_and_its_floor_is_how_often_it_is_predicted():
    data = tagged(shortcut=(tagged().action == 1).astype(np.int64))
    rows = data.indices("test")
    women = data.tags["subgroup"][rows] == 0
    right = (data.action[rows] == 1) == women  # "down" is predicted for every woman, and for nobody else
    found = measured(data, right)
    f, m = found["action_top1_shortcut_f"], found["action_top1_shortcut_m"]
    assert (f.measured.value.value, f.measured.floor, f.analytic) == (
        1,
        1,
        0.5,
    )  # knowing it and always predicting it are the same
    assert (m.measured.value.value, m.measured.floor) == (0, 0)
    assert found["action_top1_shortcut_gap"].measured.value.value == 1
    assert found["action_top1_gap"].measured.value.value == 0


def test_sets_without_subgroups_have_none():
    data = toy((2, 2, 4))
    rows = data.indices("test")
    assert measured(data, np.ones(len(rows), bool)) == {}
    one_sided = np.where(data.person % 2 == 0, 0, -1)
    one_man = np.where(data.person == 7, 1, one_sided)
    for group in (one_sided, one_man):  # one person is no group
        assert measured(replace(data, tags={"subgroup": group}), np.ones(len(rows), bool)) == {}


def test_results_hold_subgroups_with_retention_and_gaps_with_excess():
    data = tagged()
    group = data.tags["subgroup"][data.indices("test")]
    number = np.arange(len(group)) % 8
    raw = measured(data, np.where(group == 0, number < 4, True))
    after = measured(data, np.where(group == 0, number < 4, number < 6))
    metrics = point("blur", None, after, (), raw).metrics
    assert metrics["action_top1_m"].kind == "utility"
    assert metrics["action_top1_m"].retention == 0.75
    gap = metrics["action_top1_gap"]
    assert gap.kind == "gap"
    assert gap.retention is None
    assert gap.value == 0.25
    assert gap.raw == 0.5
    assert gap.excess == pytest.approx((0.25 - gap.floor) / (0.5 - raw["action_top1_gap"].measured.floor))
    names = [spoken(name) for name in ("action_top1_f", "action_class_mean", "action_top1_shortcut_gap")]
    assert names == ["action, top-1, f", "action, mean per class", "action, top-1, shortcut gap"]


def test_the_change_of_a_gap_is_paired_and_raw_has_none():
    """Both err about the same people, and one about half of what women do as well: what is common to both cancels."""
    data = tagged()
    rows = data.indices("test")
    women = data.tags["subgroup"][rows] == 0
    hard = np.random.default_rng(0).random(PEOPLE)[data.person[rows] - 4] < np.where(women, 0.7, 0.3)
    half = np.arange(len(rows)) % 2 == 0
    raw, after = (measured(data, right) for right in (~hard & (~women | half), ~hard))
    gap = point("mine", None, after, [], raw).metrics["action_top1_gap"]
    assert gap.change == pytest.approx(
        after["action_top1_gap"].measured.value.value - raw["action_top1_gap"].measured.value.value
    )
    assert gap.change_interval is not None
    low, high = gap.change_interval
    assert low < gap.change < high < 0
    apart = np.hypot(*(np.diff(one["action_top1_gap"].measured.value.interval)[0] for one in (raw, after)))
    assert high - low < apart  # as if they had been measured on different people
    assert point("raw", None, raw, [], raw).metrics["action_top1_gap"].change is None


def test_a_gap_that_an_adapter_turned_round_is_a_gap_all_the_same():
    data = tagged()
    rows = data.indices("test")
    women = data.tags["subgroup"][rows] == 0
    half = np.arange(len(rows)) % 2 == 0
    raw, after = (measured(data, right) for right in (~women | half, women | half))
    gap = point("mine", None, after, [], raw).metrics["action_top1_gap"]
    assert (gap.note, gap.change, gap.change_interval) == ("f is higher", 0, [0, 0])
