"""Losses and validation scores, compared with values by hand."""

import numpy as np
import pytest
import torch

from tests.evaluation.toy import several, toy
from vidveil.core.errors import DataError
from vidveil.tasks import Action, Actions, Attributes, Identity, Predictions, make_task
from vidveil.tasks.retrieval import retrieval


@pytest.fixture
def data():
    return toy(people=(3, 2, 2), clips=4)


def test_action_is_cross_entropy_with_the_clips_own_labels(data):
    task = Action(data, "cpu")
    rows = torch.tensor([0, 1, 5])
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    chosen = logits.log_softmax(1)[torch.arange(3), torch.from_numpy(data.action)[rows]]
    assert task.loss(logits, rows).item() == pytest.approx(-chosen.mean().item())


def test_the_score_of_actions_is_top_1(data):
    rows = data.indices("val")
    probabilities = np.eye(2, dtype=np.float32)[data.action[rows]]
    probabilities[0] = probabilities[0, ::-1]
    predictions = Predictions(rows, np.zeros((len(rows), 1), np.float32), {"action": probabilities})
    assert Action(data, "cpu").score(predictions) == pytest.approx(1 - 1 / len(rows))


def test_actions_are_one_a_clip_unless_the_set_has_several_at_once(data):
    assert isinstance(make_task("action", data, "cpu", 0.1), Action)
    assert isinstance(make_task("action", several(data), "cpu", 0.1), Actions)
    assert make_task("action", several(data), "cpu", 0.1).outputs == 3


def test_each_of_several_actions_has_its_own_loss_and_unknown_labels_have_none(data):
    data = several(data)
    data.action_labels[:2] = [[1, 0, 1], [0, 1, np.nan]]
    task = Actions(data, "cpu")
    logits = torch.tensor([[2.0, -1.0, 0.5], [-3.0, 0.0, 9.0]])
    p = logits.sigmoid()
    right = torch.stack([p[0, 0], 1 - p[0, 1], p[0, 2], 1 - p[1, 0], p[1, 1]])
    assert task.loss(logits, torch.tensor([0, 1])).item() == pytest.approx(-right.log().mean().item())
    np.testing.assert_allclose(task.probabilities(logits), p)


def test_the_score_of_several_actions_is_cmap_over_those_that_vary(data):
    data = several(data)
    rows = data.indices("val")
    labels = np.zeros((len(rows), 3), np.float32)
    labels[:4, 0] = 1  # found in the first four places
    labels[-1, 1] = 1  # found in the last place of all
    labels[:, 2] = 1  # the same for all: not counted
    data.action_labels[rows] = labels
    falling = np.linspace(0.9, 0.1, len(rows), dtype=np.float32)
    probabilities = {"action": np.repeat(falling[:, None], 3, axis=1)}
    score = Actions(data, "cpu").score(Predictions(rows, np.zeros((len(rows), 1), np.float32), probabilities))
    assert score == pytest.approx((1 + 1 / len(rows)) / 2)


def test_an_unknown_attribute_has_no_loss(data):
    data.attributes[0] = np.nan
    task = Attributes(data, "cpu")
    certain = task.loss(torch.tensor([[50.0], [50.0]]), torch.tensor([0, 4]))
    only = task.loss(torch.tensor([[50.0]]), torch.tensor([4]))
    assert certain.item() == pytest.approx(only.item())
    assert task.loss(torch.tensor([[50.0]]), torch.tensor([0])).item() == 0


def test_identity_is_of_training_people_only(data):
    task = Identity(data, "cpu")
    assert task.outputs == 3
    stranger = int(data.indices("test")[0])
    known = int(data.indices("train")[0])
    logits = torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    both = task.loss(logits, torch.tensor([stranger, known]))
    assert both.item() == pytest.approx(task.loss(logits[1:], torch.tensor([known])).item())


def test_the_score_of_identity_is_linkage_of_people_never_trained_on(data):
    rows = data.indices("val")
    features = np.eye(10, dtype=np.float32)[data.person[rows]]
    assert Identity(data, "cpu").score(Predictions(rows, features)) == 1


def test_without_people_there_is_no_identity(data):
    data.person[:] = -1
    with pytest.raises(DataError, match="identity needs two"):
        Identity(data, "cpu")


def test_retrieval_looks_among_training_clips(data):
    def predictions(split):
        rows = data.indices(split)
        return Predictions(rows, np.eye(2, dtype=np.float32)[data.action[rows]])

    found = retrieval(data, predictions("test"), predictions("train"))
    assert found.recall == {1: 1.0, 5: 1.0, 10: 1.0}
    assert found.floor == pytest.approx(0.5)
    assert np.isnan(found.ranked.hit[len(data.indices("test")) :]).all()  # training clips are no queries


def test_within_an_action_the_choice_is_among_those_who_do_it(data):
    """Otherwise a perfect recognizer of actions would already distinguish people."""
    rows = data.indices("train")
    person = data.person.copy()
    person[rows] = data.action[rows]  # each of two people does one action: as in UCF101
    object.__setattr__(data, "person", person)
    one = torch.as_tensor(rows[:1])
    certain = Identity(data, "cpu", within_action=True)
    assert certain.loss(torch.zeros(1, 2), one).item() == 0  # nobody else does it
    assert Identity(data, "cpu").loss(torch.zeros(1, 2), one).item() == pytest.approx(np.log(2))
    logits = torch.zeros(1, 2, requires_grad=True)
    certain.loss(logits, one).backward()
    assert not logits.grad.any()
