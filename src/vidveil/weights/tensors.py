"""Read tensors from safetensors files."""

from pathlib import Path
from typing import TYPE_CHECKING

from vidveil.core.bounded import regular
from vidveil.core.errors import WeightsError

if TYPE_CHECKING:
    from torch import Tensor


def read_tensors(path: Path) -> "dict[str, Tensor]":
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(regular(path))
    except (OSError, ValueError, SafetensorError) as error:
        raise WeightsError(f"{path} is no readable safetensors file") from error
