"""The machine and versions that a number was measured with. No names of hosts or users, no paths."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from vidveil.core.version import __version__


def describe(accelerator: str = "cpu") -> dict[str, Any]:
    """For machine.json and results. `accelerator` is `cpu` or `cuda`."""
    import torch

    on_cuda = accelerator == "cuda" and torch.cuda.is_available()
    versions = {"python": platform.python_version(), "vidveil": __version__}
    versions |= {name: _version(name) for name in ("torch", "lightning", "numpy")}
    return {
        "versions": versions | ({"cuda": str(torch.version.cuda)} if on_cuda else {}),
        "commit": commit(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if on_cuda else "cpu",
    }


def commit() -> str | None:
    """Of the checkout that this code runs from, with `+` if files are changed; None outside of a checkout.

    `VIDVEIL_COMMIT` gives it where the code is a copy without history.
    """
    if given := os.environ.get("VIDVEIL_COMMIT"):
        return given
    here = Path(__file__).parent
    if not _git(here, "ls-files", "--error-unmatch", Path(__file__).as_posix()):
        return None  # an installation inside another repository
    head = _git(here, "rev-parse", "HEAD")
    return head + ("+" if _git(here, "status", "--porcelain") else "") if head else None


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
