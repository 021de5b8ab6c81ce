"""Floors by formula against floors by permutation, and whether what knows nothing lands on them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from vidveil.core.errors import UsageError
from vidveil.statistics.floors import (
    above_chance,
    expected_average_precision,
    f1_floor,
    largest_class,
    over_seeds,
    permutation_batches,
    permutation_floor,
    permute_people,
    permute_within,
    prevalence,
    random_average_precision,
)
from vidveil.statistics.linkage import LinkageSetup, rank
from vidveil.statistics.linkage_floors import linkage_floor, linkage_map_floor
from vidveil.statistics.metrics import auroc, average_precision, f1

NAN = float("nan")
PEOPLE = np.repeat(np.arange(36), 20)


def actions(rng, count=720):
    return rng.integers(0, 6, count)


def test_floors_by_formula():
    assert largest_class([2, 0, 2, 1, 2]) == pytest.approx(3 / 5)
    assert prevalence([1, 0, NAN, 0]) == pytest.approx(1 / 3)
    np.testing.assert_allclose(prevalence([1, 0, NAN, 0], [[1, 1, 1, 1], [3, 0, 5, 1]]), [1 / 3, 3 / 4])
    assert np.isnan(prevalence([NAN]))


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 30), st.integers(0, 30), st.integers(0, 1000))
def test_no_answer_that_ignores_the_video_beats_the_floor_of_f1_on_average(positives, negatives, seed):
    labels = np.repeat([1, 0], [positives, negatives])
    floor = f1_floor(labels)
    assert floor == pytest.approx(f1_score(labels, np.ones_like(labels)))
    coins = np.random.default_rng(seed).normal(size=(500, len(labels)))  # as logits: yes where they are above 0
    scores = np.nan_to_num([float(f1(labels, coin)) for coin in coins])
    assert np.mean(scores) <= floor + 3 * np.std(scores) / np.sqrt(500) + 1e-9


@pytest.mark.parametrize(("positives", "total"), [(1, 1), (1, 4), (2, 5), (3, 6), (6, 6)])
def test_the_expected_average_precision_is_the_mean_over_all_orders(positives, total):
    every = []
    for places in combinations(range(1, total + 1), positives):
        every.append(np.mean([n / k for n, k in enumerate(places, 1)]))
    assert expected_average_precision(positives, total) == pytest.approx(np.mean(every))


def test_random_labels_under_scores_with_ties_have_the_mean_of_all_permutations():
    labels = np.array([1, 0, 0, 1, 1, 0, NAN, 0])
    tied = np.array([0.9, 0.9, 0.7, 0.5, 0.5, 0.5, 0.9, 0.1])
    known = ~np.isnan(labels)
    permuted = np.full((35, len(labels)), NAN)
    permuted[:, known] = [[float(i in places) for i in range(7)] for places in combinations(range(7), 3)]
    assert random_average_precision(labels, tied) == pytest.approx(average_precision(permuted, tied).mean())
    assert random_average_precision(labels, np.arange(8)) == pytest.approx(expected_average_precision(3, 7))
    assert random_average_precision(labels, np.zeros(8)) == pytest.approx(prevalence(labels))
    assert np.isnan(random_average_precision([0, NAN], [1, 2]))


def test_the_expected_average_precision_is_undefined_without_positives():
    np.testing.assert_array_equal(expected_average_precision([0, 1, 0], [5, 1, 0]), [NAN, 1, NAN])


def test_the_floor_of_scores_that_differ_from_clip_to_clip_is_the_expected_average_precision():
    rng = np.random.default_rng(0)
    labels, scores = (rng.random(300) < 0.3).astype(float), rng.normal(size=300)
    floor = permutation_floor(lambda y: average_precision(y, scores), labels, np.arange(300))
    spread = (floor.high - floor.low) / 4 / np.sqrt(1000)
    assert abs(floor.value - expected_average_precision(labels.sum(), 300)) < 4 * spread
    assert floor.low < floor.value < floor.high
    assert floor.permutations == 1000


def test_an_attacker_who_knows_people_but_not_the_attribute_is_at_its_floor_only_if_people_are_permuted_whole():
    values, by_people, by_clips = [], [], []
    for world in range(150):
        rng = np.random.default_rng(world)
        labels = rng.permutation(np.repeat([1.0, 0.0], [12, 24]))[PEOPLE]
        scores = rng.normal(size=36)[PEOPLE] + 0.01 * rng.normal(size=len(PEOPLE))  # identity, and nothing else
        values.append(float(average_precision(labels, scores)))
        for units, floors in ((PEOPLE, by_people), (np.arange(len(PEOPLE)), by_clips)):
            floor = permutation_floor(lambda y, s=scores: average_precision(y, s), labels, units, permutations=30)
            floors.append(floor.value)
    error = np.std(values) / np.sqrt(150)
    assert abs(np.mean(values) - np.mean(by_people)) < 3 * error
    assert np.mean(values) - np.mean(by_clips) > 2 * error


def test_constant_scores_are_exactly_at_the_floor_of_their_permutations():
    labels = (np.random.default_rng(1).random(len(PEOPLE)) < 0.4).astype(float)
    floor = permutation_floor(
        lambda y: average_precision(y, np.zeros(len(y.T))), labels, PEOPLE, observed=labels.mean(), permutations=100
    )
    assert floor.value == pytest.approx(labels.mean())
    assert floor.p == 1


def test_what_nobody_labelled_stays_unlabelled_and_prevalence_stays():
    rng = np.random.default_rng(2)
    labels = np.where(rng.random(200) < 0.3, NAN, (rng.random(200) < 0.5).astype(float))
    seen = []
    permutation_floor(lambda y: seen.append(y) or np.zeros(len(y)), labels, np.arange(200) // 7, permutations=9)
    for row in seen[0]:
        np.testing.assert_array_equal(np.isnan(row), np.isnan(labels))
        assert np.nansum(row) == np.nansum(labels)


def test_a_leak_is_far_above_its_floor_and_p_says_so():
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.repeat([1.0, 0.0], 18))[PEOPLE]
    scores = labels + 0.5 * rng.normal(size=len(PEOPLE))
    value = float(auroc(labels, scores))
    floor = permutation_floor(lambda y: auroc(y, scores), labels, PEOPLE, observed=value)
    assert abs(floor.value - 0.5) < 0.02
    assert value > floor.high
    assert floor.p == pytest.approx(1 / 1001)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 1000))
def test_every_clip_is_somewhere_after_permuting(units, seed):
    rng = np.random.default_rng(seed)
    for permute in (permute_people, permute_within):
        for row in permute(units, 3, rng):
            assert sorted(row.tolist()) == list(range(len(units)))
    strata = np.array(units)
    assert (strata[permute_within(units, 3, rng)] == strata).all()


def test_each_person_gets_the_clips_of_exactly_one_other_when_all_have_as_many():
    rng = np.random.default_rng(0)
    person = rng.permutation(np.repeat(np.arange(8), 5))
    given_to = person[permute_people(person, 50, rng)]  # (50, 40) whose labels stand at each clip
    for row in given_to:
        owners = [set(row[person == p].tolist()) for p in range(8)]
        assert all(len(owner) == 1 for owner in owners)
        assert set.union(*owners) == set(range(8))
    assert len({tuple(row) for row in given_to.tolist()}) == 50


def test_clips_of_a_person_come_in_random_order():
    orders = {tuple(row) for row in permute_people([0, 0, 0], 200, np.random.default_rng(0)).tolist()}
    assert len(orders) == 6


@pytest.mark.parametrize("rule", ["any", "same action", "other action"])
@pytest.mark.parametrize("clothes", ["any", "same", "changed"])
def test_the_floor_of_linkage_is_that_of_ranking_permuted_people(rule, clothes):
    rng = np.random.default_rng(5)
    person, action = np.repeat(np.arange(8), 9), actions(rng, 72)
    outfit = person * 3 + rng.integers(0, 3, 72)
    embeddings = rng.normal(size=(72, 5)) + rng.normal(size=(6, 5))[action]

    def setup(order):
        return LinkageSetup(person=person[order], rule=rule, action=action, outfit=outfit[order], clothes=clothes)

    straight = setup(np.arange(72))
    found = rank(embeddings, straight)
    slow = [rank(embeddings, setup(order)) for order in permute_within(action, 300, np.random.default_rng(9))]
    for floor, values in (
        (linkage_floor(embeddings, straight, found), [one.rank1 for one in slow]),
        (linkage_map_floor(embeddings, straight, found), [one.mean_average_precision for one in slow]),
    ):
        error = np.std(values) * np.sqrt(1 / 300 + 1 / 1000)
        assert abs(floor.value - np.mean(values)) < 4 * error
        assert (floor.high - floor.low) == pytest.approx(np.diff(np.quantile(values, [0.025, 0.975]))[0], rel=0.35)


def test_the_floor_of_linkage_is_the_expected_hit_of_a_random_neighbour():
    rng = np.random.default_rng(6)
    setup = LinkageSetup(person=PEOPLE, action=actions(rng), rule="same action")
    embeddings = rng.normal(size=(len(PEOPLE), 8))
    found = rank(embeddings, setup)
    floor = linkage_floor(embeddings, setup, found)
    spread = (floor.high - floor.low) / 4
    assert abs(floor.value - found.floor) < 5 * spread / np.sqrt(1000)
    assert abs(found.rank1 - floor.value) < 4 * spread  # random embeddings are at their floor
    assert floor.p > 0.001


def test_the_floor_knows_that_an_action_can_identify_people():
    rng = np.random.default_rng(7)
    person = np.arange(120) // 5
    action = person // 6  # each person does one action
    embeddings = np.eye(4)[action] + 0.01 * rng.normal(size=(120, 4))
    setup = LinkageSetup(person=person, action=action)
    found = rank(embeddings, setup)
    floor = linkage_floor(embeddings, setup, found)
    assert found.floor == pytest.approx(4 / 119)  # by formula over all clips: far too low
    assert floor.value == pytest.approx(4 / 29, abs=0.005)
    assert floor.p > 0.01


def test_identity_in_the_embedding_is_above_the_floor_and_probes_are_permuted_among_probes():
    rng = np.random.default_rng(8)
    probes = rng.random(len(PEOPLE)) < 0.5
    embeddings = rng.normal(size=(36, 12))[PEOPLE] + 0.7 * rng.normal(size=(len(PEOPLE), 12))
    setup = LinkageSetup(person=PEOPLE, probes=probes, among=~probes)
    found = rank(embeddings, setup)
    floor = linkage_floor(embeddings, setup, found, permutations=200)
    assert found.rank1 > 0.5 > floor.high
    assert floor.value == pytest.approx(found.floor, abs=0.004)


def test_the_floor_of_a_mean_over_seeds_is_that_of_the_mean_in_each_permutation():
    rng = np.random.default_rng(0)
    labels = (rng.random(len(PEOPLE)) < 0.4).astype(float)
    scores = rng.normal(size=(3, len(PEOPLE)))
    values = [float(average_precision(labels, row)) for row in scores]
    floors = [
        permutation_floor(lambda y, s=row: average_precision(y, s), labels, PEOPLE, observed=value, permutations=200)
        for row, value in zip(scores, values, strict=True)
    ]
    together = permutation_floor(
        lambda y: np.mean([average_precision(y, row) for row in scores], axis=0),
        labels,
        PEOPLE,
        observed=float(np.mean(values)),
        permutations=200,
    )
    mean = over_seeds(floors)
    assert (mean.value, mean.low, mean.high, mean.p) == pytest.approx(
        (together.value, together.low, together.high, together.p)
    )
    assert mean.high - mean.low < 0.8 * np.mean([one.high - one.low for one in floors])


def test_floors_of_different_permutations_are_not_averaged():
    floors = [permutation_floor(lambda y: y.mean(axis=1), [1, 0, 1], [0, 1, 2], permutations=count) for count in (5, 6)]
    with pytest.raises(UsageError, match="same permutations"):
        over_seeds(floors)


def test_many_numbers_of_noise_raise_a_false_alarm_as_rarely_as_one():
    rng = np.random.default_rng(0)
    noise = rng.random((2000, 10))
    alarms = [bool(above_chance({str(k): p for k, p in enumerate(row)})) for row in noise]
    assert np.mean(alarms) == pytest.approx(0.05, abs=0.015)  # each evaluated by itself: 0.40


def test_what_stands_out_is_named_step_by_step():
    ps = {"gender": 0.04, "face": 0.001, "skin": 0.02, "nudity": 0.6, "constant": NAN}
    assert above_chance(ps) == ["face"]  # 0.001 ≤ 0.05/4, but 0.02 > 0.05/3
    assert above_chance(ps | {"skin": 0.016, "gender": 0.02}) == ["gender", "face", "skin"]
    assert above_chance({}) == []


def test_a_floor_needs_labels_that_fit_and_a_permutation():
    with pytest.raises(UsageError):
        permutation_floor(lambda y: y[:, 0], [1, 0], [1])
    with pytest.raises(UsageError):
        permutation_floor(lambda y: y[:, 0], [1, 0], [1, 2], permutations=0)


@pytest.mark.parametrize("rule", ["any", "same action", "other action"])
@pytest.mark.parametrize("unknown", [False, True], ids=["everybody is known", "some are not"])
def test_many_permutations_at_a_time_give_what_one_after_the_other_gives(rule, unknown, monkeypatch):
    rng = np.random.default_rng(5)
    setup = LinkageSetup(person=rng.integers(-1 if unknown else 0, 9, 120), rule=rule, action=rng.integers(0, 3, 120))
    embeddings = rng.normal(size=(120, 6))
    found = rank(embeddings, setup)
    fast = linkage_map_floor(embeddings, setup, found, permutations=40)
    monkeypatch.setattr("vidveil.statistics.linkage_floors._slots", lambda _: None)
    slow = linkage_map_floor(embeddings, setup, found, permutations=40)
    np.testing.assert_allclose(fast.values, slow.values, rtol=1e-12)


def test_permutations_that_are_remembered_are_those_that_would_be_made():
    people = np.repeat(np.array(["ann", "bob", "cy"]), [3, 4, 2])
    ((start, stop, first),) = permutation_batches(permute_people, people, 20, len(people))
    ((_, _, again),) = permutation_batches(permute_people, people, 20, len(people))
    assert (start, stop) == (0, 20)
    assert again is first
    np.testing.assert_array_equal(first, permute_people(people, 20, np.random.default_rng(0)))
