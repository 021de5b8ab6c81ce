"""A checkpoint as training leaves it, of a network that has learned nothing but has opinions."""

from pathlib import Path
from typing import Any

import torch

from vidveil.methods.dual_cls.model import DualCLS, Network
from vidveil.models import checkpoint

FRAMES, SIZE = 4, 32


def network(**changes: Any) -> DualCLS:
    torch.manual_seed(5)
    about = {"size": "mini", "frames": FRAMES, "side": SIZE, "actions": 3, "budget": {"attributes": 2}, "keep": 0.7}
    made = DualCLS(Network(**about | changes)).eval()
    with torch.no_grad():
        for parameter in made.parameters():  # louder than at the start, so that the maps are not flat
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def write(
    folder: Path,
    made: DualCLS,
    name: str = "mine",
    method: str = "dual_cls",
    deploy_stride: int = 0,
    data: str = "puppets",
    floors: dict[str, float] | None = None,
    **more: Any,
) -> Path:
    """As a run of that name: `folder` is that of the checkpoint."""
    recipe = {"name": name, "method": method, "data": data, "stride": 2, "deploy_stride": deploy_stride, **more}
    about = {"recipe": recipe, "metrics": {"action_top1": 0.5}, "floors": floors or {}}
    checkpoint.write(folder, method, made.about(), made.state_dict(), **about)
    return folder


def clips(count: int = 2, frames: int = FRAMES, size: int = SIZE) -> torch.Tensor:
    return torch.rand(count, 3, frames, size, size, generator=torch.Generator().manual_seed(11)) * 0.8 + 0.1
