"""Pages name code, commands, options and files that exist, and their examples run."""

import ast
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
import typer.main

from experiments.tables import ROOT, pages
from tests.methods import made_checkpoint
from vidveil.app.run_recipe import evaluate, planned
from vidveil.cli.app import COMMANDS
from vidveil.core.errors import UsageError
from vidveil.core.recipe import find, names, read, read_for
from vidveil.core.registry import PROTOCOLS, Runnable
from vidveil.methods import METHODS, Method, load

PROGRAM = re.compile(rf"(vidveil ({'|'.join(COMMANDS)})|python (-m experiments|benchmarks/))\b")
SYMBOL = re.compile(r"`([\w/]+)\.py:([\w.]+)`")
FOUND = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
PAGES = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in FOUND}
RECIPES = {name: find(name).read_text(encoding="utf-8") for name in names()}
every_page = pytest.mark.parametrize("name", PAGES)


def commands(text: str) -> list[list[str]]:
    """The words of each command in a code block, in backticks or in the head of a recipe. Two spaces or a # end it."""
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"^#   (.+)$", text, re.MULTILINE) + re.findall(r"`([^`\n]+)`", text)
    found = [shlex.split(re.split(r"(?<=\S)\s{2,}(?=\S)| #", line)[0]) for line in lines if PROGRAM.match(line)]
    return [words for words in found if len(words) > 2]


def defined_in(file: Path) -> set[str]:
    """Functions, classes and constants of a module, and members of its classes."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        for member in (node, *(node.body if isinstance(node, ast.ClassDef) else ())):
            prefix = "" if member is node else f"{node.name}."
            if isinstance(member, ast.FunctionDef | ast.ClassDef):
                found.add(prefix + member.name)
            elif isinstance(member, ast.Assign | ast.AnnAssign):
                targets = member.targets if isinstance(member, ast.Assign) else [member.target]
                found |= {prefix + target.id for target in targets if isinstance(target, ast.Name)}
    return found


def accepted_options(program: str, words: list[str]) -> set[str]:
    if program == "vidveil":
        command = typer.main.get_command(import_module(f"vidveil.cli.{words[0]}").app)
        for word in words[1:]:
            command = getattr(command, "commands", {}).get(word, command)
        return {"--help"} | {
            name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
        }
    file = ROOT / (words[1].replace(".", "/") + ".py" if words[0] == "-m" else words[0])
    texts = [file.read_text(encoding="utf-8"), (ROOT / "experiments" / "job_queue.py").read_text(encoding="utf-8")]
    return {"-m", "--help"} | {option for text in texts for option in re.findall(r'"(--?[a-z][\w-]*)"', text)}


@pytest.mark.parametrize(("file", "symbol"), sorted({pair for text in PAGES.values() for pair in SYMBOL.findall(text)}))
def test_a_symbol_is_defined_in_the_file_that_a_page_names(file: str, symbol: str) -> None:
    assert symbol in defined_in(ROOT / "src" / "vidveil" / f"{file}.py")


@pytest.mark.parametrize("text", [*PAGES.values(), *RECIPES.values()], ids=[*PAGES, *RECIPES])
def test_commands_name_recipes_keys_options_and_scripts_that_exist(text: str) -> None:
    for program, *words in commands(text):
        if program == "vidveil" and words[0] in ("train", "evaluate") and words[1].islower():
            read_for(words[0], find(words[1]), [word for word in words[2:] if re.match(r"\w+=", word)])
        unknown = {word for word in words if re.fullmatch(r"--?[a-z][\w-]*", word)} - accepted_options(program, words)
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


def test_the_method_in_contributing_works_and_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    defined: dict[str, Any] = {}
    block, *_ = re.findall(r"```python\n(.*?)```", PAGES["CONTRIBUTING.md"], re.DOTALL)
    exec(compile(block, "CONTRIBUTING.md", "exec"), defined)
    monkeypatch.setitem(METHODS, "posterize", Method(defined["Posterize"], "posterize:N", "N grey levels"))
    method = load("posterize:2")
    assert method.caution(720)
    assert method.anonymize(torch.rand(3, 2, 8, 8)).video.unique().numel() == 2


def test_the_protocol_in_contributing_evaluates_several_methods(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))
    defined: dict[str, Any] = {}
    _, block, *_ = re.findall(r"```python\n(.*?)```", PAGES["CONTRIBUTING.md"], re.DOTALL)
    exec(compile(block, "CONTRIBUTING.md", "exec"), defined)
    monkeypatch.setitem(PROTOCOLS, "brightness", Runnable(defined["BrightnessRecipe"], defined["run"]))
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("verb: evaluate\nprotocol: brightness\ndata: puppets:share=0.02\nframes: 2\nsize: 32\n")
    found = evaluate(str(recipe), "method=[solid,blur:strong,noise]", "resamples=10")
    black, blurred, noise = (point.metrics["brightness"].value for point in found.points)
    assert black == 0
    assert blurred == pytest.approx(found.raw.metrics["brightness"].value, abs=0.02)
    assert noise == pytest.approx(0.5, abs=0.01)
    assert (tmp_path / "runs" / "mine" / "results.json").is_file()
    with pytest.raises(UsageError, match="did you mean blur"):
        evaluate(str(recipe), "method=blurr", "name=other")
    assert planned(read(recipe, ["name=third"])).trainings == []
    assert not (tmp_path / "runs" / "third").exists()
