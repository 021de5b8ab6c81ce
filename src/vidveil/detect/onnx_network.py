"""Networks in ONNX files, at any size of picture, in ONNX Runtime.

Exporters often freeze the size that a network was traced with, though nothing in the network needs it. `freed` takes
that size off the declared inputs and outputs. It also takes stored weights off the list of inputs, where old exporters
repeat them and so forbid the runtime to fold them. Both are edits of a few bytes of a protocol buffer, done here by
hand: the library for it would be a dependency of 20 MB.

ONNX Runtime and not OpenVINO: on the two networks that vidveil fetches it was not slower in our trials on one core, and
it is a third of the size. Both would report to their makers; vidveil.core.telemetry forbids it.
"""

import hashlib
from pathlib import Path
from threading import Lock, Thread, current_thread
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from vidveil.core.bounded import read_bytes, reason
from vidveil.core.errors import DetectorError, InputError
from vidveil.weights.onnx_format import freed

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
