"""One thread a worker: xdist already fills the cores."""

import os
import signal
import subprocess
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Some virtual machines announce AMX and hide the size of its tiles: oneDNN then dies of an illegal instruction at the
# first product in bfloat16. What a user would set there is set here, once, before workers start.
PRODUCT = "import torch; torch.nn.Linear(64, 64).bfloat16()(torch.ones(64, 64).bfloat16())"
CPU, LIMIT = Path("/proc/cpuinfo"), "ONEDNN_MAX_CPU_ISA"
if LIMIT not in os.environ and "PYTEST_XDIST_WORKER" not in os.environ and CPU.is_file() and "amx" in CPU.read_text():
    asked = subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, check=False)
    if asked.returncode == -signal.SIGILL:
        os.environ[LIMIT] = "AVX512_CORE_FP16"

import cv2  # noqa: E402

cv2.setNumThreads(1)

# In the background of a shell Ctrl-C is ignored, and every process started from there would ignore it, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
