"""Steps that are recorded: which batches share a record, and what happens when a recording breaks off."""

from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

import pytest
import torch

from vidveil.training import recorded
from vidveil.training.recorded import RecordedSteps, constants, kind, tensors, with_tensors

X = torch.zeros(2, 3)


@dataclass(frozen=True)
class Batch:
    video: torch.Tensor
    setting: object = None


class Plain:
    def __init__(self, number):
        self.number = number


class Mode(Enum):
    ONE = 1
    TWO = 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Batch(X, 0.9), Batch(X + 1, 0.9)),
        ((X, [X, "a"]), (X + 1, [X + 2, "a"])),
        ({"a": X, "b": None}, {"a": X + 1, "b": None}),
        (Batch(X, Mode.ONE), Batch(X, Mode.ONE)),
    ],
)
def test_batches_that_differ_in_the_numbers_of_their_tensors_share_a_record(one, other):
    assert kind(one, 0) == kind(other, 0) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Batch(X, 0.9), Batch(X, 0.8)),
        (Batch(X, 1), Batch(X, 1.0)),
        (Batch(X, True), Batch(X, 1)),
        (Batch(X, Mode.ONE), Batch(X, Mode.TWO)),
        (Batch(X), Batch(torch.zeros(3, 2))),
        (Batch(X), Batch(X.double())),
        ((X, X), [X, X]),
        ({"a": X}, {"b": X}),
        ((X, (X,)), (X, X)),
    ],
)
def test_batches_that_differ_in_anything_else_do_not(one, other):
    assert kind(one, 0) != kind(other, 0)


def test_each_update_rule_has_records_of_its_own():
    assert kind(Batch(X), 0) != kind(Batch(X), 1)


@pytest.mark.parametrize("value", [Plain(1), {1, 2}, lambda: 1, iter([1])])
def test_what_may_change_without_being_another_object_is_not_recorded(value):
    assert kind(Batch(X, value), 0) is None
    with pytest.raises(TypeError):
        constants(value)


def test_all_tensors_are_found_and_replaced_where_they_are():
    batch = {"a": Batch(X, (X + 1, "word")), "b": [X + 2]}
    assert [float(tensor.sum()) for tensor in tensors(batch)] == [0, 6, 12]
    doubled = with_tensors(batch, lambda tensor: tensor * 2)
    assert [float(tensor.sum()) for tensor in tensors(doubled)] == [0, 12, 24]
    assert doubled["a"].setting[1] == "word"
    assert float(batch["a"].setting[0].sum()) == 6


class FakeGraph:
    """Replays by calling the step with the inputs that it was recorded with."""

    made: list = []  # noqa: RUF012

    def __init__(self):
        FakeGraph.made.append(self)
        self.replays = 0

    def replay(self):
        self.replays += 1


@pytest.fixture
def fake_cuda(monkeypatch):
    @contextmanager
    def graph(*_, **__):
        yield

    monkeypatch.setattr(FakeGraph, "made", [])
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    monkeypatch.setattr(torch.cuda, "default_generators", ())
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(recorded, "to_device", lambda tensor, _: tensor)


def steps(step, notes=None, reset=lambda: None):
    say = (lambda _: None) if notes is None else notes.append
    return RecordedSteps(step, torch.device("cuda"), enabled=True, say=say, reset=reset)


@pytest.mark.usefixtures("fake_cuda")
def test_a_kind_of_batch_is_run_then_recorded_then_replayed_with_the_new_numbers():
    seen = []
    run = steps(lambda batch, _: seen.append(batch.video))
    for number in range(5):
        run(Batch(X + number, 0.9), 0)
    assert len(seen) == 2  # as usual, and for the record
    assert torch.equal(seen[0], X)
    assert FakeGraph.made[0].replays == 4
    assert torch.equal(seen[1], X + 4)  # what the record reads from has the numbers of the last batch
    run(Batch(X, 0.8), 0)
    run(Batch(X, 0.8), 0)
    assert len(FakeGraph.made) == 2
    assert len(seen) == 4


@pytest.mark.usefixtures("fake_cuda")
def test_what_cannot_be_compared_is_run_as_usual_and_never_recorded():
    seen = []
    run = steps(lambda batch, _: seen.append(batch.setting.number))
    for number in range(4):
        run(Batch(X, Plain(number)), 0)
    assert seen == [0, 1, 2, 3]
    assert not FakeGraph.made


@pytest.mark.usefixtures("fake_cuda")
@pytest.mark.parametrize("after_backward", [True, False])
def test_gradients_of_a_recording_that_broke_off_do_not_count(after_backward):
    weight = torch.nn.Parameter(torch.ones(3))
    gradients, calls, notes = [], [], []

    def step(batch, _):
        calls.append(1)
        if len(calls) == 2 and not after_backward:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        (weight * batch.video[0]).sum().backward()
        if len(calls) == 2:
            raise torch.cuda.OutOfMemoryError("out of memory\nmore lines")
        gradients.append(weight.grad.clone())
        weight.grad = None

    def reset():
        weight.grad = None

    run = steps(step, notes, reset)
    for number in range(4):
        run(Batch(X + number), 0)
    assert len(gradients) == 4
    assert all(torch.equal(found, torch.full((3,), float(number))) for number, found in enumerate(gradients))
    assert len(notes) == 1
    assert "steps are not recorded" in notes[0]
    assert "more lines" not in notes[0]


@pytest.mark.usefixtures("fake_cuda")
def test_a_step_that_draws_on_the_host_is_not_recorded_and_draws_what_it_would_have_drawn():
    def drawn(enabled):
        found = []
        torch.manual_seed(3)
        run = steps(lambda *_: found.append(float(torch.rand(()))))
        run.enabled = enabled
        for _ in range(4):
            run(Batch(X), 0)
        return found

    whole = drawn(False)
    recorded_ = drawn(True)
    assert recorded_[:1] + recorded_[2:] == whole  # the one between was drawn for the record, and taken back


@pytest.mark.usefixtures("fake_cuda")
def test_after_forgetting_everything_is_recorded_anew():
    run = steps(lambda *_: None)
    for _ in range(3):
        run(Batch(X), 0)
    run.forget()
    for _ in range(3):
        run(Batch(X), 0)
    assert [graph.replays for graph in FakeGraph.made] == [2, 2]
