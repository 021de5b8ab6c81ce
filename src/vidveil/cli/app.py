"""The command's entry: gathers the verbs, turns errors into one line and an exit code."""

import os
import sys
from typing import Annotated, Any

import typer

from vidveil.cli import anonymize, data, demo, doctor, evaluate, extract, fetch, ls, report, review, train
from vidveil.cli.old_options import TakesOldOptions
from vidveil.cli.reported import reported
from vidveil.core.errors import LONGEST, VidveilError
from vidveil.core.text import printable
from vidveil.core.version import __version__

app = typer.Typer(
    name="vidveil",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
FILES = "finished files are whole; run again to do the others, each from its beginning"
SHARDS = "run again to go on"
USAGE_ERROR = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")  # click's, or typer's copy

app.command(cls=TakesOldOptions, short_help="Hide what identifies people in videos and streams.")(
    reported(anonymize.anonymize, FILES)
)
app.command(short_help="List moments where somebody may be visible.")(reported(review.review))
app.command(short_help="Attack what a method leaves, by a recipe.")(reported(evaluate.evaluate))
app.command(short_help="Draw results as tables and pictures.")(reported(report.report))
app.command(short_help="Train a recognizer or a method, by a recipe.")(reported(train.train))
app.command(short_help="Compute features of the videos of a dataset.")(reported(extract.extract, SHARDS))
app.command()(reported(ls.ls))
app.add_typer(data.app, name="data")
app.command()(reported(fetch.fetch))
app.command(short_help="Check this installation.")(reported(doctor.doctor))
app.command()(reported(demo.demo))


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
