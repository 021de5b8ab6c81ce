"""Speed of the dual-CLS anonymizer on one accelerator: clips per second, share of the ceiling, memory, agreement.

    python benchmarks/anonymizer_speed.py --out speed.json
    python benchmarks/anonymizer_speed.py --variants "full 16 rows,mask 16 rows graphs"
    python benchmarks/anonymizer_speed.py --quick                                its logic, on any CPU
    python benchmarks/anonymizer_speed.py --cpu                                  exported networks against PyTorch

ViT-B, clips of 16 × 224 × 224, r = 0.9, fusion on, weights as at the start of training but sharper (so that maps are
not flat); clips are float32 on the device, smooth noise that moves.

    full     12 blocks, both heads, mask          mask    up to the last selection: what a masker needs
    train    forward, CE + BCE through a gradient reversal, backward, fused AdamW; no dropout

    ms          median over steps of the time between two CUDA events, launches included
    share       counted operations (`dual_cls_flops`) per second by those of a large square bf16 product in this run
    GiB         peak of allocated memory, the clips included
    alike       share of tubelets selected as the same network selects in float32, one mask of 16 clips each

Weights are in bfloat16; in training they are in float32, and products in bfloat16. Compiling takes a while.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
from dual_cls_flops import forward_flops, tokens_by_block, training_flops
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.methods.dual_cls.fast import compiling, in_bfloat16
from vidveil.methods.dual_cls.model import DualCLS, Network
from vidveil.models.layers.gradient_reversal import reverse_gradient


@dataclass(frozen=True)
class Variant:
    name: str
    work: str
    """full, mask or train."""
    batch: int = 16
    graphs: bool = False
    """All kernels are launched at once, as CUDA graphs."""


VARIANTS = [  # `rows`: the compiler sums over a row of channels in one piece
    Variant("full 16 rows", "full"),
    Variant("train 16 rows", "train"),
    Variant("full 16 rows graphs", "full", graphs=True),
    Variant("train 16 rows graphs", "train", graphs=True),
    Variant("mask 16 rows graphs", "mask", graphs=True),
]


@dataclass
class Setting:
    device: str
    size: str
    side: int
    seconds: float
    keep: float = 0.9
    ceilings: dict[str, float] = field(default_factory=dict)
    """TFLOP/s of some products, the first one large and square."""


# ---- work ----------------------------------------------------------------------------------------------------------


def made(setting: Setting) -> DualCLS:
    torch.manual_seed(0)
    network = Network(
        size=setting.size, frames=16, side=setting.side, actions=101, budget={"attributes": 5}, keep=setting.keep
    )
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


def compiled(function: Callable[..., Any], variant: Variant, setting: Setting) -> Callable[..., Any]:
    if setting.device == "cpu":
        return torch.compile(function, fullgraph=True, dynamic=False, backend="aot_eager")
    return torch.compile(function, **compiling(whole_rows=True, graphs=variant.graphs))


def inference(variant: Variant, setting: Setting) -> tuple[Callable[[], Any], DualCLS, Tensor]:
    net = made(setting).eval()
    clip = clips(variant.batch, setting)
    fast = in_bfloat16(net)

    def full(clip: Tensor) -> tuple[Tensor, ...]:
        output = fast(clip)
        heads = fast.budget_heads.values()
        return (output.kept, output.scores, output.action, *[head(output.privacy_features) for head in heads])

    def mask(clip: Tensor) -> tuple[Tensor, ...]:
        return fast.mask(clip)

    if variant.graphs:  # graphs read clips where they lie, as a reader of videos would fill one place again and again
        torch._dynamo.mark_static_address(clip)
    work = compiled(full if variant.work == "full" else mask, variant, setting)

    def step() -> Any:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        with torch.no_grad():
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


# ---- measuring -----------------------------------------------------------------------------------------------------


def steps_ms(step: Callable[[], object], setting: Setting, warm: int = 3) -> list[float]:
    """Milliseconds of each step, for about `seconds`."""
    for _ in range(warm):
        step()
    if setting.device == "cpu":
        begin = time.perf_counter()
        step()
        return [1000 * (time.perf_counter() - begin)]
    torch.cuda.synchronize()
    begin = time.perf_counter()
    step()
    torch.cuda.synchronize()
    count = min(max(int(setting.seconds / (time.perf_counter() - begin)), 5), 2000)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]  # type: ignore[no-untyped-call]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return [first.elapsed_time(second) for first, second in pairwise(marks)]


def ceilings(setting: Setting) -> dict[str, float]:
    """TFLOP/s of bf16 products: a large square, and the MLP's two at batch 16."""
    shapes = {"square 8192": (8192, 8192, 8192), "fc1": (16 * 1570, 768, 3072), "fc2": (16 * 1570, 3072, 768)}
    if setting.device == "cpu":
        shapes = {"square 256": (256, 256, 256)}
    found = {}
    for name, (rows, inner, columns) in shapes.items():
        left, right = (
            torch.randn(shape, device=setting.device, dtype=torch.bfloat16)
            for shape in ((rows, inner), (inner, columns))
        )
        out = torch.empty(rows, columns, device=setting.device, dtype=torch.bfloat16)
        took = median(steps_ms(lambda a=left, b=right, c=out: torch.mm(a, b, out=c), setting, warm=10))  # type: ignore[misc]
        found[name] = 2e-9 * rows * inner * columns / took
    return found


