"""The bootstrap over people: what it draws, and that its intervals hold the truth as often as they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidveil.core.errors import UsageError
from vidveil.statistics.intervals import Resamples, combined, difference, percentile_interval
from vidveil.statistics.metrics import average_precision

NAN = float("nan")


def clustered(rng, people=40, clips=10, spread=0.25):
    """Hits of clips of people who are each easy or hard, and who is who. The true mean is 0.5."""
    ease = np.clip(0.5 + spread * rng.choice([-1, 1], people) * rng.random(people) * 2, 0, 1)
    person = np.repeat(np.arange(people), clips)
    return (rng.random(people * clips) < ease[person]).astype(float), person


def test_a_mean_is_over_clips_and_all_clips_of_a_drawn_person_come_along():
    person, hits = np.array(["b", "a", "a", "b", "b"]), np.array([1.0, 0, 1, 1, 0])
    drawn = Resamples(person, resamples=50)
    estimate = drawn.mean(hits)
    assert estimate.value == pytest.approx(3 / 5)
    possible = {(2, 0): 1 / 2, (1, 1): 3 / 5, (0, 2): 2 / 3}  # how often a and b were drawn
    np.testing.assert_allclose(estimate.samples, [possible[tuple(row)] for row in drawn.counts.tolist()])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000))
def test_means_and_weighted_statistics_are_the_same_thing(seed):
    rng = np.random.default_rng(seed)
    hits, person = clustered(rng, people=5, clips=3)
    hits[rng.random(len(hits)) < 0.2] = NAN
    drawn = Resamples(person, resamples=40, seed=seed)

    def weighted_mean(weights):
        weights = weights * ~np.isnan(hits)
        total = weights.sum(axis=1)
        return np.divide(weights @ np.nan_to_num(hits), total, out=np.full(len(total), NAN), where=total > 0)

    fast, general = drawn.mean(hits), drawn.statistic(weighted_mean)
    np.testing.assert_allclose(fast.samples, general.samples)
    np.testing.assert_allclose(fast.value, general.value)


def test_a_statistic_of_weights_is_that_of_copied_clips():
    rng = np.random.default_rng(3)
    _, person = clustered(rng, people=6, clips=4)
    labels, scores = rng.integers(0, 2, 24).astype(float), rng.integers(0, 5, 24).astype(float)
    drawn = Resamples(person, resamples=20)
    estimate = drawn.statistic(lambda weights: average_precision(labels, scores, weights))
    for counts, value in zip(drawn.counts, estimate.samples, strict=True):
        copies = np.concatenate([np.flatnonzero(person == p).repeat(times) for p, times in enumerate(counts)])
        np.testing.assert_allclose(value, average_precision(labels[copies], scores[copies]))


def test_resamples_in_pieces_are_those_in_one(monkeypatch):
    rng = np.random.default_rng(0)
    hits, person = clustered(rng)
    drawn = Resamples(person, resamples=33)
    whole = drawn.statistic(lambda weights: weights @ hits)
    monkeypatch.setattr("vidveil.statistics.intervals._AT_ONCE", 2000)
    np.testing.assert_array_equal(drawn.statistic(lambda weights: weights @ hits).samples, whole.samples)


def test_the_same_seed_draws_the_same_people_and_another_seed_others():
    person = np.repeat(np.arange(9), 2)
    first, again, other = (Resamples(person, resamples=10, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.counts, again.counts)
    assert (first.counts != other.counts).any()
    assert first.counts.sum(axis=1).tolist() == [9] * 10


def test_an_interval_over_people_holds_the_truth_19_times_of_20_and_one_over_clips_does_not():
    rng = np.random.default_rng(11)
    covered = {"people": 0, "clips": 0}
    worlds = 200
    for world in range(worlds):
        hits, person = clustered(rng)
        for name, unit in (("people", person), ("clips", np.arange(len(person)))):
            estimate = Resamples(unit, resamples=200, seed=world).mean(hits)
            covered[name] += estimate.low <= 0.5 <= estimate.high
    # 95 % of 200 is 190 with a standard deviation of 3.1; the bootstrap of 40 people is known to be a little narrow.
    assert 0.90 <= covered["people"] / worlds <= 0.99
    assert covered["clips"] / worlds < 0.75


def test_the_value_of_several_seeds_is_their_mean_on_the_same_people():
    rng = np.random.default_rng(5)
    hits, person = clustered(rng)
    others = 1 - hits
    drawn = Resamples(person, resamples=200)
    estimate = drawn.mean(np.stack([hits, others]))
    assert estimate.per_seed == pytest.approx((hits.mean(), 1 - hits.mean()))
    assert estimate.value == pytest.approx(0.5)
    np.testing.assert_allclose(estimate.samples, 0.5)  # whoever is drawn, what one seed wins the other loses


def test_a_paired_difference_is_surer_than_two_intervals():
    rng = np.random.default_rng(7)
    hits, person = clustered(rng)
    worse = hits * (rng.random(len(hits)) < 0.9)  # the same clips, a tenth of the hits lost
    drawn = Resamples(person)
    first, second = drawn.mean(hits), drawn.mean(worse)
    gain = difference(first, second)
    assert first.low < second.high  # each alone leaves it open
    assert gain.excludes_zero
    assert gain.value == pytest.approx(hits.mean() - worse.mean())
    assert gain.low < gain.value < gain.high


def test_a_method_does_not_differ_from_itself():
    hits, person = clustered(np.random.default_rng(0))
    estimate = Resamples(person, resamples=100).mean(hits)
    nothing = difference(estimate, estimate)
    assert (nothing.value, nothing.low, nothing.high, nothing.excludes_zero) == (0, 0, 0, False)


def test_numbers_from_different_draws_are_not_paired():
    hits, person = clustered(np.random.default_rng(0))
    first = Resamples(person, resamples=100).mean(hits)
    for other in (Resamples(person, resamples=100, seed=1), Resamples(person[::-1], resamples=100)):
        with pytest.raises(UsageError, match="different draws"):
            difference(first, other.mean(hits))


def test_one_person_gives_no_interval():
    estimate = Resamples([4, 4, 4], resamples=10).mean([1, 0, 1])
    assert estimate.value == pytest.approx(2 / 3)
    assert np.isnan(estimate.interval).all()


def test_a_number_that_is_undefined_too_often_has_no_interval():
    samples = np.linspace(0, 1, 100)
    samples[:5] = NAN
    assert not np.isnan(percentile_interval(samples)).any()
    samples[:6] = NAN
    assert np.isnan(percentile_interval(samples)).all()


def test_a_number_made_of_numbers_is_made_of_their_resamples():
    drawn = Resamples([0, 1, 2], resamples=25)
    first, second = drawn.mean([1, 2, 3]), drawn.mean([4, 4, 8])
    ratio = combined(lambda a, b: a / b, first, second)
    assert ratio.value == pytest.approx(2 / (16 / 3))
    np.testing.assert_allclose(ratio.samples, first.samples / second.samples)


@pytest.mark.parametrize("values", [[1, 2], [[[1, 2, 3]]]])
def test_values_that_do_not_fit_the_clips_are_refused(values):
    with pytest.raises(UsageError):
        Resamples([0, 1, 2], resamples=2).mean(values)
