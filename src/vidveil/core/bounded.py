"""Read files that may be hostile: regular files only, within limits, and with errors that fit in a line.

Every JSON, JSON-lines and YAML file is read here. Bad content is a `ValueError` with a reason of one short line,
without the file's name, which the caller puts before it; a file that is missing or unreadable is an `OSError`.

    try:
        values = read_json(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path.name}: {reason(error)}") from error
"""

import errno
import io
import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vidveil.core.text import printable

JSON_BYTES = 16 << 20
"""Of manifests, checkpoints and recipes: the largest have a few megabytes."""
JSON_VALUES = 1_000_000
"""Parsed values take up to a hundred bytes each, whatever they took in the file."""
RESULTS_BYTES = 64 << 20
RESULTS_VALUES = 4_000_000
"""Of results: the largest have less than a megabyte and 50,000 values."""
ANNOTATIONS_BYTES = 1 << 30
"""Of files that come with a dataset."""
ANNOTATION_VALUES = 20_000_000
"""Of JSON files that come with a dataset, and of the index of decoded videos: 20 for each of a million videos."""
YAML_BYTES = 64 << 10
LINE_BYTES = 1 << 20
WHOLE_CHARACTERS = 20
"""Of a whole number: a longer one does not fit into 64 bits."""
REAL = 400
"""Characters of a number with a decimal point."""
NOT_UTF8 = "is not UTF-8 text: save it as UTF-8"


def reason(error: Exception) -> str:
    """The error as the end of a message."""
    if isinstance(error, OSError):
        return f"cannot be read ({(error.strerror or str(error) or type(error).__name__).lower()})"
    return str(error)


SWOLLEN, HARMLESS = 200, 1 << 30
"""Data of more than HARMLESS bytes must be at most SWOLLEN times as large as what is stored of them."""


class ExpansionError(ValueError):
    """See `check_expansion`."""


def is_file(path: str | Path) -> bool:
    """As `Path.is_file`, but False for names that are too long or invalid, where that raises."""
    return os.path.isfile(path)  # noqa: PTH113


def is_there(path: str | Path) -> bool:
    """Whether the path leads to anything: a file, a folder, a pipe."""
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: str | Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112


