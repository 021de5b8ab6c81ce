"""Read arrays from a pickle without running any code of it.

A pickle is a program: it names functions and calls them. Some datasets and weights come as pickles all the same. This
reader knows exactly the names that rebuild arrays, and refuses all others:

    numpy.ndarray, numpy.dtype                  numpy.[_]core.multiarray._reconstruct, .scalar
    numpy.[_]core.numeric._frombuffer           _codecs.encode, to Latin-1 only, and bytes() for none at all:
                                                old pickles write bytes as text
    collections.OrderedDict, FrozenDict of flax, which become dicts

Even these do not call numpy. Each name stands for a class of this module that notes a type, a shape and bytes; arrays
are made of those at the end, of numbers, bytes and text alone. So no state in a pickle is trusted: there are no arrays
of objects, which are pointers, and no shape that its bytes do not fill.
"""

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from vidveil.core.bounded import read_bytes, reason
from vidveil.core.errors import DataError

MOST_BYTES = 4 << 30
CORES = ("numpy.core", "numpy._core")  # before and after numpy 2
DEEP = 100  # levels of nested dicts and lists

# Everything that plain containers, text, numbers and bytes are written with. Not among them: objects of classes,
# names outside of the pickle, and numbers of a registry of this process.
OPCODES = frozenset(
    """PROTO FRAME STOP MARK POP POP_MARK DUP MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET
    NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8
    BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8
    TUPLE EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 LIST EMPTY_LIST APPEND APPENDS DICT EMPTY_DICT SETITEM SETITEMS
    GLOBAL STACK_GLOBAL REDUCE BUILD""".split()
)


def load_arrays(source: Path | bytes) -> Any:
    """The dicts, lists, tuples, text, numbers and arrays of the pickle."""
    name = "the pickle" if isinstance(source, bytes) else str(source)
    try:
        data = source if isinstance(source, bytes) else read_bytes(Path(source), MOST_BYTES)
    except (OSError, ValueError) as error:
        raise DataError(f"{name} {reason(error)}") from error
    try:
        _check_opcodes(data)
        return _Finish()(_Reader(io.BytesIO(data), encoding="latin1").load())
    except _RefusedError as error:
        raise DataError(f"{name} is refused: {error}") from None
    except Exception as error:  # a broken pickle can fail in any way
        raise DataError(f"{name} is no readable pickle of arrays") from error


class _RefusedError(Exception):
    """The reason, for the user."""


def _check_opcodes(data: bytes) -> None:
    """Refuse opcodes that no array needs, before anything runs."""
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if opcode.name not in OPCODES:
            raise _RefusedError(f"it uses {opcode.name}, which no array needs")
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(argument or 0) <= count:
            raise _RefusedError("it claims more memory than it fills")


class _Name:
    """The replacement of a known name. A pickle can call it, and do nothing else with it."""

    __slots__ = ("_call",)
    _call: Callable[..., Any]

    def __init__(self, call: Callable[..., Any]) -> None:
        object.__setattr__(self, "_call", call)

    def __call__(self, *args: Any) -> Any:
        return self._call(*args)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise _RefusedError("it changes a function")

    def __setstate__(self, state: Any) -> NoReturn:
        raise _RefusedError("it changes a function")


class _DType:
    """A type of numbers, bytes or text."""

    __slots__ = ("code", "order")

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or not re.fullmatch(r"[<>|=]?(b1|[iu][1248]|f[248]|c8|c16|[SU]\d{1,6})", code):
            raise _RefusedError(f"it has an array of {str(code)[:20]!r}")
        self.order, self.code = "=", code.lstrip("<>|=")
        if code[0] in "<>":
            self.order = code[0]

    def __setstate__(self, state: Any) -> None:
        _, order, subarray, names, fields = state[:5]
        if order not in ("<", ">", "=", "|") or not (subarray is names is fields is None):
            raise _RefusedError("it has an array of records")
        self.order = order

    def real(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code)


