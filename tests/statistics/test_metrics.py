"""Metrics by hand, and compared with scikit-learn on whatever hypothesis comes up with."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score, top_k_accuracy_score

from vidveil.core.errors import UsageError
from vidveil.statistics.metrics import (
    auroc,
    average_precision,
    average_precision_by_clip,
    cmap,
    f1,
    f1_by_clip,
    settled,
    top1_hits,
)

NAN = float("nan")


@st.composite
def rankings(draw, least=1):
    """Labels, scores with many ties, whole weights."""
    count = draw(st.integers(least, 40))
    labels = draw(arrays(np.float64, count, elements=st.sampled_from([0.0, 1.0])))
    scores = draw(arrays(np.float64, count, elements=st.integers(-3, 3).map(float)))
    weights = draw(arrays(np.int64, count, elements=st.integers(0, 3)))
    return labels, scores, weights


def test_a_network_without_a_preference_gets_one_over_the_classes_whatever_class_is_numbered_first():
    np.testing.assert_allclose(top1_hits(np.zeros((4, 5)), [0, 1, 2, 0]), 0.2)


def test_large_logits_are_fine():
    assert top1_hits([[1000.0, 999.0], [-1000.0, 1000.0]], [0, 0]).tolist() == [1, 0]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 30), st.integers(0, 10_000))
def test_top_1_is_that_of_scikit_learn(count, seed):
    rng = np.random.default_rng(seed)
    logits, labels = rng.normal(size=(count, 4)), rng.integers(0, 4, count)
    expected = top_k_accuracy_score(labels, logits, k=1, labels=range(4))
    assert top1_hits(logits, labels).mean() == pytest.approx(expected)


@pytest.mark.parametrize("labels", [[0, 3], [-1, 0], [0]])
def test_labels_that_do_not_fit_the_logits_are_refused(labels):
    with pytest.raises(UsageError):
        top1_hits(np.zeros((2, 3)), labels)


def test_a_constant_score_gets_the_prevalence_and_an_auroc_of_a_half():
    labels = [1, 0, 0, 1, 0]
    assert average_precision(labels, np.zeros(5)) == pytest.approx(0.4)
    assert auroc(labels, np.zeros(5)) == 0.5


def test_without_positives_or_negatives_a_number_is_undefined_and_not_zero():
    assert np.isnan(average_precision([0, 0], [1, 2]))
    assert average_precision([1, 1], [1, 2]) == 1
    assert np.isnan(auroc([0, 0], [1, 2]))
    assert np.isnan(auroc([1, 1], [1, 2]))
    assert np.isnan(f1([0, 0], [-1, -2]))
    assert np.isnan(average_precision([], []))
    assert np.isnan(auroc([NAN], [1]))


@settings(deadline=None, max_examples=40)
@given(rankings())
def test_average_precision_is_that_of_scikit_learn(ranking):
    labels, scores, _ = ranking
    assume(labels.any())
    assert average_precision(labels, scores) == pytest.approx(average_precision_score(labels, scores))


@settings(deadline=None, max_examples=40)
@given(rankings(least=2))
def test_auroc_is_that_of_scikit_learn(ranking):
    labels, scores, _ = ranking
    assume(0 < labels.sum() < len(labels))
    assert auroc(labels, scores) == pytest.approx(roc_auc_score(labels, scores))


@settings(deadline=None, max_examples=40)
@given(rankings(), st.sampled_from([("probability", 0.0), ("logit", 0.5)]))
def test_f1_is_that_of_scikit_learn_at_either_threshold(ranking, threshold):
    labels, logits, _ = ranking
    name, border = threshold
    yes = logits / 4 > border
    assume(labels.any() or yes.any())
    assert f1(labels, logits / 4, threshold=name) == pytest.approx(f1_score(labels, yes, zero_division=0))


def test_f1_has_its_threshold_at_a_probability_of_a_half_unless_asked():
    logits = [0.3, -0.3, 2.0]
    assert f1([1, 0, 1], logits) == 1
    assert f1([1, 0, 1], logits, threshold="logit") == pytest.approx(2 / 3)


@settings(deadline=None, max_examples=40)
@given(rankings())
def test_a_weight_counts_a_clip_as_often_as_copies_of_it_would(ranking):
    labels, scores, weights = ranking
    assume(weights.any())
    copies = np.repeat(np.arange(len(labels)), weights)
    for metric in (average_precision, auroc, f1):
        expected = metric(labels[copies], scores[copies])
        np.testing.assert_allclose(metric(labels, scores, weights), expected)
        np.testing.assert_allclose(metric(labels, scores, np.stack([weights, weights * 2])), [expected, expected])


@settings(deadline=None, max_examples=40)
@given(rankings(least=2), st.data())
def test_a_clip_that_nobody_labelled_is_as_good_as_absent(ranking, data):
    labels, scores, _ = ranking
    unknown = data.draw(arrays(np.bool_, len(labels)))
    assume(not unknown.all())
    for metric in (average_precision, auroc, f1):
        holed = np.where(unknown, NAN, labels)
        np.testing.assert_allclose(metric(holed, scores), metric(labels[~unknown], scores[~unknown]))


def test_many_permutations_of_labels_are_one_call():
    rng = np.random.default_rng(0)
    labels = rng.permuted(np.tile([1.0, 0, 0, 1, 0, NAN], (7, 1)), axis=1)
    scores = rng.integers(0, 3, 6)
    for metric in (average_precision, auroc, f1):
        np.testing.assert_allclose(metric(labels, scores), [float(metric(row, scores)) for row in labels])


def test_an_attribute_that_is_the_same_in_all_test_clips_is_left_out_of_cmap():
    labels = np.array([[1, 1, NAN], [1, 0, 0], [1, 0, 0]])
    assert cmap(labels, np.array([[0.1, 0.9, 0.3], [0.2, 0.5, 0.1], [0.7, 0.1, 0.2]])) == 1.0
    assert np.isnan(cmap(np.ones((4, 3)), np.zeros((4, 3))))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000))
def test_cmap_is_the_mean_of_average_precisions_by_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    labels, scores = rng.integers(0, 2, (20, 3)), np.round(rng.normal(size=(20, 3)), 1)
    alive = [a for a in range(3) if 0 < labels[:, a].sum() < 20]
    expected = np.mean([average_precision_score(labels[:, a], scores[:, a]) for a in alive])
    assert cmap(labels, scores) == pytest.approx(expected)


def test_scores_that_are_no_numbers_are_an_error_and_not_a_ranking():
    for metric in (average_precision, auroc, f1):
        with pytest.raises(UsageError, match="not finite"):
            metric([1, 0], [NAN, 1])
    with pytest.raises(UsageError, match="not finite"):
        top1_hits([[np.inf, 0.0]], [0])


@pytest.mark.parametrize(
    ("labels", "scores", "weights"),
    [([1, 2], [0, 1], None), ([1, 0], [0, 1, 2], None), ([1, 0], [0, 1], [1]), ([1, 0], [[0, 1]], None)],
)
def test_what_does_not_fit_is_refused(labels, scores, weights):
    with pytest.raises(UsageError):
        average_precision(labels, scores, weights)


def test_labels_and_scores_of_other_attributes_are_refused():
    with pytest.raises(UsageError, match="do not fit"):
        cmap(np.zeros((4, 2)), np.zeros((4, 3)))


def test_noise_of_arithmetic_is_a_tie_once_it_is_settled():
    labels = np.repeat([1.0, 0.0], 50)
    scores = np.where(labels == 1, 0.25 + 3e-7, 0.25)  # the same black clip, but the first 50 were another batch
    assert auroc(labels, scores) == 1
    assert auroc(labels, settled(scores)) == 0.5


@settings(deadline=None, max_examples=60)
@given(rankings())
def test_average_precision_is_a_mean_over_clips_and_moves_as_they_do_when_one_counts_more(ranking):
    labels, scores, weights = ranking
    labels = np.where(weights == 0, NAN, labels)  # some are not known
    assume(np.nansum(labels) > 0)
    by_clip = average_precision_by_clip(labels, scores)
    whole = average_precision(labels, scores)
    assert by_clip.mean() == pytest.approx(whole)
    step = 1e-6
    more = 1 + step * np.eye(len(labels))
    slope = (average_precision(labels, scores, more) - whole) / step
    np.testing.assert_allclose(by_clip, whole + len(labels) * slope, atol=1e-3)


def test_without_positives_there_is_no_average_precision_of_a_clip():
    assert np.isnan(average_precision_by_clip([0, NAN, 0], [0.1, 0.2, 0.3])).all()


@pytest.mark.parametrize("threshold", ["probability", "logit"])
@given(ranking=rankings())
def test_f1_too_is_the_mean_over_clips_of_itself_and_its_slopes(ranking, threshold):
    labels, scores, weights = ranking
    labels = np.where(weights == 0, NAN, labels)
    whole = f1(labels, scores, threshold=threshold)
    by_clip = f1_by_clip(labels, scores, threshold=threshold)
    assert by_clip.mean() == pytest.approx(float(whole), nan_ok=True)
    step = 1e-6
    slope = (f1(labels, scores, 1 + step * np.eye(len(labels)), threshold=threshold) - whole) / step
    np.testing.assert_allclose(by_clip, whole + len(labels) * slope, atol=1e-3)
