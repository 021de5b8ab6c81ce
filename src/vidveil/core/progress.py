"""Progress of long commands on stderr: bars on a terminal, a plain line every 30 s elsewhere.

    with reporting("evaluate"):                                  # once, where the command begins
        with phase("painting blur", 900, "clips") as painting:   # wherever work is done
            painting.done += 1

A thread prints the state if nothing was printed for INTERVAL, so that no command is silent, whether or not its work can
be counted. Outside `reporting` phases print nothing: the Python API is silent.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from vidveil.core.text import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from vidveil.core.progress_bars import Bars

T = TypeVar("T")

INTERVAL = 30.0
"""Seconds between plain lines."""
TICK = 0.1
"""Seconds between updates of the bars."""


class Phase:
    """A part of the work. Loops only set `done`, which is cheap."""

    __slots__ = ("_began", "_first", "done", "note", "title", "total", "unit")

    def __init__(self, title: str, total: int | None, unit: str, done: int) -> None:
        self.title, self.total, self.unit, self.done = title, total, unit, done
        self.note = ""
        """Further information, such as the numbers of the last epoch."""
        self._first = done
        self._began = monotonic()

    @property
    def counts(self) -> bool:
        return bool(self.total) or self.done > self._first

    def describe(self) -> str:
        """`clip.mp4: 1,240 of 9,000 frames, 14 %, 41 fps, 3 min left`"""
        seconds = max(monotonic() - self._began, 1e-6)
        if not self.counts:
            return f"{self.title}, {span(seconds)} so far"
        done, speed = self.done, (self.done - self._first) / seconds
        parts = [f"{done:,} {self.unit}".rstrip()]
        if self.total:
            parts = [f"{done:,} of {self.total:,} {self.unit}".rstrip(), f"{100 * done // self.total} %"]
        if self.unit == "frames" and speed:
            parts.append(f"{speed:.0f} fps" if speed >= 10 else f"{speed:.2g} fps")
        if not self.total or not speed:
            parts.append(f"{span(seconds)} so far")
        elif done < self.total:
            parts.append(f"{span((self.total - done) / speed)} left")
        return f"{self.title}: {', '.join(parts)}" + (f"; {self.note}" if self.note else "")


_phases: list[Phase] = []
"""The current phases, the outermost first."""
_reporter: "Reporter | None" = None


@contextmanager
def phase(title: str, total: int | None = None, unit: str = "", done: int = 0) -> Iterator[Phase]:
    """A part of the work, as a context or a decorator. Without a total only its duration is reported."""
    one = Phase(title, total, unit, done)
    _phases.append(one)
    try:
        yield one
    finally:
        if _reporter is not None:
            _reporter.ending(one)
        _phases.remove(one)
        if _reporter is not None:
            _reporter.ended()


def counted(items: Iterable[T], title: str, total: int, unit: str = "") -> Iterator[T]:
    """The items; each counts as done when the next one is requested."""
    with phase(title, total, unit) as one:
        for item in items:
            yield item
            one.done += 1


@contextmanager
def reporting(command: str, console: "Console | None" = None) -> Iterator[None]:
    """Report phases inside this context, on stderr or the given console. It does nothing within another `reporting`, or
    in any process of torchrun but the first."""
    global _reporter
    if _reporter is not None or sys.stderr is None or int(os.environ.get("RANK") or 0) > 0:
        yield
        return
    made = _reporter = Reporter(command, console)
    try:
        made.start()
        yield
    finally:
        _reporter = None
        made.stop()


def console() -> "Console":
    """The console to print on while phases are reported: bars stay below, and lines count as reports."""
    if _reporter is not None:
        return _reporter.console
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(line: str) -> None:
    """One line on stderr, with control characters replaced."""
    if _reporter is not None:
        _reporter.say(line)
    elif sys.stderr is not None:
        print(one_line(line), file=sys.stderr, flush=True)


def span(seconds: float) -> str:
    """`40 s`, `3 min` or `2.5 h`"""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


class Reporter:
    """Prints on one console, from its own thread."""

    def __init__(self, command: str, console: "Console | None") -> None:
        self._command = Phase(command, None, "", 0)
        self._last_line = monotonic()
        self._given = console
        self._file = _WatchedFile(cast(TextIO, console.file if console else sys.stderr), self)
        self.terminal = console.is_terminal if console else _is_terminal(sys.stderr)
        self._console: Console | None = console
        self._bars: Bars | None = None
        self._lock = RLock()
        self._stopped = Event()
        self._thread = Thread(target=self._watch, name="vidveil-report", daemon=True)

    @property
    def console(self) -> "Console":
        if self._console is None:
            from rich.console import Console

            # FORCE_COLOR and the like must not put control characters into files
            self._console = Console(
                file=cast(TextIO, self._file), force_terminal=self.terminal, highlight=False, soft_wrap=True
            )
        return self._console

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(1)  # it cannot end while a full pipe keeps it waiting
        with self._lock:
            self._hide()

    def printed(self) -> None:
        """Note that something was printed."""
        self._last_line = monotonic()

    def due(self) -> bool:
        """Whether nothing was printed for too long."""
        return monotonic() - self._last_line >= INTERVAL

    def say(self, line: str) -> None:
        if self.terminal:
            self.console.print(one_line(line), markup=False)
            return
        with suppress(OSError, ValueError):  # stderr is closed
            self._file.write(one_line(line) + "\n")
            self._file.flush()

    def ending(self, one: Phase) -> None:
        """Show the last state of a phase that lasted long enough to be seen."""
        if self.terminal and monotonic() - one._began >= TICK:
            self._draw()

    def ended(self) -> None:
        with self._lock:
            if not _phases:
                self._hide()

    def describe(self) -> str:
        """The innermost phase."""
        if not (now := _phases[-1:]):
            return self._command.describe().replace(",", ":", 1)
        return now[0].describe() if now[0].counts else f"{self._command.title}: {now[0].describe()}"

    def _watch(self) -> None:
        while not self._stopped.wait(TICK if self.terminal else max(self._last_line + INTERVAL - monotonic(), 0.001)):
            if self.terminal:
                self._draw()
            elif self.due():
                self.say(self.describe())
                self.printed()

    def _draw(self) -> None:
        with self._lock:
            if _phases and self._bars is None:
                from vidveil.core.progress_bars import Bars

                self._bars = Bars(self.console)
            if self._bars is not None:
                now = tuple(_phases)
                self._bars.show([one for one in now if one.counts or one is now[-1]])

    def _hide(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


class _WatchedFile:
    """A file that notifies the reporter of every write."""

    def __init__(self, file: TextIO, reporter: Reporter) -> None:
        self._file, self._reporter = file, reporter

    def write(self, text: str) -> int:
        self._reporter.printed()
        return self._file.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _is_terminal(file: TextIO) -> bool:
    """Whether lines can be redrawn on it."""
    return file.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
