"""What datasets have in common as they are published: lists, videos whose names tell what they show, people, labels.

VP-UCF101 and VP-HMDB51 (of STPrivacy) are one pickle each beside the videos, {"Class/clip.mp4": array (1, 5)}: whether
each of five attributes can be told from the video. Clips are matched by their names without folder and ending.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core import bounded
from vidveil.core.bounded import ANNOTATION_VALUES, ANNOTATIONS_BYTES, read_text
from vidveil.core.errors import DataError
from vidveil.core.pickled_arrays import load_arrays
from vidveil.core.progress import say
from vidveil.core.text import printable
from vidveil.data.readers.small_sets import ATTRIBUTES
from vidveil.data.store.decoded import decoded
from vidveil.data.store.videos import VideoStore

EVERY, LIMIT = 2, 96  # frames: 7.7 seconds at 12.5 a second, which is all of most clips
SUBGROUPS = ("f", "m")  # numbers of the tag `subgroup`; -1 where nobody has said
MARGIN = 8 / 7  # short side of what is kept over the size of a view: 128 for 112


def thinned(
    name: str,
    folder: Path,
    files: Sequence[str],
    *,
    size: int,
    usual: int = LIMIT,
    aspect: float = 4 / 3,
    spread: bool = False,
) -> VideoStore:
    """Every second frame of each video, 96 frames at most, a little larger than views of `size`.

    Args:
        spread: 96 frames, evenly from the first to the last, of videos that last minutes.
        usual: how many frames are left of most videos, to say at once where there is no room for them.
        aspect: of the pictures, long side over short side, for the same purpose.
    """
    short_side = round(size * MARGIN)
    expected = len(files) * usual * 3 * short_side * int(short_side * aspect)
    if spread:
        return decoded(name, folder, files, short_side=short_side, spread=LIMIT, expected_bytes=expected)
    return decoded(name, folder, files, short_side=short_side, every=EVERY, limit=LIMIT, expected_bytes=expected)


def list_lines(path: Path, of: str) -> list[str]:
    """The lines of a list that comes with `of`, without empty ones."""
    try:
        lines = [line for line in read_text(path, ANNOTATIONS_BYTES).splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: it comes with {of}, as plain text") from error
    if not lines:
        raise DataError(f"{path} lists nothing")
    return lines


def read_json(path: Path) -> Any:
    """What a file holds, whatever it is."""
    try:
        return bounded.read_json(path, ANNOTATIONS_BYTES, ANNOTATION_VALUES, finite=False)
    except OSError as error:
        raise DataError(f"{path} {bounded.reason(error)}") from error
    except ValueError as error:
        raise DataError(f"{path} {error}: copy it again") from error


def named_files(folder: Path, pattern: str, form: str) -> list[tuple[str, re.Match[str]]]:
    """The videos in a folder, in the order of their names, which tell what they show.

    Hidden files and those with another ending than `form` are passed over.

    Args:
        pattern: what a whole name must match.
        form: a name as it should be, for people.
    """
    ending = Path(form).suffix
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: it should be a folder of videos such as {form}") from error
    found = []
    for name in names:
        if name.startswith(".") or not name.endswith(ending):
            continue
        if not (match := re.fullmatch(pattern, name)):
            raise DataError(f"{folder / name} has a name that tells nothing: it should look like {form}")
        found.append((name, match))
    if not found:
        raise DataError(
            f"{folder} holds no {ending} file: videos such as {form} belong there, in no folder of their own"
        )
    return found


def hold_out_people(
    name: str,
    people: Sequence[str],
    actions: Sequence[int] | Sequence[str],
    official: Sequence[str],
    among: Collection[str] | None = None,
) -> NDArray[np.str_]:
    """(N,) splits: of the people trained on, every fifth becomes validation, from the third on.

    Who is the only one left to train some action on is passed over, and the next in line is taken.

    Args:
        people, actions, official: of each clip: who, what, and `train`, `val` or `test`.
        among: whom to choose from; all of them, if None.
    """
    who, what, split = np.array(people), np.array(actions), np.array(official, dtype="<U5")
    if not (split == "test").any():
        raise DataError(f"{name}: of the people here nobody is tested; unpack all of the set")
    trained = set(what[split == "train"].tolist())
    pool = [str(p) for p in np.unique(who[split == "train"]) if among is None or p in among]
    first = pool[2::5] or pool[:1]
    taken = 0
    for person in (*first, *(p for p in pool if p not in first)):
        rest = (split == "train") & (who != person)
        if taken < len(first) and set(what[rest].tolist()) == trained:
            split[(split == "train") & (who == person)] = "val"
            taken += 1
    if not taken:
        raise DataError(
            f"{name}: validation takes whole people out of training, and of {', '.join(pool) or 'nobody'} none can be "
            "spared: each action needs two people to train on; unpack all of the set"
        )
    return split


def read_subgroups(path: Path, form: str) -> dict[str, int]:
    """Whom people take for a woman (0) or a man (1), by the names of persons; nobody, where there is no such file.

    Args:
        form: a name as it should be, such as P001; others differ in digits.
    """
    if not path.exists():
        return {}
    try:
        lines = [line.split() for line in read_text(path, ANNOTATIONS_BYTES).splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: it should be text, {form} f or {form} m a line") from error
    told: dict[str, int] = {}
    person = re.sub(r"\d", r"\\d", form)
    for line in lines:
        if len(line) != 2 or not re.fullmatch(person, line[0]) or line[1] not in SUBGROUPS:
            raise DataError(
                f"{path}: a line is a person and f or m, such as {form} f, not {printable(repr(' '.join(line)))}"
            )
        if told.setdefault(line[0], SUBGROUPS.index(line[1])) != SUBGROUPS.index(line[1]):
            raise DataError(f"{path} has {line[0]} as f and as m")
    return told


def find_labels(file: str, *folders: Path) -> Path | None:
    """VP's pickle in the first of these folders that has it."""
    places = [place for folder in folders for place in (folder / file, folder / "labels" / "vp" / file)]
    return next((place for place in places if place.is_file()), None)


