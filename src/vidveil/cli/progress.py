"""What a person sees while files are worked on: a bar on a terminal, plain lines elsewhere. All of it on stderr."""

from collections.abc import Sequence
from contextlib import ExitStack
from time import monotonic

from rich.text import Text

from vidveil.app.jobs import Outcome, Status, Watcher
from vidveil.core.progress import Phase, console, phase
from vidveil.core.text import one_line


class Screen(Watcher):
    """The watcher of the command line."""

    def __init__(self) -> None:
        self._console = console()
        self._under_way = ExitStack()
        self._phase: Phase | None = None
        self._began = monotonic()

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        self._under_way.close()

    def say(self, line: str, style: str = "") -> None:
        """One line, as it is: names of files may hold brackets, line breaks and broken characters."""
        self._console.print(Text(one_line(line), style=style))

    def warn(self, line: str) -> None:
        self.say(f"warning: {line}", "yellow")

    def note(self, line: str) -> None:
        self.say(f"note: {line}")

    def begin(self, name: str, length: int | None) -> None:
        self._began = monotonic()
        self._phase = self._under_way.enter_context(phase(name, length, "frames"))

    def advance(self) -> None:
        if self._phase is not None:
            self._phase.done += 1

    def end(self, outcome: Outcome) -> None:
        self._under_way.close()
        self._phase = None
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
