"""HMDB51 and VP-HMDB51's labels in their official layout: a small set made for tests, and the real files."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.data.made_hmdb51 import TITLES, clip, hmdb, pa, published, vp
from vidveil.app.run_recipe import evaluate
from vidveil.core.errors import DataError
from vidveil.core.recipe import find, read
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import hmdb51
from vidveil.methods.dual_cls import model as dual_cls
from vidveil.methods.dual_cls.train import run


@pytest.mark.parametrize("lists", [hmdb51.LISTS, f"hmdb51/{hmdb51.LISTS}"])
def test_hmdb51_is_read_in_its_official_layout(tmp_path, lists):
    hmdb(tmp_path, lists=lists)
    clips = load_data("hmdb51:1", root=tmp_path, frames=4, size=28)
    assert clips.name == "hmdb51:1"
    assert clips.actions == ["sit", "wave"]
    assert clips.action.tolist() == [0] * 6 + [1] * 6
    assert clips.split.tolist().count("test") == 2
    assert clips.videos.frames(6).shape == (15, 32, 43, 3)  # every second of 30 frames, a little larger than the view
    assert clips.attributes.shape == (12, 0)
    assert set(clips.person.tolist()) == {-1}


def test_clips_with_the_flag_0_belong_to_no_split(tmp_path):
    clips = hmdb51.load(None, root=hmdb(tmp_path), size=28)
    assert not [name for name in clips.ids if "Zeta" in name]
    assert len(hmdb51.read_split(tmp_path, 1)) == 14


def test_validation_is_whole_films_that_are_not_trained_on(tmp_path):
    clips = hmdb51.load(None, root=hmdb(tmp_path), size=28)
    films = [set(clips.tags["film"][clips.indices(split)].tolist()) for split in SPLITS]
    assert not films[0] & films[1]
    assert [len(clips.indices(split)) for split in SPLITS] == [8, 2, 2]
    held_out = [clips.ids[i] for i in clips.indices("val")]
    assert [name.partition("/")[0] for name in held_out] == ["sit", "wave"]  # a fifth of each class,
    assert not any("alpha" in name.lower() for name in held_out)  # of which Alpha would be two fifths
    parts = [i for i, name in enumerate(clips.ids) if "alpha" in name.lower()]
    assert len(parts) == 4
    assert len(set(clips.group[parts].tolist())) == 1


@pytest.mark.usefixtures("undecoded")
def test_a_film_in_training_and_test_of_the_official_split_has_one_tag(tmp_path):
    path = hmdb(tmp_path, film=False) / hmdb51.LISTS / "wave_test_split1.txt"
    path.write_text(path.read_text().replace(clip("Delta", "wave") + " 1", clip("Delta", "wave") + " 2"))
    clips = hmdb51.load(None, root=tmp_path, size=28)
    sit, wave = (list(clips.ids).index(f"{action}/{clip('Delta', action)}") for action in ("sit", "wave"))
    assert clips.split[wave] == "test" != clips.split[sit]
    assert clips.tags["film"][sit] == clips.tags["film"][wave]
    assert clips.group[sit] != clips.group[wave]


@pytest.mark.parametrize(
    ("file", "film"),
    [
        ("Return_of_the_King_12_wave_u_nm_np10_ba_med_2.avi", "returnoftheking"),
        ("RETURN_OF_THE_KING_wave_f_cm_np1_fr_bad_13.avi", "returnoftheking"),
        ("Bush_Wave_vs__Obama_Wave_wave_u_cm_np1_le_med_6.avi", "bushwavevsobamawave"),
        ("21_wave_h_cm_np1_fr_goo_0.avi", "21"),
        ("of_another_kind.avi", "ofanotherkind"),
    ],
)
def test_a_film_is_the_letters_of_the_title(file, film):
    assert hmdb51.film_of(file, "wave") == film


@pytest.mark.usefixtures("undecoded")
def test_no_class_gives_more_than_a_fifth_to_validation(tmp_path):
    rng = np.random.default_rng(0)
    for action in ("run", "sit", "wave"):
        films = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 8, 40)))[:70]
        lists = tmp_path / hmdb51.LISTS
        lists.mkdir(exist_ok=True)
        names = [
            f"{'abcdefgh'[f // 5]}{'ijklm'[f % 5]}_{action}_u_nm_np1_fr_goo_{i}.avi 1" for i, f in enumerate(films)
        ]
        (lists / f"{action}_test_split1.txt").write_text("\n".join(names))
    clips = hmdb51.load("1", root=tmp_path, size=28)
    train, val = (set(clips.tags["film"][clips.indices(split)].tolist()) for split in ("train", "val"))
    assert not train & val
    given = np.bincount(clips.action[clips.indices("val")])
    assert given.max() <= 14
    assert given.min() >= 12


def test_labels_next_to_hmdb51_are_read_and_missing_ones_are_unknown(tmp_path):
    vp(hmdb(tmp_path), leave_out="Gamma_wave")
    clips = hmdb51.load(None, root=tmp_path, size=28)
    at = {name: i for i, name in enumerate(clips.ids)}
    assert clips.attribute_names[1] == "face"
    assert clips.attributes[at["sit/" + clip("ALPHA_2", "sit")]].tolist() == [1, 1, 1, 0, 0]
    assert np.isnan(clips.attributes[at["wave/" + clip("Gamma", "wave")]]).all()
    assert np.isnan(clips.attributes).any(axis=1).sum() == 1


@pytest.mark.parametrize(
    ("recipe", "data", "attribute"),
    [("dual_cls_vp_hmdb51", "hmdb51:1", "face"), ("dual_cls_pa_hmdb", "pa_hmdb51", "nudity")],
)
def test_the_papers_training_and_its_table_run_on_such_a_folder(tmp_path, monkeypatch, recipe, data, attribute):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setitem(dual_cls.SIZES, "mini", (24, 3, 3, (1, 2, 3), (2, 8, 8)))
    torch.set_num_threads(1)
    vp(hmdb(tmp_path))
    pa(tmp_path)
    small = ["frames=4", "size=16", "epochs=1", "batch=4", "warmup_epochs=0", "device=cpu"]  # two or three steps
    made = run(read(find(recipe), ["network=mini", *small]), root=tmp_path)
    assert made.folder == tmp_path / "runs" / recipe / "checkpoint"
    table = [f"data={data}", f"method=dual_cls:{recipe}", "keep=[0.8]", "views=1x1", "attacker_epochs=1", "seeds=[0]"]
    evaluators = ["utility=r3d_tiny", "attackers=[resnet_tiny]", "permutations=10", "resamples=10"]
    results = evaluate("dual_cls_vp_table", *small, *table, *evaluators, data=tmp_path)
    assert results.data["people"] == {"train": 0, "val": 0, "test": 0}
    (pruned,) = results.points
    assert {"action_top1", "cmap", "f1", f"ap_{attribute}"} <= pruned.metrics.keys()
    assert not [name for name in pruned.metrics if name.startswith("linkage")]
    assert attribute not in pruned.constant


@pytest.fixture
def labels(tmp_path, real_labels):
    return published(tmp_path, real_labels)


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_real_splits_are_read_and_validation_shares_no_film_with_training(labels, number):
    named = hmdb51.read_split(labels, number)
    assert len(named) == 6766
    assert len({each.film for each in named}) == 1255
    clips = hmdb51.load(str(number), root=labels, size=112)
    train, val, test = (clips.indices(split) for split in SPLITS)
    assert (len(train) + len(val), len(test)) == (3570, 1530)
    assert len(clips.actions) == 51
    assert not set(clips.tags["film"][train].tolist()) & set(clips.tags["film"][val].tolist())
    assert 0.18 < len(val) / 3570 <= 0.2
    given = np.bincount(clips.action[val], minlength=51)
    assert given.min() >= 3
    assert given.max() == 14
    films = [np.unique(clips.tags["film"][part]) for part in (train, val)]
    per_film = len(train) / len(films[0]), len(val) / len(films[1])
    assert per_film[1] == pytest.approx(per_film[0], rel=0.5)  # not only the large ones


@pytest.mark.usefixtures("undecoded")
def test_the_real_lists_keep_titles_apart_within_a_class_but_not_films(labels):
    """What the reader's docstring says of them."""
    clips = hmdb51.load("1", root=labels, size=112)
    tested = clips.split == "test"
    film = clips.tags["film"]
    both = np.intersect1d(film[tested], film[~tested])
    assert len(both) == 128
    assert np.isin(film[tested], both).sum() == 544
    titles = [f"{Path(name).parent}/{hmdb51.TAGS.sub('', Path(name).stem)}" for name in clips.ids]
    assert not {t for t, side in zip(titles, tested, strict=True) if side} & {
        t for t, side in zip(titles, tested, strict=True) if not side
    }


