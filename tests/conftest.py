"""One thread a worker: xdist already fills the cores."""

import atexit
import os
import shutil
import signal
import tempfile

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Runs that tests kill leave lists of what they wrote, which the runs of tests next to them must not read.
os.environ["VIDVEIL_UNFINISHED"] = tempfile.mkdtemp()
atexit.register(shutil.rmtree, os.environ["VIDVEIL_UNFINISHED"], ignore_errors=True)

# Workers inherit what is found here, before any of them has loaded torch.
from vidveil.cli.doctor import AMX_OFF, dies_of_bfloat16  # noqa: E402

if "PYTEST_XDIST_WORKER" not in os.environ and dies_of_bfloat16():
    os.environ.update([AMX_OFF])

import cv2  # noqa: E402

cv2.setNumThreads(1)

from hypothesis import settings  # noqa: E402

settings.register_profile("any machine", deadline=None)  # a busy one is slow, and nothing is wrong with that
settings.load_profile("any machine")

# In the background of a shell Ctrl-C is ignored, and every process started from there would ignore it, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