def read_labels(path: Path) -> dict[str, NDArray[np.float32]]:
    """Attributes (5,) of a clip by its name without folder and ending. Only arrays are read out of the pickle."""
    found = load_arrays(path)
    if not isinstance(found, dict) or not found:
        raise DataError(
            f"{path} holds no labels by clip: it should be {{'Class/clip.mp4': array (1, {len(ATTRIBUTES)})}}"
        )
    labels = {}
    for name, values in found.items():
        whole = isinstance(name, str) and isinstance(values, np.ndarray) and values.size == len(ATTRIBUTES)
        if not whole or not np.isin(values, (0, 1)).all():
            raise DataError(f"{path}: {name!r} should have an array of {len(ATTRIBUTES)} labels, each 0 or 1")
        labels[Path(name).stem.lower()] = values.reshape(-1).astype(np.float32)
    return labels


def match_labels(file: Path, paths: Sequence[str]) -> NDArray[np.float32]:
    """(N, 5) of the clips, out of such a pickle; NaN for clips without labels, which are counted on stderr."""
    labels = read_labels(file)
    unknown = np.full(len(ATTRIBUTES), np.nan, np.float32)
    found = [labels.get(Path(path).stem.lower()) for path in paths]
    count = sum(one is not None for one in found)
    if not count:
        raise DataError(
            f"{file} has labels of none of the {len(paths):,} clips: it speaks of {next(iter(labels))} and so on, "
            f"clips are called {Path(paths[0]).name}; take the pickle of this set, or move it away"
        )
    if count < len(paths):
        say(f"{file.name} has labels of {count:,} of the {len(paths):,} clips")
    return np.stack([unknown if one is None else one for one in found])
