"""Speed of the dual-CLS anonymizer on one accelerator: clips a second, share of the chip's ceiling, memory, agreement.

    python benchmarks/anonymizer_speed.py --out speed.json
    python benchmarks/anonymizer_speed.py --variants "full 16,train 16" --profile
    python benchmarks/anonymizer_speed.py --weights vits14.safetensors           agreement with published weights, too
    python benchmarks/anonymizer_speed.py --quick                                its logic, on any CPU
    python benchmarks/anonymizer_speed.py --cpu                                  exported networks against PyTorch

ViT-B, clips of 16 × 224 × 224, r = 0.9, fusion on, weights as at the start of training but sharper (so that maps are
not flat); clips are float32 on the device, smooth noise that moves.

    full     12 blocks, both heads, mask          mask    up to the last selection: what a masker needs
    train    forward, CE + BCE through a gradient reversal, backward, fused AdamW; no dropout, or --paper-dropout

    ms          median over steps of the time between two CUDA events, launches included
    share       counted operations (`dual_cls_flops`) a second by those of a large square bf16 product in this run
    GiB         peak of allocated memory, the clips included
    alike       share of tubelets decided as the same network decides in float32, one mask of 16 clips each
    kernel ms   of all kernels of a step together, in the file: what is missing to `ms` is waiting for launches

Compiling takes a while, for training a longer one. Several processes may compile at the same time and measure one
after the other, `--turn FILE`; what is to be published is measured alone.
"""

import argparse
import fcntl
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
try:
    import cv2  # noqa: F401
except ModuleNotFoundError:  # no picture is read here
    sys.modules["cv2"] = ModuleType("cv2")

import torch  # noqa: E402
from anonymizer_work import (  # noqa: E402
    FLASH,
    OURS,
    VARIANTS,
    Setting,
    Variant,
    clips,
    every_row_attention,
    inference,
    made,
    training,
)  # fmt: skip
from dual_cls_flops import forward_flops, tokens_by_block, training_flops  # noqa: E402

from vidveil.methods.dual_cls.attention import DualCLSAttention  # noqa: E402
from vidveil.methods.dual_cls.fast import in_bfloat16  # noqa: E402
from vidveil.methods.dual_cls.train import load_picture_weights  # noqa: E402
from vidveil.models.layers import fused_attention  # noqa: E402

PLAIN = DualCLSAttention.forward


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


