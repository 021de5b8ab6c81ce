"""Files that somebody made to do harm: they are refused, and the reason is one short line."""

import ast
import hashlib
import json
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import vidveil
from vidveil.core.arrays import read_archive, read_array
from vidveil.core.bounded import (
    YAML_BYTES,
    ExpansionError,
    check_expansion,
    is_file,
    json_lines,
    open_regular,
    parse_json,
    parse_real,
    parse_yaml,
    read_bytes,
    read_json,
    read_json_object,
    read_text,
    reason,
    regular,
)
from vidveil.core.file_hash import file_hash
from vidveil.core.typed import from_values


def read_yaml(path: Path) -> Any:
    return parse_yaml(read_text(path, YAML_BYTES))


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))


NOT_JSON = [
    ("[" * 100_000, "is nested too deeply"),
    ('{"a":' * 100_000, "is nested too deeply"),
    ("9" * 5000, "holds a number of 5000 digits"),
    ("[-" + "9" * 400 + "]", "holds a number of 401 digits"),
    ("1e400", "holds 1e400, which is too large a number"),
    ("0." + "1" * 5000, "holds a number of 5002 characters"),
    ("[NaN]", "holds NaN, which is no number"),
    ("-Infinity", "holds -Infinity, which is no number"),
    ('{"a": 1,\n}', "is not JSON: .* in line 2, column 1"),
    ("", "is not JSON: Expecting value in line 1, column 1"),
]
NOT_YAML = [
    (BOMB, r"has an alias \(\*name\): write the value out"),
    ("a: " + "[" * 10_000, "is nested too deeply"),
    ("a: " + "9" * 5000, "holds a number of 5000 digits"),
    ("a: 0x" + "f" * 5000, "holds a number of 5002 digits"),
    ("a: !!bool x", "is not YAML that can be read"),
    ("? [a]\n: b", "is not YAML: found unhashable key in line 1"),
    ("a: !!python/object/apply:os.system ['true']", "is not YAML: could not determine .*"),
    ("a: \0", "is not YAML: special characters are not allowed"),
    ("a: 1\nb: 2\na: 3", "has the key 'a' twice"),
    ("x: {a: 1, 'a': 2}", "has the key 'a' twice"),
]
TOO_LARGE = r"holds (-?\d+, which does not fit into 64 bits|a number of \d+ digits)"
BEYOND_64_BITS = [(f"[{number}]", TOO_LARGE) for number in (2**63, -(2**63) - 1, 99_999_999_999_999_999_999)]


@pytest.mark.parametrize(
    ("parse", "text", "why"),
    [
        *((parse_json, *case) for case in NOT_JSON + BEYOND_64_BITS),
        *((parse_yaml, *case) for case in NOT_YAML + BEYOND_64_BITS),
    ],
)
def test_text_that_cannot_be_parsed_is_an_error_of_one_short_line(parse, text, why):
    with pytest.raises(ValueError, match=f"^{why}$") as caught:
        parse(text)
    assert len(str(caught.value)) < 120


def test_the_largest_numbers_of_64_bits_are_read():
    assert parse_json(f"[{2**63 - 1}, {-(2**63)}, 1e308]") == [2**63 - 1, -(2**63), 1e308]
    assert parse_yaml(f"[{2**63 - 1}, {-(2**63)}]") == [2**63 - 1, -(2**63)]


def test_what_python_writes_for_infinity_is_read_where_that_is_wanted():
    assert parse_json("[Infinity]", finite=False) == [float("inf")]
    with pytest.raises(ValueError, match="1e400"):
        parse_json("[1e400]", finite=False)


@pytest.mark.parametrize("read", [read_json, read_yaml, read_json_object, lambda path: list(json_lines(path)), regular])
@pytest.mark.parametrize("what", ["pipe", "device", "folder"])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(tmp_path, read, what):
    path = tmp_path / "file"
    {"pipe": os.mkfifo, "device": lambda p: p.symlink_to("/dev/zero"), "folder": Path.mkdir}[what](path)
    with pytest.raises(OSError, match="it is") as caught:
        read(path)
    assert reason(caught.value).startswith("cannot be read (it is ")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    for read in (read_json, read_yaml):
        with pytest.raises(ValueError, match="has 1,099,511,627,776 bytes, more than the"):
            read(path)
    with path.open("r+b") as file:
        file.write(b"x")
    with pytest.raises(ExpansionError, match="stands for 1,099,511,627,776 bytes"):
        regular(path)


def test_no_more_is_taken_of_memory_than_the_file_has(tmp_path):
    (tmp_path / "small").write_bytes(b"x")
    assert read_bytes(tmp_path / "small", 1 << 60) == b"x"


def test_small_holes_and_all_that_is_stored_are_no_harm(tmp_path):
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 20)
    assert regular(tmp_path / "hole")
    check_expansion(1 << 40, 1 << 40)


