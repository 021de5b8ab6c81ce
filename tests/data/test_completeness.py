"""How much of a set is present, by counting files."""

import pytest

from tests.data.made_hmdb51 import hmdb, vp
from vidveil.data import available, completeness, load_data
from vidveil.data.catalogue import DATA, ExpectedFiles
from vidveil.data.completeness import count_files, summarize
from vidveil.data.description import data_description


def put(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def test_files_are_counted_by_their_folder_and_hidden_ones_are_not(tmp_path):
    put(tmp_path, "set/a/1.avi", "set/a/2.avi", "set/a/._1.avi", "set/a/notes.txt", "set/b/3.mp4", "set/.old/4.avi")
    put(tmp_path, "set/5.avi")
    found = count_files(tmp_path, "set/*/*.avi")
    assert found == {str(tmp_path / "set/a"): 2, str(tmp_path / "set/b"): 0}
    assert count_files(tmp_path, "nowhere/*/*.avi") == {}
    assert count_files(tmp_path, "set/*/") == {str(tmp_path / "set"): 2}
    (tmp_path / "link").symlink_to(tmp_path / "set")
    assert sum(count_files(tmp_path, "link/*/*.avi").values()) == 2


def test_a_summary_has_counts_classes_and_labels(tmp_path):
    put(tmp_path, "in/x/1.avi", "in/x/2.avi", "in/y/1.avi")
    expected = ExpectedFiles(9, (("out/*/*.avi", "in/*/*.avi"),), classes=3, labels={"names": ("a.txt", "b.txt")})
    assert summarize(expected, tmp_path) == "part: 3 of 9 videos, 1 of 3 classes have none, without names"
    put(tmp_path, "b.txt", "in/z/1.avi")
    assert summarize(expected, tmp_path) == "part: 4 of 9 videos, with names"
    put(tmp_path, *(f"in/z/{i}.avi" for i in range(2, 9)))
    assert summarize(expected, tmp_path) == "here: 11 videos, 9 are needed, with names"


def test_hmdb51_reports_which_of_its_classes_and_labels_are_there(tmp_path):
    hmdb(tmp_path)
    assert available("hmdb51", tmp_path) == "part: 14 of 6,766 videos, 49 of 51 classes have none, without VP-HMDB51"
    vp(tmp_path)
    assert available("hmdb51", tmp_path).endswith("have none, with VP-HMDB51")


def test_files_of_the_larger_ntu_do_not_count(tmp_path):
    names = [f"S{setup:03d}C001P001R001A001_rgb.avi" for setup in (1, 9, 10, 17, 18, 32)]
    put(tmp_path, *(f"nturgb+d_rgb/{name}" for name in names))
    assert available("ntu60", tmp_path) == "part: 4 of 56,880 videos, without subgroups"


def test_a_copy_in_folders_of_its_own_is_counted_as_deep_as_it_is_read(tmp_path):
    put(tmp_path, "UCF_Crimes/Part-1/Anomaly-Videos-Part-1/Abuse/Abuse001_x264.mp4", "UCF_Crimes/Normal001_x264.mp4")
    assert available("ucf_crime", tmp_path) == "part: 2 of 1,900 videos"


def test_an_incomplete_set_is_reported_when_it_is_loaded_and_in_results(tmp_path, capsys):
    clips = load_data("hmdb51:1", frames=4, size=16, root=hmdb(tmp_path))
    assert "hmdb51:1: 14 of 6,766 videos are here, so numbers are not those of the whole set" in capsys.readouterr().err
    assert data_description(clips)["here"] == [14, 6766]


def test_walks_are_folders(tmp_path):
    put(tmp_path, *(f"GaitDatasetB-silh/001/nm-0{i}/{view}/1.png" for i in (1, 2) for view in ("000", "018")))
    assert available("casia_b", tmp_path) == "part: 4 of 13,640 walks"


@pytest.mark.parametrize("name", [name for name in DATA if DATA[name].expected])
def test_what_is_counted_lies_in_what_is_needed(name):
    """Else a set that is here would always have nothing in it."""
    needs = {place.split("/")[0] for group in DATA[name].requires for place in group}
    for group in DATA[name].expected.files:
        for pattern in group:
            assert pattern.split("/")[0] in needs


def test_files_are_counted_by_their_names_alone(tmp_path, monkeypatch):
    for folder in range(10):
        (tmp_path / "set" / str(folder)).mkdir(parents=True)
        for i in range(1000):
            (tmp_path / "set" / str(folder) / f"{i}.avi").touch()
    looked_at = []
    monkeypatch.setattr(completeness.os, "stat", lambda *args, **_: looked_at.append(args))
    assert summarize(ExpectedFiles(10_000, (("set/*/*.avi",),)), tmp_path) == "here: 10,000 of 10,000 videos"
    assert not looked_at
