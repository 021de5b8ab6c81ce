"""VISPR: pictures from the web, labelled with visible private attributes (Orekondy et al. 2017).

    vispr/train2017/2017_10001018.jpg, .json       the official layout; val2017 and test2017 alike. Also as
                                                   vispr/images/train2017/….jpg, vispr/annotations/train2017/….json
    vispr/train2017.txt                            optional: annotations/train2017/2017_10001018.json
    vispr/train_labels.pkl, test_labels.pkl        for parts without .json: {"2017_10001018": array (7,)}

A picture is a video of one frame, and a view of it a static clip: the last frame of a short video is repeated. There is
only one action, `none`, and identities are unknown. Parts are the official ones: 10,000, 4,167 and 8,000 pictures.

    vispr:7     skin colour, gender, complete face, partial face, semi-nudity, personal relationship, social circle:
                as attacked in work on private action recognition (table 9 of SPLAVU)
    vispr:5     the same, joined as PA-HMDB51's authors do to train on VISPR and test on their set: a face is a complete
                or a partial one, a relationship a personal one or a social circle

A picture's .json names its attributes out of 68. The released vectors of seven have no names, and we assume the order
of the table. This fits: the first two columns nearly agree (.93), as colour and gender should, and the next two are the
most frequent after them, as faces should be. The order within these pairs and of the last three is unknown: cMAP of all
seven does not depend on it, the result of one attribute does. So .json takes precedence over vectors.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import ClipSet, Split
from vidveil.data.readers.annotations import match_lines, read_json, refuse_duplicates
from vidveil.data.readers.find import first_file, first_folder
from vidveil.data.readers.subsampled import subsampled
from vidveil.data.readers.vp_labels import ATTRIBUTES, read_binary_labels

SEVEN = {
    "skin_colour": "a17_color",
    "gender": "a4_gender",
    "face_complete": "a9_face_complete",
    "face_partial": "a10_face_partial",
    "semi_nudity": "a12_semi_nudity",
    "personal_relationship": "a64_rel_personal",
    "social_circle": "a65_rel_social",
}
"""In the order of the released vectors; our name and VISPR's."""
OF_SEVEN = ((0,), (2, 3), (1,), (4,), (5, 6))
"""The columns of the seven that are joined to each of `ATTRIBUTES`: any of them counts."""


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    number = argument or "7"
    if number not in ("7", "5"):
        raise UsageError(f"vispr has 7 or 5 attributes, not {argument!r}; write vispr:5")
    folder = root / "vispr"
    files: list[str] = []
    split: list[str] = []
    labels: list[NDArray[np.float32]] = []
    for part in get_args(Split):
        pictures = part_folder(folder, part, "images")
        found = read_part(folder, part, pictures)
        labels.append(read_attributes(root, part, found))
        files += [f"{pictures.relative_to(folder).as_posix()}/{name}.jpg" for name in found]
        split += [part] * len(found)
    attributes = np.concatenate(labels)
    return ClipSet(
        name=f"vispr:{number}",
        videos=subsampled("vispr", folder, files, size=size, usual=1),
        ids=files,
        split=np.array(split, dtype="<U5"),
        group=np.array([Path(file).stem for file in files]),
        action=np.zeros(len(files), np.int64),
        actions=("none",),
        attributes=attributes if number == "7" else five(attributes),
        attribute_names=tuple(SEVEN) if number == "7" else ATTRIBUTES,
    )


def five(seven: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, 7) → (N, 5), as PA-HMDB51 and VP have them."""
    return np.stack([seven[:, columns].max(axis=1) for columns in OF_SEVEN], axis=1)


def part_folder(folder: Path, part: str, inside: str) -> Path:
    """`vispr/train2017`, or `vispr/images/train2017` where only that is there."""
    return first_folder(folder, (f"{part}2017", f"{inside}/{part}2017"))


def read_part(folder: Path, part: str, pictures: Path) -> list[str]:
    """Names of the pictures of a part without ending: as listed, else all that lie in its folder."""
    listed = folder / f"{part}2017.txt"
    if not listed.is_file():
        names = sorted(path.stem for path in pictures.glob("*.jpg"))
        if not names:
            raise DataError(f"{pictures} holds no picture: VISPR's {part}2017/2017_10001018.jpg and so on belong there")
        return names
    pattern = rf"(?:(?:annotations|images)/)?{part}2017/([\w-]+)\.(?:json|jpg)"
    names = [match[1] for match in match_lines(listed, "VISPR", pattern, f"annotations/{part}2017/2017_10001018.json")]
    refuse_duplicates(listed, names)
    return names


def read_attributes(root: Path, part: str, names: Sequence[str]) -> NDArray[np.float32]:
    """(N, 7) of the pictures of a part: all from their .json, else all from the released vectors."""
    annotations = part_folder(root / "vispr", part, "annotations")
    for place in (annotations, root / "vispr" / "annotations" / f"{part}2017"):
        if any(place.glob("*.json")):
            if missing := [name for name in names if not (place / f"{name}.json").is_file()]:
                raise DataError(
                    f"{place} lacks {len(missing):,} of {len(names):,} annotations, {missing[0]}.json first: every "
                    f"picture of {part}2017 has one, or none of them"
                )
            return np.stack([read_annotation(place / f"{name}.json") for name in names])
    file = f"{part}_labels.pkl"
    places = [folder / file for folder in (root / "vispr", root / "labels" / "vispr", root / "vispr" / "labels")]
    if path := first_file(places):
        known = read_vectors(path)
        if unlabelled := next((name for name in names if name not in known), None):
            raise DataError(f"{path} has no labels of {unlabelled}, which is a picture of {part}2017")
        return np.stack([known[name] for name in names])
    vectors = "released vectors are of train2017 and test2017 only" if part == "val" else f"no {places[0]} either"
    raise DataError(
        f"{annotations} has no .json, and {vectors}: put the annotations of {part}2017 next to its pictures"
    )


def read_annotation(path: Path) -> NDArray[np.float32]:
    """(7,) of one picture."""
    try:
        labels = read_json(path)["labels"]
    except (KeyError, TypeError) as error:
        raise DataError(f'{path} names no labels: it should be {{"labels": ["a4_gender", …]}}') from error
    if not isinstance(labels, list) or not labels or not all(re.match(r"a\d+_", str(label)) for label in labels):
        raise DataError(
            f'{path}: labels are ["a4_gender", …], or ["a0_safe"] where there is nothing, not {labels!r:.80}'
        )
    return np.array([name in labels for name in SEVEN.values()], np.float32)


def read_vectors(path: Path) -> dict[str, NDArray[np.float32]]:
    """(7,) of each picture by its name."""
    return read_binary_labels(path, [(len(SEVEN),)], "2017_10001018")
