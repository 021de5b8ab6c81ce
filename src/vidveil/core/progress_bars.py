"""The bars of `reporting`, on a terminal."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from vidveil.core.progress import Phase
from vidveil.core.text import one_line


class _Count(ProgressColumn):
    def render(self, task: Task) -> Text:
        done = f"{task.completed:,.0f}" if task.completed or task.total else ""
        return Text(f"{done}/{task.total:,.0f}" if task.total else done, style="progress.download")


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f} fps" if task.speed and task.fields["unit"] == "frames" else "", style="cyan")


class Bars:
    """A bar for each phase, removed when it ends."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            _Count(),
            _Speed(),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),  # a redirected stdout stays a file
            speed_estimate_period=300,  # long enough to include a validation
        )
        self._tasks: dict[Phase, TaskID] = {}
        self._progress.start()

    def show(self, phases: Sequence[Phase]) -> None:
        for gone in self._tasks.keys() - set(phases):
            self._progress.remove_task(self._tasks.pop(gone))
        for phase in phases:
            if phase not in self._tasks:
                self._tasks[phase] = self._progress.add_task("", total=phase.total, unit=phase.unit)
            text = one_line(f"{phase.title}: {phase.note}".removeprefix(": ") if phase.note else phase.title)
            self._progress.update(self._tasks[phase], description=text, completed=phase.done, total=phase.total)
        self._progress.refresh()

    def stop(self) -> None:
        self._progress.stop()
