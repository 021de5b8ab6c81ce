"""Names of outputs: the same as ever, whatever else is given, and in a time that grows with the number of files."""

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidveil.app.naming import name_outputs
from vidveil.video.sources import SHEET_TAG, Kind, Source, find, is_media, is_output

STEMS = st.sampled_from(["a", "A", "b", "straße", "STRASSE", "a.b", ".a", "a_anonymized", "a_review", "b_review"])
SUFFIXES = st.sampled_from([".mp4", ".MP4", ".mov", ".avi", ".AVI", ".jpg", ".png", ".txt", "", ".vidveil.part"])
NAMES = st.sets(st.tuples(STEMS, SUFFIXES).map("".join), min_size=1, max_size=12)


def has_namesake(path: Path) -> bool:
    """As the names of all outputs were decided from the first version on: one listing for each file."""
    stem = path.stem.casefold()
    return any(
        other.name != path.name and other.stem.casefold() == stem and is_media(other) and not is_output(other)
        for other in path.parent.iterdir()
    )


def expected(path: Path) -> str:
    suffix = path.suffix.lower()
    own = "_" + suffix.lstrip(".") if suffix != ".mp4" and has_namesake(path) else ""
    return f"{path.stem}{own}_anonymized{'.png' if suffix == '.png' else '.jpg' if suffix == '.jpg' else '.mp4'}"


def named(sources: list[Source]) -> dict[str, str]:
    return {source.location: name_outputs([source], None)[0][0][1].name for source in sources}


@settings(max_examples=60)
@given(names=NAMES, data=st.data())
def test_names_are_as_ever_and_do_not_depend_on_what_else_is_given(tmp_path_factory, names, data):
    folder = tmp_path_factory.mktemp("in")
    for name in names:
        (folder / name).write_bytes(b"\x89PNG" + SHEET_TAG if name == "b_review.png" else b"x")
    sources, _, _ = find(map(str, sorted(folder.iterdir())))
    chosen = [source for source in sources if data.draw(st.booleans())]
    together, _ = name_outputs(chosen, None)
    assert {source.location: path.name for source, path in together}.items() <= named(sources).items()
    assert named(sources) == {source.location: expected(source.path) for source in sources}


def test_each_folder_is_listed_once_however_many_files_it_holds(tmp_path, monkeypatch):
    for i in range(300):
        (tmp_path / f"{i}.mov").touch()
    calls = Counter()

    def count(name: str) -> None:
        original = getattr(os, name)

        def counted(*args, **more):
            calls[name] += 1
            return original(*args, **more)

        monkeypatch.setattr(os, name, counted)

    for name in ("listdir", "scandir", "lstat"):
        count(name)
    sources, _, _ = find([str(tmp_path)])
    outputs, _ = name_outputs(sources, None)
    assert len(outputs) == 300
    assert calls["listdir"] + calls["scandir"] <= 2  # one to find, one to name
    assert calls["lstat"] <= 300 + 40  # a link or not, once for each file; the way to the folder once


def test_a_link_to_a_file_is_that_file(tmp_path):
    (tmp_path / "a.mp4").touch()
    (tmp_path / "b.mp4").symlink_to("a.mp4")
    (tmp_path / "x").symlink_to(".")
    sources, _, _ = find([str(tmp_path / "b.mp4"), str(tmp_path / "a.mp4"), str(tmp_path / "x/a.mp4")])
    assert [source.name for source in sources] == ["b.mp4"]


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class Root:
    def __init__(self, name: str) -> None:
        self.name = Counted(name)


@pytest.mark.parametrize("name", ["video", "video{}"])
def test_many_folders_of_one_name_get_a_folder_each_without_comparing_all_with_all(name):
    roots = [Root(name.format(i)) for i in range(400)]
    files = [Source(Kind.CAMERA, "0", str(i), root=root) for i, root in enumerate(roots)]  # type: ignore[arg-type]
    Counted.compared = 0
    outputs, _ = name_outputs(files, "nowhere/")
    assert len(outputs) == 400
    assert Counted.compared < 10 * 400
