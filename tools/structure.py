"""Figures of the package structure: cycles, hidden imports, files and lines.

python tools/structure.py                               this checkout
python tools/structure.py ../other_checkout             another one, to compare
python tools/structure.py --train dual_cls_puppets      also the files that a training calls (a few steps, a minute)

in cycles    packages of vidveil that can be reached from themselves by imports, also those inside functions
hidden       imports of vidveil inside functions
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
SMALL = ("epochs=1", "size=32", "batch=16", "device=cpu", "name=structure")


def package_of(module: str) -> str:
    """`vidveil.data.readers.ucf101` → `data`; the modules at the top are one package, ``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 2 else ""


def imports(path: Path, root: Path) -> Iterator[tuple[str, bool]]:
    """(imported module of vidveil, whether within a function) of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == root.name:
            for alias in node.names:
                below = root.parent / Path(*(node.module or "").split("."), alias.name)
                named = below.with_suffix(".py").is_file() or below.is_dir()
                yield f"{node.module}.{alias.name}" if named else f"{node.module}.", id(node) in inside


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
    hidden = 0
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        here = package_of(module)
        files[here or "(top)"] += 1
        for target, inside in imports(path, root):
            hidden += inside
            there = package_of(target)
            if here and there and there != here:
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
