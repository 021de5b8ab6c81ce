"""What numbers are the means of, one entry a test clip: so that two runs can be compared on the very same videos.

people                          (N,) the number of the person, or group, in each test clip
METHOD[-KEEP]/METRIC            (S, N) hits or average precisions, one row per seed; NaN where a clip asked nothing; of
                                action_cmap, and of cmap where attributes are many, what it is the mean of, and nearly
                                so when clips are drawn again
METHOD[-KEEP]/METRIC/chance     (N,) positives / gallery, for linkage
METHOD[-KEEP]/METRIC/by/WHO     (S, N) the same hits, of each attacker that tried, for linkage
METHOD[-KEEP]/attribute_excess/draws    (B,) excess over all attributes in each draw of people: no mean over clips
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from vidveil.core.atomic import new_path
from vidveil.core.bounded import is_file, regular
from vidveil.core.errors import DataError
from vidveil.evaluation.number import Number
from vidveil.statistics.intervals import Estimate

PEOPLE = "people"


def write_per_clip(
    path: Path,
    people: NDArray[np.str_],
    numbers: Mapping[str, Number],
    attributes: Mapping[str, Estimate] | None = None,
) -> None:
    """`numbers` by METHOD[-KEEP]/METRIC, excess of attributes by METHOD[-KEEP]."""
    arrays: dict[str, NDArray[np.generic]] = {PEOPLE: np.unique(people, return_inverse=True)[1].astype(np.int64)}
    for name, number in numbers.items():
        if number.per_clip is not None:
            arrays[name] = number.per_clip.astype(np.float32)
            if number.chance_per_clip is not None:
                arrays[f"{name}/chance"] = number.chance_per_clip.astype(np.float32)
            arrays |= {f"{name}/by/{who}": hits.astype(np.float32) for who, hits in number.tried_per_clip.items()}
    for tag, excess in (attributes or {}).items():
        arrays[draws_of(tag)] = excess.samples
    with new_path(path) as part:
        save_file(arrays, part)


def draws_of(tag: str) -> str:
    return f"{tag}/attribute_excess/draws"


def read_per_clip(path: Path) -> dict[str, NDArray[np.generic]]:
    """By the names above. An evaluation that stopped early, or was made elsewhere, may have none."""
    if not is_file(path):
        raise DataError(
            f"there is no {path.name} next to its results: the run was stopped, or they were copied without it"
        )
    try:
        found: dict[str, NDArray[np.generic]] = load_file(regular(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError(f"{path.name} cannot be read: it is damaged") from error
    return found
