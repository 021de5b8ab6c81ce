"""Small files that a user gives to a command, damaged in many ways: what `test_fuzz_small_files.py` runs.

`draw` says what becomes of a file, `run_all` does it in a process of its own, one mutant after the other. `SUBJECTS`
has the command that each file is given to.
"""
# ruff: noqa: ARG005 - all changes of a file are called in one way

import contextlib
import faulthandler
import io
import json
import os
import random
import re
import resource
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIME_LIMIT, MEMORY_LIMIT = 60.0, 3 << 30
LONGEST_LINE = 1100
OUT = "out"
VIDEO = ("anonymize", "clip.mp4", "-o", f"{OUT}/x.mp4", "--overwrite")
ADAPTER = ("--method", "splavu:safe", "-o", f"{OUT}/x", "--overwrite")


@dataclass(frozen=True)
class Subject:
    file: str
    kind: str
    command: tuple[str, ...]
    torch: bool = False


SUBJECTS = (
    Subject("clip_anonymized.json", "json", ("review", "clip_anonymized.json", "-o", f"{OUT}/sheet.png")),
    Subject("clip_anonymized.json", "json", ("review", ".", "--limit", "0")),
    Subject("t.jsonl", "jsonl", (*VIDEO, "--method", "blur:strong", "--tracks-in", "t.jsonl")),
    Subject("plates.json", "json", (*VIDEO, "--method", "solid", "--region", "plates.onnx")),
    Subject("plates.onnx", "bytes", (*VIDEO, "--method", "solid", "--region", "plates.onnx")),
    Subject("mine.yaml", "yaml", ("ls", "recipes", "mine.yaml")),
    Subject("runs/done/state.json", "json", ("ls", "runs")),
    Subject("runs/done/results.json", "json", ("report", "done")),
    Subject("runs/mine/checkpoint/checkpoint.json", "json", (*VIDEO, "--method", "dual_cls:mine"), True),
    Subject("runs/mine/checkpoint/weights.safetensors", "safetensors", (*VIDEO, "--method", "mine"), True),
    Subject("runs/safe/checkpoint/checkpoint.json", "json", ("anonymize", "a.npy", *ADAPTER), True),
    Subject("runs/safe/checkpoint/weights.safetensors", "safetensors", ("anonymize", "a.npy", *ADAPTER), True),
    Subject("a.npy", "npy", ("anonymize", "a.npy", *ADAPTER), True),
    Subject("a.npz", "bytes", ("anonymize", "a.npz", *ADAPTER), True),
    Subject("a.h5", "hdf5", ("anonymize", "a.h5", *ADAPTER), True),
    Subject("store/store.json", "json", ("anonymize", "store", *ADAPTER), True),
    Subject("store/shard-00000.json", "json", ("anonymize", "store", *ADAPTER), True),
    Subject("store/clips-00000.npy", "npy", ("anonymize", "store", *ADAPTER), True),
    Subject("videos/index.json", "json", ("open the store of videos",), True),
)

DIGITS = ("9" * 400, "9" * 5000, "-" + "9" * 5000, "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "1" + "0" * 18)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**9, 10**12, -(10**18), 0.5, -0.5, 1e308, -1e308, 5e-324, "", "x",
    "x" * 100_000, "a\nb\r\x1b[31m\x00\u202e", "../../../etc/passwd", "/dev/zero", "a/b", "\ud800", [], {}, [[]],
    [None],
    {"a": {}}, [[[[1]]]], [1, "x"], {"": None}, ["x"] * 1000,
)  # fmt: skip
YAML_VALUES = (
    "&a [*a]", "!!python/object/apply:os.system ['true']", "!!bool x", "!!int ''", "2001-99-99", ".nan", ".inf",
    "1e400",
    "1.0e+400", "{a: [", "'", "[1, [2]]", "{a: b}", "? [a]", "!!binary x", "0x" + "f" * 5000, "1:" * 2000 + "1", "\t",
    "<<: {a: b}", "null", "yes", "- a", "\x07", "\u202e", *DIGITS[:3],
)  # fmt: skip


