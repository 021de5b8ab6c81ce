"""What a training learns from: one source of batches, or several at once.

BatchesTogether(clips=loader, pictures=others)       each batch is {"clips": …, "pictures": …}
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, Protocol

from vidveil.core.errors import TrainingError


class Batches(Protocol):
    """Batches in an order that depends on the epoch alone."""

    def __len__(self) -> int:
        """Batches an epoch."""
        ...

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """The batches of this epoch (from 0) without the first `start`: the same each time, on the training device."""
        ...


class BatchesTogether:
    """One batch of each source at a time. An epoch is one of the first source; each of the others goes through its own
    epochs, however long these are."""

    def __init__(self, **sources: Batches) -> None:
        if empty := [name for name, source in sources.items() if not len(source)]:
            raise TrainingError(f"there are no batches of {' and '.join(empty)}")
        self.sources = sources

    def __len__(self) -> int:
        return len(next(iter(self.sources.values())))

    def epoch(self, epoch: int, start: int = 0) -> Iterator[dict[str, Any]]:
        done = epoch * len(self) + start
        each = [_from(source, done) for source in self.sources.values()]
        for _ in range(start, len(self)):
            yield dict(zip(self.sources, map(next, each), strict=True))


def _from(source: Batches, done: int) -> Iterator[Any]:
    """All batches of all epochs but the first `done`."""
    first, start = divmod(done, len(source))
    for epoch in count(first):
        yield from source.epoch(epoch, start)
        start = 0
