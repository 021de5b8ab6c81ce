"""What the words of the command line mean, and that no two inputs write one output."""

from pathlib import Path

import pytest

from vidveil.video.sources import Kind, find, name_outputs, shown


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


def test_a_folder_is_searched_to_its_depths(tmp_path):
    touch(
        tmp_path, "a.mp4", "b/c.MOV", "b/d/e.avi", "notes.txt", "b/f.jpg", "a_anonymized.mp4", "x_anonymized.mp4.part"
    )
    sources, refused, passed_over = find([str(tmp_path)])
    assert [s.name for s in sources] == ["a.mp4", "c.MOV", "e.avi", "f.jpg"]
    assert not refused
    assert passed_over == 1


def test_a_tree_keeps_its_shape_below_the_output_folder(tmp_path):
    touch(tmp_path, "in/a.mp4", "in/b/a.mp4")
    named = outputs([tmp_path / "in"], tmp_path / "out")
    assert set(named.values()) == {str(tmp_path / "out/a_anonymized.mp4"), str(tmp_path / "out/b/a_anonymized.mp4")}


def test_two_folders_do_not_mix(tmp_path):
    touch(tmp_path, "x/a.mp4", "y/a.mp4")
    named = outputs([tmp_path / "x", tmp_path / "y"], tmp_path / "out")
    assert set(named.values()) == {str(tmp_path / "out/x/a_anonymized.mp4"), str(tmp_path / "out/y/a_anonymized.mp4")}


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


def test_outputs_are_never_inputs(tmp_path):
    touch(tmp_path, "a_anonymized.mp4")
    sources, refused, _ = find([str(tmp_path / "a_anonymized.mp4")])
    assert not sources
    assert "never taken as input" in str(refused[0].error)


def test_a_glob_finds_below_and_keeps_the_tree(tmp_path):
    touch(tmp_path, "in/a/1.mp4", "in/b/1.mp4", "in/b/2.txt")
    named = outputs([tmp_path / "in/**/*"], tmp_path / "out")
    assert set(named.values()) == {str(tmp_path / "out/a/1_anonymized.mp4"), str(tmp_path / "out/b/1_anonymized.mp4")}


@pytest.mark.parametrize(
    ("word", "says"), [("nowhere.mp4", "no such file"), ("none*.mp4", "no video or image matches")]
)
def test_what_is_not_there_is_said(tmp_path, monkeypatch, word, says):
    monkeypatch.chdir(tmp_path)
    _, refused, _ = find([word])
    assert says in str(refused[0].error)


def test_an_empty_folder_is_said(tmp_path):
    _, refused, _ = find([str(tmp_path)])
    assert "no video or image in this folder" in str(refused[0].error)


def test_numbers_are_cameras_unless_a_file_is_called_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (camera,), _, _ = find(["0"])
    assert (camera.kind, camera.name) == (Kind.CAMERA, "camera0")
    touch(tmp_path, "0")
    (file,), _, _ = find(["0"])
    assert file.kind is Kind.VIDEO


def test_a_stream_is_named_without_its_password():
    (source,), _, _ = find(["rtsp://admin:hunter2@10.0.0.7:554/door?token=abc"])
    ((_, path),), _ = name_outputs([source], None)
    assert source.kind is Kind.STREAM
    assert source.name == "rtsp://10.0.0.7:554/door"
    assert path.name == "10_0_0_7_door_anonymized.mp4"
    assert "hunter2" not in shown(source.location)


def test_one_output_file_takes_one_input(tmp_path):
    touch(tmp_path, "a.mp4", "b.mp4")
    sources, _, _ = find([str(tmp_path)])
    named, clashes = name_outputs(sources, str(tmp_path / "out.mp4"))
    assert not named
    assert "2 sources cannot share one output" in str(clashes[0].error)


def test_an_output_never_replaces_its_input(tmp_path):
    touch(tmp_path, "a.mp4")
    sources, _, _ = find([str(tmp_path / "a.mp4")])
    named, clashes = name_outputs(sources, str(tmp_path / "." / "a.mp4"))
    assert not named
    assert "replace its own input" in str(clashes[0].error)


def test_a_slash_at_the_end_means_a_folder(tmp_path):
    touch(tmp_path, "a.mp4")
    named = outputs([tmp_path / "a.mp4"], f"{tmp_path}/v1.2/")
    assert set(named.values()) == {str(tmp_path / "v1.2/a_anonymized.mp4")}