def draw(seed: int, number: int) -> tuple[Subject, str]:
    """The mutant's subject, and a name of what is done to it, of which `mutate` makes the same each time."""
    rng = random.Random(f"{seed}/{number}")
    subject = SUBJECTS[number % len(SUBJECTS)]
    return subject, rng.choice([*GENERAL, *list(OF_KIND[subject.kind]) * 3])


def mutate(path: Path, how: str, rng: random.Random) -> None:
    """Damage the file where it lies."""
    whole = path.read_bytes()
    made = {**GENERAL, **OF_KIND_ALL}[how](whole, rng)
    if isinstance(made, bytes):
        path.write_bytes(made)
    else:
        path.unlink()
        made(path)


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 20))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _flip_at_the_start(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(min(64, len(changed)))] = rng.choice((0, 255, 127, 128, rng.randrange(256)))
    return bytes(changed)


def _swapped(data: bytes, rng: random.Random) -> Callable[[Path], None]:
    other = rng.choice(sorted({subject.file for subject in SUBJECTS} | {"clip.mp4"}))
    home = Path.cwd()  # of `run_all`

    def put(path: Path) -> None:
        source = home / other
        path.write_bytes(source.read_bytes() if source.is_file() else data)

    return put


def _sparse(data: bytes, rng: random.Random) -> Callable[[Path], None]:
    size = rng.choice((10**8, 10**10, 10**11))

    def put(path: Path) -> None:
        with path.open("wb") as file:
            file.write(data)
            file.truncate(size)

    return put


General = Callable[[bytes, random.Random], bytes | Callable[[Path], Any]]
GENERAL: dict[str, General] = {
    "flip": _flip,
    "flip at the start": _flip_at_the_start,
    "cut": lambda data, rng: data[: rng.randrange(len(data))],
    "twice": lambda data, rng: data + data[rng.randrange(len(data)) :],
    "insert": lambda data, rng: (at := rng.randrange(len(data)), data[:at] + rng.randbytes(9) + data[at:])[1],
    "empty": lambda data, rng: b"",
    "noise": lambda data, rng: rng.randbytes(len(data)),
    "other file": _swapped,
    "sparse": _sparse,
    "pipe": lambda data, rng: os.mkfifo,
    "folder": lambda data, rng: Path.mkdir,
    "link to a device": lambda data, rng: lambda path: path.symlink_to("/dev/zero"),
    "link to nothing": lambda data, rng: lambda path: path.symlink_to("nothing"),
    "link to itself": lambda data, rng: lambda path: path.symlink_to(path.name),
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(inner, (*path, key))


def _set(value: Any, path: Sequence[Any], new: Any) -> Any:
    if not path:
        return new
    value[path[0]] = _set(value[path[0]], path[1:], new)
    return value


def _parent(value: Any, path: Sequence[Any]) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


def _json_value(text: str, rng: random.Random) -> str:
    value = json.loads(text)
    return json.dumps(_set(value, rng.choice(list(_places(value))), rng.choice(VALUES)))


def _json_number(text: str, rng: random.Random) -> str:
    value = json.loads(text)
    return json.dumps(_set(value, rng.choice(list(_places(value))), "@@")).replace('"@@"', rng.choice(DIGITS))


def _json_without(text: str, rng: random.Random) -> str:
    value = json.loads(text)
    path = rng.choice([path for path in _places(value) if path])
    del _parent(value, path)[path[-1]]
    return json.dumps(value)


def _json_more(text: str, rng: random.Random) -> str:
    value = json.loads(text)
    inner = _parent(value, rng.choice([path for path in _places(value) if path]))
    if isinstance(inner, dict):
        inner["new\n" + "x" * rng.choice((1, 2000))] = rng.choice(VALUES)
    else:
        inner.append(rng.choice(VALUES))
    return json.dumps(value)


def _json_deep(text: str, rng: random.Random) -> str:
    value = json.loads(text)
    opening, end = rng.choice((("[", "]"), ('{"a":', "}")))
    deep = opening * 50_000 + rng.choice(("1", "")) + end * rng.choice((0, 50_000))
    return json.dumps(_set(value, rng.choice(list(_places(value))), "@@")).replace('"@@"', deep)


TEXTS: dict[str, Callable[[str, random.Random], str]] = {
    "value": _json_value,
    "number": _json_number,
    "without": _json_without,
    "more": _json_more,
    "deep": _json_deep,
}


def _of_text(change: Callable[[str, random.Random], str]) -> General:
    return lambda data, rng: change(data.decode(), rng).encode("utf-8", "surrogatepass")


def _of_line(change: Callable[[str, random.Random], str]) -> General:
    def made(data: bytes, rng: random.Random) -> bytes:
        lines = data.decode().splitlines()
        at = rng.randrange(len(lines))
        lines[at] = change(lines[at], rng)
        return "\n".join(lines).encode("utf-8", "surrogatepass")

    return made


def _of_header(change: Callable[[str, random.Random], str]) -> General:
    """Of a safetensors file: eight bytes, which say how long it is, and JSON."""

    def made(data: bytes, rng: random.Random) -> bytes:
        length = int.from_bytes(data[:8], "little")
        header = change(data[8 : 8 + length].decode(), rng).encode("utf-8", "surrogatepass")
        return len(header).to_bytes(8, "little") + header + data[8 + length :]

    return made


def _yaml_value(text: str, rng: random.Random) -> str:
    lines = text.splitlines()
    at = rng.choice([i for i, line in enumerate(lines) if ":" in line and not line.startswith("#")])
    lines[at] = f"{lines[at].partition(':')[0]}: {rng.choice(YAML_VALUES)}"
    return "\n".join(lines) + "\n"


def _bomb(text: str, rng: random.Random) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, rng.choice((3, 7, 9)))]
    return text + "\n".join(lines)


