"""A watcher that remembers what it was told."""

from vidveil.app.jobs import Outcome


class Remembering:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, line: str) -> None:
        self.notes.append(line)

    def begin(self, name: str, length: int | None) -> None: ...
    def advance(self) -> None: ...
    def end(self, outcome: Outcome) -> None: ...
