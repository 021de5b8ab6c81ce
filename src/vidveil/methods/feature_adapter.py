"""Methods on stored features: an adapter is loaded from its checkpoint, checked against features, and applied to
vectors, a few at a time, on all cores."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vidveil.core.errors import DataError, UsageError
from vidveil.core.recipe import names
from vidveil.core.registry import METHODS
from vidveil.core.text import printable
from vidveil.data.features.sets import FeatureSet
from vidveil.models.checkpoint import Checkpoint, find

LEAST, ROWS, DEVICE_ROWS = 64, 512, 4096
"""Vectors at once, by a core, at least and at most, and by an accelerator: what fits into a core's cache is done
fastest, and of fewer than 64 the matrix products are slow."""
PIECES = 16
"""Where there are vectors enough: so many cores share even a short array."""
Change = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""(n, D) → (n, D)."""


class FeatureAdapter(nn.Module, ABC):
    """A learned method on features: vectors (n, `width`) → vectors of the same shape.

    `METHODS` names what builds one from a checkpoint, which has the encoder's description under `encoder`.
    """

    width: int
    """Numbers in a vector."""
    scale: Tensor
    """Root mean square of the features that it was trained on; 1 if it is not known."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(()))

    @abstractmethod
    def forward(self, z: Tensor) -> Tensor: ...

    def adapt(self, z: Tensor) -> Tensor:
        """The same in units of `scale`: an attacker who has the adapter inverts this by gradient descent."""
        made: Tensor = self(z * self.scale) / self.scale
        return made

    @property
    def across_batch(self) -> bool:
        """Whether what it makes of a vector depends on the rest of the batch: then it can be evaluated, but not be used
        on stores."""
        return False

    def warnings(self, videos: int) -> list[str]:  # noqa: ARG002
        """For users of what it makes. It was trained on so many videos."""
        return []


def checkpoint_of(method: str) -> Checkpoint:
    """Of `NAME:RUN`, or of the run alone."""
    family, _, name = (part.strip() for part in method.partition(":"))
    if family not in METHODS:
        name = method.strip()
    elif METHODS[family].learned != "on features":
        raise UsageError(f"{method} works on video, not on features")
    elif not name:
        run = f"{family}_puppets"
        made_by = f": `vidveil train {run}`, then {family}:{run}" if run in names("train") else f", as {family}:RUN"
        raise UsageError(f"{family} needs a checkpoint{made_by}")
    checkpoint = find(name)
    made = checkpoint.method
    if made not in METHODS or METHODS[made].learned != "on features":
        raise UsageError(f"{method} is a checkpoint of {printable(made)}, which works on video, not on features")
    if family in METHODS and made != family:
        raise UsageError(f"{method} is a checkpoint of {printable(made)}: say {made}:{name}")
    return checkpoint


def adapter_of(checkpoint: Checkpoint) -> FeatureAdapter:
    """Ready for use: it draws no random numbers, and does not learn."""
    adapter = METHODS[checkpoint.method].build(checkpoint)
    if not isinstance(adapter, FeatureAdapter):
        raise UsageError(
            f"the method {checkpoint.method} builds a {type(adapter).__name__}, which is no FeatureAdapter"
        )
    return adapter.eval().requires_grad_(False)


def adapted(adapter: FeatureAdapter, vectors: Tensor) -> Tensor:
    """(n, D) → (n, D), checked: a wrong output must not become features."""
    made: Tensor = adapter(vectors)
    if made.shape != vectors.shape:
        raise DataError(f"the adapter made {tuple(made.shape)} of features {tuple(vectors.shape)}")
    if not made.isfinite().all() and vectors.isfinite().all():
        raise DataError("the adapter made numbers that are not finite")
    return made


def load_adapter(method: str) -> tuple[FeatureAdapter, str] | None:
    """The adapter of a run, and the fingerprint of the encoder that it belongs to; None for raw."""
    if method == "raw":
        return None
    try:
        checkpoint = checkpoint_of(method)
    except UsageError as error:
        raise UsageError(f"{error}; method=raw needs no adapter: it evaluates features as they are") from error
    encoder = checkpoint.about.get("encoder") or {}
    return adapter_of(checkpoint), str(encoder.get("fingerprint", ""))


def refuse_other_encoder(data: FeatureSet, adapter: FeatureAdapter, encoder: str) -> None:
    if adapter.width != data.width:
        raise DataError(f"{data.labels.name} has features of {data.width} numbers, the adapter is for {adapter.width}")
    if encoder != data.store.encoder:
        raise DataError(f"the features of {data.labels.name} were made by another encoder than the adapter's")


def changing(adapter: FeatureAdapter, device: str = "cpu") -> Change:
    def change(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        made = np.empty_like(vectors)

        @torch.inference_mode()  # holds for the thread that calls it
        def one(start: int, stop: int) -> None:
            some = torch.from_numpy(np.array(vectors[start:stop])).to(device)  # a store's are read-only
            made[start:stop] = adapted(adapter, some).cpu().numpy()

        ends = _ends(len(vectors), device)
        if device != "cpu":
            list(map(one, ends[:-1], ends[1:]))
            return made
        with _torch_on_one_core() as cores:
            threads = min(cores, len(ends) - 1)
            if threads < 2:
                list(map(one, ends[:-1], ends[1:]))
            else:
                with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                    list(pool.map(one, ends[:-1], ends[1:]))
        return made

    return change


def _ends(count: int, device: str) -> list[int]:
    """Where pieces begin and end. It does not depend on the number of cores: in a piece of another length, products
    may be summed in another order, and a vector would have other last bits on another machine."""
    if device != "cpu":
        pieces = -(-count // DEVICE_ROWS)
    else:
        pieces = min(max(PIECES, -(-count // ROWS)), max(count // LEAST, 1))
    return [count * i // max(pieces, 1) for i in range(pieces + 1)]


@contextmanager
def _torch_on_one_core() -> Iterator[int]:
    """How many threads torch would use. Each is to go through the whole adapter alone: where torch shares out every
    single step, all wait for the slowest each time, and it is slow when a core is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
