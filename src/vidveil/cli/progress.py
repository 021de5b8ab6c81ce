"""What a person sees while files are worked on: a bar on a terminal, plain lines elsewhere. All of it on stderr."""

from collections.abc import Sequence
from time import monotonic
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from vidveil.video.jobs import Outcome, Status


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f} fps" if task.speed else "", style="cyan")


class Screen:
    """The watcher of the command line."""

    def __init__(self, file: TextIO) -> None:
        self._console = Console(file=file, highlight=False, soft_wrap=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            _Speed(),
            TimeRemainingColumn(compact=True),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task: object = None
        self._began = monotonic()

    def __enter__(self) -> "Screen":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def say(self, line: str, style: str = "") -> None:
        """One line, as it is: names of files may hold brackets, line breaks and broken characters."""
        clean = "".join(c if c.isprintable() else "?" for c in line.encode("utf-8", "replace").decode())
        self._console.print(Text(clean, style=style))

    def warn(self, line: str) -> None:
        self.say(f"warning: {line}", "yellow")

    def note(self, line: str) -> None:
        self.say(f"note: {line}")

    def begin(self, name: str, length: int | None) -> None:
        self._began = monotonic()
        self._task = self._bar.add_task(name, total=length)

    def advance(self) -> None:
        self._bar.advance(self._task)  # type: ignore[arg-type]

    def end(self, outcome: Outcome) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)  # type: ignore[arg-type]
            self._task = None
        for warning in outcome.warnings:
            if outcome.status is not Status.UP_TO_DATE:
                self.warn(f"{outcome.name}: {warning}")
        if outcome.hidden and outcome.status is not Status.UP_TO_DATE:
            self.warn(f"{outcome.name}: {outcome.hidden} of {outcome.frames} frames are black; the manifest says why")
        if outcome.error is not None:
            self.say(f"error: {outcome.name}: {outcome.error}", "red")
        if outcome.output is None or outcome.status is Status.FAILED:
            return
        to = f"{outcome.name} -> {outcome.output}"
        if outcome.status in (Status.DONE, Status.INCOMPLETE):
            seconds = max(monotonic() - self._began, 1e-3)
            speed = f"{outcome.frames} frames, {outcome.frames / seconds:.0f} fps" if outcome.frames > 1 else "1 frame"
            found = f"; {outcome.found}" if outcome.found else ""
            self.say(f"{to}  {speed}{found}")
        else:
            self.say(f"{to}  {outcome.status.value}")

    def sum_up(self, outcomes: Sequence[Outcome]) -> None:
        if len(outcomes) < 2:
            return
        counts = {status: sum(o.status is status for o in outcomes) for status in Status}
        self.say(", ".join(f"{count} {status.value}" for status, count in counts.items() if count))
