"""Networks in ONNX files, at any size of picture, in ONNX Runtime.

Exporters often freeze the size that a network was traced with, though nothing in the network needs it. `freed` takes
that size off the declared inputs and outputs. It also takes stored weights off the list of inputs, where old exporters
repeat them and so forbid the runtime to fold them. Both are edits of a few bytes of a protocol buffer, done here by
hand: the library for it would be a dependency of 20 MB.

ONNX Runtime and not OpenVINO: on the two networks that vidveil fetches it was not slower in our trials on one core, and
it is a third of the size. Both would report to their makers; vidveil.core.telemetry forbids it.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from threading import Lock, Thread, current_thread
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from vidveil.core.bounded import read_bytes, reason
from vidveil.core.errors import DetectorError, InputError

# Field numbers of onnx.proto
MODEL_GRAPH = 7
GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_VALUE_INFO = 5, 11, 12, 13
TENSOR_NAME = 8
VALUE_NAME, VALUE_TYPE = 1, 2
TYPE_TENSOR, TENSOR_SHAPE, SHAPE_DIM, DIM_PARAM = 1, 2, 1, 2
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

MODEL_BYTES = 1 << 30
"""Of an ONNX file, at most; the format itself ends at twice that."""
MOST_GIVEN_UP = 8  # runs that do not end and keep a core busy each: with more, the network is not run again


class Network:
    """A network and how to run it. Runs may come from several threads at once; each uses one core."""

    def __init__(self, path: Path, *, free: bool = True) -> None:
        import onnxruntime

        try:
            data = read_bytes(path, MODEL_BYTES)
        except (OSError, ValueError) as error:
            raise InputError(f"{path.name} {reason(error)}") from error
        self.sha256 = hashlib.sha256(data).hexdigest()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # pictures side by side on the cores are faster than one picture on all
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                freed(data) if free else data, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the runtime has no tree of errors
            raise InputError(f"{path.name} is no ONNX network that can be run here") from error
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            raise InputError(f"{path.name} takes {len(inputs)} inputs: a detector takes one picture")
        self.input: str = inputs[0].name
        self.outputs: list[str] = [output.name for output in self._session.get_outputs()]
        self._lock = Lock()
        self._runs: dict[Thread, Any] = {}  # of each thread that is in a run: its options
        self._given_up: WeakSet[Thread] = WeakSet()  # threads that nobody waits for any more

    def __call__(self, picture: NDArray[np.float32], names: list[str] | None = None) -> list[NDArray[np.float32]]:
        """(1, 3, H, W) → the outputs, all or those of these names."""
        import onnxruntime

        thread, options = current_thread(), onnxruntime.RunOptions()
        with self._lock:
            if thread in self._given_up or sum(other in self._given_up for other in self._runs) >= MOST_GIVEN_UP:
                raise DetectorError("did not return from earlier pictures", "the network itself")
            self._runs[thread] = options
        try:
            found: list[Any] = self._session.run(names, {self.input: picture}, options)
            return found
        finally:
            with self._lock:
                del self._runs[thread]

    def give_up(self, thread: Thread) -> None:
        """Begin no more runs in this thread, and end the one it is in, at the end of the kernel it computes."""
        with self._lock:
            self._given_up.add(thread)
            if thread in self._runs:
                self._runs[thread].terminate = True


def freed(model: bytes) -> bytes:
    """The same network, without a fixed batch, height and width. Raises ValueError for what is no protocol buffer."""
    return b"".join(
        _field(number, kind, _free_graph(value) if number == MODEL_GRAPH and kind == BYTES else value)
        for number, kind, value in _fields(model)
    )


def _free_graph(graph: bytes) -> bytes:
    stored = {
        bytes(value)
        for number, _, weights in _fields(graph)
        if number == GRAPH_INITIALIZER
        for inner, kind, value in _fields(weights)
        if inner == TENSOR_NAME and kind == BYTES
    }
    parts = []
    for number, kind, value in _fields(graph):
        if number == GRAPH_VALUE_INFO:
            continue  # sizes of what lies between: the runtime finds them again
        if number == GRAPH_INPUT and _name(value) in stored:
            continue
        parts.append(_field(number, kind, _free_value(value) if number in (GRAPH_INPUT, GRAPH_OUTPUT) else value))
    return b"".join(parts)


def _free_value(value: bytes) -> bytes:
    """One input or output: dimensions 0, 2 and 3 of its shape get names of their own instead of numbers."""
    name = _name(value)

    def rewrite(message: bytes, path: tuple[int, ...]) -> bytes:
        parts, dimension = [], 0
        for number, kind, inner in _fields(message):
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
    return next((bytes(inner) for number, kind, inner in _fields(value) if (number, kind) == (VALUE_NAME, BYTES)), b"")


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(number, kind, value as it is on the wire), for each field of a protocol buffer."""
    view, at = memoryview(message), 0
    while at < len(view):
        key, at = _varint(view, at)
        number, kind = key >> 3, key & 7
        start = at
        if kind == VARINT:
            _, at = _varint(view, at)
        elif kind == BYTES:
            length, start = _varint(view, at)
            at = start + length
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        else:
            raise ValueError("no protocol buffer")
        if at > len(view):
            raise ValueError("a protocol buffer that ends early")
        yield number, kind, bytes(view[start:at])


def _varint(view: memoryview, at: int) -> tuple[int, int]:
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
