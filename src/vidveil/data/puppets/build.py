"""The set made by all cores, in order, and kept in the cache.

Each of several workers (`core.workers`) renders every n-th clip.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.progress import phase
from vidveil.core.workers import cores, receive, workers
from vidveil.data.puppets.labels import FACTS
from vidveil.data.puppets.plan import ATTRIBUTES, rows
from vidveil.data.puppets.render import Rendered, render
from vidveil.data.puppets.world import VERSION, World
from vidveil.data.store.videos import Item, VideoStore, cache_folder

FEW = 40
"""Clips that are made right here: starting workers would take longer."""


def store(world: World, processes: int | None = None) -> VideoStore:
    """The rendered set, from the cache or made now. `masks` lie next to the plain view."""
    about = {"data": "puppets", "version": VERSION, **asdict(world)}
    name = world.name.replace(":", "-").replace(",", "-").replace("=", "_")
    folder = cache_folder() / f"{name}-v{VERSION}-s{world.seed}-{world.frames}x{world.size}"
    return VideoStore.cached(folder, about, lambda: _shown(world, processes or cores()))


def _shown(world: World, processes: int) -> Iterator[Item]:
    total = len(rows(world))
    with phase(f"drawing {world.name}", total, "clips") as drawing:
        for made, clip in enumerate(clips(world, processes)):
            masks = {"masks": clip.masks} if world.view == "all" else {}
            yield clip.frames, {**masks, "attributes": clip.attributes, "facts": clip.facts}
            drawing.done = made + 1


def clips(world: World, processes: int) -> Iterator[Rendered]:
    """Every clip, in order, the same for any number of processes."""
    total = len(rows(world))
    if processes <= 1 or total <= FEW:
        for index in range(total):
            yield render(world, index)
        return
    with workers("vidveil.data.puppets.worker", {"world": asdict(world)}, processes) as pipes:
        for index in range(total):
            try:
                yield received(pipes[index % processes], world)
            except EOFError:
                raise DataError(f"drawing clip {index} of {world.name} failed: a worker process ended early") from None


def send(pipe: BinaryIO, clip: Rendered) -> None:
    for array in (clip.frames, clip.masks, clip.attributes, clip.facts):
        pipe.write(array.tobytes())
    pipe.flush()


def received(pipe: BinaryIO, world: World) -> Rendered:
    t, s = world.frames, world.size

    def take(dtype: type, *shape: int) -> NDArray[Any]:
        data = receive(pipe, math.prod(shape) * np.dtype(dtype).itemsize)
        return np.frombuffer(data, dtype).reshape(shape)

    frames, masks = take(np.uint8, t, s, s, 3), take(np.uint8, t, s, s)
    return Rendered(frames, masks, take(np.uint8, t, len(ATTRIBUTES)), take(np.int64, len(FACTS)))
