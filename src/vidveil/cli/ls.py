"""`vidveil ls`: what there is to choose from."""

from typing import Annotated, Literal

import typer


def ls(what: Annotated[Literal["methods", "weights"], typer.Argument(help="What to list.")] = "methods") -> None:
    """List what there is to choose from.

    \b
    vidveil ls methods
    vidveil ls weights      and whether they are here; asks no network
    """
    {"methods": _methods, "weights": _weights}[what]()


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
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        typer.echo("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    typer.echo(f"\nKept in {cache_folder()}. Fetched when first needed, or now: vidveil fetch NAME")
