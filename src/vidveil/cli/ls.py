"""`vidveil ls`: what there is to choose from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from vidveil.cli.recipe_words import Data

What = Literal["methods", "weights", "data", "recipes", "runs"]


def ls(
    what: Annotated[What, typer.Argument(help="What to list.")] = "methods",
    data: Data = None,
) -> None:
    """List what there is to choose from.

    \b
    vidveil ls methods
    vidveil ls weights      and whether they are here; asks no network
    vidveil ls data         datasets, and whether they are where --data or VIDVEIL_DATA says
    vidveil ls recipes      for `vidveil train` and `vidveil evaluate`
    vidveil ls runs         what is under runs/ and how far it is
    """
    if what == "data":
        _data(data)
    else:
        {"methods": _methods, "weights": _weights, "recipes": _recipes, "runs": _runs}[what]()


def _methods() -> None:
    from vidveil.methods import DEFAULT, METHODS

    width = max(len(method.usage) for method in METHODS.values())
    for method in METHODS.values():
        typer.echo(f"{method.usage:{width}}  {method.summary}")
    typer.echo(f'\nWithout --method: {DEFAULT}. Several, one after the other: --method "blur:strong | stride:5"')


def _weights() -> None:
    from vidveil.weights import WEIGHTS, cache_folder, state

    head = ("name", "purpose", "licence", "size", "here")
    rows = [
        (name, entry.purpose, entry.licence, f"{entry.size / 1e6:.1f} MB", state(name))
        for name, entry in WEIGHTS.items()
    ]
    _columns([head, *rows])
    typer.echo(f"\nKept in {cache_folder()}. Fetched when first needed, or now: vidveil fetch NAME")


def _data(root: Path | None) -> None:
    from vidveil.data import DATA, available

    rows = [(dataset.usage, dataset.summary, available(name, root)) for name, dataset in DATA.items()]
    _columns([("name", "what", "here"), *rows])


def _recipes() -> None:
    from vidveil.recipe import FOLDER, find, header, names

    _columns([(name, header(find(name))) for name in names()])
    typer.echo(
        f"\nThe files are in {FOLDER}: each begins with its command. One of your own is such a file, given by path."
    )


def _runs() -> None:
    from vidveil.training.runs import list_runs

    rows = [(run.name, run.state) for run in list_runs()]
    if not rows:
        typer.echo("no runs here yet: vidveil evaluate raw_puppets")
        return
    _columns([("name", "state"), *rows])


def _columns(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
