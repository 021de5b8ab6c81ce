"""Stores through an adapter: every vector is changed and nothing else comes along, or nothing is written."""

import hashlib
import json
import shutil
import threading

import h5py
import numpy as np
import pytest
import torch

from tests import command
from tests.data.features import made
from tests.data.features.made import ENCODER, D, hashes, ids, one_by_one, store, vectors
from tests.media import Film
from tests.methods import made_checkpoint
from vidveil.app.feature_stores import anonymize_features, content_hash, target_of
from vidveil.core.errors import DataError, OutputError, UsageError
from vidveil.data.features.labels import FILE
from vidveil.data.store.features import FeatureStore, fill
from vidveil.methods import feature_adapter as module
from vidveil.methods import load
from vidveil.methods.splavu.model import AAM

METHOD = "splavu:safe"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where somebody works: their runs in `runs`, and nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIDVEIL_RUNS", raising=False)
    return tmp_path


@pytest.fixture
def adapter(place):
    return made.adapter(place / "runs")


@pytest.fixture
def raw(place):
    """A store of raw features that names people."""
    kept = store(place / "raw")
    (kept.folder / FILE).write_text("id,split,action,person\nvideo 0,train,walk,Jane Doe\n")
    return kept


def there(place):
    """All files but runs and locks."""
    return {
        name: digest
        for name, digest in hashes(place).items()
        if not name.startswith("runs/") and not name.endswith(".lock")
    }


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_every_vector_of_a_store_becomes_what_the_adapter_makes_of_it_alone(raw, adapter):
    done = anonymize_features(raw.folder, METHOD)
    assert (done.output, done.vectors, done.knows_encoder) == (raw.folder.with_name("raw_anonymized"), 13, True)
    found = FeatureStore.open(done.output)
    close(found.all(), one_by_one(adapter, raw.all()))
    assert np.abs(found.all() - raw.all()).max() > 0.1  # this adapter does something
    assert found.counts().tolist() == raw.counts().tolist()
    assert list(found.ids) == list(raw.ids)
    found.verify()


@pytest.mark.usefixtures("adapter")
def test_labels_and_static_clips_stay_behind_and_the_manifest_says_so(place, raw):
    done = anonymize_features(raw.folder, METHOD)
    found = FeatureStore.open(done.output)
    assert found.all("static").shape == (0, D)
    names = {f"{what}-0000{i}" for i in range(3) for what in ("clips", "static", "shard")}
    assert {name.rpartition(".")[0] for name in hashes(done.output)} == names | {"store"}
    assert json.loads(done.manifest.read_text())["dropped"] == [FILE, "static clips"]
    for path in (*done.output.iterdir(), done.manifest):
        assert b"Jane" not in path.read_bytes()
        assert str(place).encode() not in path.read_bytes()


@pytest.mark.usefixtures("adapter")
def test_the_new_store_cannot_be_taken_for_raw_features_nor_be_anonymized_again(place, raw):
    done = anonymize_features(raw.folder, METHOD)
    found = FeatureStore.open(done.output)
    assert found.fingerprint != raw.fingerprint
    assert found.encoder != raw.encoder
    assert found.about["encoder"]["spec"] == "made | splavu:safe"
    before = there(place)
    with pytest.raises(DataError, match="raw_anonymized went through an adapter already"):
        anonymize_features(done.output, METHOD)
    with pytest.raises(DataError, match="made by another encoder"):  # nor be filled up with raw ones
        fill(done.output, raw.about, ids(7), made.Maker(), videos=3)
    assert there(place) == before


def write_layout(place, kind):
    """Two items of 7 and 3 vectors."""
    items = {"a": vectors(7), "b": vectors(3, 1)}
    if kind == "h5":
        with h5py.File(place / "features.h5", "w") as file:
            for key, array in items.items():
                file.create_dataset(f"train/{key}", data=array).attrs["actor"] = "Jane Doe"
            file.create_dataset("labels", data=[1, 2, 3])
        return place / "features.h5"
    (place / "features/train").mkdir(parents=True)
    for key, array in items.items():
        np.save(place / f"features/train/{key}.npy", array)
    (place / "features/labels.csv").write_text("Jane Doe")
    return place / "features"


