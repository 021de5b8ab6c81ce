"""A trained dual-CLS network as a file that runs without PyTorch's own kernels: ONNX, or OpenVINO's format.

    export_onnx(network, "ward.onnx")             export_openvino(network, "ward.xml")       [and ward.bin]
    scorer = ExportedScorer("ward.xml")           decides as the network does

    in    clip            (B, 3, T, S, S) float32 in [0, 1]
          privacy_weight  () float32: λ
    out   kept            (B, L, h, w) uint8: 1 where a tubelet stays
          scores          (B, L, h, w) float32

The graph ends with the last selection. The share `keep` decides how many tokens there are, so it is fixed when the file
is written; the file records it and the shape of clips. λ is an input.
"""

import hashlib
import json
import math
import tempfile
import warnings
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vidveil.core.bounded import is_file, parse_json, reason, regular
from vidveil.core.errors import InputError, UsageError
from vidveil.core.text import printable
from vidveil.methods.dual_cls.fast import PRIVACY_ONLY, in_batches
from vidveil.methods.dual_cls.model import DualCLS
from vidveil.methods.learned.anonymizer import RAW
from vidveil.methods.masking.masker import Decision, Scorer
from vidveil.models.checkpoint import MOST

OPSET = 17
ABOUT = "vidveil"  # key of the description in the metadata of a file
NETWORK_BYTES = 2 << 30  # the largest single ONNX file


class _Standardize(nn.Module):
    """As the network's own, without its choice of a memory layout, which exporters do not support."""

    def __init__(self, mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.mean, self.deviation = mean, deviation

    def forward(self, clip: Tensor) -> Tensor:
        return (clip - self.mean) / self.deviation


class _Mask(nn.Module):
    def __init__(self, network: DualCLS, keep: float) -> None:
        super().__init__()
        self.network, self.keep = deepcopy(network).eval().float().cpu(), keep
        plain = self.network.standardize
        self.network.standardize = _Standardize(plain.mean, plain.deviation)  # type: ignore[assignment]

    def forward(self, clip: Tensor, privacy_weight: Tensor) -> tuple[Tensor, Tensor]:
        kept, scores = self.network.mask(clip, self.keep, privacy_weight)
        grid = self.network.grid
        return kept.to(torch.uint8).view(-1, *grid), scores.view(-1, *grid)


def export_onnx(
    network: DualCLS,
    path: str | Path,
    keep: float | None = None,
    privacy_weight: float | None = None,
    *,
    batch: int = 1,
) -> Path:
    """Write one file, for batches of one fixed size. `privacy_weight` is the default of the exported network."""
    onnx, path = _needed("onnx"), Path(path)
    about = _about(network, keep, privacy_weight, batch)
    clip = torch.rand(batch, 3, network.frames, network.size, network.size)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
        # Tracing needs no further package; it warns that shapes become constants.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Mask(network, about["keep"]),
            (clip, torch.tensor(about["privacy_weight"])),
            Path(folder) / "traced.onnx",
            dynamo=False,
            opset_version=OPSET,
            input_names=["clip", "privacy_weight"],
            output_names=["kept", "scores"],
        )
        model = onnx.load(Path(folder) / "traced.onnx")
    model.metadata_props.add(key=ABOUT, value=json.dumps(about))
    onnx.save(model, path)
    return path


def export_openvino(
    network: DualCLS,
    path: str | Path,
    keep: float | None = None,
    privacy_weight: float | None = None,
    *,
    batch: int = 1,
    int8: bool = False,
) -> Path:
    """Write NAME.xml and NAME.bin.

    `int8`: matrices are stored in 8 bits, and tokens are rounded to 8 bits at run time. That is the fastest on CPUs
    with such instructions; about one tubelet in fifty is then decided differently.
    """
    openvino, path = _needed("openvino"), Path(path)
    if path.suffix != ".xml":
        raise UsageError(f"a network of OpenVINO is called NAME.xml, not {path.name}")
    with tempfile.TemporaryDirectory() as folder:
        model = openvino.convert_model(export_onnx(network, Path(folder) / "x.onnx", keep, privacy_weight, batch=batch))
        if int8:
            _round_matrices(model)
        model.set_rt_info(json.dumps(_about(network, keep, privacy_weight, batch) | {"int8": int8}), [ABOUT])
        openvino.save_model(model, path, compress_to_fp16=False)
    return path


def _round_matrices(model: Any) -> None:
    """x · Wᵀ → x · (s ⊙ Q)ᵀ, Q in −127 … 127, one s for each output: a pattern on which the runtime also rounds x."""
    import numpy as np

    ops = _needed("openvino.opset13")
    for node in model.get_ordered_ops():
        if node.get_type_name() != "MatMul" or node.input_value(1).get_node().get_type_name() != "Constant":
            continue
        attributes = node.get_attributes()
        matrix = node.input_value(1).get_node().get_data()
        matrix = matrix if attributes["transpose_b"] else matrix.T  # (out, in)
        scale = np.maximum(np.abs(matrix).max(1, keepdims=True), 1e-12) / 127
        rounded = ops.constant(np.round(matrix / scale).astype(np.int8))
        factor = ops.constant(scale.astype(np.float32))
        restored = ops.multiply(ops.convert(rounded, np.float32), factor)
        node.output(0).replace(ops.matmul(node.input_value(0), restored, attributes["transpose_a"], True).output(0))
    model.validate_nodes_and_infer_types()


