"""`vidveil anonymize` of stores of features, by an adapter."""

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from vidveil.cli.device import device_for
from vidveil.core.bounded import is_file
from vidveil.core.errors import DataError, UsageError, VidveilError
from vidveil.core.text import printable
from vidveil.data.store.features import is_store
from vidveil.data.store.layouts import check_target, open_layout


def refuse_features(sources: Sequence[str], method: str) -> None:
    """Methods of video know nothing of vectors."""
    for name in sources:
        if Path(name).suffix.lower() in (".h5", ".hdf5", ".npy", ".npz") or is_file(Path(name) / "store.json"):
            raise UsageError(
                f"{printable(name, 300)} holds features, and {printable(method)} is for video: --method splavu:RUN"
            )


def anonymize_stores(
    sources: Sequence[str],
    output: str | None,
    method: str,
    given: Sequence[str],
    device: str,
    overwrite: bool,
    dry_run: bool,
) -> int:
    """One after the other: the exit code. Those that fail are reported, and the others are done.

    Args:
        given: options that say something about video, of which there is none here.
    """
    from vidveil.app.feature_stores import anonymize_features, target_of
    from vidveil.data.features.extract import progress_of
    from vidveil.methods.feature_adapter import checkpoint_of

    if given:
        raise UsageError(f"{method} works on stored features: leave out {', '.join(given)}")
    if output is not None and len(sources) > 1:
        raise UsageError("several stores need no -o: each gets a name of its own, next to it")
    checkpoint_of(method)  # a mistake in its name is reported once, and not for each store
    place, failed = device_for(device, learned=True), False
    for name in sources:
        source, target = Path(name), Path(output) if output else None
        try:
            if not os.path.exists(source):  # noqa: PTH110 - whatever its name
                raise DataError(f"there is nothing at {source}")
            if dry_run:
                planned = target or target_of(source)
                if not is_store(source):
                    check_target(open_layout(source), planned, overwrite)
                typer.echo(f"{source} → {planned}")
                continue
            with progress_of(source.name, 0, "vectors") as progress:
                done = anonymize_features(source, method, target, overwrite=overwrite, device=place, progress=progress)
            typer.echo(f"{done.output}: {done.vectors:,} vectors, described in {done.manifest.name}", err=True)
            for warning in done.warnings:
                typer.echo(f"warning: {warning}", err=True)
            if not done.knows_encoder:
                note = f"{source.name} does not say which encoder made it: see that it is {method}'s"
                typer.echo(f"note: {note}", err=True)
        except VidveilError as error:
            typer.echo(f"error: {error}", err=True)
            failed = True
    return 1 if failed else 0
