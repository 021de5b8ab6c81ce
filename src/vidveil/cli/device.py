"""`--device`: where a learned method runs."""

import re

from vidveil.core.errors import DeviceError, UsageError
from vidveil.core.text import printable


def device_for(wanted: str, *, learned: bool) -> str:
    """The device that the method will run on. Only learned methods have a use for another than the processor."""
    if wanted == "cpu" or (wanted == "auto" and not learned):
        return "cpu"
    if wanted != "auto" and not re.fullmatch(r"cuda(:\d+)?", wanted):
        raise UsageError(f"{printable(repr(wanted))} is no device: auto, cpu or cuda")
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    number = int(wanted.partition(":")[2] or 0)
    if number >= torch.cuda.device_count():
        raise DeviceError(f"--device {wanted}: no such CUDA device here; --device auto takes what there is")
    return wanted
