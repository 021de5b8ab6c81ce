"""The table of SPLAVU: settings differ in what their names say, and rows are compared with raw features."""

import pytest

from experiments.job_queue import read_json
from experiments.splavu import summary as script
from experiments.splavu.table import RESULTS, SETTINGS, run_of, setting_jobs
from tests.report.made_up import on_disk
from vidveil.core.recipe import find, read


def test_settings_differ_in_nothing_but_what_their_names_say():
    ours, published = (read(find(words[1]), words[2:]) for words in (
        setting_jobs(name, "puppets", "p")[0].commands[0] for name in ("ours", "apart")
    ))  # fmt: skip
    assert {key for key in vars(ours) if getattr(ours, key) != getattr(published, key)} == {"erase", "name"}


def test_every_committed_setting_has_three_seeds_and_a_floor():
    for found in read_json(RESULTS / "table.json").values():
        assert set(found["settings"]) <= {*SETTINGS}
        for setting in found["settings"].values():
            for metric in ("action_top1", "linkage_rank1", "retrieval_map"):
                assert len(setting["anew"][metric]["seeds"]) == 3
                assert 0 < setting["anew"][metric]["floor"] < 1


def test_splits_are_pooled_and_compared_with_raw_features_of_the_same_clips(tmp_path):
    for end, people in (("w0", 10), ("w1", 20), ("w2", 20)):
        on_disk(tmp_path, run_of("raw", end), [], people=people)
        hits = 9 if end == "w0" else 8
        on_disk(tmp_path, run_of("ours", end), [(None, hits, 5, None)], people=people)
    found = script.summary(tmp_path)
    assert found.keys() == {"weizmann"}
    assert (found["weizmann"]["people"], found["weizmann"]["clips"]) == (50, 500)
    raw, ours = (found["weizmann"]["settings"][name]["anew"] for name in ("raw", "ours"))
    assert raw["action_top1"]["change"] == [0, 0, 0]
    assert ours["action_top1"]["value"][0] == pytest.approx(0.2 * 0.9 + 0.8 * 0.8)
    assert ours["action_top1"]["change"][0] == pytest.approx(0.82 - 1)
    assert ours["linkage_rank1"]["excess"][0] == pytest.approx(0.4 / 0.8)
    assert ours["linkage_rank1"]["floor"] == pytest.approx(0.1)
