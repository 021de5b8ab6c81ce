"""The last line of `vidveil train` for a method."""

from pathlib import Path

import pytest

from tests.command import vidveil
from vidveil.methods.dual_cls import train as dual_cls
from vidveil.methods.learned.anonymizer import loaded_unless_raw
from vidveil.methods.stprivacy import train as stprivacy
from vidveil.methods.trained import Trained

DRAWN = "--method stprivacy:stprivacy_puppets"


@pytest.mark.parametrize(
    ("words", "metrics", "message"),
    [
        (["dual_cls_puppets"], {"action_top1": 0.9}, "--method dual_cls:dual_cls_puppets --also-hide faces\n"),
        (["dual_cls_puppets", "preprocess=figure:8"], {"action_top1": 0.9}, "--method dual_cls:dual_cls_puppets\n"),
        (["stprivacy_puppets"], {"masked_top1": 0.9}, f"{DRAWN}\n"),
        (["stprivacy_puppets", "sparsify=false"], {"masked_top1": 0.9}, f"{DRAWN}\n"),
        (["stprivacy_puppets", "anonymize=false"], {"masked_top1": 0.9}, f"{DRAWN} --also-hide faces\n"),
    ],
)
@pytest.mark.parametrize(("floor", "learned"), [(0.1, True), (0.88, False)])
def test_a_trained_method_comes_with_its_command_and_one_that_learned_nothing_with_a_warning(
    monkeypatch, words, metrics, message, floor, learned
):
    def run(recipe, *_, **__):
        before = loaded_unless_raw(recipe.preprocess)
        return Trained(
            method=recipe.method,
            name=recipe.name,
            data=recipe.data,
            folder=Path("runs") / recipe.name / "checkpoint",
            metrics=metrics,
            floors=dict.fromkeys(metrics, floor),
            shows_filmed=recipe.shows_filmed and (before is None or not before.elsewhere),
        )

    for method in (dual_cls, stprivacy):
        monkeypatch.setattr(method, "run", run)
    done = vidveil("train", *words)
    assert done.exit_code == 0, done.output
    assert (f"On your videos: vidveil anonymize clip.mp4 {message}" in done.output) == learned
    assert ("train it longer" in done.output) != learned
