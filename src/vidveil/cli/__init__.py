"""The command. One file per verb, imported when it is called; what needs PyTorch is imported inside its functions."""

from vidveil.cli.app import main

__all__ = ["main"]
