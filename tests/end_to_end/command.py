"""The real command in a folder, as a person types it."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "vidveil"]


def environment(folder: Path) -> dict[str, str]:
    """Caches and datasets are in the folder, and nowhere else."""
    folders = {"VIDVEIL_CACHE": str(folder / "cache"), "VIDVEIL_DATA": str(folder / "sets")}
    return os.environ | folders | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def vidveil(folder: Path, *words: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
    """It ends as it should, and with neither a traceback nor a warning of Python's."""
    done = subprocess.run(
        [*COMMAND, *words], cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=250
    )
    assert done.returncode == int(fails), done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    return done


def refusal(folder: Path, *words: str) -> str:
    """The one line by which a command refuses."""
    (line,) = vidveil(folder, *words, fails=True).stderr.strip().splitlines()
    return line
