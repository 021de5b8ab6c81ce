"""Private attributes, several at once."""

import torch

from vidveil.data.clips import ClipSet
from vidveil.tasks.several import Several


class Attributes(Several):
    name = "attributes"

    def __init__(self, data: ClipSet, device: torch.device | str, label_smoothing: float = 0.0) -> None:  # noqa: ARG002
        super().__init__(data.attributes, data.attribute_names, device)
