"""Weights that vidveil can use but not fetch, since no package has them. Users put the file into the folder of weights
themselves, as safetensors and under the name given here.

    path = given("i3d_r50")

The right checksum is not known, so `describe_given` reports that of the file.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from vidveil.core.errors import WeightsError


@dataclass(frozen=True, slots=True)
class GivenFile:
    file: str
    """Its name in the folder of weights."""
    published: str
    """The published file."""
    tensors: str
    """Python for its tensors, after torch has loaded it as `found`."""


GIVEN = {
    "i3d_r50": GivenFile(
        file="i3d_r50_kinetics400.safetensors",
        published="I3D_8x8_R50.pyth of pytorchvideo's model zoo",
        tensors="found['model_state']",
    ),
}


def given(name: str, folder: Path) -> Path:
    path = folder / GIVEN[name].file
    if not path.is_file():
        raise WeightsError(f"{path.name} is missing from {folder}: {how(name)}")
    return path


def how(name: str) -> str:
    wanted = GIVEN[name]
    return (
        f"it cannot be fetched; take {wanted.published}, save {wanted.tensors} of it as safetensors (docs/weights.md "
        f"has the lines), and put it there as {wanted.file}, or set VIDVEIL_WEIGHTS to the folder that has it"
    )


def describe_given(name: str, folder: Path) -> str:
    with given(name, folder).open("rb") as file:
        return f"{name} sha256:{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"
