"""Read and edit the protocol buffers of ONNX files without the onnx library, a dependency of 20 MB."""

from collections.abc import Iterator

# Field numbers of onnx.proto
MODEL_GRAPH = 7
GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_VALUE_INFO = 5, 11, 12, 13
TENSOR_NAME = 8
VALUE_NAME, VALUE_TYPE = 1, 2
TYPE_TENSOR, TENSOR_SHAPE, SHAPE_DIM, DIM_PARAM = 1, 2, 1, 2
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def freed(model: bytes) -> bytes:
    """The same network with a free batch, height and width. ValueError if `model` is no protocol buffer."""
    return b"".join(
        _field(number, kind, _free_graph(value) if number == MODEL_GRAPH and kind == BYTES else value)
        for number, kind, value in fields(model)
    )


def _free_graph(graph: bytes) -> bytes:
    stored = {
        bytes(value)
        for number, _, weights in fields(graph)
        if number == GRAPH_INITIALIZER
        for inner, kind, value in fields(weights)
        if inner == TENSOR_NAME and kind == BYTES
    }
    parts = []
    for number, kind, value in fields(graph):
        if number == GRAPH_VALUE_INFO:
            continue  # sizes of intermediate values: the runtime infers them
        if number == GRAPH_INPUT and _name(value) in stored:
            continue
        parts.append(_field(number, kind, _free_value(value) if number in (GRAPH_INPUT, GRAPH_OUTPUT) else value))
    return b"".join(parts)


def _free_value(value: bytes) -> bytes:
    """One input or output: dimensions 0, 2 and 3 of its shape get names of their own instead of numbers."""
    name = _name(value)

    def rewrite(message: bytes, path: tuple[int, ...]) -> bytes:
        parts, dimension = [], 0
        for number, kind, inner in fields(message):
            if len(path) == 1 and number == path[0] == SHAPE_DIM:
                if dimension != 1:
                    inner = _field(DIM_PARAM, BYTES, name + b"_%d" % dimension)
                dimension += 1
            elif path and number == path[0] and kind == BYTES:
                inner = rewrite(inner, path[1:])
            parts.append(_field(number, kind, inner))
        return b"".join(parts)

    return rewrite(value, (VALUE_TYPE, TYPE_TENSOR, TENSOR_SHAPE, SHAPE_DIM))


def _name(value: bytes) -> bytes:
    return next((bytes(inner) for number, kind, inner in fields(value) if (number, kind) == (VALUE_NAME, BYTES)), b"")


def fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(number, kind, value as it is on the wire), for each field of a protocol buffer."""
    view, at = memoryview(message), 0
    while at < len(view):
        key, at = varint(view, at)
        number, kind = key >> 3, key & 7
        start = at
        if kind == VARINT:
            _, at = varint(view, at)
        elif kind == BYTES:
            length, start = varint(view, at)
            at = start + length
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        else:
            raise ValueError("no protocol buffer")
        if at > len(view):
            raise ValueError("a protocol buffer that ends early")
        yield number, kind, bytes(view[start:at])


def varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(view) and shift < 64:
        byte = view[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("a number that does not end")


def _field(number: int, kind: int, value: bytes) -> bytes:
    head = _number(number << 3 | kind)
    return head + _number(len(value)) + value if kind == BYTES else head + value


def _number(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
