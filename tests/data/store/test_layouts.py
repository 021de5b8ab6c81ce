"""Other people's stores of features: the same layout comes out, or nothing does."""

import errno
import os
import pickle
import resource
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidveil.core import bounded
from vidveil.core.errors import DataError, OutputError, UsageError
from vidveil.data.store.layouts import open_layout, rewritten, slabs
from vidveil.data.store.numpy_files import NumpyLayout

D = 8
KINDS = ("hdf5", "folder of npy", "folder of npz", "npy", "npz")


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def write_hdf5(path, items, **options):
    with h5py.File(path, "w") as file:
        for key, array in items.items():
            file.create_dataset(key, data=array, **options)
    return path


def write_folder(path, items):
    for key, array in items.items():
        file = path / key
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, array)
    return path


def store(folder, kind, array=None, second=None):
    """Two items of every kind that has many, else one."""
    array = numbers(7, D) if array is None else array
    second = numbers(3, D, seed=1) if second is None else second
    if kind == "hdf5":
        return write_hdf5(folder / "features.h5", {"a": array, "train/b": second})
    if kind == "folder of npy":
        return write_folder(folder / "features", {"a.npy": array, "train/b.npy": second})
    if kind == "folder of npz":
        (folder / "features" / "train").mkdir(parents=True)
        np.savez(folder / "features" / "a.npz", feats=array)
        np.savez_compressed(folder / "features" / "train" / "b.npz", feats=second)
        return folder / "features"
    path = folder / f"features.{kind}"
    np.save(path, array) if kind == "npy" else np.savez(path, a=array, b=second)
    return path


def names(path):
    """Everything in a folder, hidden files too."""
    return sorted(file.relative_to(path).as_posix() for file in path.rglob("*"))


def content(path):
    """Byte for byte, whatever it is."""
    return path.read_bytes() if path.is_file() else {n: content(path / n) for n in names(path) if (path / n).is_file()}


def all_of(path):
    layout = open_layout(path)
    return {key: np.array(layout.source(key)[()]) for key in layout.keys()}  # noqa: SIM118 - a layout is no dict


def twice(vectors):
    return vectors * 2


def same(vectors):
    return vectors


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.dtype(">f4")], ids=str)
@pytest.mark.parametrize(("change", "factor"), [(same, 1), (twice, 2)], ids=["same", "twice"])
def test_a_store_comes_back_in_its_layout_with_every_vector_changed(tmp_path, kind, dtype, change, factor):
    source = store(tmp_path, kind, numbers(7, D, dtype=dtype), numbers(3, D, dtype=dtype, seed=1))
    before, was = content(source), all_of(source)
    layout = open_layout(source)
    target = tmp_path / "made" / f"safe{source.suffix}"
    assert rewritten(layout, target, change, rows=4) == (7 if kind == "npy" else 10) == layout.count()
    found = all_of(target)
    assert content(source) == before
    if kind != "npy":  # its one key is the name of the file
        assert list(found) == list(was)
    for new, old in zip(found.values(), was.values(), strict=True):
        assert new.dtype == old.dtype == dtype
        assert new.shape == old.shape
        np.testing.assert_array_equal(new, (old.astype(np.float32) * factor).astype(dtype))
    if source.is_dir():
        assert names(target) == names(source)
    assert not [name for name in names(tmp_path) if name.endswith(".part")]


def test_hdf5_keeps_groups_shapes_chunks_and_compression(tmp_path):
    with h5py.File(tmp_path / "features.h5", "w") as file:
        file.create_dataset("v_one", data=numbers(1, 9, D))
        file.create_dataset("deep/er/vector", data=numbers(D))
        file.create_dataset("crops", data=numbers(9, 10, D), chunks=(4, 10, D), compression="gzip", compression_opts=7)
        file.create_dataset("growing", data=numbers(5, D), maxshape=(None, D), compression="lzf", shuffle=True)
        file.create_dataset("empty", shape=(0, D), dtype="f2")
    rewritten(open_layout(tmp_path / "features.h5"), tmp_path / "safe.hdf5", twice, rows=7)
    with h5py.File(tmp_path / "features.h5") as old, h5py.File(tmp_path / "safe.hdf5") as new:
        seen = []
        old.visit(seen.append)
        for name in seen:
            assert type(old[name]) is type(new[name])
            if isinstance(old[name], h5py.Dataset):
                for what in ("shape", "dtype", "chunks", "maxshape", "compression", "compression_opts", "shuffle"):
                    assert getattr(old[name], what) == getattr(new[name], what), (name, what)
                np.testing.assert_array_equal(new[name][()], old[name][()] * 2)
        assert len(seen) == 7


