"""What the words of the command line mean, and that no two inputs write one output."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unprivileged import without_root_powers
from vidveil.app.naming import name_outputs
from vidveil.core.errors import InputError
from vidveil.video.sources import SHEET_TAG, Kind, find, shown


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def outputs(words, output=None) -> dict[str, str]:
    sources, refused, _ = find(map(str, words))
    named, clashes = name_outputs(sources, None if output is None else str(output))
    assert not refused
    assert not clashes
    return {source.location: str(path) for source, path in named}


def test_a_folder_is_searched_to_its_depths_and_outputs_are_never_inputs(tmp_path):
    outputs = ("a_anonymized.mp4", "x_anonymized.mp4.part", ".out.mp4.vidveil.part")
    touch(tmp_path, "a.mp4", "b/c.MOV", "b/d/e.avi", "notes.txt", "b/f.jpg", *outputs)
    sources, refused, passed_over = find([str(tmp_path)])
    assert [s.name for s in sources] == ["a.mp4", "c.MOV", "e.avi", "f.jpg"]
    assert not refused
    assert [file.name for file in passed_over] == ["notes.txt"]
    for name in ("a_anonymized.mp4", ".out.mp4.vidveil.part"):
        sources, (refusal,), _ = find([str(tmp_path / name)])
        assert not sources
        assert "never taken as input" in str(refusal.error)


@pytest.mark.parametrize(
    ("files", "words", "made"),
    [
        (["in/a.mp4", "in/b/a.mp4"], ["in"], ["a_anonymized.mp4", "b/a_anonymized.mp4"]),
        (["in/a/1.mp4", "in/b/1.mp4", "in/b/2.txt"], ["in/**/*"], ["a/1_anonymized.mp4", "b/1_anonymized.mp4"]),
        (["x/a.mp4", "y/a.mp4"], ["x", "y"], ["x/a_anonymized.mp4", "y/a_anonymized.mp4"]),
        (
            ["p/x/a.mp4", "q/x/a.mp4", "r/x2/a.mp4"],
            ["p/x", "q/x", "q/x/*.mp4", "r/x2"],
            [f"{folder}/a_anonymized.mp4" for folder in ("x", "x2", "x22")],
        ),
    ],
    ids=["a tree keeps its shape", "also by a glob", "two folders do not mix", "nor do two of one name"],
)
def test_outputs_in_a_folder_lie_as_their_sources_do(tmp_path, files, words, made):
    touch(tmp_path, *files)
    named = outputs([tmp_path / word for word in words], tmp_path / "out")
    assert [*named.values()] == [str(tmp_path / "out" / name) for name in made]


def test_namesakes_get_names_of_their_own(tmp_path):
    touch(tmp_path, "a.avi", "a.mp4", "a.MOV", "a.jpg", "b.mkv")
    named = {Path(k).name: Path(v).name for k, v in outputs([tmp_path]).items()}
    assert named == {
        "a.mp4": "a_anonymized.mp4",
        "a.avi": "a_avi_anonymized.mp4",
        "a.MOV": "a_mov_anonymized.mp4",
        "a.jpg": "a_jpg_anonymized.jpg",
        "b.mkv": "b_anonymized.mp4",
    }


def test_a_name_does_not_depend_on_what_else_is_asked_for(tmp_path):
    touch(tmp_path, "a.avi", "a.mp4")
    assert Path(*outputs([tmp_path / "a.avi"]).values()).name == "a_avi_anonymized.mp4"


def test_inputs_that_would_still_share_an_output_are_refused(tmp_path):
    touch(tmp_path, "x/a.mp4", "y/a.mp4")
    sources, _, _ = find([str(tmp_path / "x/a.mp4"), str(tmp_path / "y/a.mp4")])
    named, clashes = name_outputs(sources, str(tmp_path / "out"))
    assert len(named) == len(clashes) == 1
    assert "same output" in str(clashes[0].error)


def test_one_file_given_twice_is_done_once(tmp_path):
    touch(tmp_path, "a.mp4")
    sources, _, _ = find([str(tmp_path), str(tmp_path / "a.mp4"), str(tmp_path / "*.mp4")])
    assert len(sources) == 1


def test_a_contact_sheet_is_no_input_and_a_picture_of_such_a_name_is_one(tmp_path):
    touch(tmp_path, "a.mp4", "talk_review.png")
    (tmp_path / "a_review.png").write_bytes(b"\x89PNG" + SHEET_TAG)
    sources, refused, passed_over = find([str(tmp_path)])
    assert [source.name for source in sources] == ["a.mp4", "talk_review.png"]
    assert not refused
    assert not passed_over


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("nowhere.mp4", "no such file"),
        ("none*.mp4", "no video or image matches"),
        (".", "no video or image in this folder"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path, monkeypatch, word, message):
    monkeypatch.chdir(tmp_path)
    _, (refusal,), _ = find([word])
    assert message in str(refusal.error)


def test_numbers_are_cameras_unless_a_file_is_called_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (camera,), _, _ = find(["0"])
    assert (camera.kind, camera.name) == (Kind.CAMERA, "camera0")
    touch(tmp_path, "0")
    (file,), _, _ = find(["0"])
    assert file.kind is Kind.VIDEO


def test_a_stream_is_shown_without_its_password_and_its_output_names_no_address():
    words = ["rtsp://admin:hunter2@10.0.0.7:554/door?token=abc", "http://10.0.0.8/yard", "0", "http://10.0.0.9/gate"]
    sources, _, _ = find(words)
    named, _ = name_outputs(sources, None)
    assert sources[0].kind is Kind.STREAM
    assert sources[0].name == "rtsp://10.0.0.7:554/door"
    streams = ["stream_anonymized.mp4", "stream2_anonymized.mp4", "camera0_anonymized.mp4", "stream3_anonymized.mp4"]
    assert [path.name for _, path in named] == streams


@pytest.mark.parametrize(
    ("word", "printed"),
    [
        ("rtsp://admin:se/cret@host:554/door", "rtsp://host:554/door"),
        ("rtsp://admin:se@cret@host/door#secret", "rtsp://host/door"),
        ("rtsp://admin:se?cret@host/door", "rtsp://..."),
        ("rtsp://admin:se#cret@host/door", "rtsp://..."),
        ("http://host/door?user=admin@host&password=secret", "http://..."),
        ("rtsp://admin:secret@", "rtsp://..."),
        ("rtsp:///door", "rtsp://..."),
        ("ftp://admin:secret@host/a.mp4", "ftp://host/a.mp4"),
        ("http://u:secret@[bad/x", "http://[bad/x"),
        ("a@b?c.mp4", "a@b?c.mp4"),
    ],
)
def test_no_part_of_a_password_is_printed(word, printed):
    assert shown(word) == printed
    sources, refused, _ = find([word])
    assert [found.name for found in (*sources, *refused)] == [printed]


@pytest.mark.parametrize(
    ("files", "output", "message"),
    [
        (["a.mp4", "b.mp4"], "out.mp4", "2 sources cannot share one output"),
        (["a.mp4"], "./a.mp4", "replace its own input"),
    ],
)
def test_an_output_file_takes_one_input_and_never_replaces_it(tmp_path, files, output, message):
    touch(tmp_path, *files)
    sources, _, _ = find([str(tmp_path)])
    named, clashes = name_outputs(sources, f"{tmp_path}/{output}")
    assert not named
    assert message in str(clashes[0].error)


def test_a_slash_at_the_end_means_a_folder(tmp_path):
    touch(tmp_path, "a.mp4")
    named = outputs([tmp_path / "a.mp4"], f"{tmp_path}/v1.2/")
    assert set(named.values()) == {str(tmp_path / "v1.2/a_anonymized.mp4")}


def test_folders_that_differ_by_case_are_two_folders_and_files_that_do_are_not(tmp_path):
    touch(tmp_path, "Ward/a.mp4", "ward/a.mp4")
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this disk does not tell them apart")
    assert len(outputs([tmp_path])) == 2
    assert len(outputs([tmp_path], tmp_path / "out")) == 2
    assert len(outputs([tmp_path / "Ward", tmp_path / "ward"], tmp_path / "out")) == 2
    touch(tmp_path, "ward/A.mp4")
    sources, _, _ = find([str(tmp_path / "ward")])
    assert len(name_outputs(sources, None)[1]) == 1


def test_one_folder_under_two_names_is_one_folder(tmp_path):
    touch(tmp_path, "x/a.mp4", "x/b/a.jpg", "y/z.mp4")
    (tmp_path / "x/link").symlink_to(tmp_path / "y")  # never followed
    (tmp_path / "out").mkdir()
    (tmp_path / "out/b").symlink_to(tmp_path / "out")
    sources, _, _ = find([str(tmp_path / "x")])
    named, clashes = name_outputs(sources, str(tmp_path / "out"))
    assert [source.name for source, _ in named] == ["a.mp4"]
    assert [clash.name for clash in clashes] == [str(tmp_path / "x/b/a.jpg")]


@pytest.mark.parametrize("word", ["x" * 300, "x" * 300 + ".mp4", "x" * 300 + "*.mp4", "x" * 300 + "/*.mp4", "a\0b.mp4"])
def test_a_name_that_cannot_be_is_refused(word):
    sources, refused, _ = find([word])
    assert not sources
    assert [refusal.name for refusal in refused] == [word]
    assert isinstance(refused[0].error, InputError)


@pytest.mark.parametrize("folder", ["x" * 300 + ".d", "x" * 300, "loop"])
def test_an_output_folder_that_cannot_be_is_no_crash(tmp_path, folder):
    touch(tmp_path, "a.mp4")
    (tmp_path / "loop").symlink_to("loop")
    sources, _, _ = find([str(tmp_path / "a.mp4")])
    name_outputs(sources, str(tmp_path / folder))


LOOK = """
import json, sys
from vidveil.app.naming import name_outputs
from vidveil.video.sources import find
sources, refused, _ = find(sys.argv[1:])
named, clashes = name_outputs(sources, None)
assert not clashes
print(json.dumps([[path.name for _, path in named], [[r.name, str(r.error)] for r in refused]]))
"""


@pytest.mark.parametrize(
    ("mode", "word", "made", "refused"),
    [
        (0o000, "in", ["a_anonymized.mp4"], "in/closed"),
        (0o444, "in", ["a_anonymized.mp4"], "in/closed"),
        (0o111, "in", ["a_anonymized.mp4"], "in/closed"),
        (0o000, "in/**/*.*", ["a_anonymized.mp4"], "in/closed"),
        (0o444, "in/**/*.*", ["a_anonymized.mp4"], "in/closed"),
        (0o444, "in/*/c.mp4", [], "in/closed"),
        (0o000, "in/closed", [], "in/closed"),
        (0o000, "in/closed/b.avi", [], "in/closed/b.avi"),
        (0o111, "in/closed/b.avi", ["b_avi_anonymized.mp4"], None),
    ],
)
def test_a_folder_that_cannot_be_read_is_reported_once_and_the_rest_is_done(tmp_path, mode, word, made, refused):
    touch(tmp_path, "in/a.mp4", "in/closed/b.avi", "in/closed/c.mp4")
    closed = tmp_path / "in/closed"
    closed.chmod(mode)
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOOK, word],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            timeout=60,
            check=True,
            preexec_fn=without_root_powers,
        )
    finally:
        closed.chmod(0o755)
    found, errors = json.loads(done.stdout)
    assert found == made
    assert errors == ([[refused, "cannot be read (permission denied)"]] if refused else [])