def _npy_header(changed: bytes) -> bytes:
    """Of 128 bytes again."""
    return (changed.rstrip(b"\n").rstrip(b" ").ljust(127) + b"\n")[:128]


def _npy_shape(data: bytes, rng: random.Random) -> bytes:
    huge = "(1099511627776, 8)", "(99999999999999999999999, 8)"
    shapes = (huge[0], "(-1, 8)", "(8,)", "()", "(0, 8)", "(1e9, 8)", huge[1], "'x'")
    return _npy_header(re.sub(rb"\(\d+, \d+\)", rng.choice(shapes).encode(), data[:128])) + data[128:]


def _npy_type(data: bytes, rng: random.Random) -> bytes:
    kinds = ("'|O'", "'<f2'", "'<i4'", "'|V1'", "'<U9'", "[('a', '<f4')]", "'<f16'", "x", "9" * 60)
    return _npy_header(data[:128].replace(b"'<f4'", rng.choice(kinds).encode())) + data[128:]


def _npy_sparse(data: bytes, rng: random.Random) -> Callable[[Path], None]:
    rows = rng.choice((2**28, 2**32))

    def put(path: Path) -> None:
        with path.open("wb") as file:
            file.write(_npy_header(re.sub(rb"\(\d+, (\d+)\)", rb"(%d, \1)" % rows, data[:128])))
            file.truncate(128 + rows * 32)

    return put


def _length(data: bytes, rng: random.Random) -> bytes:
    return rng.choice((0, 1, 10**12, 2**63, 2**64 - 1, 7)).to_bytes(8, "little") + data[8:]


def _hdf5(make: Callable[[Any, random.Random], None]) -> General:
    def made(data: bytes, rng: random.Random) -> Callable[[Path], None]:
        def put(path: Path) -> None:
            import h5py

            path.write_bytes(data)
            with h5py.File(path, "a") as file:
                make(file, rng)

        return put

    return made


def _hdf5_sparse(file: Any, rng: random.Random) -> None:
    chunks = rng.choice((True, (1024, 8), (2**20, 8)))
    file.create_dataset("huge", shape=(2**40, 8), dtype="f4", chunks=chunks, compression=rng.choice((None, "gzip")))