class _Array:
    """Shape, type and bytes of an array to be made at the end."""

    __slots__ = ("fortran", "kind", "raw", "shape")

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = (0,)
        self.kind, self.fortran, self.raw = _DType("u1"), False, b""

    def __setstate__(self, state: Any) -> None:
        *version, shape, kind, fortran, raw = state
        if len(version) > 1:
            raise _RefusedError("it has an array that numpy did not write")
        self.fill(shape, kind, bool(fortran), raw)

    def fill(self, shape: Any, kind: Any, fortran: bool, raw: Any) -> "_Array":
        if isinstance(raw, str):  # bytes of Python 2
            raw = raw.encode("latin1")
        if not isinstance(kind, _DType) or not isinstance(raw, bytes | bytearray):
            raise _RefusedError("it has an array of objects")
        if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
            raise _RefusedError("it has an array without a shape")
        if math.prod(shape) * kind.real().itemsize != len(raw):
            raise _RefusedError("it has an array whose bytes do not fill it")
        self.shape, self.kind, self.fortran, self.raw = shape, kind, fortran, bytes(raw)
        return self

    def real(self) -> np.ndarray[Any, Any]:
        flat = np.frombuffer(self.raw, self.kind.real())
        return flat.reshape(self.shape, order="F" if self.fortran else "C").copy()


class _Scalar(_Array):
    """A numpy scalar to be made at the end."""

    __slots__ = ()


def _encode(text: Any, encoding: Any = None) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _RefusedError("it converts text in a way that arrays never do")
    return text.encode("latin1")


def _pairs(items: Any = ()) -> dict[Any, Any]:
    if type(items) not in (dict, list, tuple):
        raise _RefusedError("it makes a dict of something else")
    return dict(items)


def _no_bytes(*args: Any) -> bytes:
    """Old pickles write empty bytes by calling `bytes`. With a number as argument it would allocate memory."""
    if args:
        raise _RefusedError("it makes bytes of something else")
    return b""


def _only_named(*_: Any) -> NoReturn:
    raise _RefusedError("it makes an array by hand")


def _frombuffer(raw: Any, kind: Any, shape: Any, order: Any, *_: Any) -> _Array:
    return _Array().fill(shape, kind, order == "F", raw)


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, *, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        known: dict[tuple[str, str], Callable[..., Any]] = {
            ("numpy", "ndarray"): _only_named,
            ("numpy", "dtype"): _DType,
            ("_codecs", "encode"): _encode,
            ("__builtin__", "bytes"): _no_bytes,
            ("collections", "OrderedDict"): _pairs,
            ("flax.core.frozen_dict", "FrozenDict"): _pairs,
        }
        for core in CORES:
            known[f"{core}.multiarray", "_reconstruct"] = lambda *_: _Array()
            known[f"{core}.multiarray", "scalar"] = lambda kind, raw: _Scalar().fill((), kind, False, raw)
            known[f"{core}.numeric", "_frombuffer"] = _frombuffer
        self._known = {name: _Name(call) for name, call in known.items()}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._known:
            shown = ascii(f"{module}.{name}")[1:-1]  # on one line
            raise _RefusedError(f"{shown[:80]} is no part of an array")
        return self._known[module, name]


class _Finish:
    """Makes the arrays; an object that the pickle refers to twice stays one object."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}

    def __call__(self, value: Any, depth: int = 0) -> Any:
        if depth > DEEP:
            raise _RefusedError("it is nested too deeply")
        if id(value) in self._done:
            return self._done[id(value)]
        done: Any
        if isinstance(value, _Scalar):
            done = value.real()[()]
        elif isinstance(value, _Array | _DType):
            done = value.real()
        elif type(value) is dict:
            done = {self(key, depth + 1): self(item, depth + 1) for key, item in value.items()}
        elif type(value) in (list, tuple):
            done = type(value)(self(item, depth + 1) for item in value)
        elif value is None or type(value) in (bool, int, float, str, bytes, bytearray):
            done = value
        else:
            raise _RefusedError("it holds something that is no data")
        self._done[id(value)] = done  # the pickle's tree lives until the end, so ids stay unique
        return done
