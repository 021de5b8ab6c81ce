"""A set of clips with their labels: the common form of all datasets, for training and evaluation.

One row per video. `group` is what must never be in two splits: a person, or a (class, group) of UCF101. A group, an id
or identical pixels in two splits are an error on construction, since results on such a split would be too good.
"""

from collections.abc import Iterable, Mapping, Sequence, Sized
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = ("train", "val", "test")
Gallery = Literal["any", "same action", "other action"]


class Videos(Protocol):
    """Decoded videos, on disk or in memory."""

    @property
    def fingerprint(self) -> str:
        """sha256 over everything in it."""
        ...

    def __len__(self) -> int: ...

    def frames(self, i: int) -> NDArray[np.uint8]:
        """(T, H, W, 3) RGB, read-only."""
        ...

    def digest(self, i: int) -> str:
        """sha256 of the pixels of one video."""
        ...


@dataclass(frozen=True, kw_only=True)
class ClipSet:
    name: str
    """As requested: `puppets:rho=1`."""
    videos: Videos
    ids: Sequence[str]
    """One per video, unique."""
    split: NDArray[np.str_]
    """(N,) of `train`, `val`, `test`."""
    group: NDArray[np.str_]
    """(N,) must not be in two splits."""
    action: NDArray[np.int64]
    """(N,) index into `actions`."""
    actions: Sequence[str]
    person: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """(N,) -1 if unknown. By default, all are."""
    attributes: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """(N, A) 1 or 0, NaN if unknown. A may be 0, as it is by default."""
    attribute_names: Sequence[str] = ()
    gallery: Gallery = "any"
    """The clips among which linkage searches: `same action` where each person does one action only, `other action`
    where a person does each action once."""
    tags: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Any other labels of the clips: outfit, place, camera."""
    action_labels: NDArray[np.float32] | None = None
    """(N, len(actions)) 1 or 0, NaN if unknown, of sets whose clips show several actions at once; `action` is -1
    there."""
    left_out: Sequence[str] = ()
    """Ids of clips that could not be decoded and are therefore not among the rows."""
    here: tuple[int, int] | None = None
    """For an incomplete copy: number of files present, and published."""

    def __post_init__(self) -> None:
        rows = len(self.videos)
        if not len(self.person):
            object.__setattr__(self, "person", np.full(rows, -1, np.int64))
        if not self.attributes.size and not self.attribute_names:
            object.__setattr__(self, "attributes", np.zeros((rows, 0), np.float32))
        columns: dict[str, Sized] = {"ids": self.ids, "split": self.split, "group": self.group, "action": self.action}
        columns |= {"person": self.person, "attributes": self.attributes, **self.tags}
        for name, column in columns.items():
            if len(column) != rows:
                raise DataError(f"{self.name}: {rows} videos, but {len(column)} entries of {name}")
        if unknown := set(self.split.tolist()) - set(SPLITS):
            raise DataError(f"{self.name}: no split is called {', '.join(sorted(map(str, unknown)))}")
        if self.attributes.ndim != 2 or self.attributes.shape[1] != len(self.attribute_names):
            raise DataError(f"{self.name}: attributes are {self.attributes.shape}, names {len(self.attribute_names)}")
        if self.action_labels is not None and self.action_labels.shape != (rows, len(self.actions)):
            raise DataError(f"{self.name}: action labels are {self.action_labels.shape}, actions {len(self.actions)}")
        if self.action_labels is not None and self.gallery != "any":
            raise DataError(f"{self.name}: a gallery of {self.gallery} needs clips of one action each")
        self._refuse_overlap()

    def _refuse_overlap(self) -> None:
        pixels = [self.videos.digest(i) for i in range(len(self.videos))]
        for what, values in (("group", self.group.tolist()), ("id", self.ids), ("video", pixels)):
            first: dict[str, str] = {}
            for value, split, name in zip(values, self.split.tolist(), self.ids, strict=True):
                if first.setdefault(value, split) != split:
                    raise DataError(f"{self.name}: the {what} of {name} is in both {first[value]} and {split}")
        if len(set(self.ids)) != len(self.ids):
            raise DataError(f"{self.name}: an id is there twice")

    def __len__(self) -> int:
        return len(self.videos)

    def indices(self, split: Split) -> NDArray[np.int64]:
        return np.flatnonzero(self.split == split)

    def without(self, rows: Iterable[int], videos: Videos) -> "ClipSet":
        """The set without some rows, for clips that could not be decoded. Actions and people keep their numbers.

        Args:
            videos: of the remaining rows.
        """
        dropped = sorted(rows)
        which = np.setdiff1d(np.arange(len(self)), dropped)
        labels = None if self.action_labels is None else self.action_labels[which]
        return replace(
            self,
            videos=videos,
            ids=[self.ids[i] for i in which.tolist()],
            split=self.split[which],
            group=self.group[which],
            action=self.action[which],
            person=self.person[which],
            attributes=self.attributes[which],
            tags={name: values[which] for name, values in self.tags.items()},
            action_labels=labels,
            left_out=(*self.left_out, *(self.ids[i] for i in dropped)),
        )

    def with_videos(self, videos: Videos, name: str | None = None) -> "ClipSet":
        """The same clips and labels with other pixels, as after a method.

        Not checked for overlap again: a method that paints everything black makes all videos equal, which is no leak.
        """
        if len(videos) != len(self):
            raise DataError(f"{self.name}: {len(self)} videos, but {len(videos)} after the method")
        changed = copy(self)
        object.__setattr__(changed, "videos", videos)
        object.__setattr__(changed, "name", name or self.name)
        return changed
