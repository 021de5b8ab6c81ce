"""How long an adapter takes to learn, and how fast it goes over a store, next to what the machine can do.

    python benchmarks/adapter_speed.py                      results/adapter_speed.json
    python benchmarks/adapter_speed.py --device cuda

Features are noise of 6,766 videos (as many as HMDB51 has), 768 numbers each. Learning: the default adapter and budget,
100 epochs, in batches of 512. Going over a store: vectors a second, from file to file and in memory, and the work of
the adapter's matrices a second as a share of what a product of 4,096 × 768 × 768 reaches in the same run (float32).
Each is the best of several rounds.
"""

import argparse
import csv
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from vidveil.app.feature_stores import anonymize_features
from vidveil.core.machine import describe
from vidveil.data.features.labels import FILE
from vidveil.data.store.features import fill
from vidveil.methods.feature_adapter import changing, checkpoint_of
from vidveil.methods.splavu.model import AAM, rebuilt
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.methods.splavu.run import run

HERE = Path(__file__).parent
VIDEOS, WIDTH, CLASSES, ROUNDS = 6766, 768, 51, 5
PRODUCT = 4096
"""Rows of the product that an adapter is held against."""
VECTORS, PASSES = 200_000, 3
"""Of the store that is gone over, and how often it is."""


def store(folder: Path, videos: int, static: int) -> None:
    rng = np.random.default_rng(0)
    encoder = {"spec": "noise", "width": WIDTH, "frames": 16, "size": 224, "fingerprint": "0" * 64}
    ids = [f"video{i}" for i in range(videos)]

    def make(rows: range) -> list[dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]:
        return [
            {
                kind: rng.standard_normal((count, WIDTH), np.float32)
                for kind, count in (("clips", 1), ("static", static))
            }
            for _ in rows
        ]

    fill(folder, {"encoder": encoder, "clips": {"stride": 1, "static": static}}, ids, make, videos=8192)
    with (folder / FILE).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "split", "action"])
        writer.writerows([name, "val" if i < CLASSES else "train", i % CLASSES] for i, name in enumerate(ids))


def learned(folder: Path, device: str) -> tuple[float, float, float]:
    """Seconds of a training, reading the store included; of one of one epoch; and of the first one of all, which has to
    load libraries and to wake an accelerator."""
    recipe = SplavuRecipe(
        name="speed", data=f"features:{folder}", epochs=100, batch=512, lr=1e-4, validate_every=100, device=device,  # type: ignore[arg-type]
    )  # fmt: skip
    seconds = []
    for one in (replace(recipe, name="first", epochs=1), replace(recipe, name="one", epochs=1), recipe):
        began = time.monotonic()
        run(one)
        seconds.append(time.monotonic() - began)
    return seconds[2], seconds[1], seconds[0]


def best(work: Callable[[], object], device: str) -> float:
    """Seconds of the fastest of several rounds."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def flops(adapter: AAM) -> int:
    """Of the matrices alone, as they are multiplied, a vector."""
    width, channels, layers = adapter.shape.width, adapter.shape.channels, adapter.shape.layers
    few = 2 * 2 * width * adapter.out.shape[0] if adapter.out is not None else 2 * width * width
    return bool(adapter.shape.erase) * few + layers * (2 * width * 3 * channels + 2 * channels * width)


@torch.inference_mode()
def rates(adapter_of: str, folder: Path, device: str) -> dict[str, float]:
    checkpoint = checkpoint_of(adapter_of)
    adapter = rebuilt(checkpoint.about["network"], checkpoint.tensors()).to(device)
    vectors = np.random.default_rng(0).standard_normal((4 * PRODUCT, WIDTH), np.float32)
    matrix, some = torch.randn(WIDTH, WIDTH, device=device), torch.randn(PRODUCT, WIDTH, device=device)
    change = changing(adapter, device)
    product = best(lambda: some @ matrix, device)
    through = best(lambda: change(vectors), device) / len(vectors)
    target = folder.with_name("after")
    seconds = []
    for _ in range(PASSES):
        shutil.rmtree(target, ignore_errors=True)
        began = time.perf_counter()
        anonymize_features(folder, adapter_of, target, device=device)
        seconds.append(time.perf_counter() - began)
    whole = min(seconds) / VECTORS
    product = min(product, best(lambda: some @ matrix, device))  # a machine is not as fast at all times
    work = flops(adapter)
    ceiling = 2 * WIDTH * WIDTH * PRODUCT / product
    return {
        "vectors_a_second_in_memory": round(1 / through),
        "vectors_a_second_from_store_to_store": round(1 / whole),
        "flops_a_vector": work,
        "matrix_product_gflops": round(ceiling / 1e9, 1),
        "share_of_matrix_product_in_memory": round(work / through / ceiling, 3),
        "share_of_matrix_product_from_store_to_store": round(work / whole / ceiling, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("-o", type=Path, default=HERE / "results" / "adapter_speed.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["VIDVEIL_RUNS"] = f"{scratch}/runs"
        learning, going = Path(scratch) / "learning", Path(scratch) / "going"
        store(learning, VIDEOS, static=2)
        seconds, one, first = learned(learning, options.device)
        store(going, VECTORS, static=0)
        found = {
            "machine": describe(options.device),
            "features": [VIDEOS, WIDTH],
            "epochs": 100,
            "seconds_to_learn": round(seconds, 1),
            "seconds_of_one_epoch": round(one, 2),
            "seconds_of_a_first_epoch": round(first, 1),
            **rates("splavu:speed", going, options.device),
        }
    options.o.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
