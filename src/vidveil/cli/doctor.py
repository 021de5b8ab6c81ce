"""`vidveil doctor`: is everything here that vidveil needs, and does it work?"""

import importlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import av
import typer

from vidveil.app.demo import draw_video
from vidveil.app.jobs import anonymize
from vidveil.app.manifest import versions
from vidveil.cli.reported import reported
from vidveil.core.errors import WeightsError
from vidveil.core.progress import phase
from vidveil.weights import WEIGHTS, state

app = typer.Typer(add_completion=False, rich_markup_mode=None)

PRODUCT = "import torch; torch.nn.Linear(64, 64).bfloat16()(torch.ones(64, 64).bfloat16())"
AMX_OFF = ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")


@app.command()
@reported("doctor")
def doctor() -> None:
    """Check this installation: libraries, codecs, devices, and one small video from end to end.

    \b
    vidveil doctor          exit code 0 if a video can be anonymized here
    """
    for name, version in versions().items():
        _line(name, version)
    _line("platform", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores")
    _line("torch", _torch())
    with phase("bfloat16"):
        works = _bfloat16()
    _line("bfloat16", works)
    _line("onnxruntime", _onnxruntime())
    encoder = "libx264" in av.codecs_available
    _line("H.264 encoder", "libx264" if encoder else "MISSING: pip install --force-reinstall av")
    decoders = ("h264", "hevc", "vp9", "av1", "mpeg4", "mjpeg")
    _line("decoders", ", ".join(f"{name}{'' if _decodes(name) else ' MISSING'}" for name in decoders))
    _line("weights", _weights())
    with phase("end to end"):
        problem = _try_it()
    _line("end to end", problem or "works")
    sys.exit(1 if problem or not encoder else 0)


def _line(name: str, value: str) -> None:
    typer.echo(f"{name:14} {value}")


def _torch() -> str:
    import torch

    found = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return f"{torch.__version__}, CUDA: {', '.join(found) or 'none'}"


def _product() -> int | None:
    """How a process ends that multiplies in bfloat16; None if it does not."""
    try:
        return subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, check=False, timeout=120).returncode
    except subprocess.TimeoutExpired:
        return None


def dies_of_bfloat16() -> bool:
    """Whether products in bfloat16 kill a process here: some virtual machines announce AMX and hide how large its tiles
    are, and oneDNN then runs into an illegal instruction."""
    cpu = Path("/proc/cpuinfo")
    if AMX_OFF[0] in os.environ or not cpu.is_file() or "amx" not in cpu.read_text():
        return False
    return _product() == -signal.SIGILL


def _bfloat16() -> str:
    ended = _product()
    if ended == -signal.SIGILL:
        return f"FAILS on this processor, and so may OpenVINO; set {'='.join(AMX_OFF)}"
    return "works" if ended == 0 else "could not be tried"


def _onnxruntime() -> str:
    try:
        return str(importlib.import_module("onnxruntime").__version__)
    except ImportError:
        return "MISSING: pip install onnxruntime"


def _weights() -> str:
    """Weights that are not here are no fault: they are fetched when they are first needed."""
    try:
        return ", ".join(f"{name} {state(name)}" for name in WEIGHTS)
    except WeightsError as error:
        return str(error)


def _decodes(name: str) -> bool:
    try:
        av.codec.Codec(name, "r")
    except ValueError:
        return False
    return True


def _try_it() -> str | None:
    """Anonymize a second of video in a temporary folder; None if all went well, else what went wrong.

    Fetches nothing: without the weights that find faces, the whole picture is anonymized.
    """
    with tempfile.TemporaryDirectory(prefix="vidveil-") as folder:
        clip = Path(folder) / "check.mp4"
        draw_video(clip, frames=25)
        outcome = anonymize(clip, region="faces" if state("centerface") == "present" else "frame")[0]
        return None if outcome.ok and outcome.frames == 25 else f"FAILED: {outcome.error}"
