"""Excess, retention, equal retention and the area of a trade-off, by hand and against slow references."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidveil.core.errors import UsageError
from vidveil.statistics.intervals import Estimate, Resamples, difference
from vidveil.statistics.tradeoff import (
    Measurement,
    Point,
    compare,
    excess,
    excess_over_attributes,
    hypervolume,
    read,
    retention,
    trade_off,
    usefulness,
    why_not_measurable,
)


def sure(value, resamples=50):
    """A number that is the same whoever is drawn."""
    return Estimate(value, np.full(resamples, value))


def about(value, spread, resamples=400):
    return Estimate(value, value + spread * np.linspace(-2, 2, resamples))


def leak(value, floor, metric="average precision"):
    return Measurement(metric, sure(value), floor)


def curve(*points):
    """(retention, leakage) from the mildest setting to the strongest."""
    return [Point(sure(kept), sure(leaked), knob=-number) for number, (kept, leaked) in enumerate(points)]


@pytest.mark.parametrize(("value", "expected"), [(0.9, 1), (0.1, 0), (1.1, 1.25), (0.06, -0.05)])
def test_raw_video_has_excess_1_noise_0_and_nothing_is_clipped(value, expected):
    assert excess(leak(value, 0.1), leak(0.9, 0.1)).estimate.value == pytest.approx(expected)


def test_each_number_stands_above_its_own_floor():
    assert excess(leak(0.35, 0.15), leak(0.9, 0.1)).estimate.value == pytest.approx(0.2 / 0.8)


def test_over_attributes_numerators_and_denominators_are_summed():
    raw = {"face": leak(0.9, 0.5), "gender": leak(0.6, 0.5), "nudity": leak(0.53, 0.5)}
    anonymized = {"face": leak(0.6, 0.5), "gender": leak(0.6, 0.5), "nudity": leak(0.9, 0.5)}
    found = excess_over_attributes(anonymized, raw)
    assert found.estimate.value == pytest.approx((0.1 + 0.1) / (0.4 + 0.1))  # the mean of the shares would be 0.625
    assert found.measured == ("face", "gender")
    assert found.not_measurable == {"nudity": "raw video is 0.030 above its floor, less than 0.05"}


def test_an_attribute_that_raw_video_may_not_give_away_at_all_is_not_measurable():
    unsure = Measurement("average precision", about(0.6, 0.06), 0.5)
    assert why_not_measurable(unsure) == ("the interval of raw video above its floor, -0.014 to 0.214, is not above 0")
    assert why_not_measurable(Measurement("average precision", about(0.6, 0.04), 0.5)) is None
    assert why_not_measurable(leak(float("nan"), 0.5)) == "undefined on raw video"


def test_without_anything_measurable_there_is_no_excess():
    found = excess(leak(0.5, 0.5), leak(0.5, 0.5))
    assert found.estimate is None
    assert list(found.not_measurable) == ["linkage"]


@pytest.mark.parametrize("metric", ["F1", "macro F1", "f1_macro", "macro-f1"])
def test_no_excess_is_taken_of_f1(metric):
    with pytest.raises(UsageError, match="F1"):
        excess(leak(0.5, 0.4, metric), leak(0.9, 0.4, metric))


def test_only_the_same_metric_of_the_same_attributes_is_compared():
    with pytest.raises(UsageError, match="cannot be compared"):
        excess(leak(0.5, 0.4, "AUROC"), leak(0.9, 0.4))
    with pytest.raises(UsageError, match="attributes of raw video"):
        excess_over_attributes({"face": leak(0.5, 0.4)}, {"gender": leak(0.9, 0.4)})


def test_the_floor_moves_with_the_people_who_are_drawn():
    people = np.arange(40)
    labels = (people < 20).astype(float)
    drawn = Resamples(people, resamples=100)
    prevalence = drawn.mean(labels)
    constant = Measurement(
        "average precision", prevalence, floor=0.5 + 0.01, chance=prevalence
    )  # AP of a constant score
    np.testing.assert_allclose(constant.above_floor().samples, -0.01)


def test_the_interval_of_an_excess_is_that_of_the_ratio():
    people = np.repeat(np.arange(30), 4)
    rng = np.random.default_rng(0)
    hits = (rng.random(120) < rng.random(30)[people]).astype(float)
    drawn = Resamples(people, resamples=500)
    raw = Measurement("rank-1", drawn.mean(hits), 0.05)
    assert np.allclose(excess(raw, raw).estimate.samples, 1)  # raw against itself: no doubt at all
    half = Measurement("rank-1", drawn.mean(hits * (np.arange(120) % 2)), 0.05)
    found = excess(half, raw).estimate
    assert found.low < found.value < found.high
    np.testing.assert_allclose(found.samples, (half.value.samples - 0.05) / (raw.value.samples - 0.05))


def test_retention_and_usefulness():
    assert retention(sure(0.72), sure(0.9)).value == pytest.approx(0.8)
    assert usefulness(sure(0.5), sure(0.9), chance=0.1).value == pytest.approx(0.5)
    assert usefulness(sure(0.05), sure(0.9), chance=0.1).value < 0
    assert np.isnan(retention(sure(0.5), sure(0.0)).value)


def test_leakage_is_read_between_neighbouring_settings_of_the_knob():
    found = read(curve((1, 1), (0.8, 0.5), (0.4, 0.1)), sure(0.7))
    assert found.leakage.value == pytest.approx(0.5 - 0.4 / 4)
    assert not found.ambiguous
    np.testing.assert_allclose(found.leakage.samples, found.leakage.value)


@pytest.mark.parametrize(("at", "expected"), [(1.0, 1.0), (0.8, 0.5), (0.4, 0.1)])
def test_at_its_own_points_a_curve_is_read_exactly(at, expected):
    found = read(curve((1, 1), (0.8, 0.5), (0.4, 0.1)), sure(at))
    assert found.leakage.value == pytest.approx(expected)
    assert not found.ambiguous


@pytest.mark.parametrize("at", [1.01, 0.39])
def test_nothing_is_read_beyond_the_ends_of_a_curve(at):
    found = read(curve((1, 1), (0.4, 0.1)), sure(at))
    assert found.leakage is None
    assert found.reason == f"retention {at:.3f} is outside what was measured: 0.400 to 1.000"


def test_points_are_joined_in_the_order_of_the_knob_and_the_worst_passage_counts():
    zigzag = curve((1.0, 0.9), (0.6, 0.5), (0.8, 0.3), (0.5, 0.1))
    found = read(zigzag[::-1], sure(0.7))
    assert found.ambiguous
    assert found.leakage.value == pytest.approx(0.5 + 0.4 / 4)


def test_the_rival_in_a_comparison_is_read_at_its_best_passage():
    zigzag, falling = curve((1.0, 0.9), (0.6, 0.5), (0.8, 0.3), (0.5, 0.1)), curve((1, 1), (0.4, 0.1))
    least, most = 0.1 + 0.2 * 2 / 3, 0.6
    assert read(zigzag, sure(0.7), lucky=True).leakage.value == pytest.approx(least)
    (rival,), (ours,) = compare(falling, zigzag, (0.7,)), compare(zigzag, falling, (0.7,))
    assert (rival.second.leakage.value, ours.first.leakage.value) == pytest.approx((least, most))


def test_a_knob_that_changes_leakage_alone_is_read_at_its_leakiest():
    found = read(curve((0.8, 0.5), (0.8, 0.2)), sure(0.8))
    assert found.leakage.value == 0.5
    assert found.ambiguous


def test_a_method_without_a_knob_is_met_at_its_own_retention():
    point, other = [Point(sure(0.9), sure(0.4))], curve((1, 1), (0.8, 0.5))
    (found,) = compare(point, other)
    assert found.retention == 0.9
    assert found.second.leakage.value == pytest.approx(0.75)
    assert found.difference.value == pytest.approx(0.4 - 0.75)
    (mirrored,) = compare(other, point)
    assert mirrored.difference.value == pytest.approx(0.75 - 0.4)


def test_two_methods_without_a_knob_are_compared_only_where_they_meet():
    first, second = [Point(sure(0.9), sure(0.4))], [Point(sure(0.8), sure(0.3))]
    (found,) = compare(first, second)
    assert found.difference is None
    assert found.second.reason == "retention 0.900 is outside what was measured: 0.800 only"
    assert compare(first, [Point(sure(0.9), sure(0.3))])[0].difference.value == pytest.approx(0.1)


def test_two_curves_are_compared_where_asked_or_wherever_either_has_a_point():
    first, second = curve((1, 0.8), (0.5, 0.2)), curve((0.9, 0.7), (0.4, 0.1))
    assert [round(one.retention, 6) for one in compare(first, second)] == [1, 0.9, 0.5, 0.4]
    assert [one.difference is None for one in compare(first, second)] == [True, False, False, True]
    (asked,) = compare(first, second, at=[0.75])
    assert asked.difference.value == pytest.approx(0.5 - 0.52)
    with pytest.raises(UsageError, match="without a knob"):
        compare(first, second[:1], at=[0.9])


def test_a_difference_at_equal_retention_is_paired_and_moves_with_the_people():
    people = np.repeat(np.arange(50), 6)
    rng = np.random.default_rng(1)
    drawn = Resamples(people, resamples=400)
    ease = rng.random(50)[people]
    raw = drawn.mean((rng.random(300) < 0.95).astype(float))

    def method(strength):
        utility = [(rng.random(300) < 0.95 - 0.25 * k).astype(float) for k in range(3)]
        leaks = [np.clip(ease - strength * k, 0, 1) for k in range(3)]
        rows = zip(utility, leaks, strict=True)
        return [Point(retention(drawn.mean(u), raw), drawn.mean(y), knob=k) for k, (u, y) in enumerate(rows)]

    (found,) = compare(method(0.1), method(0.3), at=[0.75])
    assert found.difference.excludes_zero
    assert found.difference.low < found.difference.value < found.difference.high
    width = found.first.leakage.high - found.first.leakage.low
    assert found.difference.high - found.difference.low < width  # who is easy is easy for both


def test_curves_need_their_knob_and_at_least_a_point():
    with pytest.raises(UsageError, match="knob"):
        read([Point(sure(1), sure(1)), Point(sure(0.5), sure(0.1))], sure(0.7))
    with pytest.raises(UsageError, match="at least one"):
        read([], sure(0.7))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=6))
def test_the_area_is_what_counting_squares_gives(points):
    u, p = np.array(points).T
    squares = np.arange(20) + 0.5
    covered = ((squares[:, None, None] < u) & (squares[:, None] < p)).any(axis=-1)
    assert hypervolume(u / 20, p / 20) == pytest.approx(covered.sum() / 400)
    np.testing.assert_allclose(hypervolume(np.stack([u, u[::-1]]), np.stack([p, p[::-1]])), covered.sum())


def test_neither_raw_video_nor_noise_has_a_trade_off_and_a_perfect_method_has_all():
    assert trade_off([(sure(1), sure(1))]).value == 0
    assert trade_off([(sure(0), sure(0))]).value == 0
    assert trade_off([(sure(1), sure(0))]).value == 1
    assert trade_off([(sure(1.3), sure(-0.4)), (sure(-1), sure(-1))]).value == 1  # clipped here, and only here


def test_trade_offs_are_compared_on_the_same_people():
    first = trade_off([(about(0.9, 0.02), about(0.3, 0.02)), (about(0.6, 0.02), about(0.1, 0.02))])
    second = trade_off([(about(0.8, 0.02), about(0.3, 0.02))])
    assert first.value == pytest.approx(0.3 * 0.7 + 0.6 * 0.9)
    assert difference(first, second).excludes_zero


def test_more_than_six_operating_points_are_refused():
    with pytest.raises(UsageError, match="1 to 6"):
        trade_off([(sure(0.5), sure(0.5))] * 7)
    with pytest.raises(UsageError, match="1 to 6"):
        trade_off([])