class ExportedScorer(Scorer):
    """Decides as the network that was exported. `threads`: 0 leaves the choice to the runtime.

    `weights` is for manifests: the file's name, without folders, and the beginning of its hash.
    """

    own: dict[str, float]

    def __init__(self, path: str | Path, *, threads: int = 0) -> None:
        path = Path(path)
        if not is_file(path):
            raise InputError(f"{path} is not there")
        opened = {".onnx": _onnxruntime, ".xml": _openvino}.get(path.suffix)
        if opened is None:
            raise InputError(f"{path} is no exported network: it should end in .onnx or .xml")
        try:
            regular(path, NETWORK_BYTES)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} {reason(error)}") from error
        about, self._run = opened(path, threads)
        if about is None:
            raise InputError(f"{path} was not written by vidveil: it does not say what clips it takes")
        self.weights = f"{path.name} {_hash(path)[:16]}"
        try:
            self.about: dict[str, Any] = parse_json(about)
            weight = float(self.about["privacy_weight"])
            self.own = {
                "keep": float(self.about["keep"]),
                "privacy_weight": math.inf if weight >= PRIVACY_ONLY else weight,
            }
            self.frames, self.size = int(self.about["frames"]), int(self.about["size"])
            self.stride, self.preprocess = int(self.about.get("stride", 2)), str(self.about.get("after", RAW))
            self.limits = tuple(printable(limit, 400) for limit in self.about.get("limits", ()))
            times, height, width = self.about["tubelet"]
            self.tubelet = (int(times), int(height), int(width))
            numbers = (self.frames, self.size, self.stride, *self.tubelet, int(self.about["batch"]))
            if not all(0 < number <= MOST for number in numbers):
                raise ValueError("a number in it is too small or too large")
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise InputError(f"{path} does not say what clips it takes: {printable(error)}") from error

    def decide(self, clips: Tensor, keep: float | None = None, privacy_weight: float | None = None) -> Decision:
        """Which tubelets stay: (B, L, h, w)."""
        fixed = self.own["keep"]
        if keep is not None and abs(keep - fixed) > 1e-9:
            raise UsageError(f"this network was exported with keep {fixed:g}: export it again for keep {keep:g}")
        weight = self.own["privacy_weight"] if privacy_weight is None else privacy_weight

        def run(part: Tensor) -> tuple[Tensor, Tensor]:
            kept, scores = self._run(part.float().cpu().numpy(), min(weight, PRIVACY_ONLY))
            return torch.from_numpy(kept).bool(), torch.from_numpy(scores)

        return Decision(*in_batches(clips, self.about["batch"], run))


_Run = Callable[[Any, float], tuple[Any, Any]]


def _onnxruntime(path: Path, threads: int) -> tuple[str | None, _Run]:
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # decoder and encoder need the cores, too
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(clip: Any, weight: float) -> tuple[Any, Any]:
        kept, scores = session.run(None, {"clip": clip, "privacy_weight": np.array(weight, np.float32)})
        return kept, scores

    return session.get_modelmeta().custom_metadata_map.get(ABOUT), run


def _openvino(path: Path, threads: int) -> tuple[str | None, _Run]:
    import numpy as np

    openvino = _needed("openvino")
    core = openvino.Core()
    model = core.read_model(path)
    about = model.get_rt_info([ABOUT]).astype(str) if model.has_rt_info([ABOUT]) else None
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 128,
        "INFERENCE_PRECISION_HINT": "f32",  # else bfloat16 where a CPU has it, and masks would differ by machine
    }
    settings |= {"INFERENCE_NUM_THREADS": threads} if threads else {}
    network = core.compile_model(model, "CPU", settings)

    def run(clip: Any, weight: float) -> tuple[Any, Any]:
        out = network({"clip": clip, "privacy_weight": np.array(weight, np.float32)})
        return out["kept"].copy(), out["scores"].copy()  # the runtime reuses its memory

    return about, run


def _about(network: DualCLS, keep: float | None, privacy_weight: float | None, batch: int) -> dict[str, Any]:
    settings = network.network
    return {
        "keep": settings.keep if keep is None else keep,
        "privacy_weight": min(settings.privacy_weight if privacy_weight is None else privacy_weight, PRIVACY_ONLY),
        "batch": batch,
        "frames": network.frames,
        "size": network.size,
        "tubelet": list(network.tubelet),
        "stride": network.stride,
        "after": network.preprocess,
        "limits": list(network.limits),
        "network": network.about(),
    }


def _hash(path: Path) -> str:
    """sha256 of a file; for an .xml also of the .bin next to it, which holds the numbers."""
    digest = hashlib.sha256(path.read_bytes())
    if path.suffix == ".xml":
        digest.update(path.with_suffix(".bin").read_bytes())
    return digest.hexdigest()


def _needed(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise UsageError(f"exported networks need {name}: pip install {name}") from None
