"""Figures of the package structure: cycles, hidden imports, files and lines.

python tools/structure.py                               this checkout
python tools/structure.py ../other_checkout             another one, to compare
python tools/structure.py --train dual_cls_puppets      also the files that a training calls (a few steps, a minute)

in cycles    packages of vidveil that can be reached from themselves by imports, also those inside functions; modules
             next to the packages count as one, `(top)`, without the package's own __init__ and __main__
inside functions    statements that import vidveil there
called       files of vidveil with a function that the training calls
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TRACED = """
import atexit, json, sys, threading
called = set()
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_flags & 1:  # a function, not the body of a module or a class
        called.add(frame.f_code.co_filename)
sys.setprofile(note); threading.setprofile(note)
atexit.register(lambda: open(sys.argv_out, "w").write(json.dumps(sorted(called))))
sys.argv_out = sys.argv.pop(1)
from vidveil.cli import main
main()
"""
TOP = "(top)"
ENTRIES = ("__init__.py", "__main__.py")
"""They name the public interface, and nothing in the package imports them."""
SMALL = ("epochs=1", "size=32", "batch=16", "device=cpu", "name=structure")


def package_of(module: str, root: Path) -> str:
    """`vidveil.data.readers.ucf101` → `data`. Modules next to the packages are one package, TOP."""
    first = module.split(".")[1] if "." in module else ""
    return first if (root / first).is_dir() and first else TOP


def imports(path: Path, root: Path) -> Iterator[tuple[str, bool]]:
    """(imported module or name of vidveil, whether within a function) of a file, one entry per imported module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == root.name and not node.level:
            named = {alias.name for alias in node.names} if node.module == root.name else {""}
            for name in named:
                yield f"{node.module}.{name}".rstrip("."), id(node) in inside
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == root.name:
                    yield alias.name, id(node) in inside


def cycles(edges: dict[str, set[str]]) -> list[str]:
    """The packages that can be reached from themselves."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        waiting = list(edges[start])
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(edges[one])
        return found

    return sorted(package for package in list(edges) if package in reached(package))


def lines_below(folder: Path) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))


def figures(checkout: Path) -> dict[str, object]:
    root = checkout / "src" / "vidveil"
    edges: dict[str, set[str]] = defaultdict(set)
    files: dict[str, int] = defaultdict(int)
    hidden, entries = 0, {root / name for name in ENTRIES}
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        here = package_of(module, root)
        files[here] += 1
        for target, inside in imports(path, root):
            hidden += inside
            there = package_of(target, root)
            if there != here and path not in entries:
                edges[here].add(there)
    code = ("src", "tests", "benchmarks", "experiments", "tools")
    return {
        "packages in cycles": cycles(edges),
        "imports of vidveil inside functions": hidden,
        "files per package": dict(sorted(files.items(), key=lambda item: -item[1])),
        "lines": {name: lines_below(checkout / name) for name in code if (checkout / name).is_dir()},
    }


def called(checkout: Path, recipe: str) -> list[str]:
    """Files of vidveil that a small training calls, by package."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "called.json"
        environment = os.environ | {"PYTHONPATH": str((checkout / "src").resolve()), "HOME": folder}
        command = [sys.executable, "-c", TRACED, str(out), "train", recipe, *SMALL]
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        root = (checkout / "src" / "vidveil").resolve()
        files = map(Path, json.loads(out.read_text(encoding="utf-8")))
        return sorted(str(path.relative_to(root)) for path in files if path.is_relative_to(root))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--train", metavar="RECIPE")
    asked = parser.parse_args()
    found = figures(asked.checkout)
    if asked.train:
        found["files that a training calls"] = called(asked.checkout, asked.train)
    for name, value in found.items():
        shown = f"{len(value)}: {', '.join(value)}" if isinstance(value, list) else value
        print(f"{name:36} {shown}")


if __name__ == "__main__":
    main()
