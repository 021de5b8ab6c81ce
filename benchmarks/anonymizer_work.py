"""What `anonymizer_speed` times: the network at work, in several variants."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend

from vidveil.methods.dual_cls.attention import Attended, DualCLSAttention, attention_map, cls_reads
from vidveil.methods.dual_cls.fast import compiling, in_bfloat16
from vidveil.methods.dual_cls.model import Block, DualCLS, Network
from vidveil.models.layers import fused_attention
from vidveil.models.layers.fused_attention import fused
from vidveil.models.layers.gradient_reversal import reverse_gradient

OURS = list(fused_attention.FASTEST)
FLASH = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


@dataclass(frozen=True)
class Variant:
    name: str
    work: str
    """full, mask or train."""
    batch: int = 16
    compile: str = "default"
    """Mode of torch.compile, or `eager`."""
    autocast: bool = False
    """Weights in float32, products in bfloat16; else weights in bfloat16. Training always."""
    flash: bool = False
    every_row: bool = False
    """CLS rows too by the fused kernel, and then replaced: `every_row_attention`."""
    own_gelu: bool = False
    """GELU by erf, as a kernel of its own. Training always."""
    graphs: bool = False
    """All kernels are launched at once, as CUDA graphs."""
    whole_rows: bool = False
    """Sums over a row of channels in one piece, where the compiler would by itself walk along it twice."""


VARIANTS = [  # by promise; those after `…` are asked for by name
    Variant("full 16", "full"),
    Variant("train 16", "train"),
    Variant("full 16 own gelu", "full", own_gelu=True),
    Variant("full 16 graphs", "full", graphs=True),
    Variant("train 16 graphs", "train", graphs=True),
    Variant("full 16 rows", "full", whole_rows=True),
    Variant("train 16 rows", "train", whole_rows=True),
    Variant("full 16 rows graphs", "full", whole_rows=True, graphs=True),
    Variant("train 16 rows graphs", "train", whole_rows=True, graphs=True),
    Variant("mask 16 rows graphs", "mask", whole_rows=True, graphs=True),
    Variant("mask 16", "mask"),
    Variant("full 64", "full", batch=64),
    Variant("full 16 flash", "full", flash=True),
    Variant("full 16 eager", "full", compile="eager"),
    Variant("…", ""),
    Variant("full 16 every row", "full", every_row=True),
    Variant("train 16 every row", "train", every_row=True),
    Variant("full 16 autocast", "full", autocast=True),
    Variant("full 16 tuned", "full", compile="max-autotune-no-cudagraphs"),
    Variant("train 16 flash", "train", flash=True),
    Variant("train 16 tuned", "train", compile="max-autotune-no-cudagraphs"),
    Variant("mask 64", "mask", batch=64),
]


@dataclass
class Setting:
    device: str
    size: str
    side: int
    seconds: float
    keep: float = 0.9
    dropout: dict[str, Any] = field(default_factory=dict)
    ceilings: dict[str, float] = field(default_factory=dict)
    """TFLOP/s of some products, the first one large and square."""
    turn: str | None = None
    """A file that is locked by whoever measures now."""


def made(setting: Setting, size: str | None = None) -> DualCLS:
    torch.manual_seed(0)
    network = Network(
        size=size or setting.size, frames=16, side=setting.side, actions=101, budget={"attributes": 5},
        keep=setting.keep, **setting.dropout,
    )  # fmt: skip
    net = DualCLS(network)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith("attn.qkv.weight"):
                parameter.mul_(2.5)
    return net.to(setting.device)


def clips(count: int, setting: Setting, seed: int = 0) -> Tensor:
    """(B, 3, 16, S, S): smooth noise of several scales, each scale at its own pace."""
    source = torch.Generator().manual_seed(seed)
    total = torch.zeros(1, device=setting.device)
    for times, cells in ((2, 3), (4, 9), (16, 28)):
        noise = torch.randn(count, 3, times, cells, cells, generator=source).to(setting.device)
        total = total + F.interpolate(noise, (16, setting.side, setting.side), mode="trilinear") / 3
    return total.mul_(0.6).sigmoid_()


class HeadsLoss(nn.Module):
    """What training on the heads computes."""

    def __init__(self, net: DualCLS) -> None:
        super().__init__()
        self.net = net

    def forward(self, clip: Tensor, action: Tensor, attributes: Tensor) -> Tensor:
        output = self.net(clip)
        logits = self.net.budget_heads["attributes"](reverse_gradient(output.privacy_features, 0.5))
        return F.cross_entropy(output.action.float(), action) + F.binary_cross_entropy_with_logits(
            logits.float(), attributes
        )


def every_row_attention(self: DualCLSAttention, x: Tensor, live: int) -> Attended:
    """Another way to the same numbers, without dropout: no part of q is cut off, and two rows are computed in vain."""
    first = self.tokens
    q, k, v = self.qkv(x).chunk(3, -1)  # each (B, N, D)
    seen_k, seen_v = (k[:, first:], v[:, first:]) if self.hidden_cls else (k, v)
    out = self.proj(fused(q, seen_k, seen_v, self.heads, 0.0))  # (B, N, D)
    weights = self.cls_weights(q[:, :first], k)  # (B, N, C, H)
    cls = self.proj(cls_reads(weights, v))  # (B, C, D)
    number = torch.arange(out.shape[1], device=x.device).unsqueeze(1)  # (N, 1)
    for place in range(first):
        out = torch.where(number == place, cls[:, place : place + 1], out)
    return Attended(out, attention_map(weights[:, first : first + live]), k[:, first:], v[:, first:])


def compiled(function: Callable[..., Any], variant: Variant, setting: Setting) -> Callable[..., Any]:
    if variant.compile == "eager":
        return function
    if setting.device == "cpu":
        return torch.compile(function, fullgraph=True, dynamic=False, backend="aot_eager")
    if variant.compile != "default":
        return torch.compile(function, fullgraph=True, dynamic=False, mode=variant.compile)
    return torch.compile(function, **compiling(whole_rows=variant.whole_rows, graphs=variant.graphs))


def inference(variant: Variant, setting: Setting) -> tuple[Callable[[], Any], DualCLS, Tensor]:
    net = made(setting).eval()
    clip = clips(variant.batch, setting)
    run = net if variant.autocast else in_bfloat16(net)
    if variant.own_gelu and not variant.autocast:
        for block, exact in zip(run.blocks, deepcopy(net).bfloat16().blocks, strict=True):
            assert isinstance(block, Block)
            assert isinstance(exact, Block)
            block.mlp = exact.mlp

    def full(clip: Tensor) -> tuple[Tensor, ...]:
        output = run(clip)
        heads = run.budget_heads.values()
        return (output.kept, output.scores, output.action, *[head(output.privacy_features) for head in heads])

    def mask(clip: Tensor) -> tuple[Tensor, ...]:
        return run.mask(clip)

    if variant.graphs:  # graphs read clips where they lie, as a reader of videos would fill one place again and again
        torch._dynamo.mark_static_address(clip)
    work = compiled(full if variant.work == "full" else mask, variant, setting)

    def step() -> Any:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        with torch.no_grad(), torch.autocast(setting.device, torch.bfloat16, enabled=variant.autocast):
            return work(clip)

    return step, net, clip


def training(variant: Variant, setting: Setting) -> Callable[[], None]:
    net = made(setting).train()
    loss_of = compiled(HeadsLoss(net), variant, setting)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.05, fused=True)
    clip = clips(variant.batch, setting)
    action = torch.randint(101, (variant.batch,), device=setting.device)
    attributes = torch.randint(2, (variant.batch, 5), device=setting.device).float()
    if variant.graphs:
        torch._dynamo.mark_static_address(clip)

    def step() -> None:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        with torch.autocast(setting.device, torch.bfloat16):
            loss = loss_of(clip, action, attributes)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