def measure(variant: Variant, setting: Setting) -> dict[str, Any]:
    torch.compiler.reset()
    begin = time.perf_counter()
    result: dict[str, Any] = asdict(variant)
    net = None
    if variant.work == "train":
        step: Callable[[], Any] = training(variant, setting)
        flops = training_flops(made(setting), setting.keep)
    else:
        step, net, clip = inference(variant, setting)
        flops = forward_flops(net, setting.keep, mask_only=variant.work == "mask")
    step()
    result["compile_s"] = round(time.perf_counter() - begin, 1)
    if setting.device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    took = steps_ms(step, setting)
    if setting.device != "cpu":
        result["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    result |= {"ms": median(took), "ms_10_90": [sorted(took)[len(took) // 10], sorted(took)[-1 - len(took) // 10]]}
    result |= {"steps": len(took), "clips_per_s": 1000 * variant.batch / median(took), "gflop_per_clip": flops / 1e9}
    result["tflop_per_s"] = flops * result["clips_per_s"] / 1e12
    result["share_of_ceiling"] = result["tflop_per_s"] / next(iter(setting.ceilings.values()))
    if net is not None:
        kept = step()[0].clone()
        with torch.no_grad():
            right = torch.cat([net.mask(clip[start : start + 8])[0] for start in range(0, len(clip), 8)])
        result["alike"] = float((kept == right).float().mean())
    return result


def line(row: dict[str, Any]) -> str:
    gib, alike = row.get("peak_gib", float("nan")), row.get("alike", float("nan"))
    return (
        f"{row['name']:24}{row['ms']:8.2f} ms{row['clips_per_s']:7.0f} clips/s{row['tflop_per_s']:7.1f} TFLOP/s"
        f"{row['share_of_ceiling']:7.3f} of the ceiling{gib:7.2f} GiB{alike:8.4f} alike"
    )


def chosen(names: str) -> list[Variant]:
    known = {variant.name: variant for variant in VARIANTS}
    strange = [name for name in names.split(",") if names and name not in known]
    if strange:
        raise SystemExit(f"no variant is called {strange[0]!r}; there are: {', '.join(known)}")
    return [known[name] for name in names.split(",")] if names else VARIANTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--variants", default="", help="names, with commas (all)")
    parser.add_argument("--seconds-per-variant", type=float, default=2.0)
    parser.add_argument("--weights", type=Path, help="with --cpu: a picture ViT-S")
    parser.add_argument("--quick", action="store_true", help="small, and on the CPU")
    parser.add_argument("--cpu", action="store_true", help="exported networks on two CPU cores, instead")
    args = parser.parse_args()
    if args.cpu:
        from exported_speed import run

        run(args.out, args.weights)
        return
    if not args.quick and not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device: --quick tries the logic, --cpu measures exported networks")
    setting = Setting("cuda", "vit_b", 224, args.seconds_per_variant)
    if args.quick:
        setting = Setting("cpu", "vit_ti", 32, 0.1)
    setting.ceilings = ceilings(setting)
    net = made(setting)
    report: dict[str, Any] = {
        "machine": torch.cuda.get_device_name() if setting.device == "cuda" else "CPU",
        "torch": torch.__version__, "setting": asdict(setting),
        "tokens_by_block": tokens_by_block(net, setting.keep),
        "gflop_per_clip": {
            "full": forward_flops(net, setting.keep) / 1e9, "train": training_flops(net, setting.keep) / 1e9,
            "mask": forward_flops(net, setting.keep, mask_only=True) / 1e9,
        },
        "ceiling_tflop_per_s": setting.ceilings, "variants": [],
    }  # fmt: skip
    for variant in chosen(args.variants):
        result = measure(replace(variant, batch=2) if args.quick else variant, setting)
        report["variants"].append(result)
        print(line(result), flush=True)
        if args.out is not None:
            args.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
