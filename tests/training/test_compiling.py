"""A model is compiled when asked to, or when enough time is left to gain by it."""

import pytest
import torch
from torch import nn

from vidveil.training import compiling
from vidveil.training.compiling import SETTLED, Compiling


class Parts(nn.Module):
    compiled, parts_are_compiled = 0, False

    def compile_parts(self):
        self.compiled += 1


@pytest.fixture
def clock(monkeypatch):
    """Half a second for each step."""
    now = [0.0]
    monkeypatch.setattr(compiling, "monotonic", lambda: now[0])

    def go(model, choice, steps, total, device="cuda"):
        made = Compiling(model, choice, torch.device(device))
        made.begin()
        when = []
        for step in range(steps):
            if made.before_step(total - step):
                when.append(step)
            now[0] += 0.5
        return when

    return go


def test_with_much_time_left_parts_are_compiled_once_steps_are_measured(clock):
    model = Parts()
    assert clock(model, None, 300, 2000) == [SETTLED[1] - 1]
    assert model.compiled == 1


def test_with_little_time_left_nothing_is(clock):
    model = Parts()
    assert clock(model, None, 100, SETTLED[1] + 150) == []
    assert model.compiled == 0


@pytest.mark.parametrize(
    ("choice", "device", "times"), [(True, "cuda", 1), (True, "cpu", 1), (False, "cuda", 0), (None, "cpu", 0)]
)
def test_a_choice_counts_from_the_first_step_on(clock, choice, device, times):
    model = Parts()
    assert clock(model, choice, 100, 10_000, device) == []
    assert model.compiled == times


def test_a_model_that_names_no_parts_is_left_as_it_is(clock):
    assert clock(nn.Linear(2, 2), None, 100, 10_000) == []


def test_parts_are_compiled_once_although_a_model_is_trained_in_two_phases(clock):
    model = Parts()
    clock(model, True, 10, 10)
    clock(model, True, 10, 10)
    clock(model, None, 300, 2000)
    assert model.compiled == 1


def test_what_is_compiled_for_training_computes_the_same_and_is_left_out_without_gradients(monkeypatch):
    calls = []

    def compiled(function, **_):
        def fast(*arguments):
            calls.append(1)
            return function(*arguments)

        return fast

    monkeypatch.setattr(torch, "compile", compiled)
    double = compiling.compiled_in_training(lambda x: 2 * x)
    x = torch.ones(3, requires_grad=True)
    assert torch.equal(double(x), 2 * x)
    assert len(calls) == 1
    with torch.no_grad():
        assert torch.equal(double(x), 2 * x)
    assert len(calls) == 1
