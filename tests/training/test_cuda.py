"""Training on an accelerator, where the host does not wait for each step."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.training.test_learners import ATTACKERS, HIDER, Networks
from tests.training.test_learners import train as train_adversaries
from tests.training.test_loop import Log
from tests.training.toy import Sums, loss, network
from vidveil.core.errors import TrainingError
from vidveil.training import compiling
from vidveil.training.learner import Restart, UpdateRule
from vidveil.training.log import Log as TrainingLog
from vidveil.training.loop import fit
from vidveil.training.options import Options
from vidveil.training.recorded import RecordedSteps

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


class OnDevice(Sums):
    """All batches are on the device before the first step: a copy would make the host wait."""

    def __init__(self):
        super().__init__()
        self.there = {epoch: [(x.cuda(), y.cuda()) for x, y in super(OnDevice, self).epoch(epoch)] for epoch in (0, 1)}

    def epoch(self, epoch, start=0):
        yield from self.there[epoch][start:]


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_the_host_does_not_wait_for_a_step():
    options = Options(epochs=2, log_every=1000, warmup_epochs=0, ema=0.9, graphs=False)
    waits = []

    def watched(model, batch):
        torch.cuda.set_sync_debug_mode("error" if len(waits) == 5 else "default")  # one whole step, from loss to loss
        waits.append(1)
        return loss(model, batch)

    try:
        fit(network(), batches=OnDevice(), loss=watched, validate=None, options=options)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(waits) == 20


def test_a_bad_number_is_named_although_it_is_read_late():
    class TurnsNegative(OnDevice):
        def epoch(self, epoch, start=0):
            for i, (x, y) in enumerate(super().epoch(epoch, start), start):
                yield (-x.abs() if i == 3 else x.abs()), y

    model = nn.Sequential(nn.Identity(), Log(), nn.Linear(8, 2))
    with pytest.raises(TrainingError, match=r"step 4 \(epoch 1, batch 4\): the loss is nan.*1 \(Log\).*2\.weight"):
        fit(model, batches=TurnsNegative(), loss=loss, validate=None, options=Options(epochs=2, log_every=9))
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_a_run_can_be_resumed_and_compiled(tmp_path):
    class StopsError(Exception):
        pass

    class Stops(OnDevice):
        def epoch(self, epoch, start=0):
            if epoch == 1:
                raise StopsError
            yield from super().epoch(epoch, start)

    options = Options(epochs=2, checkpoint_seconds=0, ema=0.9, channels_last=True)
    with pytest.raises(StopsError):
        fit(network(), batches=Stops(), loss=loss, validate=None, options=options, folder=tmp_path)
    model = network()
    assert fit(model, batches=OnDevice(), loss=loss, validate=None, options=options, folder=tmp_path).steps == 20
    whole = network()
    fit(whole, batches=OnDevice(), loss=loss, validate=None, options=options)
    torch.testing.assert_close(model[0].weight, whole[0].weight, rtol=1e-2, atol=1e-3)


@pytest.fixture
def replays(monkeypatch):
    """One entry for each step that was replayed."""
    found, replay = [], RecordedSteps._replay
    monkeypatch.setattr(RecordedSteps, "_replay", lambda self, *words: found.append(1) or replay(self, *words))
    return found


def without_dropout(seed=0):
    model = network(seed)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def trained(batches, *, graphs, loss=loss, **options):
    model, notes = without_dropout(), []
    outcome = fit(
        model, batches=batches, loss=loss, validate=None, log=Lines(notes),
        options=Options(**{"epochs": 2, "lr": 0.01, "precision": "32-true", "graphs": graphs, **options}),
    )  # fmt: skip
    return model, outcome, notes


class Lines(TrainingLog):
    def __init__(self, notes):
        super().__init__()
        self.notes = notes

    def say(self, line, style=""):  # noqa: ARG002
        self.notes.append(line)


@pytest.mark.parametrize("place", [Sums, OnDevice])
def test_recorded_steps_compute_what_steps_compute(place, replays):
    options = {"ema": 0.9, "warmup_epochs": 1, "clip_norm": 0.1}
    one, outcome, notes = trained(place(), graphs=True, **options)
    assert len(replays) == 19  # all but the first of 20
    other, expected, _ = trained(place(), graphs=False, **options)
    assert not notes
    for name, tensor in other.state_dict().items():
        torch.testing.assert_close(one.state_dict()[name], tensor, rtol=1e-4, atol=1e-5)
    assert outcome.history[-1]["train_loss"] == pytest.approx(expected.history[-1]["train_loss"], rel=1e-4)


def test_batches_of_several_shapes_are_recorded_each(replays):
    class TwoSizes(Sums):
        def draw(self, seed):
            x, y = super().draw(seed)
            return (x, y) if seed % 2 else (x[:8], y[:8])

    one, _, notes = trained(TwoSizes(), graphs=True)
    assert len(replays) == 18
    other, _, _ = trained(TwoSizes(), graphs=False)
    assert not notes
    torch.testing.assert_close(one[0].weight, other[0].weight, rtol=1e-4, atol=1e-5)


def test_a_number_in_a_batch_is_part_of_the_record(replays):
    class Weighted(Sums):
        def epoch(self, epoch, start=0):
            for number, (x, y) in enumerate(super().epoch(epoch, start), start):
                yield x, y, float(number % 3)

    def weighted(model, batch):
        return batch[2] * loss(model, batch[:2])

    one, _, notes = trained(Weighted(), graphs=True, loss=weighted)
    assert len(replays) == 17
    other, _, _ = trained(Weighted(), graphs=False, loss=weighted)
    assert not notes
    torch.testing.assert_close(one[0].weight, other[0].weight, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", ["draws", "waits"])
def test_steps_that_cannot_be_recorded_are_run_as_usual_and_the_user_is_informed(how):
    calls = []

    def awkward(model, batch):
        calls.append(1)
        factor = float(torch.rand(())) if how == "draws" else 1.0 + 0.0 * batch[0].sum().item()
        return factor * loss(model, batch)

    model, outcome, notes = trained(OnDevice(), graphs=True, loss=awkward)
    assert len(calls) >= 20
    assert "steps are not recorded" in notes[0]
    assert len(notes) == 1
    assert outcome.steps == 20
    other, _, _ = trained(OnDevice(), graphs=False, loss=awkward if how == "waits" else loss)
    if how == "waits":
        torch.testing.assert_close(model[0].weight, other[0].weight, rtol=1e-4, atol=1e-5)


def test_random_numbers_of_recorded_steps_differ_from_step_to_step(replays):
    noise = []

    def noisy(model, batch):
        found = torch.rand(4, device="cuda")
        noise.append(found)
        return loss(model, batch) + 0 * found.sum()

    class Same(OnDevice):
        def __init__(self):
            super().__init__()
            self.seen = []

        def epoch(self, epoch, start=0):
            for batch in super().epoch(epoch, start):
                yield batch
                self.seen.append(noise[-1].clone())

    batches = Same()
    fit(network(), batches=batches, loss=noisy, validate=None, options=Options(epochs=2))
    assert len(replays) == 19
    assert len(batches.seen) == 18  # of each epoch all but the last: nothing is asked for after it
    assert len({tuple(each.tolist()) for each in batches.seen}) == 18


def test_adversaries_are_recorded_too(replays):
    rules = [UpdateRule("attackers", batches=2), UpdateRule("hider")]
    found = []
    for graphs in (True, False):
        model = Networks()
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        restarted = replace(ATTACKERS, restart=Restart(15, lambda: Networks().attackers))
        options = Options(epochs=3, device="cuda", precision="32-true", graphs=graphs, ema=0.9)
        found.append(train_adversaries(model=model, learners=(HIDER, restarted), rules=rules, options=options)[0])
    assert len(replays) == 28  # of 30 steps, of two rules
    for name, tensor in found[1].state_dict().items():
        torch.testing.assert_close(found[0].state_dict()[name], tensor, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("graphs", [True, False])
def test_after_a_step_that_could_not_be_recorded_random_numbers_can_be_drawn(graphs):
    def waits(model, batch):
        return (1.0 + 0.0 * batch[0].sum().item()) * loss(model, batch)

    notes = []
    fit(network(), batches=OnDevice(), loss=waits, validate=None, options=Options(epochs=2), log=Lines(notes))
    assert "steps are not recorded" in notes[0]
    again = network()  # with dropout
    outcome = fit(again, batches=OnDevice(), loss=loss, validate=None, options=Options(epochs=2, graphs=graphs))
    assert outcome.steps == 20


def test_parts_that_are_compiled_in_the_middle_of_a_training_are_recorded_anew(monkeypatch, replays):
    class Compiles(nn.Sequential):
        compiled, parts_are_compiled = 0, False

        def compile_parts(self):
            self.compiled += 1
            self[0].compile(dynamic=True)

    monkeypatch.setattr(compiling, "SETTLED", (5, 8))
    monkeypatch.setattr(compiling, "PAYS", 0.0)
    model = Compiles(*without_dropout())
    fit(model, batches=OnDevice(), loss=loss, validate=None, options=Options(epochs=2, precision="32-true"))
    assert model.compiled == 1
    assert len(replays) == 18  # of 20, begun twice
    other = without_dropout()
    fit(
        other,
        batches=OnDevice(),
        loss=loss,
        validate=None,
        options=Options(epochs=2, precision="32-true", graphs=False),
    )
    torch.testing.assert_close(model[4].weight, other[4].weight, rtol=1e-3, atol=1e-4)
