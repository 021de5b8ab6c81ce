"""`anonymizer_speed --cpu`: an exported anonymizer against the same network in PyTorch, on two CPU cores.

ViT-S, one clip of 16 × 112 × 112, r = 0.9. Every contestant has a process of its own, since idle threads of one runtime
spin for a while and would take the cores from the next; they take turns, so that a busy machine is busy for all.

    whole     PyTorch, float32, all 12 blocks          mask     PyTorch, float32, up to the last selection
    by ...    how many times as fast: median over rounds of the ratio of two neighbours' times
    alike     share of tubelets decided as PyTorch decides, eight clips

Weights are a published picture ViT's where `--weights` names them, else random and sharp.
"""

import json
import tempfile
import time
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection
from os import getloadavg
from pathlib import Path
from statistics import median
from typing import Any

import torch
from anonymizer_speed import Setting, clips, made

from vidveil.methods.dual_cls.export import ExportedScorer, export_onnx, export_openvino
from vidveil.methods.dual_cls.train import load_picture_weights
from vidveil.weights.tensors import read_tensors

THREADS = 2
ROUNDS = 12
REPEATS = 4
REST = 0.25  # seconds, in which spinning threads go to sleep


def network_and_clips(weights: Path | None) -> tuple[Any, Any]:
    torch.set_num_threads(THREADS)
    setting = Setting("cpu", "vit_s", 112, 1.0)
    net = made(setting).eval()
    if weights is not None:
        load_picture_weights(net, read_tensors(weights))
    return net, clips(8, setting, seed=1)


def contestant(name: str, path: Path | None, weights: Path | None, line: Connection) -> None:
    """Answers each request with the seconds of REPEATS runs; first of all with its masks."""
    net, several = network_and_clips(weights)
    scorer = net if path is None else ExportedScorer(path, threads=THREADS)
    clip = several[:1]

    def work() -> None:
        if name == "whole":
            with torch.inference_mode():
                net(clip)
        else:
            scorer.decide(clip)

    line.send(scorer.decide(several, None, None).kept.numpy())
    work()
    while line.recv():
        took = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            work()
            took.append(time.perf_counter() - begin)
        line.send(median(took))


def run(out: Path | None, weights: Path | None) -> None:
    net, _ = network_and_clips(weights)
    context, lines, masks = get_context("spawn"), {}, {}
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "whole": None,
            "mask": None,
            "ONNX Runtime": export_onnx(net, Path(folder) / "net.onnx"),
            "OpenVINO": export_openvino(net, Path(folder) / "net.xml"),
            "OpenVINO int8": export_openvino(net, Path(folder) / "small.xml", int8=True),
        }
        for name, path in files.items():
            lines[name], theirs = context.Pipe()
            context.Process(target=contestant, args=(name, path, weights, theirs), daemon=True).start()
            masks[name] = lines[name].recv()
    took: dict[str, list[float]] = {name: [] for name in lines}
    for _ in range(ROUNDS):
        for name, line in lines.items():
            time.sleep(REST)
            line.send(True)
            took[name].append(line.recv())
    for line in lines.values():
        line.send(False)
    report: dict[str, Any] = {"threads": THREADS, "rounds": ROUNDS, "weights": weights and weights.name}
    report["versions"] = {name: version(name) for name in ("torch", "onnxruntime", "openvino")}
    report["load"] = getloadavg()[0]
    print(f"{'':16}{'ms':>8}{'by whole':>10}{'by mask':>9}{'alike':>8}")
    for name, times in took.items():
        by = {other: median(b / a for a, b in zip(times, took[other], strict=True)) for other in ("whole", "mask")}
        alike = float((masks[name] == masks["mask"]).mean())
        report[name] = {"ms": 1000 * median(times), "by_whole": by["whole"], "by_mask": by["mask"], "alike": alike}
        print(f"{name:16}{1000 * median(times):8.1f}{by['whole']:10.2f}{by['mask']:9.2f}{alike:8.4f}")
    if out is not None:
        out.write_text(json.dumps(report, indent=2) + "\n")
