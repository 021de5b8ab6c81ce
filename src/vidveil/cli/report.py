"""`vidveil report`: results as a table and a picture."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders of runs, their names, or results.json.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Markdown file to write; the picture takes its name, with .png."),
    ] = None,
) -> None:
    """Draw results: every number with its floor and interval, and the trade-off of several runs in one picture.

    \b
    vidveil report raw_puppets                                the table, on the terminal
    vidveil report blur_puppets random_puppets -o compared.md writes compared.md and compared.png
    vidveil report benchmarks/results/raw_puppets_large.json
    """
    from vidveil.evaluation.results import locate, read
    from vidveil.report.tables import table

    results = [read(locate(run)) for run in runs]
    if output is None:
        typer.echo(table(results))
        return

    from vidveil.report.plot import trade_off

    picture = output.with_suffix(".png")
    trade_off(results, picture)
    output.write_text(table(results) + f"\n\n![trade-off]({picture.name})\n", encoding="utf-8")
    typer.echo(f"wrote {output} and {picture}")
