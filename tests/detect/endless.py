"""ONNX networks that never return: one that can be ended, and one that cannot."""

import onnx
from onnx import TensorProto, helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OUTPUTS = (("boxes", [1, 4]), ("scores", [1]))


def endless_loop() -> bytes:
    """Adds for ever: ONNX Runtime looks between two additions whether it shall end."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["value", "value"], ["twice"])],
        "body",
        [_info("turn", INT64, []), _info("go", BOOL, []), _info("value", FLOAT, [1])],
        [_info("on", BOOL, []), _info("twice", FLOAT, [1])],
    )
    return _network(
        [
            helper.make_node("ReduceMean", ["picture"], ["mean"], axes=[0, 1, 2], keepdims=0),
            helper.make_node("ReduceMax", ["mean"], ["start"], axes=[0], keepdims=1),
            helper.make_node("Loop", ["", "yes", "start"], ["scores"], body=body),
        ],
        [helper.make_tensor("yes", BOOL, [], [True])],
    )


def endless_kernel() -> bytes:
    """One pooling of 10^13 numbers: it ends with the process."""
    return _network(
        [
            helper.make_node("ReduceMean", ["picture"], ["mean"], axes=[0, 1], keepdims=1),
            helper.make_node("Resize", ["mean", "", "", "sizes"], ["large"]),
            helper.make_node("MaxPool", ["large"], ["pooled"], kernel_shape=[2000, 2000]),
            helper.make_node("ReduceMax", ["pooled"], ["most"], axes=[0, 1, 2], keepdims=0),
            helper.make_node("ReduceMax", ["most"], ["scores"], axes=[0], keepdims=1),
        ],
        [helper.make_tensor("sizes", INT64, [4], [1, 1, 4000, 4000])],
    )


def _network(nodes: list[onnx.NodeProto], stored: list[onnx.TensorProto]) -> bytes:
    """The nodes turn `picture` into `scores`; the one box is made of these, too."""
    nodes = [*nodes, helper.make_node("Concat", ["scores"] * 4, ["four"], axis=0)]
    nodes.append(helper.make_node("Unsqueeze", ["four", "first"], ["boxes"]))
    graph = helper.make_graph(
        nodes,
        "endless",
        [_info("picture", FLOAT, [1, 3, 64, 64])],
        [_info(name, FLOAT, shape) for name, shape in OUTPUTS],
        [*stored, helper.make_tensor("first", INT64, [1], [0])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(made.SerializeToString())


def _info(name: str, kind: int, shape: list[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)
