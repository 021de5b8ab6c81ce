"""Worker processes make of a set what this process would make of it."""

import numpy as np
import pytest

from tests.data.made import InMemory, clip_set, noise, stored
from vidveil.core import workers as core_workers
from vidveil.core.anonymizer import Anonymized, Anonymizer
from vidveil.core.registry import METHODS, Method
from vidveil.methods import anonymized_data, load, painting
from vidveil.methods.anonymized_data import Setting, anonymized


@pytest.fixture
def clips(tmp_path):
    return stored(tmp_path / "set", noise(*[(5 + i % 3, 24, 24 + 8 * (i % 2)) for i in range(7)]))


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("spec", ["figure:6", "blur:weak | stride:2"])
def test_workers_make_what_this_process_makes_in_order(clips, spec):
    method = load(spec)
    expected = [painting.painted(method, clips.videos.frames(row)) for row in range(len(clips))]
    assert same(painting.painted_by_workers(clips.videos, spec, method, 3), expected)


def test_what_a_worker_that_dies_leaves_undone_is_done_here(clips, monkeypatch):
    method = load("solid")
    monkeypatch.setattr(painting, "receive", lambda pipe, size: core_workers.receive(pipe, size + 10**9))  # ends early
    expected = [np.zeros_like(clips.videos.frames(row)) for row in range(len(clips))]
    assert same(painting.painted_by_workers(clips.videos, "solid", method, 2), expected)


def test_a_large_set_goes_to_workers_and_is_the_same(clips, monkeypatch, tmp_path):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "threads"))
    by_threads = anonymized(clips, Setting(method="figure:6"))
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "workers"))
    monkeypatch.setattr(painting, "MANY_BYTES", 0)
    monkeypatch.setattr(painting, "cores", lambda: 3)
    called = []
    real = anonymized_data.painted_by_workers
    monkeypatch.setattr(
        anonymized_data, "painted_by_workers", lambda *arguments: called.append(arguments[3]) or real(*arguments)
    )
    by_workers = anonymized(clips, Setting(method="figure:6"))
    assert called == [3]
    for row in range(len(clips)):
        assert np.array_equal(by_threads.videos.frames(row), by_workers.videos.frames(row))


def test_small_sets_pixels_in_memory_and_methods_of_this_process_do_not(clips, monkeypatch):
    monkeypatch.setattr(painting, "cores", lambda: 16)
    assert painting.worker_count(clips.videos, "solid") == 0  # a few kilobytes
    monkeypatch.setattr(painting, "MANY_BYTES", 0)
    assert painting.worker_count(clips.videos, "solid") == 7
    assert painting.worker_count(clips.videos, "blur:strong | stride:2") == 7
    in_memory = clip_set(InMemory([clips.videos.frames(row) for row in range(7)]))
    assert painting.worker_count(in_memory.videos, "solid") == 0
    monkeypatch.setitem(METHODS, "own", Method(Own, "own", "of this process alone"))
    assert painting.worker_count(clips.videos, "own") == 0
    assert painting.worker_count(clips.videos, "own | solid") == 0
    monkeypatch.setattr(painting, "cores", lambda: 2)
    assert painting.worker_count(clips.videos, "solid") == 0  # threads do as well


class Own(Anonymizer):
    def anonymize(self, clip, *, keep=None, privacy_weight=None):  # noqa: ARG002
        return Anonymized(clip)

    def stream(self, frames):
        raise NotImplementedError
