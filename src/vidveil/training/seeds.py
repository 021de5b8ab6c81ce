"""Reproducible random numbers.

Three generators are shared by all code of a process: Python's, NumPy's and torch's (one more on each GPU). `seeded`
sets them for the length of a block and restores them afterwards, so that a training run neither depends on what ran
before nor changes what runs after. Whether a network was trained or read from a checkpoint, the next one starts alike.

On a CPU the same seed, versions and number of threads give the same bits. On CUDA they do not: the order of sums
varies, and a fixed order is too slow.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """All generators start from `seed` in this block. Afterwards they are as they were before."""
    before = snapshot()
    try:
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)  # and every GPU's
        yield
    finally:
        restore(before)


@contextmanager
def deterministic(device: str) -> Iterator[None]:
    """On a CPU: operations that give the same bits each time, or an error that names the one that cannot.

    On CUDA: the fastest kernels for the shapes in use, and TF32 instead of 32 bits.
    """
    if device == "cuda":
        benchmark, precision = torch.backends.cudnn.benchmark, torch.get_float32_matmul_precision()
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")  # convolutions are so anyway
        try:
            yield
        finally:
            torch.backends.cudnn.benchmark = benchmark
            torch.set_float32_matmul_precision(precision)
        return
    was, warned = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = False  # costs time, and matters only if uninitialized memory is read
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(was, warn_only=warned)
        memory.fill_uninitialized_memory = filled


def snapshot() -> dict[str, Tensor]:
    """All generators' states, as tensors that a safetensors file can hold."""
    version, words, gauss = random.getstate()
    assert version == 3, "Python's generator has another layout than it had since 3.2"
    _, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    states = {
        "python": torch.tensor(words, dtype=torch.int64),
        "python_gauss": torch.tensor([] if gauss is None else [gauss], dtype=torch.float64),
        "numpy": torch.from_numpy(np.asarray(keys, dtype=np.int64)),
        "numpy_place": torch.tensor([position, has_gauss], dtype=torch.int64),
        "numpy_gauss": torch.tensor([cached], dtype=torch.float64),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states |= {f"cuda{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def restore(states: Mapping[str, Tensor]) -> None:
    """GPUs that are only in `states` or only here are skipped."""
    gauss = states["python_gauss"].tolist()
    random.setstate((3, tuple(states["python"].tolist()), gauss[0] if gauss else None))
    position, has_gauss = states["numpy_place"].tolist()
    keys = states["numpy"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", keys, position, has_gauss, states["numpy_gauss"].item()))
    torch.set_rng_state(states["torch"].cpu())
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            if (state := states.get(f"cuda{i}")) is not None:
                torch.cuda.set_rng_state(state.cpu(), i)
