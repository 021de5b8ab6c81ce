"""Random numbers that can be had again.

Three generators are shared by all code of a process: Python's, NumPy's and torch's (one more on each GPU). `seeded`
sets them for the length of a block and puts them back after it, so that a training run neither depends on what ran
before nor changes what runs after: whether a network was trained or read from a checkpoint, the next one starts alike.

On a CPU the same seed, versions and number of threads give the same bits. On CUDA they do not: sums of many parts are
added in whatever order they arrive, and making that fixed costs more than it is worth here.
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
    """All generators start from `seed` in this block, and are as they were after it."""
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

    On CUDA: the fastest kernels for the shapes at hand, and TF32 where 32 bits are asked for.
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
    memory.fill_uninitialized_memory = False  # costs time, and helps only who reads what was never written
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
    """A GPU that is in `states` and not here, or here and not in `states`, is passed over."""
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
