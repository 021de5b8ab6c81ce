"""A world so small that whole evaluations of it take seconds: people are colours, actions are directions."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from vidveil.data.clips import ClipSet
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.protocols.clips import PROTOCOLS
from vidveil.evaluation.recipes.clips import EvaluateRecipe
from vidveil.evaluation.results import Results
from vidveil.tasks import Predictions

FRAMES, SIZE = 4, 16
RECIPE = EvaluateRecipe(
    name="toy", data="toy", frames=FRAMES, size=SIZE, utility="r3d_tiny", attackers=("resnet_tiny",), epochs=4,
    attacker_epochs=4, batch=16, lr=3e-3, attacker_lr=(3e-3,), permutations=200, resamples=200,
)  # fmt: skip


def evaluate(data: ClipSet, recipe: EvaluateRecipe = RECIPE, **changes: object) -> Results:
    """A whole evaluation, as a run of its own."""
    recipe = replace(recipe, **changes)
    return PROTOCOLS[recipe.protocol](recipe, data).evaluate(console=Console(quiet=True))


def learned(
    data: ClipSet, probabilities: Mapping[str, Mapping[str, NDArray[np.floating]]], scores: Mapping[str, float]
) -> TrainedNetwork:
    """A network with these probabilities by split and task, and these scores on validation. It has no features."""
    predictions = {}
    for split, by_task in probabilities.items():
        rows = data.indices(split)
        single = {task: np.asarray(values, np.float32) for task, values in by_task.items()}
        predictions[split] = Predictions(rows, np.zeros((len(rows), 1), np.float32), single)
    return TrainedNetwork(predictions, scores, 1, 1.0, "made", Path())


@dataclass
class Arrays:
    """Videos in memory."""

    clips: NDArray[np.uint8]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.clips.tobytes()).hexdigest()

    def __len__(self) -> int:
        return len(self.clips)

    def frames(self, i: int) -> NDArray[np.uint8]:
        return self.clips[i]

    def digest(self, i: int) -> str:
        return hashlib.sha256(self.clips[i].tobytes()).hexdigest()


def toy(
    people: tuple[int, int, int] = (12, 6, 8),
    clips: int = 8,
    *,
    identity: bool = True,
    action: bool = True,
    seed: int = 0,
) -> ClipSet:
    """A square that moves right or down. Its colour is the person's own, and its attribute is a bright border.

    `identity=False` draws the colour anew for each clip, `action=False` the direction: labels then tell nothing.
    """
    rng = np.random.default_rng(seed)
    count = sum(people)
    colours = rng.integers(40, 256, (count, 3))
    bright = np.arange(count) % 2
    rows = []
    for person in range(count):
        for clip in range(clips):
            way = clip % 2
            shown_way = way if action else int(rng.integers(2))
            colour = colours[person] if identity else rng.integers(40, 256, 3)
            frame = np.repeat(rng.integers(0, 40, (1, SIZE, SIZE, 3)), FRAMES, axis=0)
            x, y = rng.integers(4, 9, 2)  # where it is in the middle frame, whichever way it goes
            for t in range(FRAMES):
                left, top = (x + 2 * t - 4, y) if shown_way == 0 else (x, y + 2 * t - 4)
                frame[t, top : top + 6, left : left + 6] = colour
                if (bright[person] if identity else rng.integers(2)) == 1:
                    frame[t, :2] = 255
            rows.append((frame.astype(np.uint8), person, way, bright[person]))
    video, person, way, attribute = zip(*rows, strict=True)
    who = np.array(person)
    edges = np.cumsum(people)
    split = np.array(["train", "val", "test"])[np.searchsorted(edges, who, side="right")]
    return ClipSet(
        name="toy",
        videos=Arrays(np.stack(video)),
        ids=[f"{p}-{i}" for i, p in enumerate(who)],
        split=split,
        group=who.astype(str),
        action=np.array(way),
        actions=("right", "down"),
        person=who,
        attributes=np.array(attribute, dtype=np.float32)[:, None],
        attribute_names=("bright",),
    )


def several(data: ClipSet) -> ClipSet:
    """The same clips with several actions at once: the way that the square goes, and whether its border is bright."""
    shown = np.stack([data.action == 0, data.action == 1, data.attributes[:, 0] == 1], axis=1)
    return replace(
        data,
        name="several",
        action=np.full(len(data), -1, np.int64),
        actions=("right", "down", "shine"),
        action_labels=shown.astype(np.float32),
    )
