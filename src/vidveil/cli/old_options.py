"""Options by the names that they had in the previous version: they go on working for one version."""

from typing import Any

import typer
from typer.core import TyperCommand

OLD_OPTIONS = {"--guard": "--also-hide", "--guard-with": "--also-hide-with", "--except": "--leave-visible"}


class TakesOldOptions(TyperCommand):
    """A command that also understands the old names, with a note on stderr. They are not in its --help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_new_names(args))


def with_new_names(args: list[str]) -> list[str]:
    """The arguments of a command, with the options before `--` by their new names."""
    end = args.index("--") if "--" in args else len(args)
    return [_renamed(arg) for arg in args[:end]] + args[end:]


def _renamed(arg: str) -> str:
    name, equals, value = arg.partition("=")
    if name not in OLD_OPTIONS:
        return arg
    typer.echo(f"note: {name} is now called {OLD_OPTIONS[name]}; the next version no longer knows {name}", err=True)
    return f"{OLD_OPTIONS[name]}{equals}{value}"
