"""Two methods on the same clips, with answers known beforehand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.report.made_up import CLIPS, PEOPLE, on_disk, share
from vidveil.core.errors import DataError
from vidveil.evaluation.number import Number
from vidveil.evaluation.per_clip import write_per_clip
from vidveil.evaluation.points import point
from vidveil.report import paired
from vidveil.report.same_clips import open_run
from vidveil.statistics.floors import Floor
from vidveil.statistics.intervals import Resamples
from vidveil.statistics.tradeoff import Measurement

WHO = np.repeat(np.arange(PEOPLE), CLIPS)


def test_differences_are_the_first_minus_the_second(method):
    utility, link = paired.differences(method("blur", (None, 6, 3)), method("random", (None, 9, 8)))
    assert (utility.metric, link.metric) == ("action_top1", "linkage_rank1")
    assert utility.settings == ("blur", "random")
    assert (utility.difference.value, link.difference.value) == pytest.approx((-0.3, -0.5))
    assert (link.difference.low, link.difference.high) == pytest.approx((-0.5, -0.5))  # the same for every person
    assert link.difference.excludes_zero


def test_what_makes_people_hard_for_both_cancels(method):
    hard = np.arange(PEOPLE) % 9  # of ten clips 0 to 8
    _, link = paired.differences(method("blur", (None, 9, hard)), method("random", (None, 9, hard + 1)))
    assert link.first.high > link.second.low  # by themselves one could not tell them apart
    assert link.difference.high == pytest.approx(-0.1)
    assert link.difference.excludes_zero


def test_people_who_disagree_leave_zero_inside(method):
    either = np.where(np.arange(PEOPLE) % 2, 3, 6), np.where(np.arange(PEOPLE) % 2, 6, 3)
    _, link = paired.differences(method("blur", (None, 9, either[0])), method("random", (None, 9, either[1])))
    assert link.difference.value == pytest.approx(0)
    assert link.difference.low < -0.05 < 0.05 < link.difference.high
    assert not link.difference.excludes_zero


def test_seeds_are_averaged(method):
    seeds = np.stack([share(2), share(6)])
    _, link = paired.differences(method("blur", (None, 9, seeds)), method("random", (None, 9, 4)))
    assert link.first.per_seed == pytest.approx((0.2, 0.6))
    assert link.difference.value == pytest.approx(0)
    assert (link.difference.low, link.difference.high) == pytest.approx((0, 0))


def test_knobs_are_paired_at_the_same_keep_rate(method):
    first = method("dual", (0.9, 9, 8), (0.5, 7, 4))
    pairs = paired.differences(first, method("random", (0.7, 9, 8), (0.5, 5, 5)))
    assert {pair.settings for pair in pairs} == {("dual, keep 0.5", "random, keep 0.5")}
    assert paired.differences(first, method("other", (0.8, 9, 8), (0.6, 5, 5))) == []


def test_settings_that_keep_as_much_are_paired_whatever_their_rates_are_called(method):
    """Three selections at 0.9 leave 0.729 of all tubelets: next to that belongs a control that keeps 0.73."""

    def kept(one, *shares):
        return replace(one, settings=[replace(s, share=share) for s, share in zip(one.settings, shares, strict=True)])

    first = kept(method("dual", (0.9, 9, 8), (0.8, 7, 4)), 0.73, 0.51)
    second = kept(method("random", (0.9, 9, 8), (0.73, 5, 5)), 0.9, 0.73)
    assert {pair.settings for pair in paired.differences(first, second)} == {("dual, keep 0.9", "random, keep 0.73")}


def test_a_method_without_a_knob_is_compared_with_every_setting(method):
    pairs = paired.differences(method("dual", (0.9, 9, 8), (0.5, 7, 4)), method("blur", (None, 8, 4)))
    assert {pair.settings[0] for pair in pairs} == {"dual, keep 0.9", "dual, keep 0.5"}


def test_a_curve_is_read_at_the_retention_of_a_point(method):
    curve = method("dual", (0.9, 9, 5), (0.5, 5, 1))  # retention 0.9 and 0.5, excess 0.5 and 0
    (found,) = paired.at_equal_retention(curve, method("blur", (None, 7, 7)))  # 0.7, and (0.7 - 0.1) / 0.8
    assert found.retention == pytest.approx(0.7)
    assert found.first.leakage.value == pytest.approx(0.25)
    assert found.second.leakage.value == pytest.approx(0.75)
    assert found.difference.value == pytest.approx(-0.5)
    assert found.difference.excludes_zero


def test_a_setting_of_a_mask_is_met_where_it_stands_and_not_on_the_way_to_raw_video(method):
    """With raw video at its end a mask of one setting would be a curve, and be read where the other was measured."""
    curve = method("random", (0.9, 9, 9), (0.5, 5, 5))
    (low,) = (replace(one, share=0.3, as_filmed=True) for one in method("dual", (0.3, 6, 3)).settings)
    found = paired.compared_with_curve(low, curve)
    assert found.retention == pytest.approx(0.6)
    assert found.second.leakage.value == pytest.approx(0.625)
    assert found.difference.value == pytest.approx((0.3 - 0.6) / 0.8)
    assert paired.compared_with_curve(low, curve, "attributes") is None  # nobody looked for them


def test_the_one_that_leaks_more_in_itself_may_leak_less_at_equal_retention(method):
    good, bad = method("dual", (0.9, 10, 6), (0.5, 6, 2)), method("blur", (None, 7, 4))
    assert paired.differences(good, bad)[1].difference.value == pytest.approx(0.2)  # at keep 0.9
    (found,) = paired.at_equal_retention(good, bad)
    assert found.difference.value == pytest.approx((0.3 - 0.4) / 0.8)


def test_retention_is_of_the_runs_own_raw_video(method):
    (found,) = paired.at_equal_retention(
        method("dual", (0.9, 8, 5), (0.5, 4, 1), raw=(8, 9)), method("blur", (None, 5, 3))
    )
    assert found.first.leakage.value == pytest.approx(0)  # 0.5 is reached at 4 of 8
    assert found.difference.value == pytest.approx(-0.25)


def test_nothing_is_read_where_nothing_was_measured(method):
    (found,) = paired.at_equal_retention(method("dual", (0.9, 9, 5), (0.5, 7, 1)), method("blur", (None, 5, 3)))
    assert found.difference is None
    assert "retention 0.500 is outside what was measured: 0.700 to 0.900" in str(found.first.reason)


def test_shares_and_their_intervals_are_those_of_the_evaluation(tmp_path):
    """From clips on disk comes what the evaluation had found: floors by permutation, moved as chance moves."""
    rng = np.random.default_rng(1)
    people = np.repeat(np.arange(PEOPLE), CLIPS).astype(str)
    draws = Resamples(people)
    chance = rng.uniform(0.05, 0.2, PEOPLE * CLIPS)

    def numbers(utility, link):
        skill = rng.normal(0, 0.15, PEOPLE).repeat(CLIPS)
        hits = [(rng.random((3, PEOPLE * CLIPS)) < level + skill).astype(float) for level in (utility, link)]
        same = {"measured_by": "r3d_tiny", "others": {}}
        utility = Measurement("top-1", draws.mean(hits[0]), 0.1)
        top1 = Number(measured=utility, per_clip=hits[0], kind="utility", **same)
        leak = Measurement("rank-1", draws.mean(hits[1]), 0.14, draws.mean(chance))
        floor = Floor(0.14, 0.1, 0.2, p=0.001, permutations=1000)
        linked = Number(measured=leak, permuted=floor, per_clip=hits[1], chance_per_clip=chance, **same)
        return {"action_top1": top1, "linkage_rank1": linked}

    raw, blurred = numbers(0.9, 0.8), numbers(0.7, 0.4)
    path, made = on_disk(tmp_path, "blur", [])
    per_clip = {f"{tag}/{name}": one for tag, these in (("raw", raw), ("blur", blurred)) for name, one in these.items()}
    write_per_clip(path.with_name("per_clip.safetensors"), people, per_clip)
    of_blur = point("blur", None, blurred, [], raw)
    made = type(made)(**vars(made) | {"raw": point("raw", None, raw, [], raw), "points": [of_blur]})
    run = open_run(path, made)
    (found,) = paired.method(run, Resamples(run.people)).settings
    assert found.excess.estimate.value == pytest.approx(of_blur.metrics["linkage_rank1"].excess)
    assert found.excess.estimate.interval == pytest.approx(tuple(of_blur.metrics["linkage_rank1"].excess_interval))
    assert found.retention.interval == pytest.approx(tuple(of_blur.metrics["action_top1"].retention_interval))


def test_the_area_is_of_the_staircase_of_settings(method):
    found = paired.area(method("dual", (0.9, 10, 7), (0.5, 5, 1)))  # (u, p) = (1, 0.25) and (0.5, 1)
    assert found.points == 2
    assert found.estimate.value == pytest.approx(0.5 * 1 + 0.5 * 0.25)


def test_an_area_of_more_settings_than_others_have_is_not_taken(method):
    found = paired.area(method("dual", *((0.1 * k, 8, 4) for k in range(1, 8))))
    assert (found.points, found.estimate) == (7, None)
    assert "at most 6" in found.reason


@pytest.mark.parametrize(
    ("setting", "raw", "reason"),
    [
        ((None, None, 4), (None, 9), "the action was not measured"),
        ((None, 8, None), (10, None), "nobody tried to link its clips"),
        ((None, 8, 4), (10, 1), "raw video is 0.000 above its floor, less than 0.05"),
    ],
)
def test_without_an_excess_there_is_no_curve_and_the_reason_is_given(method, setting, raw, reason):
    lame, sound = method("blur", setting, raw=raw), method("random", (None, 8, 4))
    with pytest.raises(DataError, match=f"blur has no excess to read at a retention: {reason}"):
        paired.at_equal_retention(sound, lame)
    assert paired.area(lame).reason == reason
