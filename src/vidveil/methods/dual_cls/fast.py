"""A trained dual-CLS network, made fast on an accelerator: weights in bfloat16, one compiled graph.

    scorer = CompiledScorer(network)           decides as the network does, apart from the rounding of bfloat16
    TubeletMasker("ward", scorer)

The first clips wait for the compiler, as do the first of each new share `keep`. The privacy weight may change with
every call. How fast, and how much bfloat16 changes: benchmarks/anonymizer_speed.py.

`CompiledScorer(network, graphs=True)` launches all kernels at once, as CUDA graphs. It is a little faster and not the
default: older versions of torch refuse graphs outside the main thread, and videos are masked in another thread.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.compiler import config
from torch.nn import functional as F

from vidveil.methods.dual_cls.model import Block, DualCLS
from vidveil.methods.masking.masker import Decision, Scorer
from vidveil.models.recognizers.vit import MLP

PRIVACY_ONLY = 1e9  # a privacy weight so large that the action token no longer counts


def compiling(*, whole_rows: bool = True, graphs: bool = False) -> dict[str, Any]:
    """Arguments of torch.compile. `whole_rows`: a token's channels are read once to be normalised; where parts of a
    tensor are joined on the way, the compiler by default would read them twice."""
    options = {"triton.multi_kernel": 2 if whole_rows else 0, "triton.cudagraphs": graphs}
    return {"fullgraph": True, "dynamic": False, "options": options}


def in_bfloat16(network: DualCLS) -> DualCLS:
    """A copy for inference whose weights and tokens are bfloat16. Pixels are standardized in float32 before."""
    fast = deepcopy(network).eval().to(torch.bfloat16)
    for block in fast.blocks:
        assert isinstance(block, Block)
        block.mlp = OneKernelMLP(block.mlp)
    fast.standardize.float()
    fast.standardize.mean, fast.standardize.deviation = network.standardize.mean, network.standardize.deviation
    return fast


class OneKernelMLP(MLP):
    """An MLP whose GELU is computed by the matrix product before it, in bfloat16 on GPUs and without gradients.

    A kernel of its own reads and writes the widest tensor of a block. The product's GELU is the one by tanh, at most
    0.0005 from the exact one, where bfloat16 rounds a 1 to 0.004.
    """

    def __init__(self, mlp: MLP) -> None:
        nn.Module.__init__(self)
        self.fc1, self.fc2 = mlp.fc1, mlp.fc2

    def forward(self, x: Tensor) -> Tensor:
        inner = product_with_gelu(x, self.fc1.weight, self.fc1.bias) if fits_one_kernel(x) else F.gelu(self.fc1(x))
        out: Tensor = self.fc2(inner)
        return out


def fits_one_kernel(x: Tensor) -> bool:
    return x.is_cuda and x.dtype == torch.bfloat16 and not torch.is_grad_enabled()


def product_with_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """gelu(x Wᵀ + b): (B, N, D) → (B, N, E)."""
    rows = torch.ops.aten._addmm_activation(bias, x.flatten(0, 1), weight.t(), use_gelu=True)
    out: Tensor = rows.view(*x.shape[:2], -1)
    return out


class CompiledScorer(Scorer):
    """Decides for clips in batches of one fixed size, since each size costs a compilation.

    Clips are moved to the device of the network, and the decision to the device of the clips.
    """

    own: dict[str, float]

    def __init__(
        self,
        network: DualCLS,
        *,
        batch: int = 16,
        device: str = "auto",
        graphs: bool = False,
        backend: str = "inductor",
    ) -> None:
        """`device` is that of a copy of the network. `auto`: an accelerator if there is one, else the network's own.
        `backend` is torch.compile's: those for debugging take no options."""
        fast = in_bfloat16(network)
        self.weights = f"bfloat16 {_hash(fast)[:16]}"
        self.device = _place(network, device)
        self.network = fast.to(self.device)
        self.frames, self.size, self.tubelet = network.frames, network.size, network.tubelet
        self.batch, self.own = batch, network.own
        self.stride, self.preprocess, self.limits = network.stride, network.preprocess, network.limits
        arguments = compiling(graphs=graphs)
        if backend != "inductor":
            arguments["options"] = {}
        self._mask: Callable[..., tuple[Tensor, Tensor]] = torch.compile(
            self.network.mask, backend=backend, **arguments
        )

    def decide(self, clips: Tensor, keep: float | None = None, privacy_weight: float | None = None) -> Decision:
        """Which tubelets stay: (B, L, h, w)."""
        keep = self.own["keep"] if keep is None else keep
        weight = self.own["privacy_weight"] if privacy_weight is None else privacy_weight
        as_tensor = torch.tensor(min(weight, PRIVACY_ONLY), device=self.device)
        # Each share is a graph of its own on purpose: the compiler's limit of eight would be an error here.
        limits = {"recompile_limit": sys.maxsize, "accumulated_recompile_limit": sys.maxsize}
        unlimited = config.patch(limits)  # type: ignore[attr-defined]
        with torch.no_grad(), unlimited:
            kept, scores = in_batches(clips, self.batch, lambda part: self._mask(part.to(self.device), keep, as_tensor))
        grid = self.network.grid
        return Decision(kept.view(-1, *grid), scores.view(-1, *grid))


def in_batches(clips: Tensor, batch: int, decide: Callable[[Tensor], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """What `decide` returns for clips, called with `batch` of them each time: the last ones are filled up."""
    kept, scores = [], []
    for part in torch.split(clips, batch):
        missing = batch - len(part)
        filled = torch.cat([part, part[-1:].expand(missing, -1, -1, -1, -1)]) if missing else part
        some_kept, some_scores = decide(filled)
        kept.append(some_kept[: len(part)].clone())  # the compiler may reuse its memory
        scores.append(some_scores[: len(part)].clone())
    return torch.cat(kept).to(clips.device), torch.cat(scores).to(clips.device)


def _place(network: DualCLS, device: str) -> torch.device:
    if device != "auto":
        return torch.device(device)
    here = network.cls_token.device
    return torch.device("cuda") if here.type == "cpu" and torch.cuda.is_available() else here


def _hash(network: DualCLS) -> str:
    """sha256 over all numbers, and over how the network is built."""
    digest = hashlib.sha256(json.dumps(network.about(), sort_keys=True).encode())
    for tensor in network.state_dict().values():
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
