"""Committed results: all can be read, tables of pages are theirs, and pictures can be drawn from them."""

from pathlib import Path

import pytest

from experiments import tables
from experiments.job_queue import read_json
from experiments.real_video import picture as real_video
from experiments.real_video import table as real_video_table
from experiments.splavu import picture as splavu
from experiments.splavu import table as splavu_table
from experiments.stprivacy import figure4, figure4_picture
from vidveil.evaluation.results import read

FILES = sorted(
    file for folder in ("benchmarks", "experiments") for file in (tables.ROOT / folder).rglob("results/**/*.json")
)


def test_every_result_of_an_evaluation_can_be_read() -> None:
    evaluations = [file for file in FILES if "points" in read_json(file)]
    assert len(evaluations) > 100
    for file in evaluations:
        assert read(file).raw.metrics, file.name


@pytest.mark.parametrize("page", tables.pages(), ids=lambda page: page.stem)
def test_tables_of_a_page_are_those_of_the_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tables.with_tables(text) == text, "run: python -m experiments.tables"


def test_every_table_is_on_a_page() -> None:
    shown = {name for page in tables.pages() for name in tables.MARKED.findall(page.read_text(encoding="utf-8"))}
    assert shown == tables.TABLES.keys()


def test_a_table_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="end table"):
        tables.with_tables("<!-- table faces -->\n| 1 |\n")


@pytest.mark.parametrize(
    ("draw", "file"),
    [
        (real_video.picture, real_video_table.RESULTS / "summary.json"),
        (splavu.picture, splavu_table.RESULTS / "table.json"),
        (figure4_picture.draw, figure4.RESULTS / "figure4.json"),
    ],
)
def test_pictures_are_drawn_from_the_results(draw, file: Path, tmp_path: Path) -> None:
    draw(read_json(file), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
