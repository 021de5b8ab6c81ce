"""Options by the names that they had in the previous version."""

from typing import Any

import typer
from typer.core import TyperCommand

from vidveil.app.old_names import OPTIONS, renamed_note
from vidveil.core.errors import UsageError


class TakesOldOptions(TyperCommand):
    """A command that also understands the old names, with a note on stderr. They are not in its --help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        given = {arg.partition("=")[0] for arg in args[:end]}
        for old, new in OPTIONS.items():
            if old in given and new in given:
                raise UsageError(f"{old} is the old name of {new}: give one of the two")
        return super().parse_args(ctx, [*map(_current, args[:end]), *args[end:]])


def _current(arg: str) -> str:
    """The argument with the name of today, if it is an option that was renamed."""
    name, equals, value = arg.partition("=")
    if name not in OPTIONS:
        return arg
    typer.echo(f"note: {renamed_note(name, OPTIONS[name])}", err=True)
    return f"{OPTIONS[name]}{equals}{value}"