def measure(variant: Variant, setting: Setting, profile: bool) -> dict[str, Any]:
    torch.compiler.reset()
    fused_attention.FASTEST[:] = FLASH if variant.flash else OURS
    DualCLSAttention.forward = every_row_attention if variant.every_row else PLAIN  # type: ignore[method-assign]
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
    with in_turn(setting):
        if not setting.ceilings:
            setting.ceilings.update(ceilings(setting))
        if setting.device != "cpu":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        took = steps_ms(step, setting)
        if setting.device != "cpu":
            result["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
        result |= {"ms": median(took), "ms_10_90": [sorted(took)[len(took) // 10], sorted(took)[-1 - len(took) // 10]]}
        result |= {
            "steps": len(took),
            "clips_per_s": 1000 * variant.batch / median(took),
            "gflop_per_clip": flops / 1e9,
        }
        result["tflop_per_s"] = flops * result["clips_per_s"] / 1e12
        result["share_of_ceiling"] = result["tflop_per_s"] / next(iter(setting.ceilings.values()))
        if profile and setting.device != "cpu":
            result |= kernels(step)
        if net is not None:
            kept = step()[0].clone()
            DualCLSAttention.forward = PLAIN  # type: ignore[method-assign]
            with torch.no_grad():
                right = torch.cat([net.mask(clip[start : start + 8])[0] for start in range(0, len(clip), 8)])
            result["alike"] = float((kept == right).float().mean())
    return result


@contextmanager
def in_turn(setting: Setting) -> Iterator[None]:
    """Wait until no other process measures."""
    if setting.turn is None:
        yield
        return
    with Path(setting.turn).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def kernels(step: Callable[[], object]) -> dict[str, Any]:
    """Milliseconds of all kernels of a step, and those kernels that took longest."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    with profiled(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(3):
            step()
        torch.cuda.synchronize()
    rows = sorted(profiler.key_averages(), key=lambda row: -row.self_device_time_total)
    longest = [
        {"kernel": row.key[:110], "us_per_step": row.self_device_time_total / 3, "calls": row.count / 3}
        for row in rows[:40]
    ]
    return {"kernel_ms": sum(row.self_device_time_total for row in rows) / 3000, "kernels": longest}


def agreement_with_published(path: Path, setting: Setting) -> dict[str, float]:
    """bf16 against fp32 of a ViT-S that starts from a picture ViT's weights, by keep rate."""
    from vidveil.weights.tensors import read_tensors

    net = made(setting, "vit_s").eval()
    load_picture_weights(net, read_tensors(path))
    fast, clip = in_bfloat16(net), clips(16, setting, seed=1)
    found = {}
    with torch.no_grad():
        for keep in (0.9, 0.7, 0.5):
            right, ours = net.mask(clip, keep)[0], fast.mask(clip, keep)[0]
            found[f"keep {keep}"] = float((right == ours).float().mean())
    return found


# ---- the run -------------------------------------------------------------------------------------------------------


def table(results: list[dict[str, Any]]) -> str:
    lines = [f"{'':24}{'ms':>8}{'clips/s':>9}{'TFLOP/s':>9}{'share':>7}{'GiB':>7}{'alike':>8}{'compile':>9}"]
    for row in results:
        if "error" in row:
            lines.append(f"{row['name']:24}{row['error'][:90]}")
            continue
        gib, alike = row.get("peak_gib", float("nan")), row.get("alike", float("nan"))
        lines.append(
            f"{row['name']:24}{row['ms']:8.2f}{row['clips_per_s']:9.0f}{row['tflop_per_s']:9.1f}"
            f"{row['share_of_ceiling']:7.3f}{gib:7.2f}{alike:8.4f}{row['compile_s']:8.0f}s"
        )
    return "\n".join(lines)


def chosen(names: str) -> list[Variant]:
    if names == "all":
        return VARIANTS[: next(place for place, variant in enumerate(VARIANTS) if not variant.work)]
    known = {variant.name: variant for variant in VARIANTS if variant.work}
    strange = [name for name in names.split(",") if name not in known]
    if strange:
        raise SystemExit(f"no variant is called {strange[0]!r}; there are: {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--variants", default="all", help="all, or names from the table, with commas")
    parser.add_argument("--seconds-per-variant", type=float, default=2.0)
    parser.add_argument("--budget", type=float, default=170.0, help="no variant is begun after so many seconds")
    parser.add_argument("--paper-dropout", action="store_true", help="dropout 0.2, attention 0.1, drop path 0.2")
    parser.add_argument("--profile", action="store_true", help="the longest kernels of every variant")
    parser.add_argument("--turn", help="a file by which processes that run at the same time take turns")
    parser.add_argument("--weights", type=Path, help="a picture ViT-S, for agreement with real maps")
    parser.add_argument("--quick", action="store_true", help="small, and on the CPU")
    parser.add_argument("--cpu", action="store_true", help="exported networks on two CPU cores, instead")
    args = parser.parse_args()
    if args.cpu:
        from exported_speed import run

        run(args.out, args.weights)
        return
    if not args.quick and not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device: --quick tries the logic, --cpu measures exported networks")
    begin = time.perf_counter()
    setting = Setting("cuda", "vit_b", 224, args.seconds_per_variant)
    if args.quick:
        setting = Setting("cpu", "vit_ti", 32, 0.1)
    setting.turn = args.turn
    if args.paper_dropout:
        setting.dropout = {"dropout": 0.2, "attention_dropout": 0.1, "drop_path": 0.2}
    name = torch.cuda.get_device_name() if setting.device == "cuda" else "CPU"
    net = made(setting)
    report: dict[str, Any] = {
        "machine": name, "torch": torch.__version__, "setting": asdict(setting),
        "tokens_by_block": tokens_by_block(net, setting.keep),
        "gflop_per_clip": {
            "full": forward_flops(net, setting.keep) / 1e9, "train": training_flops(net, setting.keep) / 1e9,
            "mask": forward_flops(net, setting.keep, mask_only=True) / 1e9,
        },
        "ceiling_tflop_per_s": setting.ceilings, "variants": [],
    }  # fmt: skip
    say(f"{name}, torch {torch.__version__}")
    for place, variant in enumerate(chosen(args.variants)):
        if time.perf_counter() - begin > args.budget:
            say(f"no time left for {variant.name}")
            continue
        variant = variant if not args.quick else replace(variant, batch=2)
        try:
            result = measure(variant, setting, args.profile or place < 2)
        except Exception as error:  # one that does not run here must not cost the others
            traceback.print_exc()
            result = asdict(variant) | {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        report["variants"].append(result)
        say(table([result]))
        save(report, args.out)
        if setting.device == "cuda":
            torch.cuda.empty_cache()
    if args.weights:
        report["alike_published_vit_s"] = agreement_with_published(args.weights, setting)
        say(f"bf16 and fp32 alike, published ViT-S: {report['alike_published_vit_s']}")
        save(report, args.out)
    for result in report["variants"]:
        if "kernels" in result:
            say(f"{result['name']}: {result['kernel_ms']:.2f} ms of kernels")
        for row in result.get("kernels", [])[:24]:
            say(f"{result['name']:12.12} {row['us_per_step']:9.1f} us {row['calls']:6.1f} x {row['kernel']}")
    say(f"GFLOP a clip {report['gflop_per_clip']}; ceilings {report['ceiling_tflop_per_s']}")
    say(table(report["variants"]))


def say(line: str) -> None:
    print(line, flush=True)


def save(report: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        path.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
