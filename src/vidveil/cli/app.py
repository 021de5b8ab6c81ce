"""The command's entry: knows the verbs by name, turns errors into one line and an exit code."""

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from vidveil.core.errors import LONGEST, VidveilError
from vidveil.core.text import printable
from vidveil.core.version import __version__

COMMANDS = {
    "anonymize": "Hide what identifies people in videos and streams.",
    "review": "List moments where somebody may be visible.",
    "evaluate": "Attack what a method leaves, by a recipe.",
    "report": "Draw results as tables and pictures.",
    "train": "Train a recognizer or a method, by a recipe.",
    "extract": "Compute features of the videos of a dataset.",
    "ls": "List what there is to choose from.",
    "fetch": "Fetch weights into the cache and say what they are.",
    "doctor": "Check this installation.",
    "demo": "Anonymize a built-in video, show the result, and attack it.",
    "data": "Make small sets out of large ones.",
}
"""Each with its line in `vidveil --help`; it is `app` in the module of its name."""


class LazyGroup(TyperGroup):
    """Imports the module of a command when the command is run, or asked for its own help."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            command = typer.main.get_command(import_module(f"vidveil.cli.{name}").app)
        return name, command, rest


app = typer.Typer(
    cls=LazyGroup,
    name="vidveil",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
USAGE_ERROR = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")  # click's, or typer's copy

for name, line in COMMANDS.items():
    app.command(name, help=line)(lambda: None)  # only for the list of commands


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vidveil {__version__}")
        raise typer.Exit


@app.callback()
def vidveil(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Remove from video what identifies people, keep what a task needs, and report exactly what was done.

    \b
    vidveil anonymize clip.mp4       clip_anonymized.mp4: faces blurred, no sound, no metadata
    vidveil anonymize --help         folders, cameras, other methods
    """


def main() -> None:
    code: object = 0
    try:
        code = app(standalone_mode=False)
    except VidveilError as error:
        code = _fail(str(error))
    except typer.Abort:
        typer.echo("Aborted!", err=True)
        code = 1
    except SystemExit as end:
        code = end.code
    except Exception as error:
        if isinstance(error, USAGE_ERROR):
            code = _usage_error(error)
        elif os.environ.get("VIDVEIL_TRACEBACK", "0") not in ("", "0"):
            raise
        else:  # nothing that a command meets should come here
            what = printable(f"{type(error).__name__}: {error}", LONGEST - 200)
            code = _fail(f"{what}; this is a bug, please report it with what VIDVEIL_TRACEBACK=1 says")
    searches = sys.modules.get("vidveil.detect.searches")  # not imported by most verbs
    if searches is not None and searches.given_up():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)
    sys.exit(code if isinstance(code, int) else 0)


def _usage_error(error: Any) -> int:
    """Shown as click does; the message may hold whatever was typed."""
    lines = str(error.message).split("\n")
    if any(len(line) > LONGEST or not line.isprintable() for line in lines):
        error.message = printable(error.message, LONGEST)
    error.show()
    return int(error.exit_code)


def _fail(message: str) -> int:
    typer.echo(f"error: {message}", err=True)
    return 1
