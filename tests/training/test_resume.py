"""A run that is killed continues as if it had not been."""

import json
import random
import time

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.toy import (
    LONG,
    PROCESSES,
    Sums,
    accuracy,
    loss,
    network,
    train,
    train_and_die_while_saving,
    train_long,
)
from vidveil.core.errors import TrainingError
from vidveil.training import checkpoints
from vidveil.training.checkpoints import CheckpointManager
from vidveil.training.loop import fit
from vidveil.training.options import Options
from vidveil.training.seeds import seeded


@pytest.fixture(scope="module")
def undisturbed():
    return train(None, **LONG)


def same_bits(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def resumed(folder):
    return [
        line for line in map(json.loads, (folder / "log.jsonl").read_text().splitlines()) if line["event"] == "resumed"
    ]


def wait_for(happened, process):
    until = time.monotonic() + 60
    while not happened() and process.is_alive():
        assert time.monotonic() < until, "nothing happened within a minute"
        time.sleep(0.002)


def test_kills_at_random_moments_change_no_bit_of_the_result(tmp_path, undisturbed):
    moments = random.Random(4)
    log = tmp_path / "log.jsonl"
    kills = 0
    for _ in range(6):
        process = PROCESSES.Process(target=train_long, args=(tmp_path,), daemon=True)
        lines = len(log.read_text().splitlines()) if log.exists() else 0
        process.start()
        wait_for(lambda seen=lines: log.exists() and len(log.read_text().splitlines()) > seen + 1, process)
        time.sleep(moments.uniform(0, 0.12))
        process.kill()
        process.join()
        kills += process.exitcode == -9
    assert kills >= 3
    assert len(resumed(tmp_path)) >= 2
    model, found = train(tmp_path, **LONG)
    expected, undisturbed_fit = undisturbed
    assert same_bits(model.state_dict(), expected.state_dict())
    assert found.history == undisturbed_fit.history
    assert (found.best_epoch, found.best, found.steps) == (
        undisturbed_fit.best_epoch,
        undisturbed_fit.best,
        undisturbed_fit.steps,
    )


def test_kills_while_a_checkpoint_is_written_change_no_bit_of_the_result(tmp_path, undisturbed):
    for call in (1, 2, 11, 12, 13, 14):  # file of tensors, its folder, JSON, its folder; of the first and of later ones
        process = PROCESSES.Process(target=train_and_die_while_saving, args=(tmp_path, call), daemon=True)
        process.start()
        process.join(60)
        assert process.exitcode == -9
    at = CheckpointManager(tmp_path).load()
    assert at is not None
    assert 0 < at.about["state"]["step"] < 250
    model, found = train(tmp_path, **LONG)
    assert same_bits(model.state_dict(), undisturbed[0].state_dict())
    assert found.history == undisturbed[1].history
    assert not list(tmp_path.glob(".*.part"))


class StopsError(Exception):
    pass


class Stops(Sums):
    """Is interrupted before a batch, as by Ctrl-C."""

    def __init__(self, epoch, batch):
        super().__init__()
        self.at = epoch, batch

    def epoch(self, epoch, start=0):
        for i, batch in enumerate(super().epoch(epoch, start), start):
            if (epoch, i) == self.at:
                raise StopsError
            yield batch


def interrupted(folder, epoch=2, batch=5, **options):
    chosen = Options(**{"epochs": 4, "lr": 0.01, "device": "cpu", "checkpoint_seconds": 0, **options})
    with pytest.raises(StopsError):
        fit(network(), batches=Stops(epoch, batch), loss=loss, validate=accuracy, options=chosen, folder=folder)
    return chosen


@pytest.mark.parametrize(("epoch", "batch"), [(0, 1), (1, 0), (3, 9)])
def test_a_run_continues_in_the_middle_of_an_epoch_and_between_two(tmp_path, epoch, batch):
    interrupted(tmp_path, epoch, batch)
    model, found = train(tmp_path)
    expected, whole = train(None)
    assert same_bits(model.state_dict(), expected.state_dict())
    assert found.history == whole.history


OLD_STATE = (
    *("epoch", "batch", "step", "best", "best_epoch", "waited", "averaged", "seconds"),
    *("finished", "stopped_early", "history"),
)


def as_before(folder, monkeypatch):
    """The checkpoint as the previous version would have written it."""
    manager = CheckpointManager(folder)
    saved = manager.load()
    about = {name: value for name, value in saved.about.items() if name != "learners"}
    about["place"] = {name: about["state"][name] for name in OLD_STATE}  # what it called state
    del about["state"]
    old = {"backbone": "trunk", "backbone_lr": "trunk_lr"}
    about["options"] = {old.get(name, name): value for name, value in about["options"].items() if name != "graphs"}
    parts = {name.partition("/")[0]: saved.part(name.partition("/")[0]) for name in saved.tensors}
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "LAYOUT", checkpoints.FINISHED_LAYOUT)
        manager.save(parts, about, final=True)  # replaces all others


