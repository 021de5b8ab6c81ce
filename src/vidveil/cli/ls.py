"""`vidveil ls`: what there is to choose from."""

from typing import Annotated, Literal

import typer


def ls(what: Annotated[Literal["methods"], typer.Argument(help="What to list.")] = "methods") -> None:
    """List what there is to choose from.

    \b
    vidveil ls methods
    """
    {"methods": _methods}[what]()


def _methods() -> None:
    from vidveil.methods import DEFAULT, METHODS

    width = max(len(method.usage) for method in METHODS.values())
    for method in METHODS.values():
        typer.echo(f"{method.usage:{width}}  {method.summary}")
    typer.echo(f'\nWithout --method: {DEFAULT}. Several, one after the other: --method "blur:strong | stride:5"')
