"""What a user can point at: a file, a folder, a glob, an image, a camera number, a stream's URL.

`find` turns the words of the command line into sources, `name_outputs` gives every source an output of its own.
"""

import errno
import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from vidveil.core.atomic import is_part
from vidveil.errors import InputError, OutputError, VidveilError

VIDEO_SUFFIXES = frozenset(
    ".mp4 .m4v .mov .avi .mkv .webm .mpg .mpeg .mpe .m2v .vob .ts .mts .m2ts .wmv .asf .flv .f4v .3gp .3g2 .ogv .ogg "
    ".dav .gif .mxf .dv .h264 .264 .h265 .265 .hevc .mjpeg .mjpg .ivf .y4m .lrv .insv .360 .rm .rmvb .nut "
    ".av1 .obu".split()
)
IMAGE_SUFFIXES = frozenset(".jpg .jpeg .png .bmp .webp .tif .tiff".split())
URL_SCHEMES = frozenset("rtsp rtsps rtmp rtmps http https udp tcp srt".split())
MARK = "_anonymized"
SHEET = "_review.png"
SHEET_TAG = b"Software\0vidveil review"
"""Stands at the beginning of every contact sheet: a user's own picture may have such a name, too."""


class Kind(Enum):
    VIDEO = "video"
    IMAGE = "image"
    CAMERA = "camera"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Source:
    kind: Kind
    location: str
    """What to open: a path, a camera's device, a URL. May hold a password: never printed."""
    name: str
    """What people see, and what the output is named after."""
    below: Path = Path()
    """The folder of a file, relative to the folder or glob that it was found through."""
    root: Path | None = None
    """The folder that was given, where one was given."""

    @property
    def live(self) -> bool:
        return self.kind in (Kind.CAMERA, Kind.STREAM)

    @property
    def given(self) -> str:
        """The name with its folder, where two sources of one name must be told apart."""
        return self.name if self.live else self.location

    @property
    def label(self) -> str:
        """The name as it stands in messages: with its folder, where a whole tree was given."""
        return self.name if self.live else str(self.below / self.name)

    @property
    def path(self) -> Path:
        if self.live:
            raise ValueError(f"{self.name} is not a file")
        return Path(self.location)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A word of the command line, or a file, that will not be worked on, and why."""

    name: str
    error: VidveilError


class _Found(NamedTuple):
    sources: list[Source]
    refused: list[Refusal]
    passed_over: list[Path]


def find(words: Iterable[str]) -> tuple[list[Source], list[Refusal], list[Path]]:
    """Sources in a stable order, what was refused, and which files in folders were passed over as no media."""
    sources: dict[str, Source] = {}
    refused: list[Refusal] = []
    passed_over: list[Path] = []
    for word in words:
        try:
            found = _expand(word)
        except VidveilError as error:
            refused.append(Refusal(shown(word), error))
            continue
        except OSError as error:  # a name that is too long, a folder that may not be entered
            refused.append(Refusal(shown(word), _unreadable(error)))
            continue
        refused += found.refused
        passed_over += found.passed_over
        for source in found.sources:
            key = source.location if source.live else os.path.realpath(source.path)
            sources.setdefault(key, source)  # the same file given twice is worked on once
    return list(sources.values()), refused, passed_over


def shown(word: str) -> str:
    """A source as printed: user names, passwords and tokens in URLs stay out of terminals and logs."""
    scheme, separator, rest = word.partition("://")
    if not separator:
        return word
    secret, _, address = rest.rpartition("@")
    address = re.split(r"[?#]", address)[0]
    doubtful = re.search(r"[?#]", secret)  # in a password, or before a token with an @ in it? Nobody can tell
    return f"{scheme}://{'...' if doubtful or address.startswith('/') or not address else address}"


def _unreadable(error: OSError) -> InputError:
    return InputError(f"cannot be read ({(error.strerror or type(error).__name__).lower()})")


def _expand(word: str) -> _Found:
    path = Path(word)
    if _is_url(word):
        return _Found([Source(Kind.STREAM, word, shown(word))], [], [])
    if path.is_dir():
        return _folder(path)
    if path.exists():
        return _Found([_file(path)], [], [])
    if re.fullmatch(r"\d{1,2}", word):
        return _Found([Source(Kind.CAMERA, word, f"camera{int(word)}")], [], [])
    if glob.has_magic(word):
        return _glob(word)
    raise InputError("no such file or folder")


def _is_url(word: str) -> bool:
    return "://" in word and word.partition("://")[0].lower() in URL_SCHEMES


def _file(path: Path, below: Path = Path(), root: Path | None = None) -> Source:
    if not path.is_file():
        raise InputError("not a regular file")
    if is_output(path):
        raise InputError("is an output of vidveil by its name, and is never taken as input")
    kind = Kind.IMAGE if path.suffix.lower() in IMAGE_SUFFIXES else Kind.VIDEO
    return Source(kind, str(path), path.name, below, root)


def is_output(path: Path) -> bool:
    """Whether the name is one that vidveil gives: an output, its manifest or sheet, or an unfinished one of these."""
    name = path.name
    return f"{MARK}." in name or is_part(name) or (name.endswith(SHEET) and is_sheet(path))


def is_sheet(path: Path) -> bool:
    """Whether a file is a contact sheet that vidveil drew."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return SHEET_TAG in file.read(100)
    except OSError:  # whoever works on it will say why not
        return False