def test_hdf5_leaves_out_what_may_name_people_and_says_which(tmp_path):
    with h5py.File(tmp_path / "features.h5", "w") as file:
        file.create_dataset("clips/v1", data=numbers(4, D)).attrs["actor"] = "Jane Doe"
        file["clips"].attrs["place"] = "the gym"
        file.attrs["by"] = "Jane Doe"
        file.create_dataset("names", data=["Jane Doe"])
        file.create_dataset("labels", data=[1, 2])
        file.create_dataset("fps", data=25.0)
        file.create_dataset("nothing", data=h5py.Empty("f4"))
        file.create_group("jane")
        file["other"] = h5py.SoftLink("/clips/v1")
        file["far"] = h5py.ExternalLink("elsewhere.h5", "/v1")
        file["clips/loop"] = file["/"]
    layout = open_layout(tmp_path / "features.h5")
    assert layout.keys() == ("clips/v1",)
    assert layout.dropped == (
        "@by", "clips/loop", "clips/loop@by", "clips/v1@actor", "clips@place", "far", "fps", "jane", "labels", "names",
        "nothing", "other",
    )  # fmt: skip
    rewritten(layout, tmp_path / "safe.h5", twice)
    assert b"Jane" not in (tmp_path / "safe.h5").read_bytes()
    assert open_layout(tmp_path / "safe.h5").dropped == ()


def test_a_folder_leaves_out_what_is_no_features_and_says_which(tmp_path):
    source = write_folder(tmp_path / "i3d", {"video_validation_0000051.npy": numbers(5, D), "labels.npy": np.arange(3)})
    (source / "who.txt").write_text("Jane Doe")
    np.savez(source / "more.npz", feats=numbers(2, D), fps=np.float32(25), ids=np.arange(2))
    (source / "link").symlink_to(tmp_path)
    layout = open_layout(source)
    assert layout.keys() == ("more.npz/feats", "video_validation_0000051.npy")
    assert layout.dropped == ("labels.npy", "link", "more.npz/fps", "more.npz/ids", "who.txt")
    rewritten(layout, tmp_path / "safe", twice)
    assert names(tmp_path / "safe") == ["more.npz", "video_validation_0000051.npy"]


@pytest.mark.parametrize("shape", [(6, 10, D), (10, 6, D), (1, 6, D), (6, D), (D,)], ids=str)
def test_crops_and_times_in_either_order_come_back(tmp_path, shape):
    source = write_folder(tmp_path / "ucf", {"Abuse001_x264_i3d.npy": numbers(*shape)})
    rewritten(open_layout(source), tmp_path / "safe", twice, rows=4)
    np.testing.assert_array_equal(np.load(tmp_path / "safe" / "Abuse001_x264_i3d.npy"), numbers(*shape) * 2)


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_that_was_turned_around_before_it_was_saved_comes_back(tmp_path, kind):
    turned = numbers(D, 9).T
    source = store(tmp_path, kind, turned)
    rewritten(open_layout(source), tmp_path / f"safe{source.suffix}", same, rows=4)
    np.testing.assert_array_equal(next(iter(all_of(tmp_path / f"safe{source.suffix}").values())), turned)


def test_an_archive_keeps_its_names_and_its_compression(tmp_path):
    np.savez_compressed(tmp_path / "features.npz", feats=numbers(50, D), more=numbers(2, 3, D))
    rewritten(open_layout(tmp_path / "features.npz"), tmp_path / "safe.npz", twice, rows=4)
    with np.load(tmp_path / "safe.npz") as found:
        assert sorted(found) == ["feats", "more"]
        np.testing.assert_array_equal(found["more"], numbers(2, 3, D) * 2)
    with zipfile.ZipFile(tmp_path / "safe.npz") as zipped:
        assert {info.compress_type for info in zipped.infolist()} == {zipfile.ZIP_DEFLATED}


