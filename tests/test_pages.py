"""The page about dual-CLS names code, commands and numbers that are there."""

import json
import re
import shlex
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from tests.methods import made_checkpoint
from vidveil.core.recipe import find, names, read

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "methods" / "dual_cls.md"
TEXT = PAGE.read_text(encoding="utf-8")
SYMBOL = re.compile(r"`([\w/]+)\.py:([\w.]+)`")
OURS = ("dual_cls", "control_puppets")


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of every table's rows, headings and rules included."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def tables(text: str) -> list[list[list[str]]]:
    """The rows of each table by itself, without headings and rules."""
    return [rows(block)[2:] for block in text.split("\n\n") if block.startswith("|")]


def commands(text: str) -> list[tuple[str, list[str]]]:
    """(recipe, overrides) of each `vidveil train` and `vidveil evaluate`; what stands behind two spaces is prose."""
    found = []
    for line in re.findall(r"^(?:#   )?vidveil (?:train|evaluate) (.+)$", text, re.MULTILINE):
        recipe, *words = shlex.split(re.split(r"\s{2,}", line)[0])
        found.append((recipe, [word for word in words if "=" in word]))
    return found


@pytest.mark.parametrize(("file", "symbol"), sorted(set(SYMBOL.findall(TEXT))))
def test_what_the_page_says_is_in_a_file_is_there(file, symbol):
    module = import_module("vidveil." + file.replace("/", "."))
    named = attrgetter(symbol)(module)
    assert getattr(named, "__module__", module.__name__) == module.__name__, "it is only imported there"


@pytest.mark.parametrize("number", range(1, 8))
def test_every_equation_of_the_paper_has_its_place(number):
    places = [
        row[-1] for row in rows(section("The paper's equations, and where they are")) if row[0] == f"eq. {number}"
    ]
    assert len(places) == 1
    assert SYMBOL.search(places[0])


@pytest.mark.parametrize(
    "path", [PAGE, ROOT / "README.md", *(find(name) for name in names() if name.startswith(OURS))], ids=lambda p: p.name
)
def test_every_command_has_a_recipe_that_takes_what_it_is_told(path):
    told = commands(path.read_text(encoding="utf-8"))
    assert told
    for recipe, overrides in told:
        read(find(recipe), overrides)


def test_every_recipe_of_the_method_stands_on_the_page():
    told = set(re.findall(r"`(\w+)`", section("Use it")))
    assert {name for name in names() if name.startswith(OURS)} <= told


def test_every_way_of_training_and_every_fill_is_explained():
    from vidveil.methods.dual_cls.recipe import DualCLSRecipe

    explained = section("How it is trained")
    hints = DualCLSRecipe.__annotations__
    for key in ("train_on", "privacy_attention", "fill"):
        assert key in explained
        for value in hints[key].__args__:
            assert re.search(rf"`({key}: )?{value}`", explained), f"{key}: {value}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("summary-rho0", 2),
        ("summary-rho0.5", 2),
        ("again/summary-rho0.5", 1),
        ("summary-rho1", 2),
        ("strong-summary-rho0-world2", 3),
    ],
)
def test_what_it_is_worth_is_what_was_measured(name, shown):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from dual_cls_summary import page

    summary = json.loads((ROOT / "benchmarks" / "results" / "dual_cls" / f"{name}.json").read_text())
    for table in page(summary).split("\n\n")[:shown]:
        assert table in section("What it is worth")


def test_what_is_said_of_real_video_is_what_was_measured():
    def told(number):
        return "{:.3f} [{:.2f}, {:.2f}]".format(number["value"], *number["interval"])

    shown = next(table for table in tables(section("What it is worth")) if table[0][0] == "raw")
    names = ("raw", "dual_cls", "action_alone", "paper", "random")
    for row, name in zip(shown, names, strict=True):
        results = json.loads((ROOT / f"benchmarks/results/dual_cls/{name}_ucf101_5_seed0.json").read_text())
        metrics = (results["points"] or [results["raw"]])[0]["metrics"]
        assert row[1] == (f"{metrics['tubelets_kept']['value']:.2f}" if name != "raw" else "")
        wanted = ("action_top1", "linkage_rank1", "linkage_rank1_raw_gallery", "ap_nudity")
        assert row[2:] == [told(metrics[one]) if one in metrics else "" for one in wanted]


def test_what_is_said_of_masks_over_a_moving_figure_is_what_was_measured():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from figure_table import RESULTS, jobs, page

    told = json.loads((RESULTS / "summary.json").read_text())
    assert page(told) in section("What it is worth")
    for job in jobs():  # every row has the results that it was drawn from
        if job.words[0] == "evaluate":
            results = json.loads((RESULTS / f"{job.name}.json").read_text())
            metrics = (results["points"] or [results["raw"]])[0]["metrics"]
            wanted = told["rows"].get(job.name, told["raw"])
            for name in ("linkage_rank1", "action_top1"):
                assert [metrics[name]["value"], *metrics[name]["interval"]] == wanted[name]
            if "highest" in wanted:
                assert wanted["highest"] == max(one["test"] for one in metrics["linkage_rank1"]["others"].values())
    boxes = json.loads((ROOT / "benchmarks" / "results" / "figure_boxes.json").read_text())
    assert f"in {boxes['whole_picture']:.2f} of the groups" in section("What it is worth")


