"""Sources: files, folders, globs, images, camera numbers and URLs of streams.

`find` turns the arguments of the command line into sources; `app/naming.py` gives each its own output.
"""

import errno
import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from vidveil.core.atomic import is_part
from vidveil.core.errors import InputError, VidveilError

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
"""At the beginning of every contact sheet, since a user's own picture may have such a name, too."""


class Kind(Enum):
    VIDEO = "video"
    IMAGE = "image"
    CAMERA = "camera"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Source:
    kind: Kind
    location: str
    """What to open: a path, a camera's number, a URL. It may contain a password and is never printed."""
    name: str
    """The name in messages, after which the output is named."""
    below: Path = Path()
    """The folder of a file, relative to the folder or glob where it was found."""
    root: Path | None = None
    """The folder on the command line, if there was one."""

    @property
    def live(self) -> bool:
        return self.kind in (Kind.CAMERA, Kind.STREAM)

    @property
    def given(self) -> str:
        """The name with its folder, to distinguish two sources of one name."""
        return self.name if self.live else self.location

    @property
    def label(self) -> str:
        """The name in messages: with its folder, if a whole tree was given."""
        return self.name if self.live else str(self.below / self.name)

    @property
    def path(self) -> Path:
        if self.live:
            raise ValueError(f"{self.name} is not a file")
        return Path(self.location)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An argument of the command line, or a file, that is refused, and why."""

    name: str
    error: VidveilError


class _Found(NamedTuple):
    sources: list[Source]
    refused: list[Refusal]
    passed_over: list[Path]


def find(words: Iterable[str]) -> tuple[list[Source], list[Refusal], list[Path]]:
    """Sources in a stable order, what was refused, and files in folders that are no media."""
    sources: dict[str, Source] = {}
    refused: list[Refusal] = []
    passed_over: list[Path] = []
    real = _RealPaths()
    for word in words:
        try:
            found = _expand(word)
        except VidveilError as error:
            refused.append(Refusal(shown(word), error))
            continue
        except OSError as error:  # a name that is too long, a folder without permission
            refused.append(Refusal(shown(word), _unreadable(error)))
            continue
        refused += found.refused
        passed_over += found.passed_over
        for source in found.sources:
            key = source.location if source.live else real.of(source.path)
            sources.setdefault(key, source)  # a file that is given twice is processed once
    return list(sources.values()), refused, passed_over


class _RealPaths:
    """`os.path.realpath` of many files, with one lookup for each folder."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of(self, path: Path) -> str:
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        joined = os.path.join(self._folders[folder], name)  # noqa: PTH118
        return os.path.realpath(joined) if os.path.islink(joined) else joined  # noqa: PTH114


def shown(word: str) -> str:
    """A source as printed: without user names, passwords and tokens of URLs."""
    scheme, separator, rest = word.partition("://")
    if not separator:
        return word
    secret, _, address = rest.rpartition("@")
    address = re.split(r"[?#]", address)[0]
    doubtful = re.search(r"[?#]", secret)  # in a password, or before a token with an @ in it? It is ambiguous
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
    """Whether vidveil gives such a name: to an output, its manifest or sheet, or an unfinished one of these."""
    name = path.name
    return f"{MARK}." in name or is_part(name) or (name.endswith(SHEET) and is_sheet(path))


def is_sheet(path: Path) -> bool:
    """Whether a file is a contact sheet that vidveil drew."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return SHEET_TAG in file.read(100)
    except OSError:  # reading it will report the error
        return False


def is_media(path: Path) -> bool:
    """Whether the name is one of videos or images."""
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
    """Folders that match and cannot be listed or entered, which `glob` skips silently."""
    for path in [pattern, *map(Path, glob.glob(str(pattern), recursive=True))]:
        try:
            if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
                yield str(path), PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:  # something in a folder that can be listed, but not entered
            yield str(path.parent), error


def _gather(paths: Iterable[Path], base: Path, closed: dict[str, OSError], nothing: str) -> _Found:
    """The media among `paths`, below the folder `base`, and a refusal for each folder that cannot be read."""
    files = []
    for path in paths:
        try:
            if path.is_file() and not is_output(path):
                files.append(path)
        except OSError as error:  # a folder that can be listed, but not entered
            closed.setdefault(str(path.parent), error)
    media = sorted(filter(is_media, files))
    if not media and not closed:
        raise InputError(nothing)
    root = Path(os.path.realpath(base))
    sources = [_file(path, path.parent.relative_to(base), root) for path in media]
    refused = [Refusal(name, _unreadable(error)) for name, error in sorted(closed.items())]
    return _Found(sources, refused, sorted(set(files) - set(media)))
