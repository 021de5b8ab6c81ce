"""Vectors through an adapter, a few at a time, on all cores."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from vidveil.methods.splavu import AAM

ROWS, DEVICE_ROWS = 512, 4096
"""Vectors at once, by a core and by an accelerator: what fits into a core's cache is done fastest."""
Change = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""(n, D) → (n, D)."""


def changing(adapter: AAM, device: str = "cpu") -> Change:
    def change(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        made = np.empty_like(vectors)

        @torch.inference_mode()  # holds for the thread that calls it
        def one(start: int, stop: int) -> None:
            some = torch.from_numpy(np.array(vectors[start:stop])).to(device)  # a store's are read-only
            made[start:stop] = adapter(some).cpu().numpy()

        with _cores(device) as (pool, cores):
            rounds = -(-len(vectors) // (cores * (ROWS if device == "cpu" else DEVICE_ROWS)))
            pieces = min(cores * rounds, len(vectors))  # as many for each
            ends = [len(vectors) * i // max(pieces, 1) for i in range(pieces + 1)]
            list(pool.map(one, ends[:-1], ends[1:]))
        return made

    return change


@contextmanager
def _cores(device: str) -> Iterator[tuple[ThreadPoolExecutor, int]]:
    """A thread for each that torch would use, and how many these are. Each goes through the whole adapter alone: where
    torch shares out every single step, all wait for the slowest each time, and it is slow when a core is busy."""
    threads = torch.get_num_threads()
    if device != "cpu":
        with ThreadPoolExecutor(1) as pool:
            yield pool, 1
        return
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield pool, threads
    finally:
        torch.set_num_threads(threads)
