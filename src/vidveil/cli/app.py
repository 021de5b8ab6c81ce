"""The command's entry: gathers the verbs, turns errors into one line and an exit code."""

import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from vidveil import __version__
from vidveil.cli import anonymize, data, demo, doctor, evaluate, extract, fetch, ls, report, review, train
from vidveil.core.text import printable
from vidveil.errors import LONGEST, VidveilError

app = typer.Typer(
    name="vidveil",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command()(anonymize.anonymize)
app.command()(review.review)
app.command()(evaluate.evaluate)
app.command()(report.report)
app.command()(train.train)
app.command()(extract.extract)
app.command()(ls.ls)
app.add_typer(data.app, name="data")
app.command()(fetch.fetch)
app.command()(doctor.doctor)
app.command()(demo.demo)


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
    """Remove from video what identifies people, keep what a task needs, and tell exactly what was done."""


def main() -> None:
    try:
        code = app(standalone_mode=False)
    except VidveilError as error:
        _end(str(error))
    except typer.Abort:
        typer.echo("Aborted!", err=True)
        sys.exit(1)
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # of click, or of typer's copy of it
            _show_usage_error(error)
        # Nothing that a command meets should come here.
        if os.environ.get("VIDVEIL_TRACEBACK", "0") not in ("", "0"):
            raise
        what = printable(f"{type(error).__name__}: {error}", LONGEST - 200)
        _end(f"{what}; this is a bug, please report it with what VIDVEIL_TRACEBACK=1 says")
    sys.exit(code if isinstance(code, int) else 0)


def _show_usage_error(error: Any) -> NoReturn:
    """As click does; the message may hold whatever was typed."""
    lines = str(error.message).split("\n")
    if any(len(line) > LONGEST or not line.isprintable() for line in lines):
        error.message = printable(error.message, LONGEST)
    error.show()
    sys.exit(error.exit_code)


def _end(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    sys.exit(1)
