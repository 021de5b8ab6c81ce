"""A world so small that whole evaluations of it take seconds: people are colours, actions are directions."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vidveil.data.clips import ClipSet

FRAMES, SIZE = 4, 16


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