def read_layout(path):
    if path.is_dir():
        return {key: np.load(path / f"train/{key}.npy") for key in "ab"}
    with h5py.File(path) as file:
        return {key: file[f"train/{key}"][()] for key in "ab"}


@pytest.mark.parametrize("kind", ["h5", "npy"])
def test_files_of_others_keep_their_layout_and_lose_what_is_no_feature(place, adapter, kind):
    source = write_layout(place, kind)
    before = content_hash(source)
    done = anonymize_features(source, METHOD)
    assert done.output == target_of(source) == place / f"features_anonymized{source.suffix}"
    assert (done.vectors, done.knows_encoder) == (10, False)
    for key, old in read_layout(source).items():
        close(read_layout(done.output)[key], one_by_one(adapter, old))
    manifest = json.loads((place / f"features_anonymized{source.suffix}.json").read_text())
    wanted = ["labels", "train/a@actor", "train/b@actor"] if kind == "h5" else ["labels.csv"]
    assert manifest["dropped"] == wanted
    files = [done.output] if kind == "h5" else [file for file in done.output.rglob("*") if file.is_file()]
    assert not [file for file in files if b"Jane" in file.read_bytes()]
    assert content_hash(source) == before


@pytest.mark.parametrize("kind", ["store", "h5", "npy"])
def test_vectors_go_through_the_adapter_a_few_at_a_time(place, adapter, monkeypatch, kind):
    source = store(place / "raw", a_shard=7).folder if kind == "store" else write_layout(place, kind)
    seen, forward = [], AAM.forward
    monkeypatch.setattr(module, "ROWS", 4)
    monkeypatch.setattr(module, "LEAST", 2)
    monkeypatch.setattr(AAM, "forward", lambda self, z: seen.append(len(z)) or forward(self, z))
    done = anonymize_features(source, METHOD, place / f"cut{source.suffix}")
    assert max(seen) <= 4
    assert done.vectors == sum(seen)
    monkeypatch.undo()
    raw = FeatureStore.open(source).all() if kind == "store" else read_layout(source)["a"]
    found = FeatureStore.open(done.output).all() if kind == "store" else read_layout(done.output)["a"]
    close(found, one_by_one(adapter, raw))


