"""Checkpoints as training leaves them, of networks that have learned nothing but decide differently about tubelets."""

from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from vidveil.methods.dual_cls.model import DualCLS
from vidveil.methods.dual_cls.model import Network as DualCLSNetwork
from vidveil.methods.stprivacy.model import Network as STPrivacyNetwork
from vidveil.methods.stprivacy.model import STPrivacy
from vidveil.models import checkpoint

FRAMES, SIZE = 4, 32
SHAPE = {"size": "mini", "frames": FRAMES, "side": SIZE, "actions": 3}
Built = TypeVar("Built", bound=nn.Module)


def stronger(made: Built, by: float = 0.1) -> Built:
    """With larger parameters than at the start of training, so that attention maps are not flat."""
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(by * torch.randn_like(parameter))
    return made.eval()


def network(**changes: Any) -> DualCLS:
    torch.manual_seed(5)
    return stronger(DualCLS(DualCLSNetwork(**SHAPE | {"budget": {"attributes": 2}, "keep": 0.7} | changes)))


def drawing_network(**changes: Any) -> STPrivacy:
    torch.manual_seed(5)
    return stronger(STPrivacy(STPrivacyNetwork(**SHAPE | changes)))


def write(
    folder: Path,
    made: DualCLS | STPrivacy,
    name: str = "mine",
    method: str | None = None,
    deploy_stride: int = 0,
    data: str = "puppets",
    floors: dict[str, float] | None = None,
    **more: Any,
) -> Path:
    """As a run of that name: `folder` is that of the checkpoint."""
    method = method or ("stprivacy" if isinstance(made, STPrivacy) else "dual_cls")
    recipe = {"name": name, "method": method, "data": data, "stride": 2, "deploy_stride": deploy_stride}
    recipe |= ({"preprocess": "raw"} if method == "dual_cls" else {}) | more
    about = {"recipe": recipe, "metrics": {"action_top1": 0.5}, "floors": floors or {}}
    checkpoint.write(folder, method, made.about(), made.state_dict(), **about)
    return folder


def clips(count: int = 2, frames: int = FRAMES, height: int = SIZE, width: int = SIZE) -> Tensor:
    return torch.rand(count, 3, frames, height, width, generator=torch.Generator().manual_seed(11)) * 0.8 + 0.1