def test_what_a_start_from_raw_video_is_worth_to_an_attacker_is_what_was_measured():
    results = json.loads((ROOT / "benchmarks/results/dual_cls/strong-credit-rho0-world2.json").read_text())
    raw = results["raw"]["metrics"]["linkage_rank1"]
    (linkage,) = (point["metrics"]["linkage_rank1"] for point in results["points"] if point["keep"] == 0.96)
    best = {
        start: max(one["val"] for name, one in linkage["others"].items() if name.startswith(f"{start},"))
        for start in ("resnet_tiny", "resnet_tiny:raw")
    }
    got = [
        next(one["test"] for one in linkage["others"].values() if one["val"] == best[start])
        for start in ("resnet_tiny:raw", "resnet_tiny")
    ]
    shares = [f"{(one - linkage['floor']) / (raw['value'] - raw['floor']):.2f}" for one in got]
    told = "at a share of 0.89 {} of the linkage, where the same network from nothing gets {}"
    assert told.format(*shares) in " ".join(section("What it is worth").split())


def test_the_readme_quotes_what_was_measured():
    results = ROOT / "benchmarks" / "results" / "dual_cls" / "strong-summary-rho0-world2.json"
    rows = json.loads(results.read_text())["rows"]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for told, name in (
        ("leaves {} of the linkage and {} of the attributes", "credit"),
        ("RandomPruning that cost as much leave {} and {}", "random"),
    ):
        leaks = (f"{rows[name]['evaluated'][of][0]:.2f}" for of in ("linkage", "attributes"))
        assert told.format(*leaks) in readme


def test_speeds_are_those_of_the_results():
    results = json.loads((ROOT / "benchmarks" / "results" / "exported_speed.json").read_text())
    measured = [[f"{one['ms']:.1f}", f"{one['by_whole']:.2f}", f"{one['alike']:.3f}"]
                for one in results.values() if isinstance(one, dict) and "ms" in one]  # fmt: skip
    assert [row[1:] for row in tables(section("What we measured"))[0]] == measured
    assert results["threads"] == 2


def test_speeds_on_an_accelerator_are_those_of_the_results():
    results = json.loads((ROOT / "benchmarks" / "results" / "anonymizer_speed.json").read_text())
    measured = {one["name"]: one for one in results["variants"]}
    shown = {
        "all 12 blocks, CUDA graphs": "full 16 rows graphs",
        "all 12 blocks": "full 16 rows",
        "training, CUDA graphs": "train 16 rows graphs",
        "training": "train 16 rows",
    }
    table = tables(section("What we measured"))[1]
    assert [row[0] for row in table] == list(shown)
    _are_those(table, measured, shown)
    results = json.loads((ROOT / "benchmarks" / "results" / "anonymizer_speed_mask.json").read_text())
    measured = {one["name"]: one for one in results["variants"]}
    shown["up to the last selection, CUDA graphs"] = "mask 16 rows graphs"
    table = tables(section("What we measured"))[2]
    assert len(table) == len(measured)
    _are_those(table, measured, shown)


def _are_those(table, measured, shown):
    for name, *cells in table:
        one = measured[shown[name]]
        alike = f"{one['alike']:.3f}" if "alike" in one else ""
        assert cells == [
            f"{one['clips_per_s']:.0f}", f"{one['share_of_ceiling']:.2f}", f"{one['peak_gib']:.1f}", alike
        ]  # fmt: skip


def test_the_examples_run(tmp_path, monkeypatch):
    pytest.importorskip("onnx", reason="vidveil[export] is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path))
    made_checkpoint.write(tmp_path / "dual_cls_puppets" / "checkpoint", made_checkpoint.network())
    there: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), there)
    clip, seen, hide = there["clip"], there["seen"], there["hide"]
    assert seen.video.shape == clip.shape
    assert 0 < seen.mask.float().mean() < 1
    assert hide.anonymize(clip).mask.shape == seen.mask.shape == clip.shape[1:]


def test_links_of_the_page_lead_somewhere():
    links = [link.partition("#") for link in re.findall(r"\]\(([^)]+)\)", TEXT)]
    assert links
    for file, _, place in links:
        target = (PAGE.parent / file).resolve() if file else PAGE
        assert target.exists(), file
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE) if place else []
        assert not place or place in {heading.lower().replace(" ", "-") for heading in headings}, place
