"""Linkage by hand and against a slow reference that goes through all orders of ties."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidveil.core.errors import UsageError
from vidveil.statistics import linkage
from vidveil.statistics.floors import expected_average_precision
from vidveil.statistics.linkage import LinkageSetup, nearest, rank

NAN = float("nan")
RULES, CLOTHES = ("any", "same action", "other action"), ("any", "same", "changed")


def angles(*degrees):
    """Directions in the plane: cosine falls with the angle between them."""
    radians = np.deg2rad(np.array(degrees, dtype=float))
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


@st.composite
def worlds(draw):
    """A handful of clips with few directions, so that ties are common, and all that a setup can ask for."""
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    count = draw(st.integers(2, 9))
    person = rng.integers(-1, 3, count)
    setup = LinkageSetup(
        person=person,
        rule=draw(st.sampled_from(RULES)),
        action=rng.integers(0, 2, count),
        outfit=person * 2 + rng.integers(0, 2, count),
        clothes=draw(st.sampled_from(CLOTHES)),
        probes=rng.random(count) < 0.8 if draw(st.booleans()) else None,
        among=rng.random(count) < 0.8 if draw(st.booleans()) else None,
    )
    directions = rng.integers(-1, 2, (count, 2)).astype(float)
    raw = rng.integers(-1, 2, (count, 2)).astype(float) if draw(st.booleans()) else None
    return directions, setup, raw


def gallery_of(q, setup):
    """Clip by clip, as the docstrings have it."""
    for j in range(len(setup)):
        if j == q or setup.person[j] < 0 or (setup.among is not None and not setup.among[j]):
            continue
        if setup.rule == "same action" and setup.action[j] != setup.action[q]:
            continue
        if setup.rule == "other action" and setup.action[j] == setup.action[q]:
            continue
        if setup.person[j] == setup.person[q]:
            if setup.clothes == "same" and setup.outfit[j] != setup.outfit[q]:
                continue
            if setup.clothes == "changed" and setup.outfit[j] == setup.outfit[q]:
                continue
        yield j


def cosine(a, b):
    length = np.linalg.norm(a) * np.linalg.norm(b)
    return 0.0 if length == 0 else round(float(a @ b / length), 6)


def every_order(similar):
    """All rankings, the ties in each of their orders."""
    levels = [[j for j in similar if similar[j] == level] for level in sorted(set(similar.values()), reverse=True)]
    for orders in product(*(permutations(level) for level in levels)):
        yield [j for order in orders for j in order]


def looked_up(q, directions, setup, raw):
    """(hit, average precision, chance, R@3) of one query over all orders of ties, or None."""
    among = list(gallery_of(q, setup))
    positives = [j for j in among if setup.person[j] == setup.person[q]]
    asked = setup.person[q] >= 0 and (setup.probes is None or setup.probes[q])
    if not asked or not positives:
        return None
    others = directions if raw is None else raw
    outcomes = []
    for order in every_order({j: cosine(directions[q], others[j]) for j in among}):
        places = [k for k, j in enumerate(order, 1) if j in positives]
        precision = np.mean([n / k for n, k in enumerate(places, 1)])
        outcomes.append((places[0] == 1, precision, len(positives) / len(among), places[0] <= 3))
    return np.mean(outcomes, axis=0)


@settings(deadline=None, max_examples=150)
@given(worlds())
def test_linkage_is_the_mean_over_all_orders_of_ties(world):
    directions, setup, raw = world
    found = rank(directions, setup, gallery=raw)
    recall = found.recall(3)
    for q in range(len(setup)):
        expected = looked_up(q, directions, setup, raw)
        got = [found.hit[q], found.average_precision[q], found.chance[q], recall[q]]
        np.testing.assert_allclose(got, [NAN] * 4 if expected is None else expected, atol=1e-12)


@settings(deadline=None, max_examples=50)
@given(worlds(), st.integers(1, 9))
def test_queries_in_pieces_give_what_all_at_once_give(world, rows):
    directions, setup, raw = world
    whole = rank(directions, setup, gallery=raw)
    before = linkage._AT_ONCE
    linkage._AT_ONCE = rows * len(setup)
    try:
        pieces = rank(directions, setup, gallery=raw)
    finally:
        linkage._AT_ONCE = before
    np.testing.assert_array_equal(pieces.hit, whole.hit)
    np.testing.assert_array_equal(pieces.average_precision, whole.average_precision)


def test_a_perfect_action_feature_is_no_leak_within_an_action():
    action = np.repeat(np.arange(4), 12)
    person = np.arange(48) // 4  # each person does one action, so an action narrows down identity
    embeddings = np.eye(4)[action]
    assert rank(embeddings, LinkageSetup(person=person)).rank1 > 3 * rank(embeddings, LinkageSetup(person=person)).floor
    within = rank(embeddings, LinkageSetup(person=person, rule="same action", action=action))
    assert within.rank1 == pytest.approx(within.floor)
    assert within.floor == pytest.approx(3 / 11)


def test_clips_that_all_look_the_same_are_at_the_floor_however_they_are_listed():
    person = np.repeat(np.arange(6), 5)  # sorted by person: the first or the next clip listed would be of the same one
    noise = 1e-8 * np.random.default_rng(0).normal(size=(30, 8))
    for embeddings in (np.zeros((30, 8)), np.ones((30, 8)), np.ones((30, 8)) + noise):
        found = rank(embeddings, LinkageSetup(person=person))
        np.testing.assert_allclose(found.hit, 4 / 29)
        np.testing.assert_allclose(found.average_precision, expected_average_precision(4, 29))
        np.testing.assert_allclose(found.recall(29), 1)
        np.testing.assert_allclose(found.recall(2), 1 - 25 / 29 * 24 / 28)


def test_random_embeddings_are_at_the_floor():
    rng = np.random.default_rng(4)
    person = np.repeat(np.arange(40), 15)
    found = rank(rng.normal(size=(600, 16)), LinkageSetup(person=person))
    spread = np.sqrt(found.floor * (1 - found.floor) / 600)
    assert abs(found.rank1 - found.floor) < 4 * spread
    assert abs(found.mean_average_precision - expected_average_precision(14, 599)) < 0.003


def test_changed_clothes_hide_people_who_are_identified_by_clothes_alone():
    person = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    outfit = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    embeddings = angles(0, 1, 50, 51, 20, 21, 80, 81)  # one direction an outfit
    same, changed = (
        rank(embeddings, LinkageSetup(person=person, outfit=outfit, clothes=c)) for c in ("same", "changed")
    )
    assert same.rank1 == 1
    assert changed.rank1 == 0  # the nearest outfit of another direction is always somebody else's
    assert same.chance[0] == pytest.approx(1 / 5)
    assert changed.chance[0] == pytest.approx(2 / 6)


def test_nobody_to_find_gives_no_number():
    found = rank(angles(0, 1), LinkageSetup(person=np.array([0, 1])))
    assert np.isnan([found.rank1, found.floor, found.mean_average_precision]).all()


def test_the_nearest_clips_are_in_order_and_stop_where_the_gallery_ends():
    setup = LinkageSetup(person=np.zeros(4, dtype=int), among=np.array([True, True, True, False]))
    assert nearest(angles(0, 10, 25, 26), setup, depth=3).tolist() == [[1, 2, -1], [0, 2, -1], [1, 0, -1], [2, 1, 0]]


def test_ties_of_the_nearest_are_broken_at_random():
    setup = LinkageSetup(person=np.zeros(400, dtype=int))
    found = nearest(np.ones((400, 2)), setup)[:, 0]
    assert len(set(found.tolist())) > 200  # 400 draws of 399 leave about 37 % out
    assert (found != np.arange(400)).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "same action"},
        {"rule": "everyone"},
        {"clothes": "changed"},
        {"clothes": "naked", "outfit": np.zeros(3)},
        {"action": np.zeros(2)},
    ],
)
def test_a_setup_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError, match="linkage"):
        LinkageSetup(person=np.zeros(3, dtype=int), **wrong)


@pytest.mark.parametrize("embeddings", [np.zeros((2, 4)), np.zeros(3), np.full((3, 2), NAN)])
def test_embeddings_that_cannot_be_ranked_are_refused(embeddings):
    with pytest.raises(UsageError, match="linkage"):
        rank(embeddings, LinkageSetup(person=np.zeros(3, dtype=int)))


def test_k_is_at_least_one():
    with pytest.raises(UsageError, match="R@k"):
        rank(angles(0, 1), LinkageSetup(person=np.zeros(2, dtype=int))).recall(0)
