"""Trainings that go wrong without an error are named."""

from dataclasses import replace

import pytest

from tests.training.test_learners import ATTACKERS, HIDER, OPTIONS, lines, train
from tests.training.toy import Sums
from tests.training.toy import train as train_one
from vidveil.training.health import problems
from vidveil.training.learner import ONE, Learner

ALONE = Learner(ONE, lambda model, batch: model(batch))


def history(**columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("losses", [[1, 2, 3, 4], [-1, 0, 2, 5], [0.5, 0.4, 0.9, 1.2, 1.6]])
def test_a_loss_that_rises_far_above_its_beginning_diverged(losses):
    assert "the loss diverged" in next(problems(history(train_loss=losses), [ALONE]))


@pytest.mark.parametrize("losses", [[1, 0.5, 0.6, 0.7], [1, 4, 3, 5], [1, 1.1, 1.2, 1.3], [3.0]])
def test_a_loss_that_goes_up_and_down_did_not(losses):
    assert not list(problems(history(train_loss=losses), [ALONE]))


def test_a_gradient_that_vanished_is_named():
    gone = history(train_loss=[2, 1, 1, 1, 1], gradient=[3, 1, 1e-9, 0, 0])
    assert list(problems(gone, [ALONE])) == ["training is dead: its gradient has vanished"]
    small = history(train_loss=[2, 1, 1, 1, 1], gradient=[3, 1, 0.1, 0.01, 0.01])
    assert not list(problems(small, [ALONE]))


def test_an_attacker_at_the_loss_of_a_guess_is_named_and_a_better_one_is_not():
    knowing = replace(ATTACKERS, guess=0.69)
    column = "attackers/train_loss"
    assert "attackers is no better than a guess" in next(
        problems(history(**{column: [0.7, 0.69, 0.685]}), [HIDER, knowing])
    )
    assert not list(problems(history(**{column: [0.7, 0.69, 0.5]}), [HIDER, knowing]))
    assert not list(problems(history(**{column: [0.7, 0.69]}), [HIDER, knowing]))  # too early to say


@pytest.mark.parametrize(("spread", "named"), [(0.0, True), (0.003, True), (0.05, False)])
def test_outputs_that_are_all_alike_have_collapsed(spread, named):
    found = list(problems(history(train_loss=[1.0], output_spread=[spread]), [ALONE]))
    assert bool(found) == named


def test_a_problem_is_logged_once_and_in_the_outcome(tmp_path):
    dead = replace(ATTACKERS, lr=0.0, weight_decay=0.0, guess=1.0)
    _, outcome = train(tmp_path, learners=(HIDER, dead), options=replace(OPTIONS, epochs=6))
    assert len(lines(tmp_path, "problem")) == 1
    assert "attackers is no better than a guess" in outcome.problems[0]


def test_a_training_that_learns_has_no_problems():
    _, outcome = train_one(None, batches=Sums(), epochs=8)
    assert outcome.problems == []


def test_an_attacker_that_is_always_right_is_no_dead_one():
    knowing = replace(ATTACKERS, guess=0.69)
    won = history(**{"attackers/train_loss": [0.5, 1e-3, 1e-8, 1e-8, 1e-8], "attackers/gradient": [3, 1e-3, 0, 0, 0]})
    assert list(problems(won, [HIDER, knowing])) == [
        "attackers predicts without an error: what it looks for is not hidden from it"
    ]


def test_a_loss_whose_terms_nearly_cancel_is_judged_by_their_size():
    losses = [0.01, 0.02, 0.03, 0.04, 0.05]
    signed = history(**{"train_loss": losses, "train_loss/utility": [2.3] * 5, "train_loss/privacy": [-2.29] * 5})
    assert not list(problems(signed, [ALONE]))
    assert "diverged" in next(problems(history(train_loss=losses), [ALONE]))  # alone, it is five times what it was


def test_the_weights_that_are_kept_may_be_those_of_an_epoch_that_collapsed():
    spreads = history(train_loss=[1.0, 1.0, 1.0], output_spread=[0.0, 0.2, 0.3])
    assert "outputs collapsed" in next(problems(spreads, [ALONE], best_epoch=1))
    assert not list(problems(spreads, [ALONE], best_epoch=2))
