"""A watcher that remembers the notes that it got."""

from vidveil.app.jobs import Watcher


class Remembering(Watcher):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, line: str) -> None:
        self.notes.append(line)
