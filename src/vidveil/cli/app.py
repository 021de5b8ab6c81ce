"""The command's entry: gathers the verbs, turns errors into one line and an exit code."""

import sys
from typing import Annotated

import typer

from vidveil import __version__
from vidveil.cli import anonymize, data, demo, doctor, evaluate, extract, fetch, ls, report, review, train
from vidveil.cli.reported import reported
from vidveil.errors import VidveilError

app = typer.Typer(
    name="vidveil",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
AGAIN = "what is finished is whole, the rest is as it was; run again to go on"

app.command()(reported(anonymize.anonymize, AGAIN))
app.command()(reported(review.review))
app.command()(reported(evaluate.evaluate))
app.command()(reported(report.report))
app.command()(reported(train.train))
app.command()(reported(extract.extract, AGAIN))
app.command()(reported(ls.ls))
app.add_typer(data.app, name="data")
app.command()(reported(fetch.fetch))
app.command()(reported(doctor.doctor))
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
    """Remove from video what identifies people, keep what a task needs, and tell exactly what was done."""


def main() -> None:
    try:
        app()
    except VidveilError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
