"""An evaluation knows beforehand how much it will train."""

from io import StringIO

import pytest
from rich.console import Console

from tests.evaluation.toy import toy
from vidveil.core.recipe import as_values
from vidveil.evaluation.protocols.clips import ClipsProtocol
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.training.runs import Run


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "random", "keep": (0.9, 0.5), "seeds": (0, 1)},
        {"method": "solid", "joint": True, "attackers": ("resnet_tiny", "resnet_tiny:raw", "resnet_tiny:frozen")},
        {"attackers": ("resnet_tiny:raw",), "attacker_lr": (1e-3, 2e-3), "controls": ("median",)},
        {"controls": ("one_frame", "shuffled", "one_frame_linkage"), "control_attackers": ("resnet_tiny:frozen",)},
        {"attack": ("attributes",), "attackers": ("resnet_tiny", "resnet_tiny:frozen")},
    ],
    ids=lambda changes: ", ".join(changes) or "raw",
)
def test_as_many_are_trained_as_were_planned_and_each_is_counted(changes, tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    recipe = EvaluateRecipe(
        **{
            "name": "mine", "data": "puppets", "frames": 4, "size": 16, "utility": "r3d_tiny",
            "attackers": ("resnet_tiny",), "epochs": 1, "attacker_epochs": 1, "batch": 64,
            "permutations": 20, "resamples": 20,
            **changes,
        }
    )  # fmt: skip
    console = Console(record=True, width=400, file=StringIO())
    with Run.create(recipe.name, as_values(recipe)) as run:
        engine = ClipsProtocol(recipe, toy(), run, None, console)
        engine.evaluate()
    assert engine.trained == engine.planned > 0
    said = console.export_text()
    assert f"(val), 1 of {engine.planned}\n" in said
    assert f"(val), {engine.planned} of {engine.planned}\n" in said
