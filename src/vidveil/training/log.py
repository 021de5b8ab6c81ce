"""The log of a training: lines of JSON for programs, curves for TensorBoard, a progress bar on the console.

Each line of `log.jsonl` is one object with `time` (Unix seconds), `event`, and the event's values; docs/training.md
lists them. NaN and infinity become null. After a resumption some steps appear twice: the later line counts.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import time
from typing import Any

from rich.console import Console
from rich.text import Text

from vidveil.core.atomic import open_log
from vidveil.core.progress import Phase, phase, reporting
from vidveil.core.text import one_line
from vidveil.training.events import EventFile


class Log:
    """`log.jsonl` and `tensorboard/` in a folder; without one, only the console. Without a console, silent."""

    def __init__(self, folder: Path | None = None, console: Console | None = None) -> None:
        self.console = console
        self._folder = folder
        self._curves: dict[str, EventFile] = {}
        self._file = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = open_log(folder / "log.jsonl")
            self._end_torn_line()

    def write(self, event: str, **values: Any) -> None:
        if self._file is not None:
            line = {"time": round(time(), 3), "event": event, **_plain(values)}
            self._file.write(json.dumps(line, allow_nan=False).encode() + b"\n")  # one call: lines do not mix

    def curves(self, label: str, step: int, values: Mapping[str, float]) -> None:
        """Points of curves. Each label has its own file, so that TensorBoard draws them in one plot."""
        if self._folder is not None:
            if label not in self._curves:
                self._curves[label] = EventFile(self._folder / "tensorboard" / file_name(label), step)
            self._curves[label].add(step, values)

    def say(self, line: str, style: str = "") -> None:
        if self.console is not None:
            self.console.print(Text(one_line(line), style=style), soft_wrap=True)

    @contextmanager
    def bar(self, label: str, total: int, done: int = 0) -> Iterator[Phase]:
        """A progress bar of steps, shown if there is a console."""
        with ExitStack() as stack:
            if self.console is not None:
                stack.enter_context(reporting("training", self.console))
            yield stack.enter_context(phase(label or "training", total, "steps", done))

    def close(self) -> None:
        for file in self._curves.values():
            file.close()
        self._curves.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _end_torn_line(self) -> None:
        """A run that was killed may have left half a line: begin a new one."""
        assert self._file is not None
        if size := self._file.seek(0, 2):
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")


def file_name(label: str) -> str:
    """A label as the name of a file or folder: `attacker r3d, seed 0` → `attacker_r3d_seed_0`."""
    return re.sub(r"[^A-Za-z0-9.=-]+", "_", label).strip("_.") or "fit"


def _plain(value: Any) -> Any:
    """As JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
