"""Two processes that share the batches do what one does with batches twice as large."""

import json
import os
import socket
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

from tests.training.toy import PROCESSES, Sums, loss, network
from vidveil.core.errors import UsageError
from vidveil.training.loop import fit
from vidveil.training.options import Options
from vidveil.training.runs import Run
from vidveil.training.seeds import seeded

OPTIONS = {"epochs": 3, "lr": 0.01, "device": "cpu", "ema": 0.9, "clip_norm": 0.1}


def model() -> nn.Module:
    """Neither dropout nor BatchNorm: those see each half of a batch for itself."""
    with seeded(0):
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))


class Pairs(Sums):
    """Two batches of Sums in one; of eleven, the last has no partner."""

    def __init__(self):
        super().__init__(11)

    def __len__(self):
        return 5

    def epoch(self, epoch, start=0):
        single = list(super().epoch(epoch))
        for i in range(start, 5):
            yield tuple(torch.cat(both) for both in zip(single[2 * i], single[2 * i + 1], strict=True))


def rank(number: int, port: int, folder: Path) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"GROUP_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "x"}
    os.environ["VIDVEIL_RUNS"] = str(folder)
    net = model()
    with Run.create("two", {}) as run:
        options = Options(**OPTIONS, devices=2, strategy="ddp")
        fit(net, batches=Sums(11), loss=loss, validate=None, options=options, folder=run.part("x"), log=run.log)
    safetensors.torch.save_file(net.state_dict(), folder / f"{number}.safetensors")


def test_two_processes_learn_what_one_does_with_twice_the_batch(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [PROCESSES.Process(target=rank, args=(i, port, tmp_path), daemon=True) for i in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    one = model()
    fit(one, batches=Pairs(), loss=loss, validate=None, options=Options(**OPTIONS))
    for i in range(2):
        torch.testing.assert_close(safetensors.torch.load_file(tmp_path / f"{i}.safetensors"), dict(one.state_dict()))
    events = [json.loads(line)["event"] for line in (tmp_path / "two" / "log.jsonl").read_text().splitlines()]
    assert events == ["run started", "started", "epoch", "epoch", "epoch", "finished", "run done"]


def test_several_devices_without_torchrun_are_an_error(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(UsageError, match="torchrun --nproc_per_node=2"):
        fit(network(), batches=Sums(), loss=loss, validate=None, options=Options(devices=2, device="cpu"))
