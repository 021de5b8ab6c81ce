"""Worker processes that make many things at once, in order.

    with workers("vidveil.data.puppets.worker", {"world": ...}, 16) as pipes:
        for index in range(total):
            pipes[index % 16].read(...)

Each is a fresh interpreter, `python -m MODULE TASK`, that makes every n-th thing from `first` on (both are in its task)
and writes bytes to its standard output. Pipes that are full keep fast workers waiting, so memory stays flat, and a
worker ends when its reader is gone. A fresh interpreter, not `multiprocessing`, keeps the caller's main module out.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast


def cores() -> int:
    """Those that this process may use, which can be fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


@contextmanager
def workers(module: str, task: Mapping[str, Any], count: int) -> Iterator[list[BinaryIO]]:
    """The standard output of each. They are stopped when the block ends."""
    with ExitStack() as stack:
        processes = [stack.enter_context(_started(module, {**task, "first": i, "step": count})) for i in range(count)]
        for process in processes:
            stack.callback(process.kill)
        yield [cast(BinaryIO, process.stdout) for process in processes]


def receive(pipe: BinaryIO, size: int) -> bytes:
    """So many bytes. EOFError if the worker ended before."""
    data = pipe.read(size)
    if len(data) != size:
        raise EOFError
    return data


def _started(module: str, task: Mapping[str, Any]) -> "subprocess.Popen[bytes]":
    root = str(Path(__file__).parents[2])  # where vidveil lies, installed or not
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    limits = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", module, json.dumps(task)],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **limits},
        start_new_session=True,
    )
