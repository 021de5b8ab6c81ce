"""Trainings that are stopped, and what they leave behind."""

import json

import torch
from safetensors.torch import load_file


def bits(runs, name):
    return load_file(runs / name / "checkpoint" / "weights.safetensors")


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def stop_at(monkeypatch, game, step):
    """As Ctrl-C would, before a step of this kind of game is done."""
    forward, left = game.forward, [step]

    def forwards(self, *words):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return forward(self, *words)

    monkeypatch.setattr(game, "forward", forwards)


def events(runs, name):
    return [json.loads(line) for line in (runs / name / "log.jsonl").read_text().splitlines()]
