"""Convert weights in other formats to safetensors files with torch's names and axes.

    i3d        a pickle of flax: arrays only, read by `pickled_arrays`            axes t h w in out → out in t h w
    resnet50   TensorFlow.js: a JSON that lists names and shapes, and raw bytes   axes h w in out → out in h w
    vits14     ONNX, read by `onnx_arrays`

Kernels and matrices are kept in half precision, vectors in single, since the variances of the first layer of a network
on 0…255 exceed the range of half precision. The result is verified by `digest`, over the tensors in the order of their
names: unlike the tensors, the bytes of a safetensors file may depend on the version of its library.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vidveil.core.bounded import open_regular, parse_json

Files = Mapping[str, bytes]
"""The folder of the weights in their package: name → content."""
Arrays = dict[str, Any]
HEADER_LIMIT = 1 << 24


def converted(name: str, files: Files) -> bytes:
    """The content of the safetensors file."""
    import numpy as np
    from safetensors.numpy import save

    return save(
        {
            key: np.ascontiguousarray(array, dtype=np.float16 if array.ndim > 1 else np.float32)
            for key, array in CONVERSIONS[name](files).items()
        }
    )


def digest(path: Path) -> str:
    """sha256 over name, type, shape and bytes of every tensor. ValueError if it is no safetensors file."""
    with open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        if length > HEADER_LIMIT:
            raise ValueError("no safetensors file")
        header, body = parse_json(file.read(length).decode("utf-8")), memoryview(file.read())
    checksum = hashlib.sha256()
    try:
        for name in sorted(header.keys() - {"__metadata__"}):
            entry = header[name]
            start, end = entry["data_offsets"]
            checksum.update(f"{name} {entry['dtype']} {entry['shape']}\n".encode())
            checksum.update(body[start:end])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("no safetensors file") from error
    return checksum.hexdigest()


def _i3d(files: Files) -> Arrays:
    import numpy as np

    from vidveil.core.pickled_arrays import load_arrays

    tree = load_arrays(files["i3d-kinetics-400.ckpt"])
    found: Arrays = {}
    for name, array in _leaves(tree["params"]):
        block, _, part = name.rpartition(".")
        if part == "kernel":
            found[block.replace("Conv_0", "conv3d.weight")] = array.transpose(4, 3, 0, 1, 2)
        elif block.endswith("Conv_0"):
            found[block.replace("Conv_0", "conv3d.bias")] = array
        else:
            shift = array.ravel()
            found[block.replace("BatchNorm_0", "bn.bias")] = shift
            found[block.replace("BatchNorm_0", "bn.weight")] = np.ones_like(shift)  # its batch norms have no scale
    for name, array in _leaves(tree["batch_stats"]):
        block, _, part = name.rpartition(".")
        found[block.replace("BatchNorm_0", {"mean": "bn.running_mean", "var": "bn.running_var"}[part])] = array.ravel()
    return found


def _leaves(node: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        name = above + key.replace("/", ".")
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


NORM = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}


def _resnet50(files: Files) -> Arrays:
    stored = _tensorflow_js(files)
    found: Arrays = {}

    def take(theirs_conv: str, theirs_norm: str, conv: str, norm: str) -> None:
        found[f"{conv}.weight"] = stored[f"{theirs_conv}/kernel"].transpose(3, 2, 0, 1)
        found[f"{conv}.bias"] = stored[f"{theirs_conv}/bias"]
        for theirs, ours in NORM.items():
            found[f"{norm}.{ours}"] = stored[f"{theirs_norm}/{theirs}"]

    take("conv1", "bn_conv1", "conv1", "bn1")
    for layer, blocks in enumerate((3, 4, 6, 3), 1):
        for block in range(blocks):
            there, here = f"{layer + 1}{'abcdef'[block]}_branch", f"layer{layer}.{block}"
            for i, branch in enumerate("abc", 1):
                take(f"res{there}2{branch}", f"bn{there}2{branch}", f"{here}.conv{i}", f"{here}.bn{i}")
            if block == 0:
                take(f"res{there}1", f"bn{there}1", f"{here}.downsample.0", f"{here}.downsample.1")
    found["fc.weight"], found["fc.bias"] = stored["fc1000/kernel"].T, stored["fc1000/bias"]
    return found


def _tensorflow_js(files: Files) -> Arrays:
    """Every array of a model: each group of the manifest is one sequence of bytes, split into files."""
    import numpy as np

    found: Arrays = {}
    for group in parse_json(files["model.json"].decode("utf-8"))["weightsManifest"]:
        data, at = b"".join(files[path] for path in group["paths"]), 0
        for entry in group["weights"]:
            count = int(np.prod(entry["shape"]))
            found[entry["name"]] = np.frombuffer(data, "<f4", count, at).reshape(entry["shape"])
            at += 4 * count
    return found


def _vits14(files: Files) -> Arrays:
    """The backbone of a saliency network. The exporter kept the names of biases, but not of most matrices."""
    import numpy as np

    from vidveil.weights.onnx_arrays import matrices_by_bias, read_graph

    stored, nodes = read_graph(files["vit_s_focus.onnx"])
    stored |= matrices_by_bias(stored, nodes)
    backbone = {name.removeprefix("backbone."): array for name, array in stored.items()}
    token_place = next(v for k, v in stored.items() if v.shape == (1, 1, 384) and not k.startswith("backbone."))
    places = next(v for v in stored.values() if v.shape == (1, 37 * 37, 384))
    found = {
        "cls_token": backbone["embeddings.cls_token"],
        "pos_embed": np.concatenate([token_place, places], 1),
        "patch_embed.proj.weight": backbone["embeddings.patch_embeddings.projection.weight"],
        "patch_embed.proj.bias": backbone["embeddings.patch_embeddings.projection.bias"],
        "norm.weight": backbone["layernorm.weight"],
        "norm.bias": backbone["layernorm.bias"],
    }
    for i in range(12):
        there, here = f"encoder.layer.{i}", f"blocks.{i}"
        scales = [backbone[f"{there}.layer_scale{j}.lambda1"] for j in (1, 2)]
        for part in ("weight", "bias"):
            # y = λ (W x + b): the scale of each output goes into its row of W and into b
            first, second = (scale[:, None] if part == "weight" else scale for scale in scales)
            qkv = [backbone[f"{there}.attention.attention.{which}.{part}"] for which in ("query", "key", "value")]
            found[f"{here}.norm1.{part}"] = backbone[f"{there}.norm1.{part}"]
            found[f"{here}.attn.qkv.{part}"] = np.concatenate(qkv)
            found[f"{here}.attn.proj.{part}"] = first * backbone[f"{there}.attention.output.dense.{part}"]
            found[f"{here}.norm2.{part}"] = backbone[f"{there}.norm2.{part}"]
            found[f"{here}.mlp.fc1.{part}"] = backbone[f"{there}.mlp.fc1.{part}"]
            found[f"{here}.mlp.fc2.{part}"] = second * backbone[f"{there}.mlp.fc2.{part}"]
    return found


CONVERSIONS: dict[str, Callable[[Files], Arrays]] = {"i3d": _i3d, "resnet50": _resnet50, "vits14": _vits14}
