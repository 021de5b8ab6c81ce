"""The command line, in this process."""

from click.testing import Result
from typer.testing import CliRunner

from vidveil.cli.app import app


def vidveil(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))
