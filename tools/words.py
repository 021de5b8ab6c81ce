"""Names and phrases that must not come back: `make lint` runs this over code, tests and documentation.

    python tools/words.py                 every file
    python tools/words.py src/vidveil/data docs/detection.md

`words.toml` lists them, with what to say instead. A name is the exact name of a class, function, argument, variable,
attribute, module, folder, key of a dict or key of a YAML file. Some words are forbidden as keys of recipes only. A
phrase is looked for in whole files, also across lines, without regard to case.
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
RECIPE_KEYS: dict[str, str] = WORDS["recipe_keys"]
FORBIDDEN = IDENTIFIERS | {f"{key}:": instead for key, instead in RECIPE_KEYS.items()}
PHRASES: dict[str, str] = WORDS["phrases"]
ANY = "|".join(sorted((phrase.replace(" ", r"[\s#]+") for phrase in PHRASES), key=len, reverse=True))
PHRASE = re.compile(rf"(?<![\w-])({ANY})(?![\w-])", re.IGNORECASE)
KEY = re.compile(r"""^\s*["']?(\w+)["']?\s*:""")


def files(below: list[str]) -> list[Path]:
    """Python, Markdown and YAML files below these paths; all of the project, if none is given."""
    exceptions = {ROOT / name for name in WORDS["exceptions"]["files"]}
    given = [Path(name).absolute() for name in below] or [ROOT / name for name in (*FOLDERS, *TOP)]
    if missing := [path for path in given if not path.exists()]:
        sys.exit(f"{missing[0]} does not exist")
    found = [path for name in given for path in _below(name)]
    return [path for path in found if path not in exceptions]


def _below(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.suffix in (".py", ".md", ".yaml"))


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that Python code gives or uses, and keys of dicts, with its line."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield line, name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.Name(id=name) | ast.Attribute(attr=name):
                yield line, name
            case ast.alias(name=name, asname=other):
                yield from ((line, part) for part in (*name.split("."), *([other] if other else [])))
            case ast.ImportFrom(module=str(name)):
                yield from ((line, part) for part in name.split("."))
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield line, name
            case ast.Dict(keys=keys):
                yield from ((key.lineno, key.value) for key in keys if isinstance(key, ast.Constant))


def identifiers(path: Path, text: str) -> Iterator[tuple[int, str]]:
    if path.is_relative_to(ROOT):
        yield from ((1, part) for part in path.relative_to(ROOT).with_suffix("").parts)
    if path.suffix == ".py":
        yield from names(ast.parse(text))
    elif path.suffix == ".yaml":
        for number, line in enumerate(text.splitlines(), 1):
            if key := KEY.match(line):
                yield number, f"{key[1]}:" if key[1] in RECIPE_KEYS else key[1]


def complaints(path: Path) -> list[str]:
    """One line for each word that should not be there."""
    text = path.read_text(encoding="utf-8")
    found = {(line, name, FORBIDDEN[name]) for line, name in identifiers(path, text) if name in FORBIDDEN}
    for phrase in PHRASE.finditer(text):
        words = " ".join(phrase[0].replace("#", " ").split())
        found.add((text.count("\n", 0, phrase.start()) + 1, words, PHRASES[words.lower()]))
    where = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return [f"{where}:{line}: {word!r}: say {instead}" for line, word, instead in sorted(found)]


def main() -> int:
    found = [line for path in files(sys.argv[1:]) for line in complaints(path)]
    print(*found, sep="\n", end="\n" if found else "")
    if found:
        print(f"{len(found)} words to replace: tools/words.toml says by what", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
