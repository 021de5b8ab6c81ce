"""Names and phrases that must not come back: `make lint` runs this over code, tests and documentation.

    python tools/words.py                 every file
    python tools/words.py src/vidveil/data docs/detection.md

`words.toml` lists them, with what to say instead. A name is the exact name of a class, function, argument, variable,
attribute, module or recipe key; a phrase is looked for in whole files, without regard to case.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "docs", "benchmarks", "experiments", "tools")
TOP = ("README.md", "CONTRIBUTING.md", "Makefile")
WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
IDENTIFIERS: dict[str, str] = WORDS["identifiers"]
PHRASES: dict[str, str] = WORDS["phrases"]
PHRASE = re.compile(rf"(?<![\w-])({'|'.join(sorted(PHRASES, key=len, reverse=True))})(?![\w-])", re.IGNORECASE)
RECIPE_KEY = re.compile(r"^(\w+):")


def files(below: list[str]) -> list[Path]:
    """Python, Markdown and YAML files below these paths; all of the project, if none is given."""
    exceptions = {ROOT / name for name in WORDS["exceptions"]["files"]}
    found = [path for name in below or [*FOLDERS, *TOP] for path in _below(ROOT / name)]
    return [path for path in found if path not in exceptions]


def _below(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.suffix in (".py", ".md", ".yaml"))


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that Python code gives or uses, with its line."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield line, node.name
        elif isinstance(node, ast.arg) or (isinstance(node, ast.keyword) and node.arg):
            yield line, node.arg
        elif isinstance(node, ast.Name):
            yield line, node.id
        elif isinstance(node, ast.Attribute):
            yield line, node.attr


def identifiers(path: Path, text: str) -> Iterator[tuple[int, str]]:
    if path.suffix == ".py":
        yield 1, path.stem
        yield from names(ast.parse(text))
    elif path.suffix == ".yaml":
        for number, line in enumerate(text.splitlines(), 1):
            if key := RECIPE_KEY.match(line):
                yield number, key[1]


def complaints(path: Path) -> list[str]:
    """One line for each word that should not be there."""
    text = path.read_text(encoding="utf-8")
    found = {(line, name, IDENTIFIERS[name]) for line, name in identifiers(path, text) if name in IDENTIFIERS}
    for number, line in enumerate(text.splitlines(), 1):
        found |= {(number, phrase, PHRASES[phrase.lower()]) for phrase in PHRASE.findall(line)}
    where = path.relative_to(ROOT)
    return [f"{where}:{line}: {word!r}: say {instead}" for line, word, instead in sorted(found)]


def main() -> int:
    found = [line for path in files(sys.argv[1:]) for line in complaints(path)]
    print(*found, sep="\n", end="\n" if found else "")
    if found:
        print(f"{len(found)} words to replace: tools/words.toml says by what", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
