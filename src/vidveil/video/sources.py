"""What a user can point at: a file, a folder, a glob, an image, a camera number, a stream's URL.

`find` turns the words of the command line into sources, `name_outputs` gives every source an output of its own.
"""

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from vidveil.errors import InputError, OutputError, VidveilError

VIDEO_SUFFIXES = frozenset(
    ".mp4 .m4v .mov .avi .mkv .webm .mpg .mpeg .mpe .m2v .vob .ts .mts .m2ts .wmv .asf .flv .f4v .3gp .3g2 .ogv .ogg "
    ".gif .mxf .dv .h264 .264 .h265 .265 .hevc .mjpeg .mjpg .ivf .y4m .lrv .insv .360 .rm .rmvb .nut .av1 .obu".split()
)
IMAGE_SUFFIXES = frozenset(".jpg .jpeg .png .bmp .webp .tif .tiff".split())
URL_SCHEMES = frozenset("rtsp rtsps rtmp rtmps http https udp tcp srt".split())
MARK = "_anonymized"


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
    root: str = ""
    """Name of the folder that was given, where a folder was given."""

    @property
    def live(self) -> bool:
        return self.kind in (Kind.CAMERA, Kind.STREAM)

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


def find(words: Iterable[str]) -> tuple[list[Source], list[Refusal], int]:
    """Sources in a stable order, what was refused, and how many files in folders were passed over as no media."""
    sources: dict[str, Source] = {}
    refused: list[Refusal] = []
    passed_over = 0
    for word in words:
        try:
            found, skipped = _expand(word)
        except VidveilError as error:
            refused.append(Refusal(shown(word), error))
            continue
        passed_over += skipped
        for source in found:
            key = source.location if source.live else str(source.path.resolve())
            sources.setdefault(key, source)  # the same file given twice is worked on once
    return list(sources.values()), refused, passed_over


def shown(word: str) -> str:
    """A source as printed: user names and passwords in URLs stay out of terminals and logs."""
    scheme, separator, rest = word.partition("://")
    if not separator or scheme.lower() not in URL_SCHEMES:
        return word
    return f"{scheme}://{rest.split('?')[0].rpartition('@')[2]}"


def _expand(word: str) -> tuple[list[Source], int]:
    path = Path(word)
    if _is_url(word):
        return [Source(Kind.STREAM, word, shown(word))], 0
    if path.is_dir():
        return _folder(path)
    if path.exists():
        return [_file(path)], 0
    if re.fullmatch(r"\d{1,2}", word):
        return [Source(Kind.CAMERA, word, f"camera{int(word)}")], 0
    if glob.has_magic(word):
        return _glob(word)
    raise InputError("no such file or folder")


def _is_url(word: str) -> bool:
    return "://" in word and word.partition("://")[0].lower() in URL_SCHEMES


def _file(path: Path, below: Path = Path(), root: str = "") -> Source:
    if not path.is_file():
        raise InputError("not a regular file")
    if is_output(path):
        raise InputError(f"is an output of vidveil ({MARK} in its name), and is never taken as input")
    kind = Kind.IMAGE if path.suffix.lower() in IMAGE_SUFFIXES else Kind.VIDEO
    return Source(kind, str(path), path.name, below, root)


def is_output(path: Path) -> bool:
    """Whether the name is one that vidveil gives: an output, its manifest, or an unfinished one of either."""
    return f"{MARK}." in path.name


def _is_media(path: Path) -> bool:
    return path.suffix.lower() in VIDEO_SUFFIXES | IMAGE_SUFFIXES


def _folder(folder: Path) -> tuple[list[Source], int]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not is_output(p))
    media = [p for p in files if _is_media(p)]
    if not media:
        raise InputError("no video or image in this folder")
    root = folder.resolve().name
    return [_file(p, p.parent.relative_to(folder), root) for p in media], len(files) - len(media)


def _glob(pattern: str) -> tuple[list[Source], int]:
    files = sorted(p for p in map(Path, glob.glob(pattern, recursive=True)) if p.is_file() and not is_output(p))
    media = [p for p in files if _is_media(p)]
    if not media:
        raise InputError("no video or image matches")
    parts = Path(pattern).parts
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    base = Path(*parts[:fixed])
    return [_file(p, p.parent.relative_to(base), base.resolve().name) for p in media], len(files) - len(media)


def name_outputs(sources: Sequence[Source], output: str | None) -> tuple[list[tuple[Source, Path]], list[Refusal]]:
    """One output path for each source, no two the same.

    `clip.mov` becomes `clip_anonymized.mp4`, beside the source or below the folder `output` in the same tree. A file
    that shares its name with another but for the suffix (`a.avi` beside `a.mp4`) carries its suffix in its output's
    name (`a_avi_anonymized.mp4`): the neighbour need not be among the sources, so names do not depend on the call.
    """
    target = None if output is None else Path(output)
    if target is not None and target.suffix and not target.is_dir() and not str(output).endswith("/"):
        return _one_output(sources, target)
    several = len({source.root for source in sources if source.root}) > 1
    named: list[tuple[Source, Path]] = []
    refused: list[Refusal] = []
    taken: dict[str, Source] = {}
    for source in sources:
        if source.live:
            folder = target or Path()
        elif target is None:
            folder = source.path.parent
        else:
            folder = target / (source.root if several else "") / source.below
        path = folder / _output_name(source)
        key = str(path.parent.resolve() / path.stem).casefold()  # manifests share the stem, and some disks the case
        if key in taken:
            refused.append(Refusal(source.name, OutputError(f"would write the same output as {taken[key].name}")))
            continue
        taken[key] = source
        named.append((source, path))
    return named, refused


def _one_output(sources: Sequence[Source], output: Path) -> tuple[list[tuple[Source, Path]], list[Refusal]]:
    if len(sources) > 1:
        error = OutputError(f"{len(sources)} sources cannot share one output file: give a folder with -o")
        return [], [Refusal(str(output), error)]
    for source in sources:
        expected = _suffix(source)
        if output.suffix.lower() != expected:
            return [], [Refusal(str(output), OutputError(f"the output of {source.name} must end in {expected}"))]
        if not source.live and output.resolve() == source.path.resolve():
            return [], [Refusal(str(output), OutputError("the output would replace its own input"))]
    return [(source, output) for source in sources], []


def _suffix(source: Source) -> str:
    if source.kind is not Kind.IMAGE:
        return ".mp4"
    return ".jpg" if source.path.suffix.lower() in (".jpg", ".jpeg") else ".png"


def _output_name(source: Source) -> str:
    if source.kind is Kind.CAMERA:
        stem = source.name
    elif source.kind is Kind.STREAM:
        url = urlsplit(source.location)
        stem = re.sub(r"[^A-Za-z0-9]+", "_", f"{url.hostname or 'stream'}{url.path}").strip("_")
    else:
        stem = source.path.stem
        if source.path.suffix.lower() != ".mp4" and _has_namesake(source.path):
            stem += "_" + source.path.suffix.lstrip(".").lower()
    return stem + MARK + _suffix(source)


def _has_namesake(path: Path) -> bool:
    stem = path.stem.casefold()
    return any(
        other.name != path.name and other.stem.casefold() == stem and _is_media(other) and not is_output(other)
        for other in path.parent.iterdir()
    )
