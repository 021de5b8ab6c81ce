"""`vidveil ls`: what there is to choose from."""

import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
import yaml

from vidveil.cli.recipe_words import Data
from vidveil.cli.reported import reported
from vidveil.core.errors import LONGEST, UsageError
from vidveil.core.recipe import FOLDER, as_values, find, header, names, read
from vidveil.core.recipe_keys import keys
from vidveil.core.text import printable
from vidveil.data import available
from vidveil.data.catalogue import DATA
from vidveil.methods import DEFAULT, METHODS
from vidveil.weights import WEIGHTS, cache_folder, state

What = Literal["methods", "weights", "data", "recipes", "runs"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@reported("ls")
def ls(
    what: Annotated[What, typer.Argument(help="What to list.")] = "methods",
    name: Annotated[str | None, typer.Argument(help="A recipe, whose keys are explained, or a dataset.")] = None,
    data: Data = None,
) -> None:
    """List what there is to choose from.

    \b
    vidveil ls methods
    vidveil ls weights      and whether they are here; asks no network
    vidveil ls data         datasets, whether they are where --data or VIDVEIL_DATA says, and how complete
    vidveil ls data hmdb51  one of them, and how its folder must look
    vidveil ls recipes      for `vidveil train` and `vidveil evaluate`
    vidveil ls recipes dual_cls_puppets      its keys, what each means, and what it is set to
    vidveil ls runs         what is under runs/ and how far it is
    """
    if name is not None and what not in ("recipes", "data"):
        raise UsageError(f"`vidveil ls {what}` lists all and takes no name; `ls recipes NAME` and `ls data NAME` do")
    if what == "data":
        _data(data, name)
    elif name is not None:
        _keys(name)
    else:
        {"methods": _methods, "weights": _weights, "recipes": _recipes, "runs": _runs}[what]()


def _methods() -> None:
    rows = list(map(_method, METHODS))
    width = max(len(usage) for usage, _ in rows)
    for usage, summary in rows:
        typer.echo(f"{usage:{width}}  {summary}")
    typer.echo(f'\nWithout --method: {DEFAULT}. Several, one after the other: --method "blur:strong | stride:5"')


def _method(name: str) -> tuple[str, str]:
    """Usage and summary; of a method whose package cannot be loaded, why."""
    try:
        return METHODS[name].usage, METHODS[name].summary
    except UsageError as error:
        return name, f"error: {error}"


def _weights() -> None:
    head = ("name", "purpose", "licence", "size", "here")
    rows = [
        (name, entry.purpose, entry.licence, f"{entry.size / 1e6:.1f} MB", state(name))
        for name, entry in WEIGHTS.items()
    ]
    _columns([head, *rows])
    typer.echo(f"\nKept in {cache_folder()}. Fetched when first needed, or now: vidveil fetch NAME")


def _data(root: Path | None, only: str | None) -> None:
    """`here`, `part`, `empty` or `missing` comes first, since what a set is called is known to who has it."""
    for name in DATA if only is None else [only.partition(":")[0]]:
        state = available(name, root)  # refuses a name that nobody knows
        typer.echo(f"{DATA[name].usage}   {state}")
        _indented(DATA[name].summary)
        if only is not None and (layout := DATA[name].layout):
            _indented(f"For example {layout}. Where it comes from, its terms, its pitfalls: docs/datasets.md")


def _recipes() -> None:
    for command in ("train", "evaluate"):
        typer.echo(f"For `vidveil {command}`:\n")
        _columns([(f"  {name}", header(find(name))) for name in names(command)])
        typer.echo()
    typer.echo(
        f"The files are in {FOLDER}: each begins with its command. One of your own is such a file, given by path."
        "\nAll keys of one, explained: vidveil ls recipes NAME"
    )


def _indented(text: str) -> None:
    width = min(shutil.get_terminal_size().columns, 120)
    typer.echo(textwrap.fill(text, width, initial_indent="    ", subsequent_indent="    "))


def _keys(name: str) -> None:
    recipe = read(find(name))
    plain = as_values(recipe)
    typer.echo(f"{header(find(name)) or name}\nChange a key by KEY=VALUE behind the recipe's name.\n")
    for key in keys(recipe):
        flow = yaml.safe_dump(plain[key.name], default_flow_style=True, width=float("inf"))
        value = flow.removesuffix("...\n").strip().replace(", ", ",")  # one word to a shell
        of = f"   of {', '.join(key.choices)}" if key.choices else ""
        typer.echo(f"{key.name}={printable(value, LONGEST)}{of}")
        if key.about:
            _indented(key.about)


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
