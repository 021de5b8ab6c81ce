"""Random names for outputs, and the private file that says which source got which name."""

import csv
import io
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from vidveil.app.naming import names_a_file, output_suffix
from vidveil.core.atomic import is_part, temporary, write_bytes
from vidveil.core.bounded import is_folder, read_bytes, reason
from vidveil.core.errors import OutputError, UsageError
from vidveil.video.sources import MARK, Source, is_output

COLUMNS = ["source", "output"]
LARGEST = 256 << 20
"""Bytes of a map: more than a million names."""
_NAME = re.compile(rf"[0-9a-f]{{16}}{MARK}\.(mp4|jpg|png)")


def rename_outputs(
    sources: Sequence[Source], output: str | None, map_file: Path | None, *, dry_run: bool
) -> list[tuple[Source, Path]]:
    """An output of a random name for each source, in the order of these names: neither the order in which files are
    written nor their times then say which is which.

    All lie in the folder `output`, or each next to its source. With `map_file` names are taken from there, and new ones
    are written there before anything else is.
    """
    if names_a_file(output):
        raise UsageError("-o names a file, and --rename gives a random name: give a folder")
    if map_file is not None and any(source.live for source in sources):
        raise UsageError("--rename-map takes files: what a camera or stream shows is new each time, use --rename")
    folders = [_folder(source, output) for source in sources]
    if map_file is None:
        taken: set[str] = set()
        names = [_random_name(source, taken) for source in sources]
    else:
        _check_place(map_file, folders, output)
        names = _mapped_names(sources, map_file, dry_run=dry_run)
    renamed = [(source, folder / name) for source, folder, name in zip(sources, folders, names, strict=True)]
    return sorted(renamed, key=lambda pair: pair[1].name)


def _folder(source: Source, output: str | None) -> Path:
    if output is not None:
        return Path(output)
    return Path() if source.live else source.path.parent


def _random_name(source: Source, taken: set[str]) -> str:
    while (name := f"{secrets.token_hex(8)}{MARK}{output_suffix(source)}") in taken:
        pass
    taken.add(name)
    return name


def _mapped_names(sources: Sequence[Source], path: Path, *, dry_run: bool) -> list[str]:
    """Names of the sources, as the map has them; it has all of them when this returns, unless nothing is written."""
    try:
        if dry_run:
            return list(_with_new(sources, path, _read(path)).values())
        with temporary(path):  # a lock: two runs that write one map do not lose each other's names
            earlier = _read(path)
            names = _with_new(sources, path, earlier)
            # A name that is not UTF-8 is that of a source that cannot be opened: it fails, and is in no map.
            write_bytes(path, _csv(earlier | {file: name for file, name in names.items() if _is_text(file)}), 0o600)
    except OSError as error:
        raise OutputError(f"{path.name} cannot be written ({(error.strerror or str(error)).lower()})") from error
    return list(names.values())


def _check_place(path: Path, folders: Iterable[Path], output: str | None) -> None:
    """Whoever gives a folder of outputs away must not give the map with it. Without -o sources lie there, too."""
    if path.suffix.lower() != ".csv":
        raise UsageError("the name after --rename-map must end in .csv")
    if not is_folder(path.parent):
        raise UsageError(f"--rename-map {path}: there is no folder {path.parent}; make it first")
    place = Path(os.path.realpath(path.parent))
    try:
        among = any(is_output(file) for file in place.iterdir() if not is_part(file.name))
    except OSError as error:
        raise UsageError(f"--rename-map {path}: {place} {reason(error)}") from error
    if among:
        raise UsageError(f"{path.name} would lie among the outputs: give --rename-map a place outside of {place}")
    for folder in {Path(os.path.realpath(folder)) for folder in set(folders)}:
        if place == folder or (output is not None and place.is_relative_to(folder)):
            raise UsageError(f"{path.name} would lie among the outputs: give --rename-map a place outside of {folder}")


def _with_new(sources: Sequence[Source], path: Path, earlier: dict[str, str]) -> dict[str, str]:
    """The name of each source by its real path: that of an earlier run, or a new one."""
    taken = set(earlier.values())
    names: dict[str, str] = {}
    for source in sources:
        file = os.path.realpath(source.path)
        names[file] = earlier[file] if file in earlier else _random_name(source, taken)
        if not names[file].endswith(output_suffix(source)):
            raise UsageError(f"{path.name} names {names[file]} for {source.name}, whose output is of another kind")
    return names


def _csv(names: dict[str, str]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    writer.writerows(sorted(names.items()))
    return text.getvalue().encode("utf-8")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def new_map_note(path: Path, folders: Iterable[Path]) -> str | None:
    """What to say where a map is new and outputs of random names are there, of which it knows none."""
    if os.path.lexists(path):
        return None
    for folder in folders:
        if is_folder(folder) and any(_NAME.fullmatch(file.name) for file in folder.iterdir()):
            return (
                f"{path.name} is new, and {folder} holds outputs of random names, which will be made again under "
                "other names: if there is an older map, give it"
            )
    return None


def _read(path: Path) -> dict[str, str]:
    """The names in a map, by real path of the source; none if there is no map."""
    try:
        data = read_bytes(path, LARGEST)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path.name} {reason(error)}: give --rename-map another name") from error
    names: dict[str, str] = {}
    at = 1
    try:
        rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        if next(rows, None) != COLUMNS:
            raise ValueError
        for row in rows:
            at = rows.line_num
            source, name = row
            if not _NAME.fullmatch(name) or source in names:
                raise ValueError
            names[source] = name
        if len(set(names.values())) < len(names):
            raise ValueError
    except (ValueError, csv.Error) as error:
        if isinstance(error, UnicodeDecodeError):
            at = data.count(b"\n", 0, error.start) + 1
        expected = 'expected "source","output" in comma-separated UTF-8, as vidveil wrote it'
        raise UsageError(f"{path.name}, line {at}: {expected}: restore a copy") from error
    return names