@pytest.mark.parametrize("kind", ["hdf5", "npy", "npz"])
def test_a_layout_is_known_by_its_content_when_its_name_says_nothing(tmp_path, kind):
    bare = store(tmp_path, kind).rename(tmp_path / "training")
    rewritten(open_layout(bare), tmp_path / "safe", twice)
    assert open_layout(tmp_path / "safe").count() == open_layout(bare).count()


def test_an_array_that_ends_like_an_archive_is_still_an_array(tmp_path):
    array = np.zeros((99, D), np.float32)
    array.view(np.uint8).reshape(-1)[-200:-196] = np.frombuffer(b"PK\x05\x06", np.uint8)
    np.save(tmp_path / "a.npy", array)
    np.testing.assert_array_equal(open_layout(tmp_path / "a.npy").source("a.npy"), array)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=3), st.integers(1, 4), st.integers(1, 40), st.sampled_from(["npy", "h5"]))
def test_slabs_one_after_the_other_are_the_flattened_array(tmp_path_factory, lead, width, rows, kind):
    array = numbers(*lead, width)
    path = tmp_path_factory.mktemp("blocks") / f"a.{kind}"
    np.save(path, array) if kind == "npy" else write_hdf5(path, {"a": array})
    layout, flat, end = open_layout(path), array.reshape(-1, width), 0
    (key,) = layout.keys()
    for where, which in slabs(layout.shape(key)[:-1], rows):
        vectors = layout.vectors(key, layout.source(key), where)
        assert vectors.dtype == np.float32
        assert which.start == end
        assert 0 < len(vectors) <= rows
        np.testing.assert_array_equal(vectors, flat[which])
        end = which.stop
    assert end == len(flat)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 4, 1000])
def test_no_more_vectors_at_a_time_than_asked_for(tmp_path, kind, rows):
    sizes, progress = [], []
    source = store(tmp_path, kind, numbers(9, 5, D))

    def change(vectors):
        sizes.append(len(vectors))
        vectors += 1  # ours to change
        return vectors

    layout = open_layout(source)
    rewritten(layout, tmp_path / "safe", change, rows=rows, progress=lambda *numbers: progress.append(numbers))
    assert max(sizes) <= rows
    assert sum(sizes) == layout.count()
    assert progress[-1] == (layout.count(), layout.count())
    assert progress == sorted(progress)


def test_hdf5_is_never_read_whole(tmp_path, monkeypatch):
    source, read = store(tmp_path, "hdf5", numbers(60, 10, D)), h5py.Dataset.__getitem__

    def checked(dataset, where, **options):
        found = read(dataset, where, **options)
        assert found.size <= 20 * D
        return found

    monkeypatch.setattr(h5py.Dataset, "__getitem__", checked)
    assert rewritten(open_layout(source), tmp_path / "safe.h5", twice, rows=20) == 603


def test_an_array_far_larger_than_memory_is_opened_and_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "HARMLESS", 1 << 50)  # the test's file is a hole, which is refused else
    shape = (200_000_000, 1408)
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    os.truncate(path, path.stat().st_size + 4 * shape[0] * shape[1])
    layout = open_layout(path)
    where, which = next(slabs(layout.shape("a.npy")[:-1], 16))
    assert layout.vectors("a.npy", layout.source("a.npy"), where).shape == (16, 1408)
    assert (which, layout.count()) == (slice(0, 16), 200_000_000)


def refused(tmp_path, source, message, change=same, error=DataError, **options):
    """One line that says so, and everything as it was: neither a target nor a part of one."""
    target = tmp_path / f"safe{source.suffix}"
    before = names(tmp_path)
    with pytest.raises(error, match=message) as caught:
        rewritten(open_layout(source), target, change, **options)
    assert names(tmp_path) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_store_without_features_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    refused(tmp_path, tmp_path / "empty", "empty holds no features")
    refused(tmp_path, write_hdf5(tmp_path / "a.h5", {"labels": np.arange(3)}), "a.h5 holds no features")
    np.save(tmp_path / "a.npy", np.arange(3))
    refused(tmp_path, tmp_path / "a.npy", "a.npy holds no features")


