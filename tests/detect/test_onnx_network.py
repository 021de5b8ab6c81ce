"""Networks in ONNX files: freed from frozen sizes by an edit of bytes, and run."""

import os
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.onnx_writer import constant, halving, model, node, same, text, value_info, whole
from vidveil.core.errors import InputError
from vidveil.detect.onnx_network import Network
from vidveil.weights.onnx_format import freed

MODELS = {
    "halving": halving(),
    "same": same(),
    "free already": halving(listed=False),
    "constant": constant({"out": ((1, 2), (1.0, 2.0))}),
}


def load(path, data, **knobs):
    path.write_bytes(data)
    return Network(path, **knobs)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_free_stays_as_it_is(name):
    once = freed(MODELS[name])
    assert freed(once) == once


@pytest.mark.parametrize("side", [32, 64, 10])
def test_a_freed_network_runs_at_any_size(tmp_path, side):
    network = load(tmp_path / "n.onnx", halving())
    picture = np.random.default_rng(1).uniform(0, 255, (1, 3, side, 2 * side)).astype(np.float32)
    (out,) = network(picture)
    wanted = 2 * picture.reshape(1, 3, side // 2, 2, side, 2).mean((3, 5))
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


def test_a_network_that_is_not_freed_keeps_its_size(tmp_path):
    network = load(tmp_path / "n.onnx", halving(listed=False), free=False)
    assert network(np.ones((1, 3, 32, 32), np.float32))[0].shape == (1, 3, 16, 16)
    with pytest.raises(Exception, match="dimension"):
        network(np.ones((1, 3, 64, 64), np.float32))


def test_stored_weights_are_no_inputs(tmp_path):
    assert load(tmp_path / "n.onnx", halving()).input == "picture"
    assert b"two" in freed(halving())


def test_a_network_with_two_inputs_is_refused(tmp_path):
    shape = (1, 3, 32, 32)
    two = model(
        [node("Add", ["a", "b"], ["out"])],
        [value_info("a", shape), value_info("b", shape)],
        [value_info("out", shape)],
    )
    with pytest.raises(InputError, match="2 inputs"):
        load(tmp_path / "n.onnx", two)


def test_outputs_are_had_by_name(tmp_path):
    network = load(tmp_path / "n.onnx", constant({"b": ((1,), (1.0,)), "a": ((1,), (2.0,))}))
    picture = np.zeros((1, 3, 64, 64), np.float32)
    assert network.outputs == ["b", "a"]
    assert [float(v[0]) for v in network(picture)] == [1, 2]
    assert [float(v[0]) for v in network(picture, ["a"])] == [2]


@pytest.mark.parametrize("data", [b"", b"no network", b"\xff" * 40, halving()[:-5], halving()[: len(halving()) // 2]])
def test_damaged_files_are_refused_by_name(tmp_path, data):
    with pytest.raises(InputError, match=r"plates.onnx"):
        load(tmp_path / "plates.onnx", data)
    with pytest.raises(InputError, match="cannot be read"):
        Network(tmp_path / "gone.onnx")


@pytest.mark.timeout(20)
def test_what_is_no_regular_file_or_too_large_is_refused_before_it_is_read(tmp_path):
    pipe, sparse = tmp_path / "pipe.onnx", tmp_path / "sparse.onnx"
    os.mkfifo(pipe)
    with sparse.open("wb") as file:
        file.truncate(6 << 30)
    for path, why in (
        (pipe, r"cannot be read \(it is not a regular file\)"),
        (sparse, r"has 6,442,450,944 bytes, more than the"),
    ):
        with pytest.raises(InputError, match=f"{path.name} .*{why}"):
            Network(path)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_protocol_buffer_raise_value_errors_only(data):
    try:
        once = freed(data)
    except ValueError:
        return
    assert freed(once) == once


@given(st.integers(0, len(MODELS["halving"]) - 1), st.integers(1, 255))
def test_a_flipped_byte_never_breaks_anything_but_the_reading(at, flip):
    data = bytearray(MODELS["halving"])
    data[at] ^= flip
    with suppress(ValueError):
        assert freed(bytes(data))


def test_fields_that_mean_nothing_here_pass_unchanged():
    fixed = bytes([9 << 3 | 1, *range(8)]) + bytes([10 << 3 | 5, *range(4)])
    strange = whole(300, 1 << 63) + text(2, "someone") + fixed
    assert freed(strange) == strange
