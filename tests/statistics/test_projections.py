"""Spaces that attackers compare in: what they do to a covariance, and to linkage of people never seen."""

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA

from vidveil.core.errors import UsageError
from vidveil.statistics.linkage import LinkageSetup, rank
from vidveil.statistics.projections import lda, shrunk_covariance, whitening


def people(rng, count, clips, width, noise):
    """Embeddings with identity in three directions, hidden by more variance in three others."""
    person = np.repeat(np.arange(count), clips)
    vectors = 0.1 * rng.normal(size=(len(person), width))
    vectors[:, :3] += rng.normal(size=(count, 3))[person] + 0.15 * rng.normal(size=(len(person), 3))
    vectors[:, 3:6] += noise * rng.normal(size=(len(person), 3))
    return vectors + 5, person


def test_whitened_training_clips_have_variance_one_in_all_directions():
    vectors = np.random.default_rng(0).normal(size=(400, 6)) @ np.diag([9, 4, 1, 0.5, 0.2, 0.1]) + 3
    white = whitening(vectors)(vectors)
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(6), atol=1e-9)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("shape", [(60, 8), (12, 40)])
def test_whitening_is_that_of_scikit_learn(shape):
    vectors = np.random.default_rng(1).normal(size=shape) * np.arange(1, shape[1] + 1)
    ours = whitening(vectors)(vectors)[:, :5]
    theirs = PCA(5, whiten=True, svd_solver="full").fit_transform(vectors)
    scale = np.sqrt(shape[0] / (shape[0] - 1))  # they divide by N - 1
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs) * scale, atol=1e-8)


@pytest.mark.parametrize("shape", [(200, 5), (15, 40), (3, 3)])
def test_covariances_are_shrunk_by_the_share_of_ledoit_and_wolf(shape):
    vectors = np.random.default_rng(2).normal(size=shape) * np.arange(1, shape[1] + 1)
    vectors -= vectors.mean(axis=0)
    np.testing.assert_allclose(shrunk_covariance(vectors), ledoit_wolf(vectors, assume_centered=True)[0])


@pytest.mark.parametrize("width", [20, 600])  # fewer and more dimensions than training clips
def test_discriminants_of_training_people_link_people_never_seen(width):
    rng = np.random.default_rng(3)
    train, who = people(rng, 40, 8, width, noise=4)
    test, unknown = people(rng, 20, 8, width, noise=4)
    setup = LinkageSetup(person=unknown)
    plain, linked = rank(test, setup).rank1, rank(lda(train, who)(test), setup).rank1
    assert plain < 0.35
    assert linked > 0.6


def test_discriminants_find_nothing_where_there_is_nothing():
    rng = np.random.default_rng(4)
    train, test, who = rng.normal(size=(300, 50)), rng.normal(size=(300, 50)), np.repeat(np.arange(30), 10)
    found = rank(lda(train, who)(test), LinkageSetup(person=who))
    assert abs(found.rank1 - found.floor) < 4 * np.sqrt(found.floor / 300)


def test_there_is_one_direction_less_than_people():
    train, who = people(np.random.default_rng(5), 6, 5, 30, noise=1)
    assert lda(train, who)(train).shape == (30, 5)


def test_training_clips_of_nobody_known_are_left_out():
    train, who = people(np.random.default_rng(6), 6, 5, 10, noise=1)
    stranger = np.vstack([train, 1e6 * np.ones((3, 10))])
    np.testing.assert_allclose(lda(stranger, np.append(who, [-1] * 3))(train), lda(train, who)(train))


def test_training_clips_that_are_all_the_same_up_to_rounding_leave_no_direction_to_compare():
    noise = 1e-7 * np.random.default_rng(7).normal(size=(40, 8))
    who = np.repeat(np.arange(8), 5)
    for project in (whitening(np.ones((40, 8)) + noise), lda(np.ones((40, 8)) + noise, who)):
        found = rank(project(np.ones((40, 8)) + noise), LinkageSetup(person=who))
        assert found.rank1 == pytest.approx(found.floor)


def test_a_person_seen_once_each_does_not_break_discriminants():
    train = np.random.default_rng(8).normal(size=(5, 3))
    assert np.isfinite(lda(train, np.arange(5))(train)).all()


def test_what_cannot_be_fitted_is_refused():
    train = np.random.default_rng(9).normal(size=(5, 3))
    with pytest.raises(UsageError, match="two people"):
        lda(train, np.zeros(5, dtype=int))
    with pytest.raises(UsageError, match="people are"):
        lda(train, [0, 1])
    with pytest.raises(UsageError, match="at least two"):
        whitening(train[:1])
    with pytest.raises(UsageError, match="not finite"):
        whitening(train * np.inf)
    with pytest.raises(UsageError, match="takes embeddings"):
        whitening(train)(np.zeros((2, 4)))
