"""Reading files that may be hostile: never a pipe, never more than a limit, never a traceback.

Every JSON, JSON-lines and YAML file is read through here. What is wrong is a `ValueError` with a reason of one short
line and without the file's name, which the caller puts before it; a file that is not there, or may not be read, is an
`OSError` as always.

    try:
        values = read_json(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path.name}: {reason(error)}") from error
"""

import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from vidveil.core.text import printable

JSON_BYTES = 256 << 20
YAML_BYTES = 1 << 20
LINE_BYTES = 1 << 20
DIGITS = 19
"""Of a whole number: more do not fit into 64 bits."""
EXPONENT_DIGITS = 400
"""Characters of a number with a decimal point."""


def reason(error: Exception) -> str:
    """What was wrong, in words for the end of an error message."""
    if isinstance(error, OSError):
        return f"cannot be read ({(error.strerror or str(error) or type(error).__name__).lower()})"
    return str(error)


def open_regular(path: Path, limit: int | None = None) -> BinaryIO:
    """A regular file of at most `limit` bytes, opened for reading. A pipe or a device is never waited for."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        check_regular(os.fstat(number), limit)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def check_regular(found: os.stat_result, limit: int | None = None) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ValueError("is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("is not a regular file")
    if limit is not None and found.st_size > limit:
        raise ValueError(f"has {found.st_size:,} bytes, more than the {limit:,} that are read")


def read_bytes(path: Path, limit: int) -> bytes:
    with open_regular(path, limit) as file:
        data = file.read(limit + 1)
    if len(data) > limit:  # it grew meanwhile
        raise ValueError(f"has more than the {limit:,} bytes that are read")
    return data


def read_text(path: Path, limit: int) -> str:
    """UTF-8, with or without a byte order mark, and with the line ends of any system."""
    return _decoded(read_bytes(path, limit)).replace("\r\n", "\n")


def read_json(path: Path, limit: int = JSON_BYTES) -> Any:
    return parse_json(read_text(path, limit))


def parse_json(text: str) -> Any:
    """Plain values. Refuses what JSON has no word for (NaN, Infinity), and numbers that no 64 bits hold."""
    try:
        return json.loads(text, parse_int=_whole, parse_float=_real, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} in line {error.lineno}") from error
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
                raise ValueError(f"line {at} is not UTF-8") from error
            except ValueError as error:
                raise ValueError(f"line {at} {error}") from error


def read_yaml(path: Path, limit: int = YAML_BYTES) -> Any:
    return parse_yaml(read_text(path, limit))


def parse_yaml(text: str) -> Any:
    """Plain values. Refuses aliases, with which a few lines stand for gigabytes, and numbers that no 64 bits hold."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("has an alias (*name): write the value out")
            return super().compose_node(parent, index)

        def construct_yaml_int(self, node: Any) -> int:
            return _whole(str(self.construct_scalar(node)), super().construct_yaml_int, node)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
        raise ValueError(f"is not YAML: {problem}{where}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    except (TypeError, OverflowError, AttributeError) as error:  # of keys that are lists, of dates without end
        raise ValueError("is not YAML that can be read") from error


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8 text") from error


def _whole(text: str, read: Any = int, value: Any = None) -> int:
    digits = sum(c.isalnum() for c in text)
    if digits > DIGITS:
        raise ValueError(f"holds a number of {digits} digits")
    return int(read(text if value is None else value))


def _real(text: str) -> float:
    if len(text) > EXPONENT_DIGITS:
        raise ValueError(f"holds a number of {len(text)} characters")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"holds {printable(text, 20)}, which is too large a number")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"holds {text}, which is no number")