def test_what_is_no_layout_is_refused(tmp_path):
    (tmp_path / "a.pt").write_bytes(pickle.dumps({"a": 1}))
    refused(tmp_path, tmp_path / "a.pt", "a.pt is no store of features: give an HDF5 file")
    refused(tmp_path, tmp_path / "nowhere.h5", "nowhere.h5 cannot be read .no such file")


def test_different_widths_are_refused_with_both_named(tmp_path):
    source = write_folder(tmp_path / "f", {"a.npy": numbers(2, 1024), "b.npy": numbers(2, 2048)})
    refused(tmp_path, source, "a.npy has vectors of 1024 numbers, b.npy of 2048: a store has one width")
    refused(tmp_path, write_hdf5(tmp_path / "f.h5", {"a": numbers(3, 4), "g/b": numbers(3)}), "numbers, g/b of 3")
    np.save(tmp_path / "none.npy", numbers(3, 0))
    refused(tmp_path, tmp_path / "none.npy", "vectors of no numbers")


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="no such type on this machine")
def test_a_type_that_would_not_be_kept_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", numbers(2, D, dtype=np.longdouble))
    refused(tmp_path, tmp_path / "a.npy", "a.npy is of float128: convert it to float32")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_bad_values_are_counted_before_their_item_is_touched(tmp_path, kind, value):
    array, sizes = numbers(7, D, dtype=np.float64), []
    array[1, 2] = array[6, 0] = value
    source = store(tmp_path, kind, array)

    def change(vectors):
        sizes.append(len(vectors))
        return vectors

    refused(tmp_path, source, "a.* has 2 values that are NaN, infinite or too large", change, rows=2)
    assert not sizes


def test_damaged_files_are_refused(tmp_path):
    for kind in ("hdf5", "npy", "npz"):
        (tmp_path / kind).mkdir()
        whole = store(tmp_path / kind, kind).read_bytes()
        for length in (0, 3, 70, len(whole) - 100):
            cut = tmp_path / kind / f"cut.{'h5' if kind == 'hdf5' else kind}"
            cut.write_bytes(whole[:length])
            refused(tmp_path, cut, "cut.* is damaged")
            cut.unlink()
    write_folder(tmp_path / "f", {"a.npy": numbers(2, D)})
    (tmp_path / "f" / "b.npy").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    refused(tmp_path, tmp_path / "f", "b.npy is damaged or no file of numpy arrays")


@pytest.mark.parametrize("kind", ["hdf5", "npz"])
def test_damage_inside_is_found_when_it_is_read(tmp_path, kind):
    array = numbers(500, D)
    if kind == "hdf5":
        source = write_hdf5(tmp_path / "a.h5", {"a": numbers(2, D), "b": array}, fletcher32=True, chunks=(2, D))
    else:
        source = tmp_path / "a.npz"
        np.savez(source, a=numbers(2, D), b=array)
    whole = bytearray(source.read_bytes())
    spot = bytes(whole).index(array[400].tobytes())
    whole[spot] ^= 1
    source.write_bytes(whole)
    refused(tmp_path, source, f"{source.name}: b cannot be read, the file is damaged")