def open_regular(path: Path, limit: int | None = None) -> io.BufferedReader:
    """A regular file of at most `limit` bytes, opened for reading. Never waits for a pipe or a device."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        check_regular(os.fstat(number), limit)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def check_regular(found: os.stat_result, limit: int | None = None) -> None:
    """OSError for a folder, a pipe or a device; ValueError for a file of more than `limit` bytes."""
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if limit is not None and found.st_size > limit:
        raise ValueError(f"has {found.st_size:,} bytes, more than the {limit:,} that are read")


def regular(path: Path, limit: int | None = None) -> Path:
    """The path, if it leads to a regular file that is not nearly all hole: for libraries that open files themselves and
    trust their sizes."""
    found = path.stat()
    check_regular(found, limit)
    check_expansion(found.st_size, on_disk(found))
    return path


def on_disk(found: os.stat_result) -> int:
    """Bytes that the file takes on disk: few for a sparse file, all where the file system does not report it."""
    blocks = found.st_blocks * 512
    return min(found.st_size, blocks) if blocks else found.st_size


def check_expansion(size: int, stored: int, times: int = SWOLLEN) -> None:
    """ExpansionError where a few stored bytes stand for gigabytes: a sparse file, or compressed zeros."""
    if size > HARMLESS and size > times * stored:
        raise ExpansionError(f"stands for {size:,} bytes, and {stored:,} are stored: that is no data")


def read_bytes(path: Path, limit: int) -> bytes:
    with open_regular(path, limit) as file:
        found = os.fstat(file.fileno())
        check_expansion(found.st_size, on_disk(found))
        return file.read(found.st_size)  # no more, if it grows meanwhile


def read_text(path: Path, limit: int) -> str:
    """UTF-8, with or without a byte order mark, and with the line ends of any system."""
    return _decoded(read_bytes(path, limit)).replace("\r\n", "\n")


def read_json(path: Path, limit: int = JSON_BYTES, values: int = JSON_VALUES, *, finite: bool = True) -> Any:
    """`parse_json` of a file of at most `limit` bytes."""
    return parse_json(_decoded(read_bytes(path, limit)), values, finite=finite)


def read_json_object(
    path: Path, limit: int = JSON_BYTES, values: int = JSON_VALUES, *, finite: bool = True
) -> dict[str, Any]:
    """`read_json` of a file that holds an object: names and values."""
    found = read_json(path, limit, values, finite=finite)
    if not isinstance(found, dict):
        raise ValueError(f"is not a JSON object, but {kind_of(found)}")
    return found


def parse_json(text: str, values: int = JSON_VALUES, *, finite: bool = True) -> Any:
    """Plain values, at most `values` of them. Refuses numbers that do not fit into 64 bits and, unless `finite` is
    False, NaN and Infinity, which are not JSON, but Python writes them, and checkpoints may hold them."""
    # Counted before parsing. Commas and brackets in texts count, too: the limits leave room for them.
    if text.count(",") + text.count("[") + text.count("{") > values:
        raise ValueError(f"holds more than {values:,} values")
    constant = _constant if finite else float
    try:
        return json.loads(text, parse_int=_whole, parse_float=_real, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def json_lines(path: Path, limit: int = LINE_BYTES) -> Iterator[tuple[int, Any]]:
    """(line number from 1, value) of each line that is not empty. No line may have more than `limit` bytes."""
    with open_regular(path) as file:
        at = 0
        while line := file.readline(limit + 1):
            at += 1
            try:
                if len(line) > limit:
                    raise ValueError(f"has more than {limit:,} bytes")
                text = _decoded(line) if at == 1 else line.decode("utf-8")
                if text.strip():
                    yield at, parse_json(text)
            except UnicodeDecodeError as error:
                raise ValueError(f"line {at} {NOT_UTF8}") from error
            except ValueError as error:
                raise ValueError(f"line {at} {error}") from error


def parse_yaml(text: str) -> Any:
    """Plain values. Refuses aliases, with which a few lines can stand for gigabytes, duplicate keys, and whole numbers
    that do not fit into 64 bits."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Plain values, no aliases, and no key twice."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("has an alias (*name): write the value out")
            return super().compose_node(parent, index)

        def construct_yaml_int(self, node: Any) -> int:
            if len(node.value) > WHOLE_CHARACTERS:
                raise ValueError(f"holds a number of {len(node.value)} digits")
            return _in_64_bits(int(super().construct_yaml_int(node)))

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = set()
            for name, _ in node.value:
                if isinstance(name, yaml.ScalarNode) and name.tag != "tag:yaml.org,2002:merge":
                    key = self.construct_object(name)
                    if key in keys:
                        raise ValueError(f"has the key {printable(repr(key))} twice")
                    keys.add(key)
            return super().construct_mapping(node, deep)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise ValueError(f"is not YAML: {printable(error.problem or 'it cannot be parsed')}{where}") from error
    except yaml.reader.ReaderError as error:  # characters that YAML does not allow
        raise ValueError(f"is not YAML: {printable(error.reason)}") from error
    except yaml.YAMLError as error:
        raise ValueError("is not YAML: it cannot be parsed") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    except (TypeError, OverflowError, AttributeError, LookupError) as error:  # keys that are lists, `!!bool x`
        raise ValueError("is not YAML that can be read") from error


def parse_real(text: str) -> float:
    """A number as people write it, such as `inf` or `1e-3`. ValueError for a finite number that no float can hold."""
    if len(text) > REAL:
        raise ValueError(f"is a number of {len(text)} characters")
    value = float(text)
    if math.isinf(value) and any(c.isdigit() for c in text):
        raise ValueError("is too large a number")
    return value


def kind_of(value: Any) -> str:
    """The kind of a value read from JSON or YAML, for messages."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(NOT_UTF8) from error


def _whole(text: str) -> int:
    if len(text) > WHOLE_CHARACTERS:
        raise ValueError(f"holds a number of {len(text)} digits")
    return _in_64_bits(int(text))


def _in_64_bits(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"holds {value}, which does not fit into 64 bits")
    return value


def _real(text: str) -> float:
    if len(text) > REAL:
        raise ValueError(f"holds a number of {len(text)} characters")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"holds {printable(text, 20)}, which is too large a number")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"holds {text}, which is no number")
