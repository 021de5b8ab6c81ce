"""Puppets: a built-in world of synthetic people whose every secret is known.

    clips = load("rho=1", frames=8, size=64)        # or load_data("puppets:rho=1", ...)
    masks(clips)                                    # (N, T, H, W): which pixels carry identity, action, both, neither
    attributes_per_frame(clips)                     # (N, T, 5)

Everything is drawn from a seed. What is in it and what it is not: docs/puppets.md.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import UsageError
from vidveil.data.clips import ClipSet
from vidveil.data.puppets.build import store
from vidveil.data.puppets.labels import FACTS, of_clips, tags
from vidveil.data.puppets.motion import ACTIONS, PAIRS
from vidveil.data.puppets.plan import ATTRIBUTES, rows
from vidveil.data.puppets.world import VERSION, World, parse
from vidveil.data.store.videos import NotInCacheError, UndecodedVideos, VideoStore

__all__ = ["PAIRS", "VERSION", "PuppetClips", "World", "attributes_per_frame", "load", "masks"]


@dataclass(frozen=True, kw_only=True)
class PuppetClips(ClipSet):
    """A `ClipSet` that remembers its world."""

    world: World
    drawn: VideoStore
    """The videos as rendered, also after a method was applied."""


def load(
    argument: str | None = None,
    *,
    frames: int,
    size: int,
    seed: int = 0,
    root: Path | None = None,  # noqa: ARG001
) -> PuppetClips:
    """The clips of `puppets[:ARGUMENT]`, drawn now or found in the cache.

    Args:
        argument: `rho=0`, `rho=0.5`, `rho=1`, `gait`, `null`, `bias_f`, `bias_m`, `view=background`, `view=mask`,
            `view=motion`, `share=0.1` (fewer people); several are joined by commas.
        seed: another one gives other people, on whom nothing was tuned.
        root: not used: nothing is read.
    """
    world = parse(argument, frames=frames, size=size, seed=seed)
    table = rows(world)
    person = np.array([row.person for row in table], np.int64)
    try:
        drawn = store(world)
        known = dict(zip(FACTS, drawn.side_stack("facts").T, strict=True))
        shown = of_clips(drawn.side_stack("attributes"))
    except NotInCacheError:  # for a plan: as many clips of as many people, with labels that are made up
        ids, number = [f"{row.person} {row.clip}" for row in table], np.arange(len(table))
        drawn = UndecodedVideos(Path(world.name), ids, (frames, size, size, 3))
        known = {fact: number % len(ACTIONS) for fact in FACTS}
        shown = np.repeat((person % 2).astype(np.float32)[:, None], len(ATTRIBUTES), axis=1)
    action = known.pop("action")
    return PuppetClips(
        name=world.name,
        videos=drawn,
        ids=[f"p{row.person:03d}_{row.clip:02d}" for row in table],
        split=np.array([row.split for row in table]),
        group=np.array([f"person {p}" for p in person]),
        action=action,
        actions=tuple(ACTIONS),
        person=person,
        attributes=shown,
        attribute_names=ATTRIBUTES,
        gallery="any",
        tags=known | tags(world, action),
        world=world,
        drawn=drawn,
    )


def masks(clips: ClipSet) -> NDArray[np.uint8]:
    """(N, T, H, W), still in the file: 0 neither, 1 identity only, 2 action only, 3 both."""
    if not isinstance(clips, PuppetClips) or clips.world.view != "all":
        raise UsageError(f"{clips.name} has no ground-truth masks: puppets without view= has")
    return clips.drawn.side_stack("masks")


def attributes_per_frame(clips: ClipSet) -> NDArray[np.float32]:
    """(N, T, 5) of `clips.attribute_names`, 1 or 0."""
    if not isinstance(clips, PuppetClips):
        raise UsageError(f"attributes of {clips.name} are not known frame by frame: those of puppets are")
    return clips.drawn.side_stack("attributes").astype(np.float32)
