"""Arrays out of ONNX files by our own reader."""

import numpy as np

from tests.detect.onnx_writer import model, node, tensor, value_info, whole
from vidveil.weights.onnx_arrays import matrices_by_bias, read_graph


def network() -> bytes:
    """y = x A + b as an exporter writes it: A has a number for a name, b has its own."""
    ids = whole(1, 2) + whole(2, 7)  # two int64, which are no weights
    return model(
        [node("MatMul", ["x", "onnx::MatMul_7"], ["p"]), node("Add", ["layer.bias", "p"], ["y"])],
        [value_info("x", (1, 3))],
        [value_info("y", (1, 2))],
        [tensor("onnx::MatMul_7", (3, 2), range(6)), tensor("layer.bias", (2,), [5, 6]), ids],
    )


def test_stored_arrays_come_with_names_shapes_and_values():
    arrays, nodes = read_graph(network())
    assert arrays.keys() == {"onnx::MatMul_7", "layer.bias"}
    np.testing.assert_array_equal(arrays["onnx::MatMul_7"], [[0, 1], [2, 3], [4, 5]])
    assert [one.op for one in nodes] == ["MatMul", "Add"]
    assert nodes[1].inputs == ["layer.bias", "p"]


def test_packed_dimensions_are_read_as_well():
    packed = tensor("a", (2, 1), [1, 2]).replace(whole(1, 2) + whole(1, 1), b"\x0a\x02\x02\x01", 1)
    arrays, _ = read_graph(model([], [], [], [packed]))
    assert arrays["a"].shape == (2, 1)


def test_a_matrix_is_named_by_its_bias_and_turned_to_torchs_order():
    found = matrices_by_bias(*read_graph(network()))
    assert found.keys() == {"layer.weight"}
    np.testing.assert_array_equal(found["layer.weight"], [[0, 2, 4], [1, 3, 5]])