def _hdf5_links(file: Any, rng: random.Random) -> None:
    import h5py

    file["soft"] = h5py.SoftLink(rng.choice(("/v0", "/", "/nothing", "/soft")))
    file["other"] = h5py.ExternalLink(rng.choice(("clip.mp4", "/dev/zero", "a.h5")), "/")
    file["group/again"] = file["/"]


def _hdf5_elsewhere(file: Any, rng: random.Random) -> None:
    import h5py

    if rng.random() < 0.5:
        file.create_dataset("outside", (100, 8), "f4", external=[(rng.choice(("clip.mp4", "/dev/zero")), 0, 3200)])
    else:
        layout = h5py.VirtualLayout((100, 8), "f4")
        layout[:] = h5py.VirtualSource("b.h5", "v0", (100, 8))
        file.create_virtual_dataset("virtual", layout)


def _hdf5_strange(file: Any, rng: random.Random) -> None:
    import numpy as np

    name = rng.choice(("a\nb", "x" * 5000, "\u202e", "."))
    with contextlib.suppress(ValueError):
        file.create_dataset(name, data=np.full((2, 8), rng.choice((0, np.nan, np.inf, 1e38)), rng.choice(("f4", "f8"))))
    file.attrs["note\n"] = "x" * 30_000
    deep = file
    for _ in range(rng.choice((3, 800))):
        deep = deep.create_group("g")
    deep.create_dataset("v", data=np.zeros(rng.choice(((2, 8), (2, 0), (8,), (2, 3, 8), (2, 9))), "f4"))


OF_KIND: dict[str, dict[str, General]] = {
    "json": {f"json {name}": _of_text(change) for name, change in TEXTS.items()}
    | {
        "latin": lambda data, rng: data.replace(b'"', '"é'.encode("latin-1"), rng.randrange(1, 4)),
        "mark": lambda data, rng: b"\xef\xbb\xbf" + data,
        "utf-16": lambda data, rng: data.decode().encode("utf-16"),
        "nul": lambda data, rng: data.replace(b" ", b"\0", rng.randrange(1, 4)),
        "only deep": lambda data, rng: b"[" * 2_000_000,
    },
    "jsonl": {f"line {name}": _of_line(change) for name, change in TEXTS.items()}
    | {
        "long line": lambda data, rng: data + b'{"frame": "' + b"x" * 2_000_000,
        "many lines": lambda data, rng: data + data.splitlines(keepends=True)[-1] * 20_000,
        "no lines": lambda data, rng: b"\n" * 1_000_000,
        "latin": lambda data, rng: data.replace(b"faces", "facés".encode("latin-1")),
    },
    "yaml": {
        "yaml value": _of_text(_yaml_value),
        "bomb": _of_text(_bomb),
        "yaml deep": lambda data, rng: data + b"deep: " + rng.choice((b"[", b"{a: ")) * 10_000,
        "latin": lambda data, rng: data + "# Übung\nname: é\n".encode("latin-1"),
        "nul": lambda data, rng: data + b"a: \0\n",
        "yaml long": lambda data, rng: data + b"name: " + b"x" * rng.choice((2000, 50_000, 3_000_000)) + b"\n",
        "yaml key": lambda data, rng: data + b"x" * rng.choice((2000, 50_000)) + b": 1\n",
    },
    "safetensors": {f"header {name}": _of_header(change) for name, change in TEXTS.items()} | {"length": _length},
    "npy": {"shape": _npy_shape, "type": _npy_type, "npy sparse": _npy_sparse},
    "hdf5": {
        "hdf5 sparse": _hdf5(_hdf5_sparse),
        "hdf5 links": _hdf5(_hdf5_links),
        "hdf5 elsewhere": _hdf5(_hdf5_elsewhere),
        "hdf5 strange": _hdf5(_hdf5_strange),
    },
    "bytes": {},
}
OF_KIND_ALL = {name: change for kinds in OF_KIND.values() for name, change in kinds.items()}