def test_text_of_another_encoding_is_refused_and_a_byte_order_mark_is_not(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes('{"é": 1}'.encode("latin-1"))
    with pytest.raises(ValueError, match="is not UTF-8 text: save it as UTF-8"):
        read_json(path)
    path.write_bytes('{"é": 1}'.encode("utf-8-sig"))
    assert read_json_object(path) == {"é": 1}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a": 1}\n[1,\n', "line 2 is not JSON"),
        (b"1\n\n" + b"9" * 400 + b"\n", "line 3 holds a number of 400 digits"),
        (b"1\n\xff\n", "line 2 is not UTF-8"),
        (b'1\n"' + b"x" * 2_000_000, "line 2 has more than 1,048,576 bytes"),
        (b"[" * 100_000, "line 1 is nested too deeply"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path, data, why):
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(ValueError, match=why):
        list(json_lines(tmp_path / "a.jsonl"))


def test_lines_are_counted_from_one_and_empty_ones_left_out(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf1\r\n\r\n  \n[2]\n")
    assert list(json_lines(tmp_path / "a.jsonl")) == [(1, 1), (4, [2])]


def test_no_name_is_too_long_or_too_strange_to_be_looked_for():
    assert not any(is_file(name) for name in ("x" * 300, "x" * 100_000, "a\0b", "\udcff"))


def test_numbers_as_people_write_them_are_read_and_endless_ones_refused():
    assert (parse_real("1e-3"), parse_real("inf")) == (0.001, float("inf"))
    for text in ("1e400", "9" * 5000):
        with pytest.raises(ValueError, match="number"):
            parse_real(text)


@dataclass
class Made:
    name: str
    count: int = 0
    share: float | None = None
    shape: Literal["box", "ellipse"] = "box"
    sizes: tuple[int, ...] = ()
    more: dict[str, list[float]] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([], "holds a list in the place of an object"),
        ({}, "name is missing"),
        ({"name": "a", "x\n": 1}, r"'x\\n' is unknown; there are count, more, name, shape, share, sizes"),
        ({"name": 1}, "name is a number, not text"),
        ({"name": "a", "count": True}, "count is true or false, not a whole number"),
        ({"name": "a", "count": 1.5}, "count is a number, not a whole number"),
        ({"name": "a", "count": None}, "count is null, not a whole number"),
        ({"name": "a", "share": "1"}, "share is text, not a number"),
        ({"name": "a", "shape": ["box"]}, "shape is 'box' or 'ellipse', not .*"),
        ({"name": "a", "sizes": [1, "x"]}, "an entry of sizes is text, not a whole number"),
        ({"name": "a", "sizes": 3}, "sizes is a number, not a list"),
        ({"name": "a", "more": {"a": [None]}}, "an entry of more.a is null, not a number"),
    ],
)
def test_values_of_the_wrong_kinds_are_named(values, why):
    with pytest.raises(ValueError, match=f"^{why}$"):
        from_values(Made, values)


def test_values_of_the_right_kinds_are_taken():
    made = from_values(Made, {"name": "a", "share": 1, "sizes": [1, 2], "more": {"a": [1, 0.5]}})
    assert made == Made("a", share=1.0, sizes=(1, 2), more={"a": [1.0, 0.5]})
    assert from_values(Made, {"name": "a", "more": {"a": [None]}}, null=True).more == {"a": [None]}


def _array(path: Path, shape: str, kind: str = "'<f4'", size: int = 0) -> Path:
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    with path.open("wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        file.truncate(10 + len(header) + size)
    return path


@pytest.mark.parametrize(
    ("shape", "kind", "size", "why"),
    [
        ("(1099511627776, 8)", "'<f4'", 64, "is cut short"),
        ("(1099511627776,)", "'<f4'", 4 << 40, "stands for"),
        ("(-1, 8)", "'<f4'", 64, "makes no sense"),
        ("(2,)", "'|O'", 64, "Python objects"),
        ("(2, 4", "'<f4'", 64, "damaged header"),
    ],
)
def test_an_array_that_claims_more_than_its_file_holds_is_refused(tmp_path, shape, kind, size, why):
    with pytest.raises(ValueError, match=why):
        read_array(_array(tmp_path / "a.npy", shape, kind, size))


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("vidveil.core.bounded.HARMLESS", 1 << 20)
    np.savez_compressed(tmp_path / "a.npz", zeros=np.zeros(1 << 20, np.float32))
    with pytest.raises(ValueError, match="stands for 4,194,432 bytes"):
        read_archive(tmp_path / "a.npz")


EXCEPTIONS = {
    "training/runs.py": "json.loads(json.dumps(…)) of our own recipe",
    "data/store/features.py": "json.loads(json.dumps(…)) of what a store is about",
    "data/store/videos.py": "json.loads(json.dumps(…)) of what a store is about",
    "data/puppets/worker.py": "a task that another process of ours has written",
    "methods/painting_worker.py": "likewise",
}


def test_json_and_yaml_are_read_in_one_place_only():
    package = Path(vidveil.__file__).parent
    loads = {"json.load", "json.loads", "yaml.load", "yaml.safe_load", "yaml.full_load", "yaml.unsafe_load"}
    found: dict[str, list[str]] = {}
    for file in package.rglob("*.py"):
        name = file.relative_to(package).as_posix()
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {*loads, "np.load", "numpy.load"}:
                found.setdefault(name, []).append(ast.unparse(node))
    assert found.pop("core/bounded.py")
    assert found.keys() == EXCEPTIONS.keys()
    plain = [call for name in found if not name.endswith("worker.py") for call in found[name]]
    assert all(call.startswith("json.loads(json.dumps(") for call in plain)


def test_a_file_is_open_for_reading_and_closed_after_an_error(tmp_path):
    (tmp_path / "a").write_text("{}")
    with open_regular(tmp_path / "a", 10) as file:
        assert json.load(file) == {}
    values: Any = read_json(tmp_path / "a")
    assert values == {}


def test_json_of_many_small_values_is_refused_before_it_is_parsed(tmp_path):
    (tmp_path / "a.json").write_text('{"input": [' + "[]," * 600_000 + "[]]}")
    with pytest.raises(ValueError, match=r"^holds more than 1,000,000 values$"):
        read_json_object(tmp_path / "a.json")
    assert len(read_json(tmp_path / "a.json", values=2_000_000)["input"]) == 600_001


def test_a_hash_that_nobody_wants_any_more_ends(tmp_path):
    path = tmp_path / "big"
    path.write_bytes(os.urandom(3_000_000))
    assert file_hash(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    stop = threading.Event()
    stop.set()
    with pytest.raises(InterruptedError):
        file_hash(path, stop)