@pytest.mark.usefixtures("undecoded")
def test_the_real_labels_of_vp_hmdb51_have_the_known_prevalences(labels):
    clips = hmdb51.load("1", root=labels, size=112)
    assert set(np.unique(clips.attributes).tolist()) == {0, 1}  # and none is missing
    share = clips.attributes[clips.indices("test")].mean(axis=0)
    np.testing.assert_allclose(share, [0.909, 0.595, 0.908, 0.310, 0.218], atol=5e-4)
    assert round(100 * float(share.mean()), 1) == 58.8  # what a random guess has for cMAP


def test_lists_that_windows_wrote_are_read(tmp_path):
    hmdb(tmp_path, film=False)
    for path in (tmp_path / hmdb51.LISTS).iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    names = {Path(one.path).name for one in hmdb51.read_split(tmp_path, 1)}
    assert clip(TITLES[0], "sit") in names


def test_labels_of_another_set_are_refused_and_clips_without_any_are_counted(tmp_path, capsys):
    vp(hmdb(tmp_path), leave_out="Beta")
    load_data("hmdb51", root=tmp_path, frames=4, size=16)
    assert "hmdb51_privacy_attribute_label.pickle has labels of 10 of the 12 clips" in capsys.readouterr().err
    (tmp_path / hmdb51.LABELS).write_bytes(pickle.dumps({"Archery/other.mp4": np.ones((1, 5))}, 4))
    with pytest.raises(
        DataError, match=r"labels of none of the 12 clips: its clips are called other .* this set Alpha"
    ):
        load_data("hmdb51", root=tmp_path, frames=4, size=16)


def test_videos_that_lie_too_deep_or_are_still_packed_are_named(tmp_path):
    sets = hmdb(tmp_path / "disk" / "sets")
    deeper = sets / "hmdb51" / "hmdb51_org"
    deeper.mkdir()
    for action in ("sit", "wave"):
        (sets / "hmdb51" / action).rename(deeper / action)
    with pytest.raises(DataError, match=r"nor are 11 more of 12; it lies in .*hmdb51_org/sit: move the folders"):
        load_data("hmdb51", root=sets, frames=4, size=16)
    with pytest.raises(DataError, match=rf"no hmdb51 in {sets.parent}, but in {sets}: give --data {sets}"):
        load_data("hmdb51", root=sets.parent, frames=4, size=16)
    shutil.rmtree(deeper)
    (sets / "hmdb51" / "wave.rar").touch()
    with pytest.raises(DataError, match=r"if it is in .*wave\.rar or another archive there, unpack that in .*hmdb51"):
        load_data("hmdb51", root=sets, frames=4, size=16)
    (sets / "hmdb51" / "sit.rar").touch()
    with pytest.raises(DataError, match=r"sit\.rar is still packed: unpack it in .*hmdb51"):
        load_data("hmdb51", root=sets, frames=4, size=16)