def test_a_training_that_the_previous_version_finished_is_read(tmp_path, monkeypatch):
    model, found = train(tmp_path)
    as_before(tmp_path, monkeypatch)
    again, found_again = train(tmp_path)
    assert same_bits(model.state_dict(), again.state_dict())
    assert found.history == found_again.history


def test_a_training_that_the_previous_version_did_not_finish_is_refused(tmp_path, monkeypatch):
    interrupted(tmp_path, 2, 5)
    as_before(tmp_path, monkeypatch)
    with pytest.raises(TrainingError, match="an earlier version of vidveil began it"):
        train(tmp_path)


def shaky(model, batch):
    """Draws from Python's and NumPy's generators, too."""
    return loss(model, batch) * (1 + 0.1 * random.gauss(0, 1) + 0.1 * np.random.standard_normal())


def test_the_other_generators_and_layouts_are_resumed_too(tmp_path):
    def run(folder, batches):
        with seeded(3):
            conv = nn.Conv3d(2, 4, (1, 2, 2))  # in channels-last it lies otherwise in memory
            model = nn.Sequential(nn.Unflatten(1, (2, 1, 2, 2)), conv, nn.Flatten(), nn.Linear(4, 2))
        chosen = Options(epochs=3, device="cpu", checkpoint_seconds=0, channels_last=True)
        fit(model, batches=batches, loss=shaky, validate=None, options=chosen, folder=folder)
        assert not conv.weight.is_contiguous()
        return model.state_dict()

    with pytest.raises(StopsError):
        run(tmp_path, Stops(1, 4))
    assert same_bits(run(tmp_path, Sums()), run(None, Sums()))


def test_a_finished_training_is_not_done_again(tmp_path):
    model, found = train(tmp_path)
    again, second = train(tmp_path, network(seed=1))
    assert second == found
    assert same_bits(again.state_dict(), model.state_dict())
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


def test_other_data_are_refused(tmp_path):
    chosen = Options(epochs=1, device="cpu")
    for fingerprint in ("a", "a"):
        fit(
            network(),
            batches=Sums(),
            loss=loss,
            validate=None,
            options=chosen,
            folder=tmp_path,
            fingerprint=fingerprint,
        )
    with pytest.raises(TrainingError, match="other data or another recipe"):
        fit(network(), batches=Sums(), loss=loss, validate=None, options=chosen, folder=tmp_path, fingerprint="b")


def test_other_options_are_refused_by_name_but_the_pace_of_checkpoints_may_change(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(TrainingError, match=r"lr was 0\.01, is 0\.02"):
        train(tmp_path, lr=0.02)
    train(tmp_path, checkpoint_seconds=100)


def test_another_network_or_length_of_epoch_is_refused(tmp_path):
    chosen = interrupted(tmp_path)
    with pytest.raises(TrainingError, match="another network"):
        fit(nn.Linear(8, 2), batches=Sums(), loss=loss, validate=accuracy, options=chosen, folder=tmp_path)
    with pytest.raises(TrainingError, match="an epoch had 10 batches, now it has 11"):
        fit(network(), batches=Sums(11), loss=loss, validate=accuracy, options=chosen, folder=tmp_path)


def test_a_damaged_checkpoint_costs_a_step_and_not_the_run(tmp_path):
    interrupted(tmp_path)
    newest = max(tmp_path.glob("*.safetensors"))
    data = bytearray(newest.read_bytes())
    data[-1] ^= 1
    newest.write_bytes(data)
    model, _ = train(tmp_path)
    assert same_bits(model.state_dict(), train(None)[0].state_dict())
    assert resumed(tmp_path)[0]["step"] == 24  # 25 were done
