"""`vidveil data`: sets that are made out of others."""

from pathlib import Path
from typing import Annotated

import typer

from vidveil.cli.recipe_words import Data
from vidveil.cli.reported import reported
from vidveil.core.errors import UsageError
from vidveil.data import given_folder
from vidveil.data.readers.annotations import read_table
from vidveil.data.readers.make_ucf101_5 import make as make_ucf101_5

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def data() -> None:
    """Make small sets out of large ones.

    \b
    vidveil data make --help      which, and how
    vidveil ls data               what is here
    """


@app.command()
@reported("make")
def make(
    name: Annotated[str, typer.Argument(metavar="NAME", help="ucf101_5.")],
    source: Annotated[Path, typer.Option("--from", metavar="FOLDER", help="The official download.")],
    data: Data = None,
) -> None:
    """Make a set out of the official download of a larger one, in the folder with datasets.

    \b
    vidveil data make ucf101_5 --from downloads/ucf101 --data sets      five classes of UCF101: sets/ucf101_5

    The download is left as it is. Begun again after an interruption, it makes what is missing.
    """
    if name != "ucf101_5":
        raise UsageError(f"{name!r} cannot be made: ucf101_5 can, out of UCF101")
    root = given_folder(data)
    if root is None:
        raise UsageError("where to? give the folder with datasets by --data or VIDVEIL_DATA")
    made = make_ucf101_5(source, root)
    rows = read_table(made / "manifest.csv", ("class", "group"))
    people = {(row["class"], row["group"]) for row in rows}
    typer.echo(f"{made}: {len(rows)} clips of {len({one for one, _ in people})} classes and {len(people)} people")
