"""The words that all verbs with a recipe take."""

from pathlib import Path
from typing import Annotated

import typer

Recipe = Annotated[str, typer.Argument(help="A name from `vidveil ls recipes`, or a YAML file of your own.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Fields of the recipe to change.")
]
Data = Annotated[
    Path | None, typer.Option("--data", help="Folder with datasets. Default: VIDVEIL_DATA.", show_default=False)
]
Strict = Annotated[
    bool, typer.Option("--strict", help="A video that cannot be decoded is an error, not left out with a warning.")
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="List trainings, disk space and an estimate of the time; begin and write nothing."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a run of this name that was interrupted.")]
