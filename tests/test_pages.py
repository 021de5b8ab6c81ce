"""Pages name code, commands, options and files that exist, and their examples run."""

import importlib.util
import re
import shlex
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
import typer.main
from click import Group

from experiments.tables import ROOT, pages
from tests.methods import made_checkpoint
from vidveil.cli.app import app
from vidveil.core.recipe import find, names, read_for

SYMBOL = re.compile(r"`([\w/]+)\.py:([\w.]+)`")
PAGES = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages()}
RECIPES = {name: find(name).read_text(encoding="utf-8") for name in names()}
every_page = pytest.mark.parametrize("name", PAGES)


def commands(text: str) -> list[list[str]]:
    """The words of each command in a code block or in the head of a recipe; after two spaces follows an explanation."""
    lines = re.findall(r"^(?:#   )?((?:vidveil|python) .+)$", text, re.MULTILINE)
    lines += re.findall(r"`((?:vidveil (?:train|evaluate)|python) [^`…]+)`", text)
    joined = (re.split(r"\s{2,}#?|\s+#\s| & ", line)[0].rstrip("\\") for line in lines)
    return [shlex.split(line) for line in joined]


@pytest.mark.parametrize(("file", "symbol"), sorted({pair for text in PAGES.values() for pair in SYMBOL.findall(text)}))
def test_a_symbol_that_a_page_finds_in_a_file_is_defined_there(file: str, symbol: str) -> None:
    module = import_module("vidveil." + file.replace("/", "."))
    assert attrgetter(symbol)(module).__module__ == module.__name__


@pytest.mark.parametrize("text", [*PAGES.values(), *RECIPES.values()], ids=[*PAGES, *RECIPES])
def test_commands_name_recipes_keys_options_and_scripts_that_exist(text: str) -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, Group)
    for program, *words in commands(text):
        if program == "vidveil" and words[0] in group.commands:
            accepted = {name for parameter in group.commands[words[0]].params for name in parameter.opts}
            if words[0] in ("train", "evaluate"):
                read_for(words[0], find(words[1]), [word for word in words[2:] if "=" in word and word[0] != "-"])
        elif program == "python":
            module = words[1] if words[0] == "-m" else None
            file = Path(importlib.util.find_spec(module).origin) if module else ROOT / words[0]  # type: ignore
            accepted = set(re.findall(r'"(-[\w-]+)"', file.read_text(encoding="utf-8")))
            accepted |= {"--runs", "--workers", "--until", "--only", "--list", "-m"}  # experiments.job_queue
        else:
            assert words[0].startswith("-"), words
            continue
        unknown = {word for word in words if re.fullmatch(r"--?[a-z][\w-]*", word)} - accepted
        assert not unknown, (words, unknown)


@every_page
def test_links_resolve(name: str) -> None:
    page = ROOT / name
    for file, _, anchor in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[name])):
        if "://" in file:
            continue
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), file
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{file}#{anchor}"


def test_the_examples_of_dual_cls_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx", reason="vidveil[export] is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))
    made_checkpoint.write(tmp_path / "dual_cls_puppets" / "checkpoint", made_checkpoint.network())
    defined: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGES["docs/methods/dual_cls.md"], re.DOTALL):
        exec(compile(block, "dual_cls.md", "exec"), defined)
