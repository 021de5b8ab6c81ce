"""Read stored arrays from an ONNX file without the onnx library.

An exporter folds transposed matrices and gives them numbers for names, but a matrix is identified by its bias:

    Add(MatMul(x, A), b),   b named `….query.bias`   ⇒   A is the transpose of `….query.weight`
"""

from typing import Any, NamedTuple

import numpy as np

from vidveil.weights.onnx_format import BYTES, GRAPH_INITIALIZER, MODEL_GRAPH, TENSOR_NAME, VARINT, fields, varint

# Field numbers of onnx.proto
GRAPH_NODE = 1
NODE_INPUT, NODE_OUTPUT, NODE_OP = 1, 2, 4
TENSOR_DIMS, TENSOR_TYPE, TENSOR_RAW = 1, 2, 9
FLOAT = 1


class Node(NamedTuple):
    op: str
    inputs: list[str]
    outputs: list[str]


def read_graph(model: bytes) -> tuple[dict[str, Any], list[Node]]:
    """Every stored float array by name, and the nodes in order."""
    arrays: dict[str, Any] = {}
    nodes: list[Node] = []
    for number, _, graph in fields(model):
        if number != MODEL_GRAPH:
            continue
        for inner, _, value in fields(graph):
            if inner == GRAPH_INITIALIZER:
                name, array = _tensor(value)
                if array is not None:
                    arrays[name] = array
            elif inner == GRAPH_NODE:
                nodes.append(_node(value))
    return arrays, nodes


def matrices_by_bias(arrays: dict[str, Any], nodes: list[Node]) -> dict[str, Any]:
    """Matrices, named by their biases, in torch's order (out, in)."""
    product = {node.outputs[0]: node.inputs[1] for node in nodes if node.op == "MatMul" and node.inputs[1] in arrays}
    found = {}
    for node in nodes:
        if node.op == "Add":
            biases = [name for name in node.inputs if name in arrays and name.endswith(".bias")]
            matrices = [product[name] for name in node.inputs if name in product]
            if biases and matrices:
                found[biases[0].removesuffix("bias") + "weight"] = arrays[matrices[0]].T
    return found


def _node(message: bytes) -> Node:
    op, inputs, outputs = "", [], []
    for number, kind, value in fields(message):
        if kind == BYTES and number == NODE_INPUT:
            inputs.append(value.decode())
        elif kind == BYTES and number == NODE_OUTPUT:
            outputs.append(value.decode())
        elif kind == BYTES and number == NODE_OP:
            op = value.decode()
    return Node(op, inputs, outputs)


def _tensor(message: bytes) -> tuple[str, Any]:
    """Name and array; None unless it is raw float32."""
    name, shape, kind, raw = "", list[int](), 0, b""
    for number, wire, value in fields(message):
        if number == TENSOR_NAME:
            name = value.decode()
        elif number == TENSOR_DIMS:
            shape += [_whole(value)] if wire == VARINT else _packed(value)
        elif number == TENSOR_TYPE:
            kind = _whole(value)
        elif number == TENSOR_RAW:
            raw = value
    if kind != FLOAT or not raw:
        return name, None
    return name, np.frombuffer(raw, "<f4").reshape(shape)


def _whole(value: bytes) -> int:
    return varint(memoryview(value), 0)[0]


def _packed(value: bytes) -> list[int]:
    found, view, at = [], memoryview(value), 0
    while at < len(view):
        number, at = varint(view, at)
        found.append(number)
    return found