def _is_media(path: Path) -> bool:
    return path.suffix.lower() in VIDEO_SUFFIXES | IMAGE_SUFFIXES


def _folder(folder: Path) -> _Found:
    errors: list[OSError] = []
    walk = os.walk(folder, onerror=errors.append)  # into no folder that is a link
    paths = [Path(where, name) for where, _, names in walk for name in names]
    closed = {str(error.filename): error for error in errors}
    return _gather(paths, folder, closed, "no video or image in this folder")


def _glob(pattern: str) -> _Found:
    parts = Path(pattern).parts
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    closed = {name: error for i in range(fixed, len(parts)) for name, error in _closed(Path(*parts[:i]))}
    paths = map(Path, glob.glob(pattern, recursive=True))
    return _gather(paths, Path(*parts[:fixed]), closed, "no video or image matches")


def _closed(pattern: Path) -> Iterator[tuple[str, OSError]]:
    """Folders that match and cannot be listed or entered. `glob` passes them over without a word."""
    for path in [pattern, *map(Path, glob.glob(str(pattern), recursive=True))]:
        try:
            if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
                yield str(path), PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:  # something in a folder that can be listed, but not entered
            yield str(path.parent), error


def _gather(paths: Iterable[Path], base: Path, closed: dict[str, OSError], nothing: str) -> _Found:
    """The media among `paths`, below the folder `base`; and a refusal for each folder that hides what is in it."""
    files = []
    for path in paths:
        try:
            if path.is_file() and not is_output(path):
                files.append(path)
        except OSError as error:  # a folder that can be listed, but not entered
            closed.setdefault(str(path.parent), error)
    media = sorted(filter(_is_media, files))
    if not media and not closed:
        raise InputError(nothing)
    root = Path(os.path.realpath(base))
    sources = [_file(path, path.parent.relative_to(base), root) for path in media]
    refused = [Refusal(name, _unreadable(error)) for name, error in sorted(closed.items())]
    return _Found(sources, refused, sorted(set(files) - set(media)))


def name_outputs(sources: Sequence[Source], output: str | None) -> tuple[list[tuple[Source, Path]], list[Refusal]]:
    """One output path for each source, no two the same.

    `clip.mov` becomes `clip_anonymized.mp4`, beside the source or below the folder `output` in the same tree. A file
    that shares its name with another but for the suffix (`a.avi` beside `a.mp4`) carries its suffix in its output's
    name (`a_avi_anonymized.mp4`): the neighbour need not be among the sources, so names do not depend on the call.
    """
    target = None if output is None else Path(output)
    if target is not None and target.suffix and not _is_folder(target) and not str(output).endswith("/"):
        return _one_output(sources, target)
    folders = _own_folders(source.root for source in sources if source.root is not None)
    named: list[tuple[Source, Path]] = []
    refused: list[Refusal] = []
    taken: dict[object, Source] = {}
    streams = 0
    for source in sources:
        streams += source.kind is Kind.STREAM
        if source.live:
            folder = target or Path()
        elif target is None:
            folder = source.path.parent
        else:
            folder = target / (folders[source.root] if source.root is not None else "") / source.below
        path = folder / _output_name(source, streams)
        key = (_identity(folder), path.stem.casefold())  # manifests share the stem, and some disks the case
        if key in taken:
            refused.append(Refusal(source.given, OutputError(f"would write the same output as {taken[key].given}")))
            continue
        taken[key] = source
        named.append((source, path))
    return named, refused


def _own_folders(roots: Iterable[Path]) -> dict[Path, str]:
    """A folder for each folder that was given, named after it; none is needed for one alone."""
    folders: dict[Path, str] = {}
    for root in dict.fromkeys(roots):
        name, number = root.name, 1
        while name in folders.values():
            number += 1
            name = f"{root.name}{number}"
        folders[root] = name
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


def _output_name(source: Source, stream: int) -> str:
    if source.kind is Kind.CAMERA:
        stem = source.name
    elif source.kind is Kind.STREAM:
        stem = "stream" if stream == 1 else f"stream{stream}"  # an address tells a place, and the manifest has the name
    else:
        stem = source.path.stem
        if source.path.suffix.lower() != ".mp4" and _has_namesake(source.path):
            stem += "_" + source.path.suffix.lstrip(".").lower()
    return stem + MARK + output_suffix(source)


def _has_namesake(path: Path) -> bool:
    stem = path.stem.casefold()
    try:
        neighbours = list(path.parent.iterdir())
    except OSError:  # nobody can tell: the longer name is the safe one
        return True
    return any(
        other.name != path.name and other.stem.casefold() == stem and _is_media(other) and not is_output(other)
        for other in neighbours
    )