def test_objects_and_pickles_are_refused(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.save(tmp_path / "a.npy", np.array([Trap(), Trap()], dtype=object), allow_pickle=True)
    refused(tmp_path, tmp_path / "a.npy", "a.npy is refused: it holds Python objects")
    np.savez(tmp_path / "b.npz", feats=numbers(2, D), who=np.array([Trap()], dtype=object))
    refused(tmp_path, tmp_path / "b.npz", "b.npz is refused: it holds Python objects")
    (tmp_path / "c.npy").write_bytes(pickle.dumps(Trap()))
    refused(tmp_path, tmp_path / "c.npy", "c.npy is damaged or no file of numpy arrays")
    assert not (tmp_path / "sprung").exists()


def test_numbers_that_are_in_another_file_are_refused(tmp_path):
    numbers(4, D).tofile(tmp_path / "raw.bin")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", shape=(4, D), dtype="f4", external=[(str(tmp_path / "raw.bin"), 0, 4 * 4 * D)])
    refused(tmp_path, tmp_path / "a.h5", "a keeps its numbers in another file")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        layout = h5py.VirtualLayout(shape=(4, D), dtype="f4")
        layout[:] = h5py.VirtualSource("missing.h5", "a", shape=(4, D))
        file.create_virtual_dataset("b", layout)
    refused(tmp_path, tmp_path / "b.h5", "b keeps its numbers in another file")


def test_a_name_of_many_lines_is_told_on_one(tmp_path):
    source = write_hdf5(tmp_path / "a.h5", {"a\nb": np.full((2, D), np.nan, np.float32)})
    assert "a?b has 16 values" in refused(tmp_path, source, "has 16 values")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda vectors: vectors[:, 1:], r"a.* was changed from float32 \(4, 8\) to float32 \(4, 7\)"),
        (lambda vectors: vectors[1:], r"was changed from float32 \(4, 8\) to float32 \(3, 8\)"),
        (lambda vectors: vectors.astype(int), r"to int64 \(4, 8\)"),
        (lambda vectors: vectors * np.float32(np.nan), "a.* was changed to NaN or infinite values"),
        (lambda vectors: vectors * np.float32(1e6), "a.* became too large for float16: convert it to float32"),
    ],
    ids=["width", "count", "integers", "nan", "overflow"],
)
def test_a_change_that_does_not_fit_leaves_nothing(tmp_path, kind, change, message):
    refused(tmp_path, store(tmp_path, kind, numbers(7, D, dtype=np.float16)), message, change, rows=4)


class Stop:
    """Goes well for some blocks, and then does not."""

    def __init__(self, error):
        self.error, self.left = error, 2

    def __call__(self, vectors):
        self.left -= 1
        if self.left < 0:
            raise self.error
        return vectors


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [KeyboardInterrupt("half way"), RuntimeError("half way"), OSError("half way")])
def test_an_interruption_leaves_the_target_as_it_was(tmp_path, kind, error):
    source = store(tmp_path, kind)
    target = tmp_path / f"safe{source.suffix}"
    rewritten(open_layout(source), target, twice)
    before = content(target)
    refused(tmp_path, source, "half way", Stop(error), type(error), rows=3, overwrite=True)
    assert content(target) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_exists_is_replaced_only_when_asked(tmp_path, kind):
    source = store(tmp_path, kind)
    target = tmp_path / f"safe{source.suffix}"
    rewritten(open_layout(source), target, same)
    before = content(target)
    refused(tmp_path, source, "exists: give another name, or --overwrite", twice, OutputError)
    assert content(target) == before
    there = names(tmp_path)
    rewritten(open_layout(source), target, twice, overwrite=True)
    assert names(tmp_path) == there
    np.testing.assert_array_equal(next(iter(all_of(target).values())), numbers(7, D) * 2)


def test_a_target_that_appears_meanwhile_stays(tmp_path):
    source, target = store(tmp_path, "npy"), tmp_path / "safe.npy"

    def change(vectors):
        target.write_text("of another")
        return vectors

    with pytest.raises(OutputError, match="was made by another meanwhile"):
        rewritten(open_layout(source), target, change)
    assert target.read_text() == "of another"
    assert names(tmp_path) == ["features.npy", "safe.npy"]


