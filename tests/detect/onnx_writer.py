"""Tiny ONNX networks, written byte by byte: no library needed, and nothing in them that is not on purpose."""

import struct
from collections.abc import Sequence

FLOAT, INTS = 1, 7


def number(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def whole(field: int, value: int) -> bytes:
    return number(field << 3) + number(value)


def text(field: int, value: bytes | str) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return number(field << 3 | 2) + number(len(value)) + value


def value_info(name: str, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(text(1, whole(1, d) if isinstance(d, int) else text(2, d)) for d in shape)
    return text(1, name) + text(2, text(1, whole(1, FLOAT) + text(2, dims)))


def tensor(name: str, shape: Sequence[int], values: Sequence[float]) -> bytes:
    raw = struct.pack(f"<{len(values)}f", *values)
    return b"".join(whole(1, d) for d in shape) + whole(2, FLOAT) + text(8, name) + text(9, raw)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **ints: Sequence[int]) -> bytes:
    parts = [text(1, i) for i in inputs] + [text(2, o) for o in outputs] + [text(4, op)]
    for name, values in ints.items():
        parts.append(text(5, text(1, name) + b"".join(whole(8, v) for v in values) + whole(20, INTS)))
    return b"".join(parts)


def model(
    nodes: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    weights: Sequence[bytes] = (),
    between: Sequence[bytes] = (),
) -> bytes:
    graph = b"".join(text(1, n) for n in nodes) + text(2, "tiny") + b"".join(text(5, w) for w in weights)
    graph += b"".join(text(11, i) for i in inputs) + b"".join(text(12, o) for o in outputs)
    graph += b"".join(text(13, b) for b in between)
    return whole(1, 8) + text(7, graph) + text(8, text(1, "") + whole(2, 13))


def halving(frozen: int = 32, listed: bool = True) -> bytes:
    """Averages 2 × 2 pixels and doubles them. Its size is frozen, and its weight stands among the inputs."""
    inputs = [value_info("picture", (1, 3, frozen, frozen))]
    if listed:
        inputs.append(value_info("two", (1,)))
    return model(
        [
            node("AveragePool", ["picture"], ["mean"], kernel_shape=(2, 2), strides=(2, 2)),
            node("Mul", ["mean", "two"], ["out"]),
        ],
        inputs,
        [value_info("out", (1, 3, frozen // 2, frozen // 2))],
        [tensor("two", (1,), (2.0,))],
        [value_info("mean", (1, 3, frozen // 2, frozen // 2))],
    )


def same(frozen: int = 32) -> bytes:
    """Gives back what it gets."""
    shape = (1, 3, frozen, frozen)
    return model([node("Identity", ["picture"], ["out"])], [value_info("picture", shape)], [value_info("out", shape)])


def constant(outputs: dict[str, tuple[Sequence[int], Sequence[float]]]) -> bytes:
    """Gives the same numbers whatever it sees; the picture is added times nothing, so that it is an input."""
    nodes = [node("ReduceMean", ["picture"], ["mean"], axes=(0, 1, 2, 3)), node("Mul", ["mean", "zero"], ["nothing"])]
    weights, declared = [tensor("zero", (1,), (0.0,))], []
    for name, (shape, values) in outputs.items():
        weights.append(tensor(f"stored_{name}", shape, values))
        nodes.append(node("Add", [f"stored_{name}", "flat"], [name]))
        declared.append(value_info(name, shape))
    nodes.insert(2, node("ReduceSum", ["nothing"], ["scalar"]))
    nodes.insert(3, node("Squeeze", ["scalar"], ["flat"]))
    return model(nodes, [value_info("picture", (1, 3, 64, 64))], declared, weights)
