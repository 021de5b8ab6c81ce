"""Two built-in sets of long videos, in which something happens for a while.

    puppets_untrimmed     a person does six things one after the other, between which they stand about
    puppets_anomalies     a person does what one does; in every second video they suddenly run, once

    films = load_untrimmed(None, frames=8, size=64)
    films.annotations[0].events                            # Event(start, end, label) in frames, counted from 1

Half a minute each, filmed as clips are, at a rate at which a clip of an encoder lasts as long as a clip of `puppets`.
Actions last as long as two to five clips, and what the end cuts off has lasted for two. People are those of `puppets`
of the same seed, and in the same splits: nobody of training is in test. These sets are easy: a method that finds
nothing here finds nothing anywhere.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from vidveil.core.errors import UsageError
from vidveil.core.progress import phase
from vidveil.data.clips import SPLITS, ClipSet, Split
from vidveil.data.puppets.motion import ACTIONS
from vidveil.data.puppets.people import everybody
from vidveil.data.puppets.style import SECONDS
from vidveil.data.puppets.untrimmed import Script, moments, video
from vidveil.data.puppets.world import VERSION, World
from vidveil.data.store.videos import Item, NotInCacheError, UndecodedVideos, VideoStore, cache_folder
from vidveil.data.untrimmed import NORMAL, Event, Untrimmed

LASTS = 32.0
"""Seconds of a video."""
NAMES = tuple(ACTIONS)
THINGS = ("walking", "running", "waving", "squatting", "punching", "jumping jacks")
USUAL = ("walking", "waving", "squatting", "jumping jacks")
TROUBLE = ("running",)
"""What should be noticed: one thing, that a small encoder recognizes well. This is no hard set."""


@dataclass(frozen=True)
class Kind:
    """One of the two."""

    name: str
    videos: tuple[int, int, int]
    """Of train, val and test."""
    scripts: tuple[Script, ...]
    """That videos of a split have in turn."""
    first: int
    """Number of the first video: no two sets show the same."""


UNTRIMMED = Kind(
    "puppets_untrimmed", (120, 24, 40), (Script(THINGS, (3.0, 7.0), between=(2.0, 4.0), whole=True),), first=10_000
)
ANOMALIES = Kind(
    "puppets_anomalies",
    (160, 40, 60),
    tuple(Script(USUAL, (4.0, 8.0), between=(1.0, 3.0), whole=True, trouble=some) for some in ((), TROUBLE)),
    first=20_000,
)


@dataclass(frozen=True, kw_only=True)
class PuppetVideos(ClipSet):
    """A `ClipSet` of one row per video, with what happens when."""

    annotations: tuple[Untrimmed, ...]
    rate: float
    """Frames per second."""


def _load(
    kind: Kind,
    argument: str | None,
    *,
    frames: int,
    size: int,
    seed: int = 0,
    root: Path | None = None,  # noqa: ARG001
) -> PuppetVideos:
    world, rate = World(seed=seed, size=size), frames / SECONDS
    split = _splits(kind, argument)
    about = {"data": kind.name, "version": VERSION, "seed": seed, "rate": rate, "size": size, "videos": len(split)}
    folder = cache_folder() / f"{kind.name}-v{VERSION}-s{seed}-{frames}x{size}-{len(split)}"
    try:
        store = VideoStore.cached(folder, about, lambda: _drawn(kind, world, rate, split))
    except NotInCacheError:
        return _undrawn(kind, folder, split, (len(moments(LASTS, rate)), size, size, 3), rate)
    person = store.side_stack("person")[:, 0]
    found = [_annotation(kind, store, row, name) for row, name in enumerate(split)]
    actions = THINGS if kind is UNTRIMMED else (NORMAL, *TROUBLE)
    return PuppetVideos(
        name=kind.name + (f":{argument}" if argument else ""),
        videos=store,
        ids=[video.name for video in found],
        split=np.array(split),
        group=np.array([f"person {p}" for p in person]),
        action=np.array([actions.index(video.label) for video in found], np.int64),
        actions=actions,
        person=person,
        annotations=tuple(found),
        rate=rate,
    )


def _undrawn(
    kind: Kind, folder: Path, split: list[Split], shape: tuple[int, int, int, int], rate: float
) -> PuppetVideos:
    """For a plan: as many videos, with people and annotations that are made up."""
    names = [f"{kind.name} {row}" for row in range(len(split))]
    return PuppetVideos(
        name=kind.name,
        videos=UndecodedVideos(folder, names, shape),
        ids=names,
        split=np.array(split),
        group=np.array(names),
        action=np.arange(len(split)) % len(kind.scripts),
        actions=THINGS if kind is UNTRIMMED else (NORMAL, *TROUBLE),
        annotations=(),
        rate=rate,
    )


load_untrimmed = partial(_load, UNTRIMMED)
"""A row's action is what its person does most often."""
load_anomalies = partial(_load, ANOMALIES)
"""A row's action is what should be noticed, or Normal."""


def _splits(kind: Kind, argument: str | None) -> list[Split]:
    """Of each video. `share=0.1` is a tenth of them, to try things out."""
    key, _, value = (argument or "share=1").partition("=")
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if key != "share" or not 0 < share <= 1:
        raise UsageError(f"it is {kind.name} or, for a part of it, {kind.name}:share=0.1, not {kind.name}:{argument}")
    least = 2 * len(kind.scripts)
    counts = [max(least, round(share * count)) for count in kind.videos]
    return [name for name, count in zip(SPLITS, counts, strict=True) for _ in range(count)]


def _drawn(kind: Kind, world: World, rate: float, split: list[Split]) -> Iterator[Item]:
    people, times = everybody(world), moments(LASTS, rate)
    ends = np.cumsum([0, *world.people().values()])
    own = {name: people[ends[i] : ends[i + 1]] for i, name in enumerate(SPLITS)}
    with phase(f"drawing {kind.name}", len(split), "videos") as drawing:
        for row, name in enumerate(split):
            script = kind.scripts[row % len(kind.scripts)]
            made = video(world, kind.first + row, times, rate, people=own[name], script=script)
            segments = [(NAMES.index(action), first, last) for action, first, last in made.segments]
            yield made.frames, {"segments": np.array(segments, np.int64), "person": np.array([made.person])}
            drawing.done = row + 1


def _annotation(kind: Kind, store: VideoStore, row: int, split: Split) -> Untrimmed:
    """With its events, each from its first frame to its last, counted from 1."""
    listed = [(NAMES[action], first + 1, last + 1) for action, first, last in store.side("segments", row).tolist()]
    asked = THINGS if kind is UNTRIMMED else TROUBLE
    events = tuple(Event(first, last, name) for name, first, last in listed if name in asked)
    counts = Counter(event.label for event in events)
    label = max(counts, key=lambda name: (counts[name], name)) if counts else NORMAL
    name = f"{kind.name.removeprefix('puppets_')}_{row:03d}"
    return Untrimmed(name, store.folder, split, label, events, "frames", len(store.frames(row)))
