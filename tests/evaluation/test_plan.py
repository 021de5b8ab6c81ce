"""An evaluation knows beforehand how much it will train."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests.evaluation.toy import RECIPE, toy
from vidveil.evaluation.protocols.clips import AttackProtocol


@pytest.mark.usefixtures("own_folders")
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
def test_as_many_are_trained_as_were_planned_and_each_is_counted(changes):
    recipe = replace(RECIPE, epochs=1, attacker_epochs=1, batch=64, permutations=20, resamples=20, **changes)
    console = Console(record=True, width=400, file=StringIO())
    protocol = AttackProtocol(recipe, toy())
    protocol.evaluate(console=console)
    assert protocol.trained == protocol.planned > 0
    printed = console.export_text()
    assert f"(val), 1 of {protocol.planned}\n" in printed
    assert f"(val), {protocol.planned} of {protocol.planned}\n" in printed
