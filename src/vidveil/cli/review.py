"""`vidveil review`: where a person should look before an output is shared."""

from pathlib import Path
from typing import Annotated

import typer

from vidveil.app.contact_sheet import write_sheet
from vidveil.app.manifest import read_manifest
from vidveil.app.review import Review, describe, explain, read_review
from vidveil.cli.reported import reported
from vidveil.core.bounded import is_folder
from vidveil.core.errors import OutputError, UsageError, VidveilError
from vidveil.core.progress import phase
from vidveil.core.text import one_line
from vidveil.video.sources import is_sheet

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@reported("review")
def review(
    manifests: Annotated[
        list[Path],
        typer.Argument(metavar="MANIFEST", help="NAME_anonymized.json, the output next to it, or a folder."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="SHEET", help="Default: NAME_review.png next to the manifest."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, max=500, help="Tiles on the sheet, of the most serious moments; 0 draws none.")
    ] = 60,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit code 1 if there is a moment, or the output is missing or was changed."),
    ] = False,
) -> None:
    """List the moments where somebody may be visible, and draw them on a contact sheet.

    \b
    vidveil review clip_anonymized.json            the list, and clip_review.png
    vidveil review safe/ --limit 20                all below a folder, one after the other
    vidveil review clip_anonymized.mp4 --strict    for scripts: exit code 1 if a person should look

    The sheet is drawn from the anonymized output, never from the original.
    """
    manifests = [file for word in manifests for file in (_below(word) if is_folder(word) else [word])]
    if output is not None and len(manifests) > 1:
        raise UsageError("-o takes one manifest")
    if output is not None and output.suffix.lower() != ".png":
        raise UsageError("the sheet's name must end in .png")
    reviews: list[Review] = []
    sheets: set[Path] = set()
    failed = False
    for word in manifests:
        try:
            with phase(f"reading {word.name}"):
                found = read_review(word)
            reviews.append(found)
            if found.trouble is not None:
                _say(f"warning: {found.trouble}", err=True)
            for line in describe(found):
                _say(line)
            _draw(found, output or found.sheet, limit, sheets)
        except VidveilError as error:
            failed = True
            _say(f"error: {word}: {error}", err=True)
        except OSError as error:
            failed = True
            _say(f"error: {word}: {(error.strerror or type(error).__name__).lower()}", err=True)
        if len(manifests) > 1:
            _say("")
    for line in explain(reviews):
        _say(line)
    doubtful = any(found.count or found.trouble for found in reviews)
    raise typer.Exit(1 if failed or (strict and doubtful) else 0)


def _below(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*.json") if read_manifest(path) is not None)
    if not found:
        raise UsageError(f"{folder} holds no manifest")
    return found


def _draw(found: Review, path: Path, limit: int, sheets: set[Path]) -> None:
    if not found.moments or not limit or not found.drawable:
        if is_sheet(path):
            _say(f"note: {path} is of an earlier review", err=True)
        return
    if path in sheets:  # clip.json next to clip_anonymized.json
        raise OutputError(f"{path.name} is the sheet of another manifest of this run: give this one a name with -o")
    with phase(f"drawing {path.name}"):
        shown = write_sheet(found, path, limit)
    sheets.add(path)
    most = "" if shown == found.count else f", the {shown} most serious of {found.count} moments"
    _say(f"sheet: {path}{most}")


def _say(line: str, *, err: bool = False) -> None:
    """One line: names of files and of detectors may hold anything."""
    typer.echo(one_line(line), err=err)
