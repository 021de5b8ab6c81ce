"""The files that a run writes: none may replace a source, and none that shows originals may lie among outputs."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from vidveil.app.earlier import manifest_path
from vidveil.app.naming import names_a_file
from vidveil.app.task import Task
from vidveil.core.atomic import part_of
from vidveil.core.bounded import is_folder
from vidveil.core.errors import OutputError, UsageError
from vidveil.methods.learned.anonymizer import learned_in
from vidveil.video.sources import Source

Named = Sequence[tuple[Source, Path]]
"""Sources and their outputs."""


def check_text(option: str, name: str | None) -> None:
    """Raises UsageError if a name is not UTF-8: manifests are, and FFmpeg opens no other name."""
    try:
        (name or "").encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the name after {option} is not valid UTF-8: give another one") from error


def check_extra_files(task: Task, found: Sequence[Source], named: Named, output: str | None) -> None:
    """Raises UsageError if a preview, a heatmap or a tracks file cannot be written where it was asked for."""
    options = task.options
    preview, heatmap, tracks_out = options.preview, options.heatmap, options.detection.tracks_out
    if output is not None and not names_a_file(output):
        for option, shown in ("--preview", preview), ("--heatmap", heatmap):
            if shown is not None:
                _check_outside(option, shown, Path(output))
    if preview is not None:
        _check_extra("--preview", preview, ".mp4", found, named)
    if heatmap is not None:
        learned = learned_in(task.named)
        if learned is None or learned.tubelet is None:
            raise UsageError(f"--heatmap shows scores of learned methods with a mask, and {task.spec} has none")
        _check_extra("--heatmap", heatmap, ".mp4", found, named)
        if preview is not None and _same(preview, heatmap):
            raise UsageError("--heatmap and --preview name the same file")
    if tracks_out is not None:
        _check_extra("--tracks-out", tracks_out, ".jsonl", found, named)


def check_targets(path: Path, extras: Iterable[Path], precious: set[tuple[int, int]]) -> None:
    """Raises OutputError if a job would write or rename a `precious` file, whatever --overwrite says."""
    for target in (path, manifest_path(path), *extras):
        for file in (target, part_of(target)):
            if file_ids([file]) & precious:
                raise OutputError(f"{file.name} is a source of this run and would be replaced")
        if target.is_dir():
            raise OutputError(f"{target.name} is a folder")


def file_ids(paths: Iterable[Path]) -> set[tuple[int, int]]:
    """Device and inode of each file that exists: two names of one file share them."""
    found = set()
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            found.add((status.st_dev, status.st_ino))
    return found


def _check_outside(option: str, shown: Path, outputs: Path) -> None:
    if Path(os.path.realpath(shown.parent)).is_relative_to(os.path.realpath(outputs)):
        raise UsageError(f"{option} shows originals, and {shown.name} would lie among the outputs in {outputs}")


def _check_extra(option: str, extra: Path, suffix: str, found: Sequence[Source], named: Named) -> None:
    if len(found) > 1:
        raise UsageError(f"{option} takes one source")
    check_text(option, str(extra))
    folders = [path.parent for _, path in named]  # those are made
    if not is_folder(extra.parent) and not any(folder.is_relative_to(extra.parent) for folder in folders):
        raise UsageError(f"{option} {extra}: there is no folder {extra.parent}; make it first")
    if extra.suffix.lower() != suffix:
        raise UsageError(f"the name after {option} must end in {suffix}")
    files = [source.path for source in found if not source.live]
    files += [file for _, path in named for file in (path, manifest_path(path))]
    if any(_same(extra, file) for file in files):
        raise UsageError(f"{option} would replace the source or the output")


def _same(one: Path, other: Path) -> bool:
    """Whether two names are, or would be, of one file."""
    alike = os.path.realpath(one).casefold() == os.path.realpath(other).casefold()
    return alike or bool(file_ids([one]) & file_ids([other]))