def test_a_folder_with_anything_else_in_it_is_never_replaced(tmp_path):
    source = store(tmp_path, "folder of npy")
    write_folder(tmp_path / "safe", {"old.npy": numbers(1, D)})
    (tmp_path / "safe" / "thesis.tex").write_text("years")
    refused(tmp_path, source, "safe holds thesis.tex, which is no features", twice, OutputError, overwrite=True)
    (tmp_path / "file").write_text("a file")
    with pytest.raises(OutputError, match="file is a file: give another name"):
        rewritten(open_layout(source), tmp_path / "file", twice, overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_target_and_its_source_are_never_in_each_other(tmp_path, overwrite):
    source = store(tmp_path, "folder of npy")
    (tmp_path / "link").symlink_to(source)
    before = content(source)
    for target in (
        source,
        source / "safe",
        source / "a.npy",
        tmp_path,
        tmp_path / "link",
        tmp_path / "x" / ".." / "link",
    ):
        with pytest.raises(OutputError, match="would be in each other"):
            rewritten(open_layout(source), target, twice, overwrite=overwrite)
    assert content(source) == before


def test_a_source_by_another_name_is_never_replaced(tmp_path):
    source = store(tmp_path, "hdf5")
    (tmp_path / "safe.h5").hardlink_to(source)
    refused(tmp_path, source, "by another name", twice, OutputError, overwrite=True)


def test_a_name_of_another_layout_is_refused(tmp_path):
    for kind, wrong in (("hdf5", "safe.npy"), ("npy", "safe.h5"), ("folder of npy", "safe.npz")):
        (tmp_path / kind).mkdir()
        with pytest.raises(OutputError, match="give it a name that says so"):
            rewritten(open_layout(store(tmp_path / kind, kind)), tmp_path / kind / wrong, twice)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_cannot_grow_is_told_and_leaves_nothing(tmp_path, kind):
    source = store(tmp_path, kind, numbers(4000, D))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))  # what a full disk does, on a small scale
    try:
        refused(tmp_path, source, "safe.* cannot be written", twice, OutputError, rows=500)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    source, rename = store(tmp_path, "folder of npy"), Path.rename
    rewritten(open_layout(source), tmp_path / "safe", twice)
    before = content(tmp_path / "safe")

    failed = []

    def failing(path, target):
        if target.name == "safe" and not failed:
            failed.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    refused(tmp_path, source, "safe cannot be written: input/output error", same, OutputError, overwrite=True)
    assert content(tmp_path / "safe") == before


def test_what_a_dead_process_left_is_removed(tmp_path):
    source = store(tmp_path, "folder of npy")
    (tmp_path / ".safe.0123abcd.vidveil.part").mkdir()
    rewritten(open_layout(source), tmp_path / "safe", twice)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["features", "safe"]


def test_no_vectors_at_a_time_make_no_sense():
    with pytest.raises(UsageError, match="0 vectors at a time are none"):
        next(slabs((3,), 0))


def test_a_file_of_arrays_is_mapped_and_not_loaded(tmp_path):
    layout = open_layout(store(tmp_path, "folder of npy"))
    assert isinstance(layout, NumpyLayout)
    assert isinstance(layout.source("a.npy"), np.memmap)
    assert (layout.width, layout.shape("a.npy"), layout.path) == (D, (7, D), Path(tmp_path / "features"))


def test_a_dataset_of_terabytes_in_a_file_of_kilobytes_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", shape=(2**40, 8), dtype="f4", chunks=(1024, 8), compression="gzip")
    assert (tmp_path / "a.h5").stat().st_size < 100_000
    with pytest.raises(DataError, match=r"a\.h5 stands for 35,184,372,088,832 bytes, and [\d,]+ are stored"):
        open_layout(tmp_path / "a.h5")


def test_chunks_that_do_not_fit_into_memory_are_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", shape=(2**26, 8), dtype="f4", chunks=(2**26, 8), compression="gzip")
    with pytest.raises(DataError, match="in chunks of more than"):
        open_layout(tmp_path / "a.h5")


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "HARMLESS", 1 << 20)
    np.savez_compressed(tmp_path / "a.npz", v=np.zeros((1 << 17, 8), np.float32))
    with pytest.raises(DataError, match=r"a\.npz is refused: it v\.npy stands for"):
        open_layout(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["a.h5", "a.npy", "a.npz", "folder/a.npy"])
def test_a_pipe_in_the_place_of_features_is_not_waited_for(tmp_path, name):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=r"cannot be read .it is not a regular file"):
        open_layout((tmp_path / name).parent if "/" in name else tmp_path / name)
