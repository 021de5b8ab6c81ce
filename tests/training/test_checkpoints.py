"""Files of checkpoints: whole or not at all, and never a pickle."""

import errno
import json
import os

import pytest
import safetensors
import torch

from tests.training.toy import train
from vidveil.core.errors import OutputError, TrainingError
from vidveil.training import checkpoints
from vidveil.training.checkpoints import CheckpointManager


def saved(folder, times):
    manager = CheckpointManager(folder)
    for i in range(times):
        manager.save({"model": {"w": torch.full((3,), float(i))}}, {"state": i})
    return manager


def test_what_is_saved_comes_back(tmp_path):
    state = {"a": torch.randn(2, 3, 4).permute(2, 0, 1), "b": torch.tensor(7), "c": torch.zeros(0)}
    CheckpointManager(tmp_path).save({"model": state, "best": state}, {"state": {"loss": 0.1, "nothing": float("nan")}})
    found = CheckpointManager(tmp_path).load()
    for part in ("model", "best"):  # the very same tensors twice
        assert all(torch.equal(found.part(part)[name], tensor) for name, tensor in state.items())
    assert found.about["state"]["loss"] == 0.1


def test_the_newest_two_are_kept_and_the_newest_is_read(tmp_path):
    assert saved(tmp_path, 4).load().about["state"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"00000{number}.{kind}" for number in (3, 4) for kind in ("json", "safetensors")
    ]


def test_nothing_in_a_checkpoint_is_a_pickle(tmp_path):
    train(tmp_path, checkpoint_seconds=0, epochs=1)
    for path in tmp_path.glob("0*"):
        if path.suffix == ".json":
            json.loads(path.read_text())
        else:
            with safetensors.safe_open(path, "pt") as file:
                assert list(file.keys())
    assert {path.suffix for path in tmp_path.glob("0*")} == {".json", ".safetensors"}


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("kind", ["json", "safetensors"])
@pytest.mark.parametrize("harm", [flip, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"[]")])
def test_the_one_before_is_read_where_the_newest_is_damaged(tmp_path, kind, harm):
    manager = saved(tmp_path, 3)
    harm(tmp_path / f"000003.{kind}")
    found = manager.load()
    assert found.about["state"] == 1
    assert "000003" in found.skipped


def test_a_file_of_tensors_that_is_gone_counts_as_damage(tmp_path):
    manager = saved(tmp_path, 3)
    (tmp_path / "000003.safetensors").unlink()
    assert manager.load().about["state"] == 1


def test_where_none_can_be_read_the_error_says_what_to_do(tmp_path):
    manager = saved(tmp_path, 2)
    for path in tmp_path.glob("*.json"):
        flip(path)
    with pytest.raises(TrainingError, match="delete that folder to start anew"):
        manager.load()


def test_a_checkpoint_of_another_layout_is_not_guessed_at(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "LAYOUT", 99)
    saved(tmp_path, 1)
    monkeypatch.undo()
    with pytest.raises(TrainingError, match="layout 99"):
        CheckpointManager(tmp_path).load()


def test_half_a_pair_does_not_count_and_is_cleared_away(tmp_path):
    manager = saved(tmp_path, 3)
    (tmp_path / "000003.json").unlink()
    (tmp_path / ".000004.json.0123abcd.vidveil.part").write_bytes(b"{")
    assert manager.load().about["state"] == 1
    manager.save({"model": {"w": torch.zeros(3)}}, {"state": 9})
    assert manager.load().about["state"] == 9
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["000002.json", "000004.json"]
    assert not (tmp_path / "000003.safetensors").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_full_disk_leaves_the_last_good_one(tmp_path, monkeypatch):
    manager = saved(tmp_path, 1)

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match="no space left on device; the last good one is kept"):
            manager.save({"model": {"w": torch.zeros(3)}}, {"state": 9})
    assert manager.load().about["state"] == 0


def test_saving_is_spaced_by_time_and_by_what_it_costs(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoints, "monotonic", lambda: now[0])
    manager = CheckpointManager(tmp_path, seconds=10)
    now[0] = 9
    assert not manager.due()
    now[0] = 10
    assert manager.due()

    def slow(*_):
        now[0] += 1  # two files: two seconds

    monkeypatch.setattr(checkpoints, "write_bytes", slow)
    monkeypatch.setattr(checkpoints, "write_json", slow)
    manager.save({}, {})
    now[0] += 39
    assert not manager.due()
    now[0] += 2
    assert manager.due()


def test_without_a_folder_nothing_is_kept():
    manager = CheckpointManager(None)
    manager.save({}, {})
    assert not manager.due()
    assert manager.load() is None