@pytest.fixture
def cores():
    """Called with how many threads torch should use."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 3])
def test_every_core_takes_some_vectors_and_torch_has_as_many_threads_as_before(adapter, monkeypatch, cores, threads):
    these, forward = vectors(6 * 64), AAM.forward
    seen, all_at_once = [], threading.Barrier(threads, timeout=20)  # broken where there are fewer threads

    def together(self, z):
        all_at_once.wait()
        seen.append((threading.get_ident(), torch.get_num_threads()))
        return forward(self, z)

    monkeypatch.setattr(AAM, "forward", together)
    cores(threads)
    found = module.changing(adapter)(these)
    assert torch.get_num_threads() == threads
    assert len(seen) == 6
    assert len({thread for thread, _ in seen}) == threads
    assert {of_torch for _, of_torch in seen} == {1}
    monkeypatch.undo()
    close(found, one_by_one(adapter, these))
    with pytest.raises(RuntimeError):
        module.changing(adapter)(these[:, 1:])
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("count", [0, 1, 13, 63, 127])
def test_few_vectors_are_one_piece_in_the_thread_that_asks(adapter, monkeypatch, cores, count):
    these, seen, forward = vectors(count), [], AAM.forward
    monkeypatch.setattr(
        AAM, "forward", lambda self, z: seen.append((len(z), threading.get_ident())) or forward(self, z)
    )
    cores(3)
    assert module.changing(adapter)(these).shape == (count, D)
    assert seen == [(count, threading.get_ident())]
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("count", [128, 500, 1100, 9000])
def test_a_vector_becomes_the_same_to_the_bit_on_any_number_of_cores(place, monkeypatch, cores, count):
    adapter = made.adapter(place / "runs", width=96)
    these, forward = vectors(count, width=96), AAM.forward
    pieces, found = [], []
    for threads in (1, 2, 5):
        seen = []
        monkeypatch.setattr(AAM, "forward", lambda self, z, seen=seen: seen.append(len(z)) or forward(self, z))
        cores(threads)
        found.append(module.changing(adapter)(these))
        pieces.append(sorted(seen))
    assert pieces[0] == pieces[1] == pieces[2]
    assert 64 <= pieces[0][0] <= pieces[0][-1] <= 512
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


@pytest.mark.usefixtures("adapter")
def test_the_manifest_holds_hashes_and_names_and_no_folder(place, raw):
    manifest = json.loads(anonymize_features(raw.folder, METHOD).manifest.read_text())
    made = FeatureStore.open(place / "raw_anonymized")
    assert manifest["features_manifest"] == 2
    assert manifest["input"] == {"name": "raw", "fingerprint": raw.fingerprint}
    assert manifest["output"] == {"name": "raw_anonymized", "fingerprint": made.fingerprint}
    assert (manifest["method"], manifest["vectors"], manifest["encoder"]) == ("splavu:safe", 13, ENCODER)
    assert len(manifest["weights"]) == 64
    source = write_layout(place, "h5")
    manifest = json.loads(anonymize_features(source, str(place / "runs/safe")).manifest.read_text())
    for way, path in (("input", source), ("output", place / "features_anonymized.h5")):
        assert manifest[way] == {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert manifest["method"] == "splavu:safe"
    assert str(place) not in json.dumps(manifest)


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("videomae:/home/jane/weights/base", "videomae:base"),
        ("videomae:~/weights", "videomae:weights"),
        ("videomae:../jane/base", "videomae:base"),
        ("videomae:MCG-NJU/videomae-base", "videomae:MCG-NJU/videomae-base"),
        ("run:encoder", "run:encoder"),
        ("i3d", "i3d"),
    ],
)
def test_the_manifest_has_only_the_last_name_of_an_encoders_folder(place, spec, shown):
    encoder = ENCODER | {"spec": spec}
    made.adapter(place / "runs", encoder=encoder)
    done = anonymize_features(store(place / "raw", encoder=encoder).folder, METHOD)
    assert json.loads(done.manifest.read_text())["encoder"] == encoder | {"spec": shown}
    assert FeatureStore.open(done.output).about["encoder"]["spec"] == f"{shown} | splavu:safe"


def test_a_hash_of_a_folder_is_of_names_and_contents(tmp_path):
    for name, file, text in (("a", "x", "1"), ("b", "x", "1"), ("c", "y", "1"), ("d", "x", "2")):
        (tmp_path / name / "in").mkdir(parents=True)
        (tmp_path / name / "in" / file).write_text(text)
    a, b, c, d = (content_hash(tmp_path / name) for name in "abcd")
    assert a == b
    assert len({a, c, d}) == 3


@pytest.mark.parametrize(
    ("encoder", "shape", "message"),
    [
        (ENCODER | {"fingerprint": "other"}, {}, "made by another encoder than the one that safe was trained for"),
        ({}, {}, "made by another encoder"),
        (ENCODER, {"width": 16}, "vectors of 8 numbers, the adapter is for 16"),
        (ENCODER, {"reference": True}, "makes of a vector depends on the rest of the batch"),
    ],
    ids=["another encoder", "of no encoder", "another width", "depends on neighbours"],
)
def test_a_store_that_the_adapter_does_not_belong_to_is_refused_and_nothing_is_written(
    place, raw, encoder, shape, message
):
    made.adapter(place / "runs", encoder=encoder, **shape)
    before = there(place)
    with pytest.raises((DataError, UsageError), match=message) as error:
        anonymize_features(raw.folder, METHOD)
    assert "\n" not in str(error.value)
    assert there(place) == before


def test_files_of_others_are_refused_by_their_width_alone(place):
    made.adapter(place / "runs", width=16)
    source = write_layout(place, "h5")
    before = there(place)
    with pytest.raises(DataError, match="vectors of 8 numbers, the adapter is for 16"):
        anonymize_features(source, METHOD)
    assert there(place) == before


def test_an_mlp_as_published_needs_no_neighbours_and_may_be_used(place, raw):
    adapter = made.adapter(place / "runs", kind="mlp", reference=True)
    close(FeatureStore.open(anonymize_features(raw.folder, METHOD).output).all(), one_by_one(adapter, raw.all()))


def flip(path):
    data = bytearray(path.read_bytes())
    data[-7] ^= 1
    path.write_bytes(data)


@pytest.mark.usefixtures("adapter")
def test_a_flipped_byte_of_the_source_is_a_line_and_nothing_is_made_of_its_shard(place, raw):
    flip(raw.folder / "clips-00001.npy")
    with pytest.raises(DataError, match=r"raw/clips-00001\.npy is damaged") as error:
        anonymize_features(raw.folder, METHOD)
    assert "\n" not in str(error.value)
    assert sorted(file.name for file in place.glob("raw_anonymized/*.npy")) == ["clips-00000.npy", "static-00000.npy"]
    assert not (place / "raw_anonymized.json").exists()
    flip(raw.folder / "clips-00001.npy")  # back again
    FeatureStore.open(anonymize_features(raw.folder, METHOD).output).verify()


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("whole", [True, False])
def test_a_flipped_byte_of_what_is_done_is_found_when_going_on_and_only_that_shard_is_made_anew(
    raw, monkeypatch, whole
):
    done = anonymize_features(raw.folder, METHOD)
    before, manifest = hashes(done.output), done.manifest.read_text()
    flip(done.output / "clips-00001.npy")
    if not whole:
        (done.output / "shard-00002.json").unlink()
    calls, forward = [], AAM.forward
    monkeypatch.setattr(AAM, "forward", lambda self, z: calls.append(len(z)) or forward(self, z))
    anonymize_features(raw.folder, METHOD)
    assert len(calls) == (1 if whole else 2)
    assert hashes(done.output) == before
    assert done.manifest.read_text() == manifest


@pytest.mark.usefixtures("adapter")
def test_a_source_with_nan_is_a_line_and_what_was_there_stays(place, raw):
    """Nothing of ours writes such a store: its sums are right, its numbers are not."""
    anonymize_features(raw.folder, METHOD)
    found = np.array(raw.shard(1))
    found[2, 3] = np.nan
    np.save(raw.folder / "clips-00001.npy", found)
    manifest = json.loads((raw.folder / "shard-00001.json").read_text())
    manifest["sha256"]["clips"] = hashlib.sha256(found.tobytes()).hexdigest()
    (raw.folder / "shard-00001.json").write_text(json.dumps(manifest))
    before = there(place)
    with pytest.raises(DataError, match="clips of video 4 are not all finite: nothing was written") as error:
        anonymize_features(raw.folder, METHOD, overwrite=True)
    assert "\n" not in str(error.value)
    assert there(place) == before


@pytest.mark.usefixtures("adapter")
def test_what_is_there_of_another_source_is_not_taken_for_done(place, raw):
    """The same videos by name, the same numbers of clips, the same encoder: but other features."""
    done = anonymize_features(raw.folder, METHOD)
    other = fill(
        place / "other", made.ABOUT | {"videos": "others"}, ids(7),
        lambda rows: ({"clips": vectors(1 + row % 3, row + 50)} for row in rows), videos=3,
    )  # fmt: skip
    before = there(place)
    with pytest.raises(DataError, match="is of another store, or by another adapter: --overwrite"):
        anonymize_features(other.folder, METHOD, done.output)
    assert there(place) == before


@pytest.mark.usefixtures("adapter")
def test_overwriting_replaces_what_an_adapter_made_and_nothing_else(place, raw):
    other = made.adapter(place / "runs", "other", seed=1)
    done = anonymize_features(raw.folder, METHOD)
    with pytest.raises(DataError, match="is of another store, or by another adapter: --overwrite"):
        anonymize_features(raw.folder, "splavu:other", done.output)
    anonymize_features(raw.folder, "splavu:other", done.output, overwrite=True)
    close(FeatureStore.open(done.output).all(), one_by_one(other, raw.all()))
    precious = store(place / "precious").folder
    (place / "photos").mkdir()
    (place / "photos/me.jpg").write_bytes(b"me")
    before = there(place)
    for target in (precious, place / "photos"):
        with pytest.raises(OutputError):
            anonymize_features(raw.folder, METHOD, target, overwrite=True)
    assert there(place) == before


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("target", ["raw", "raw/safe", "."])
def test_a_source_and_its_result_are_never_in_each_other(place, raw, target):
    shutil.copy(raw.folder / "store.json", place)  # even where the folder above looks like a store
    before = there(place)
    with pytest.raises(OutputError, match="would be in each other"):
        anonymize_features(raw.folder, METHOD, place / target, overwrite=True)
    assert there(place) == before


@pytest.mark.usefixtures("adapter", "raw")
def test_the_folder_that_one_is_in_gets_a_name_too(place, monkeypatch):
    monkeypatch.chdir(place / "raw")
    monkeypatch.setenv("VIDVEIL_RUNS", str(place / "runs"))
    assert command.vidveil("anonymize", ".", "--method", METHOD).exit_code == 0
    assert len(FeatureStore.open(place / "raw_anonymized")) == 7
    assert json.loads((place / "raw_anonymized.json").read_text())["input"]["name"] == "raw"


@pytest.mark.usefixtures("adapter", "raw")
@pytest.mark.parametrize("method", [METHOD, "safe", "runs/safe", "splavu:runs/safe/checkpoint"])
def test_the_command_takes_a_run_by_name_or_by_folder_and_says_what_it_did(place, method):
    result = command.vidveil("anonymize", "raw", "--method", method)
    assert result.exit_code == 0, result.output
    assert result.stderr == "raw_anonymized: 13 vectors, described in raw_anonymized.json\n"
    assert json.loads((place / "raw_anonymized.json").read_text())["method"] == METHOD


@pytest.mark.usefixtures("adapter")
def test_a_file_of_others_is_noted_not_to_name_its_encoder(place):
    result = command.vidveil("anonymize", write_layout(place, "h5").name, "--method", METHOD, "-o", "safe.h5")
    assert result.exit_code == 0, result.output
    assert "note: features.h5 does not say which encoder made it: see that it is splavu:safe's" in result.stderr
    assert (place / "safe.h5.json").is_file()


@pytest.mark.usefixtures("adapter", "raw")
def test_a_dry_run_says_what_would_be_done_and_writes_nothing(place):
    write_layout(place, "h5")
    before = hashes(place)
    result = command.vidveil("anonymize", "raw", "features.h5", "--method", METHOD, "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["raw → raw_anonymized", "features.h5 → features_anonymized.h5"]
    assert command.vidveil("anonymize", "none", "--method", METHOD, "--dry-run").exit_code == 1
    assert isinstance(command.vidveil("anonymize", "raw", "--method", "splavu:none", "--dry-run").exception, UsageError)
    assert hashes(place) == before


@pytest.mark.usefixtures("adapter", "raw")
def test_stores_that_fail_are_reported_and_the_others_are_done(place):
    Film(frames=2, width=16, height=16).make(place / "clip.mp4")
    before = there(place)
    result = command.vidveil("anonymize", "clip.mp4", "nothing", "raw", "--method", METHOD)
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith("error: clip.mp4 is no store of features: give an HDF5 file, a .npy or .npz file")
    assert lines[1:] == [
        "error: there is nothing at nothing",
        "raw_anonymized: 13 vectors, described in raw_anonymized.json",
    ]
    new = {name.partition("/")[0] for name in there(place).keys() - before.keys()}
    assert new == {"raw_anonymized", "raw_anonymized.json"}


@pytest.mark.usefixtures("adapter", "raw")
def test_overwriting_is_a_word_of_the_command_and_several_stores_share_no_output(place):
    made.adapter(place / "runs", "other", seed=1)
    assert command.vidveil("anonymize", "raw", "--method", METHOD).exit_code == 0
    first = content_hash(place / "raw_anonymized")
    assert command.vidveil("anonymize", "raw", "--method", METHOD).exit_code == 0  # it is there already
    refused = command.vidveil("anonymize", "raw", "--method", "other")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert content_hash(place / "raw_anonymized") == first
    assert command.vidveil("anonymize", "raw", "--method", "other", "--overwrite").exit_code == 0
    assert content_hash(place / "raw_anonymized") != first
    assert isinstance(command.vidveil("anonymize", "raw", "raw", "--method", METHOD, "-o", "one").exception, UsageError)


@pytest.mark.usefixtures("adapter")
def test_a_wrong_method_is_reported_once_with_advice(place):
    made_checkpoint.write(place / "runs/masks/checkpoint", made_checkpoint.network(), "masks")
    for method, message in {
        "splavu": "splavu needs a checkpoint: `vidveil train splavu_puppets`",
        "splavu:": "splavu needs a checkpoint",
        "splavu:none": "there is no checkpoint 'none'",
        "splavu:masks": "a checkpoint of dual_cls, which works on video, not on features",
    }.items():
        result = command.vidveil("anonymize", "a", "b", "--method", method)
        assert isinstance(result.exception, UsageError)
        assert message in str(result.exception)
        assert result.output == ""


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("method", [METHOD, "safe", "splavu", "blur | splavu:safe"])
def test_as_a_method_for_video_it_says_what_it_is_for(method):
    with pytest.raises(UsageError, match=r"works on stored features, not on video: `vidveil anonymize STORE") as error:
        load(method)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("adapter")
def test_files_of_others_go_through_an_adapter_once(place):
    np.save(place / "a.npy", np.ones((3, D), np.float32))
    assert command.vidveil("anonymize", "a.npy", "--method", METHOD).exit_code == 0
    for words in ((), ("--dry-run",)):
        again = command.vidveil("anonymize", "a.npy", "--method", METHOD, *words)
        assert (again.exit_code, again.stdout) == (1, "")
        assert again.stderr.endswith("a_anonymized.npy exists: give another name, or --overwrite\n")
    result = command.vidveil("anonymize", "a_anonymized.npy", "--method", METHOD)
    assert result.exit_code == 1
    assert result.stderr == "error: a_anonymized.npy was anonymized already, says a_anonymized.npy.json\n"
    assert not (place / "a_anonymized_anonymized.npy").exists()


@pytest.mark.usefixtures("raw")
def test_an_adapter_that_loses_nothing_is_warned_of_on_the_screen_and_in_the_manifest(place):
    made.adapter(place / "runs", erase=0.0)
    result = command.vidveil("anonymize", "raw", "--method", METHOD)
    assert result.exit_code == 0, result.output
    assert "warning: this adapter erases nothing" in result.stderr
    (warning,) = json.loads((place / "raw_anonymized.json").read_text())["warnings"]
    assert warning.startswith("this adapter erases nothing")


@pytest.mark.usefixtures("adapter", "raw")
@pytest.mark.parametrize("source", ["raw", "features.h5"])
def test_features_are_refused_by_methods_of_video(place, source):
    write_layout(place, "h5")
    result = command.vidveil("anonymize", source)
    assert result.exit_code == 1
    assert f"{source} holds features, and blur:strong is for video" in str(result.exception)
