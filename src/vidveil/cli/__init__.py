"""The command. One file a verb; heavy imports stay inside the verbs, so that `--help` is instant."""

from vidveil.cli.app import main

__all__ = ["main"]
