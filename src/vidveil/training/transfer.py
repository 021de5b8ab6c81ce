"""Tensors on their way to an accelerator.

`tensor.to("cuda")` from ordinary memory waits until the accelerator has done all that was asked of it before. Nothing
here waits: the host goes on and prepares what comes next.
"""

from typing import Any

import torch
from torch import Tensor


def to_device(values: Any, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor, or an array of numbers, on the device. It must not be changed on the host afterwards."""
    tensor = torch.as_tensor(values, dtype=dtype)
    if device.type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
