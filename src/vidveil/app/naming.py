"""One output path for each source. No two are the same, and none depends on what else is worked on."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from vidveil.core.errors import OutputError
from vidveil.video.sources import MARK, Kind, Refusal, Source, is_media, is_output


def name_outputs(sources: Sequence[Source], output: str | None) -> tuple[list[tuple[Source, Path]], list[Refusal]]:
    """One output path for each source, no two the same.

    `clip.mov` becomes `clip_anonymized.mp4`, next to the source or below the folder `output` in the same tree. A file
    that shares its name with another but for the suffix (`a.avi` next to `a.mp4`) carries its suffix in its output's
    name (`a_avi_anonymized.mp4`): the neighbour need not be among the sources, so names do not depend on the call.
    """
    target = None if output is None else Path(output)
    if target is not None and names_a_file(output):
        return _one_output(sources, target)
    folders = _own_folders(source.root for source in sources if source.root is not None)
    named: list[tuple[Source, Path]] = []
    refused: list[Refusal] = []
    taken: dict[object, Source] = {}
    identities: dict[Path, object] = {}
    neighbours = _Neighbours()
    streams = 0
    for source in sources:
        streams += source.kind is Kind.STREAM
        if source.live:
            folder = target or Path()
        elif target is None:
            folder = source.path.parent
        else:
            folder = target / (folders[source.root] if source.root is not None else "") / source.below
        path = folder / _output_name(source, streams, neighbours)
        if folder not in identities:
            identities[folder] = _identity(folder)
        key = (identities[folder], path.stem.casefold())  # manifests share the stem, and some disks the case
        if key in taken:
            refused.append(Refusal(source.given, OutputError(f"would write the same output as {taken[key].given}")))
            continue
        taken[key] = source
        named.append((source, path))
    return named, refused


def names_a_file(output: str | None) -> bool:
    """Whether what stands after -o is the name of a file, and not of a folder."""
    if output is None or output.endswith("/"):
        return False
    return bool(Path(output).suffix) and not _is_folder(Path(output))


def output_folders(sources: Iterable[Source], output: str | None) -> list[Path]:
    """The folder that `-o` names, or those of the sources."""
    if output is not None:
        return [Path(output).parent if names_a_file(output) else Path(output)]
    return list(dict.fromkeys(Path() if source.live else source.path.parent for source in sources))


def _own_folders(roots: Iterable[Path]) -> dict[Path, str]:
    """A folder for each folder that was given, named after it; none is needed for one alone."""
    folders: dict[Path, str] = {}
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    """The last number tried for a name: all below it are taken."""
    for root in dict.fromkeys(roots):
        name, number = root.name, numbers.get(root.name, 1)
        while name in taken:
            number += 1
            name = f"{root.name}{number}"
        numbers[root.name] = number
        folders[root] = name
        taken.add(name)
    return folders if len(folders) > 1 else dict.fromkeys(folders, "")


def _identity(folder: Path) -> object:
    """What two names of one folder share."""
    try:
        found = folder.stat()
    except OSError:  # not there yet
        return os.path.realpath(folder)
    return found.st_dev, found.st_ino


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # whoever writes there will say why not
        return False


def _one_output(sources: Sequence[Source], output: Path) -> tuple[list[tuple[Source, Path]], list[Refusal]]:
    if len(sources) > 1:
        error = OutputError(f"{len(sources)} sources cannot share one output file: give a folder with -o")
        return [], [Refusal(str(output), error)]
    for source in sources:
        expected = output_suffix(source)
        if output.suffix.lower() != expected:
            return [], [Refusal(str(output), OutputError(f"the output of {source.name} must end in {expected}"))]
        if not source.live and os.path.realpath(output) == os.path.realpath(source.path):
            return [], [Refusal(str(output), OutputError("the output would replace its own input"))]
    return [(source, output) for source in sources], []


def output_suffix(source: Source) -> str:
    if source.kind is not Kind.IMAGE:
        return ".mp4"
    return ".jpg" if source.path.suffix.lower() in (".jpg", ".jpeg") else ".png"


def _output_name(source: Source, stream: int, neighbours: "_Neighbours") -> str:
    if source.kind is Kind.CAMERA:
        stem = source.name
    elif source.kind is Kind.STREAM:
        stem = "stream" if stream == 1 else f"stream{stream}"  # an address names a place, and the manifest has the name
    else:
        stem = source.path.stem
        if source.path.suffix.lower() != ".mp4" and neighbours.has_namesake(source.path):
            stem += "_" + source.path.suffix.lstrip(".").lower()
    return stem + MARK + output_suffix(source)


class _Neighbours:
    """Which names the media next to a source have. Each folder is listed once."""

    def __init__(self) -> None:
        self._folders: dict[Path, tuple[Counter[str], set[str]] | None] = {}

    def has_namesake(self, path: Path) -> bool:
        """Whether another file of its folder has its name but for the suffix and the case."""
        folder = path.parent
        if folder not in self._folders:
            self._folders[folder] = _stems(folder)
        listed = self._folders[folder]
        if listed is None:  # nobody can tell: the longer name is the safe one
            return True
        stems, names = listed
        return stems[path.stem.casefold()] > (path.name in names)


def _stems(folder: Path) -> tuple[Counter[str], set[str]] | None:
    """How many media files of a folder have each stem, and the names of these files. None: it cannot be listed."""
    try:
        media = [path for path in folder.iterdir() if is_media(path) and not is_output(path)]
    except OSError:
        return None
    return Counter(path.stem.casefold() for path in media), {path.name for path in media}