def run_all(seed: int, numbers: Sequence[int], report: Path) -> None:
    """In the folder of the files: each mutant to its command, and a line about each into the report."""
    resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
    home = Path.cwd()
    with report.open("a") as lines:
        for number in numbers:
            subject, how = draw(seed, number)
            lines.write(f"{number} {subject.file}: {how}, {' '.join(subject.command)}\n")
            lines.flush()
            faulthandler.dump_traceback_later(TIME_LIMIT, exit=True, file=lines)
            began = time.monotonic()
            problems, code = _run(home, subject, how, random.Random(f"{seed}/{number}/content"))
            faulthandler.cancel_dump_traceback_later()
            for problem in problems:
                lines.write(f"  {problem}\n")
            lines.write(f"  code {code}, {time.monotonic() - began:.1f} s\n")
            lines.flush()


def _run(home: Path, subject: Subject, how: str, rng: random.Random) -> tuple[list[str], int]:
    path, saved = home / subject.file, home.parent / "saved"
    shutil.rmtree(home / OUT, ignore_errors=True)
    (home / OUT).mkdir()
    shutil.copyfile(path, saved)
    try:
        mutate(path, how, rng)
        before, began = _files(home), time.monotonic()
        code, output = _command(home, subject.command)
        problems = list(_problems(code, output))
        if _files(home) != before:
            problems.append(f"files outside of {OUT} were made or changed: {_files(home) ^ before}")
        if time.monotonic() - began > TIME_LIMIT / 3:
            problems.append(f"took {time.monotonic() - began:.0f} seconds")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if peak > MEMORY_LIMIT:
            problems.append(f"took {peak:,} bytes of memory")
        return problems, code
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
        shutil.copyfile(saved, path)


def _files(home: Path) -> set[tuple[str, int, int]]:
    found = set()
    for path in home.rglob("*"):
        if OUT not in path.relative_to(home).parts[:1] and not path.name.endswith(".lock"):
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode):
                found.add((str(path.relative_to(home)), status.st_size, status.st_mtime_ns))
    return found


def _command(home: Path, words: Sequence[str]) -> tuple[int, str]:
    """Exit code, and all that came out, also of libraries in C."""
    if words[0] == "open the store of videos":
        return _opened(home / "videos")
    from vidveil.cli.app import main

    output = home.parent / "output"
    kept = os.dup(1), os.dup(2)
    sys.stdout.flush()
    sys.stderr.flush()
    with output.open("w+b") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.argv = ["vidveil", *words]
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException as error:  # what would be a traceback
            print(f"Traceback of {type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            os.close(kept[0])
            os.close(kept[1])
    return code, output.read_bytes().decode("utf-8", "replace")


def _opened(folder: Path) -> tuple[int, str]:
    from vidveil.core.errors import DataError
    from vidveil.data.store.videos import VideoStore

    output = io.StringIO()
    try:
        store = VideoStore.open(folder)
        for row in range(len(store)):
            store.frames(row).sum()
    except DataError as error:
        output.write(f"error: {error}\n")
    return int(bool(output.getvalue())), output.getvalue()


def _problems(code: int, output: str) -> Iterator[str]:
    lines = output.splitlines()
    if code not in (0, 1, 2):
        yield f"exit code {code}"
    for word in ("Traceback", "internal error", "this is a bug", "Warning:", "HDF5-DIAG"):
        if word in output:
            yield f"says {next(line for line in lines if word in line)[:500]}"
    if sum(line.startswith("error:") for line in lines) > 1:
        yield "more than one error"
    if code and not any(re.search("error|Error|fail", line) for line in lines):
        yield f"does not say what is wrong: {output[:200]!r}"
    if longest := next((line for line in lines if len(line) > LONGEST_LINE), None):
        yield f"a line of {len(longest)} characters: {longest[:100]}"
    if strange := next((line for line in output.split("\n") if not line.isprintable()), None):
        yield f"control characters: {strange[:200]!r}"


if __name__ == "__main__":
    run_all(int(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]))
