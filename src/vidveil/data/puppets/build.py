"""The set made by all cores, in order, and kept in the cache.

Each worker is a fresh interpreter that gets the world as an argument, renders every n-th clip and writes the bytes to
its standard output, in order; the reader takes turns. The pipes keep fast workers waiting, so memory stays flat, and a
worker ends when its reader is gone. A fresh interpreter, not `multiprocessing`, keeps the caller's main module out.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.progress import phase
from vidveil.data.puppets.labels import FACTS
from vidveil.data.puppets.plan import ATTRIBUTES, rows
from vidveil.data.puppets.render import Rendered, render
from vidveil.data.puppets.world import VERSION, World
from vidveil.data.store.videos import Item, VideoStore, cache_folder

FEW = 40
"""Clips that are made right here: starting workers would take longer."""


def cores() -> int:
    """Those that this process may use, which can be fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def store(world: World, workers: int | None = None) -> VideoStore:
    """The rendered set, from the cache or made now. `masks` lie next to the plain view."""
    about = {"data": "puppets", "version": VERSION, **asdict(world)}
    name = world.name.replace(":", "-").replace(",", "-").replace("=", "_")
    folder = cache_folder() / f"{name}-v{VERSION}-s{world.seed}-{world.frames}x{world.size}"
    return VideoStore.cached(folder, about, lambda: _shown(world, workers or cores()))


def _shown(world: World, workers: int) -> Iterator[Item]:
    total = len(rows(world))
    with phase(f"drawing {world.name}", total, "clips") as drawing:
        for made, clip in enumerate(clips(world, workers)):
            masks = {"masks": clip.masks} if world.view == "all" else {}
            yield clip.frames, {**masks, "attributes": clip.attributes, "facts": clip.facts}
            drawing.done = made + 1


def clips(world: World, workers: int) -> Iterator[Rendered]:
    """Every clip, in order, the same for any number of workers."""
    total = len(rows(world))
    if workers <= 1 or total <= FEW:
        for index in range(total):
            yield render(world, index)
        return
    with ExitStack() as stack:
        started = [stack.enter_context(_worker(world, first, workers)) for first in range(workers)]
        for process in started:
            stack.callback(process.kill)
        for index in range(total):
            try:
                yield receive(cast(BinaryIO, started[index % workers].stdout), world)
            except EOFError:
                raise DataError(f"drawing clip {index} of {world.name} failed: a worker process ended early") from None


def send(pipe: BinaryIO, clip: Rendered) -> None:
    for array in (clip.frames, clip.masks, clip.attributes, clip.facts):
        pipe.write(array.tobytes())
    pipe.flush()


def receive(pipe: BinaryIO, world: World) -> Rendered:
    t, s = world.frames, world.size

    def take(dtype: type, *shape: int) -> NDArray[Any]:
        wanted = math.prod(shape) * np.dtype(dtype).itemsize
        data = pipe.read(wanted)
        if len(data) != wanted:
            raise EOFError
        return np.frombuffer(data, dtype).reshape(shape)

    frames, masks = take(np.uint8, t, s, s, 3), take(np.uint8, t, s, s)
    return Rendered(frames, masks, take(np.uint8, t, len(ATTRIBUTES)), take(np.int64, len(FACTS)))


def _worker(world: World, first: int, step: int) -> "subprocess.Popen[bytes]":
    task = json.dumps({"world": asdict(world), "first": first, "step": step})
    root = str(Path(__file__).parents[3])  # where vidveil lies, installed or not
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "vidveil.data.puppets.worker", task]
    limits = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env={**os.environ, **limits}, start_new_session=True
    )
