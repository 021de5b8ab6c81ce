"""Parts of what was filmed: all of it, a square around the person, or the place alone."""

from collections.abc import Callable
from typing import Literal

from vidveil.core.errors import UsageError
from vidveil.data.clips import ClipSet
from vidveil.data.crops import person_crops
from vidveil.data.medians import medians

Part = Literal["whole", "person_crop", "median"]
PARTS: dict[str, Callable[[ClipSet], ClipSet]] = {
    "whole": lambda data: data, "person_crop": person_crops, "median": medians
}  # fmt: skip


def refuse_part(part: str, data: str) -> None:
    """Of sets that have no such part, told by their names: before anything is loaded."""
    if part != "whole" and data.startswith("puppets"):
        raise UsageError(f"part: {part} is for recorded video; built-in people have view=: puppets:view=mask")
    if part != "whole" and data.startswith("pa_hmdb51:frames"):
        raise UsageError(f"part: {part} is of videos, and {data} is single frames")
