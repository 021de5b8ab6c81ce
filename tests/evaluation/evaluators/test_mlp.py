"""Heads on frozen features: they learn from training clips what is in features, and nothing where there is nothing."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from vidveil.evaluation.evaluators.mlp import WIDTH, identity_space, trained_heads, with_heads
from vidveil.tasks import Predictions, Task

CLASSES, DIM = 3, 6


class Classes(Task):
    name, outputs = "action", CLASSES

    def __init__(self, labels):
        self.labels = torch.from_numpy(labels)

    def loss(self, logits, rows):
        return F.cross_entropy(logits, self.labels[rows])

    def probabilities(self, logits):
        return logits.softmax(-1)

    def score(self, predictions):
        return float((predictions.probabilities["action"].argmax(-1) == self.labels[predictions.rows].numpy()).mean())


def rings(count, seed=0, informative=True):
    """Classes that differ by how far they lie from the middle, which no linear head separates: (N, D), (N,)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    features = rng.normal(size=(count, DIM))
    features[:, :2] /= np.linalg.norm(features[:, :2], axis=1, keepdims=True)
    features[:, :2] *= 1 + 2 * (labels if informative else rng.integers(0, CLASSES, count))[:, None]
    return (100 + 5 * features).astype(np.float32), labels


def split_up(features):
    parts = {"train": (0, 300), "val": (300, 400), "test": (400, 600)}
    return {name: Predictions(np.arange(*ends), features[slice(*ends)]) for name, ends in parts.items()}


def top1(predictions, task):
    return task.score(predictions["test"])


def test_a_head_predicts_what_is_in_features_also_where_no_linear_one_does():
    features, labels = rings(600)
    task = Classes(labels)
    given = split_up(features)
    predictions = with_heads(given, [task], "cpu", 0)
    assert top1(predictions, task) > 0.9
    assert given["test"].probabilities == {}  # what was given is left alone
    np.testing.assert_array_equal(predictions["test"].features, given["test"].features)
    np.testing.assert_allclose(predictions["test"].probabilities["action"].sum(1), 1, atol=1e-5)


def test_a_head_predicts_nothing_that_is_not_in_features():
    features, labels = rings(600, informative=False)
    assert top1(with_heads(split_up(features), [task := Classes(labels)], "cpu", 0), task) < 0.5


def test_a_head_learns_on_training_clips_and_is_chosen_on_validation_alone():
    features, labels = rings(600)
    other = labels.copy()
    other[400:] = (other[400:] + 1) % CLASSES  # of test
    one, two = (with_heads(split_up(features), [Classes(each)], "cpu", 0) for each in (labels, other))
    np.testing.assert_array_equal(one["test"].probabilities["action"], two["test"].probabilities["action"])


def test_the_number_of_steps_that_does_best_on_validation_is_taken_and_of_equal_ones_the_smaller(monkeypatch):
    features, labels = rings(600)
    scores = iter([0.2, 0.9, 0.4, 0.9])
    monkeypatch.setattr(Classes, "score", lambda *_: next(scores))
    task, given = Classes(labels), split_up(features)
    predictions = with_heads(given, [task], "cpu", 0)
    assert next(scores, None) is None
    rows = torch.arange(300)
    heads = trained_heads(torch.from_numpy(features[:300]), CLASSES, lambda logits: task.loss(logits, rows), 0)
    wanted = [
        {name: head(torch.from_numpy(given[name].features)).softmax(-1).detach().numpy() for name in ("val", "test")}
        for head in heads
    ]
    for name in ("val", "test"):
        np.testing.assert_allclose(predictions[name].probabilities["action"], wanted[1][name], atol=1e-6)
        assert np.abs(wanted[1][name] - wanted[3][name]).max() > 0.01
    assert "action" not in predictions["train"].probabilities


def test_the_same_seed_gives_the_same_head_and_the_callers_draws_go_on():
    features = torch.randn(50, DIM)
    truth = torch.randint(CLASSES, (50,))
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    heads = [
        list(trained_heads(features, CLASSES, lambda logits: F.cross_entropy(logits, truth), 4))[-1] for _ in range(2)
    ]
    assert torch.equal(torch.rand(3), wanted)
    assert torch.equal(heads[0](features), heads[1](features))


def test_a_space_that_separates_training_people_separates_others_too():
    """A person is a ring and a side of it; new people are other rings."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 4))

    def clips(people):
        person = np.repeat(people, 6)
        noise = 8 * rng.normal(size=(len(person), 16))  # whatever varies most is not identity
        return np.hstack([centres[person] + 0.2 * rng.normal(size=(len(person), 4)), noise]), person

    to = identity_space(*clips(np.arange(30)))
    embeddings, person = clips(np.arange(30, 40))

    def rank1(vectors):
        near = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        likeness = near @ near.T - 9 * np.eye(len(near))
        return (person[likeness.argmax(1)] == person).mean()

    assert to(embeddings).shape == (60, WIDTH)
    assert rank1(to(embeddings)) > rank1(embeddings) + 0.2


def test_clips_of_nobody_are_left_out():
    rng = np.random.default_rng(0)
    features, person = rng.normal(size=(40, DIM)), np.repeat(np.arange(8), 5)
    more = np.vstack([features, 50 + rng.normal(size=(3, DIM))])
    ours = identity_space(more, np.append(person, [-1, -1, -1]))(features)
    np.testing.assert_allclose(ours, identity_space(features, person)(features), atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 7.5])
def test_features_that_are_all_alike_break_nothing(value):
    features = np.full((600, DIM), value, np.float32)
    predictions = with_heads(split_up(features), [Classes(np.arange(600) % CLASSES)], "cpu", 0)
    assert np.isfinite(predictions["test"].probabilities["action"]).all()
    assert np.isfinite(identity_space(features[:20], np.arange(20) % 4)(features)).all()
