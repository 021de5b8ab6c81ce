"""Pickles from elsewhere: arrays come out, and nothing that could run does."""

import io
import pickle
import struct
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidveil.core.errors import DataError
from vidveil.core.pickled_arrays import load_arrays

ARRAYS = [
    np.arange(6, dtype=np.int64).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(4, dtype=">i2"),
    np.array([True, False]),
    np.array(3.5, np.float16),
    np.array([1 + 2j]),
    np.array(["skin", "face"]),
    np.array([b"ab", b"c"]),
    np.zeros((0, 5), np.float32),
    np.arange(256, dtype=np.uint8),
]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}-{array.shape}")
def test_arrays_come_back_as_they_were_under_every_protocol(array, protocol):
    found = load_arrays(pickle.dumps({"a/b.mp4": array, "more": [array, (array, None)]}, protocol))
    for copy in (found["a/b.mp4"], found["more"][0], found["more"][1][0]):
        assert copy.dtype == array.dtype
        np.testing.assert_array_equal(copy, array)
    found["a/b.mp4"].fill(0)  # ours to change
    assert found["more"][1][1] is None


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_around_arrays_is_kept(protocol):
    data = {"n": 3, "x": 0.5, "t": ("é", b"raw\x80", True), "s": np.float32(1.5), "d": OrderedDict(b=1, a=2)}
    found = load_arrays(pickle.dumps(data, protocol))
    assert found == data
    assert type(found["s"]) is np.float32
    assert list(found["d"]) == ["b", "a"]


def test_names_of_older_and_newer_numpy_are_the_same():
    data = pickle.dumps(ARRAYS[0], 2)
    old, new = b"cnumpy.core.multiarray\n", b"cnumpy._core.multiarray\n"
    for name in (old, new):
        copy = data.replace(new, name).replace(old, name)
        np.testing.assert_array_equal(load_arrays(copy), ARRAYS[0])


def call(module: str, name: str, *args: object) -> bytes:
    """A pickle that calls something by name, as an attacker would write it."""
    return b"c" + f"{module}\n{name}\n".encode() + pickle.dumps(args, 0)[:-1] + b"R."


PAYLOADS = [
    ("os", "system", "touch {}"),
    ("posix", "system", "touch {}"),
    ("subprocess", "call", "touch {}"),
    ("builtins", "eval", "open({!r}, 'w')"),
    ("builtins", "exec", "open({!r}, 'w')"),
    ("builtins", "getattr", "x"),
    ("builtins", "open", "{}"),
    ("numpy", "load", "{}"),
    ("numpy", "fromfile", "{}"),
    ("numpy", "memmap", "{}"),
    ("numpy", "save", "{}"),
    ("numpy.testing._private.utils", "runstring", "open({!r}, 'w')"),
    ("numpy.testing", "measure", "open({!r}, 'w')"),
    ("numpy.testing", "rundocs", "{}"),
    ("numpy.f2py.crackfortran", "myeval", "open({!r}, 'w')"),
    ("numpy.core.multiarray", "fromfile", "{}"),
    ("numpy._core.multiarray", "frombuffer", "x"),
    ("numpy.distutils.exec_command", "exec_command", "touch {}"),
    ("_codecs", "lookup", "latin1"),
    ("codecs", "open", "{}"),
    ("copyreg", "_reconstructor", "x"),
    ("torch", "load", "{}"),
    ("importlib", "import_module", "antigravity"),
]


@pytest.mark.parametrize(("module", "name", "argument"), PAYLOADS, ids=[".".join(p[:2]) for p in PAYLOADS])
def test_a_pickle_that_calls_anything_else_is_refused_before_it_does(tmp_path, module, name, argument):
    mark = tmp_path / "ran"
    for wrap in (lambda data: data, lambda data: b"}S'a'\n" + data[:-1] + b"s."):  # alone, and as a value in a dict
        with pytest.raises(DataError, match=f"{module}.{name} is no part of an array"):
            load_arrays(wrap(call(module, name, argument.format(str(mark)))))
    words = b"".join(b"\x8c" + bytes([len(word)]) + word.encode() for word in (module, name))
    with pytest.raises(DataError, match="is no part of an array"):  # the same by STACK_GLOBAL
        load_arrays(b"\x80\x04" + words + b"\x93)R.")
    assert not mark.exists()


def test_dotted_names_do_not_lead_out_of_the_vocabulary():
    for name in ("ndarray.tofile", "dtype.__class__", "ndarray.__reduce__"):
        head = b"\x80\x04\x8c\x05numpy\x8c" + bytes([len(name)]) + name.encode()
        with pytest.raises(DataError, match="no part of an array"):
            load_arrays(head + b"\x93.")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pickle.dumps(np.array([None, 1])), "array of 'O8'"),
        (pickle.dumps(np.zeros(2, [("a", "f4")])), "array of"),
        (pickle.dumps(np.array(["2020"], "M8[D]")), "array of 'M8'"),
        (pickle.dumps({1, 2}), "EMPTY_SET"),
        (pickle.dumps(Fraction(1, 2)), "Fraction is no part"),
        (pickle.dumps(np.random.default_rng(0)), "is no part of an array"),
        (call("_codecs", "encode", "x", "rot13"), "converts text"),
        (call("__builtin__", "bytes", 1 << 40), "makes bytes"),
        (call("numpy", "ndarray", (2,)), "makes an array by hand"),
        (b"cnumpy\ndtype\n}S'_call'\nI1\nsb.", "changes a function"),
        (b"cnumpy\ndtype\n(N}S'_call'\nI1\nstb.", "changes a function"),
        (b"cnumpy\ndtype\n.", "something that is no data"),
        (b"\x80\x02Pname\n.", "PERSID"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"(cos\nsystem\nS'x'\no.", "OBJ"),
        (b"(S'x'\nios\nsystem\n.", "INST"),
        (b"Nr\xff\xff\xff\x7f.", "claims more memory than it fills"),
        (b"]" + b"q\x00h\x00a.", "nested too deeply"),
        (b"]" * 500 + b"a" * 499 + b".", "nested too deeply"),
    ],
)
def test_what_no_array_needs_is_refused(data, message):
    with pytest.raises(DataError, match=message) as error:
        load_arrays(data)
    assert "\n" not in str(error.value)


def forged(shape: tuple[int, ...], code: str, raw: bytes, state: tuple[object, ...] | None = None) -> bytes:
    """An array whose state says whatever the writer likes."""
    out = io.BytesIO()
    writer = pickle._Pickler(out, 2)  # type: ignore[attr-defined]
    out.write(b"\x80\x02cnumpy._core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01")
    writer.save(shape)
    out.write(b"cnumpy\ndtype\n")
    writer.save((code, False, True))
    out.write(b"R")
    writer.save(state or (3, "<", None, None, None, -1, -1, 0))
    out.write(b"b\x89")
    out.write(b"B" + struct.pack("<I", len(raw)) + raw + b"tb.")
    return out.getvalue()


def test_the_forger_can_write_an_array_that_is_read():
    np.testing.assert_array_equal(load_arrays(forged((2,), "u1", b"ab")), [97, 98])


POINTER = (3, "|", None, ("a",), {"a": ("O", 0)}, 8, 1, 63)  # a type for which bytes are passed off as a pointer


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (((1 << 40,), "u1", b"ab"), "do not fill it"),
        (((1,), "f8", b"ab"), "do not fill it"),
        (((-1,), "u1", b"ab"), "without a shape"),
        (((1,), "O8", b"\0" * 8), "array of 'O8'"),
        (((1,), "V8", b"\0" * 8), "array of 'V8'"),
        (((1,), "i8", b"\0" * 8, POINTER), "array of records"),
    ],
)
def test_forged_arrays_are_refused(array, message):
    with pytest.raises(DataError, match=message):
        load_arrays(forged(*array))


@given(st.binary(max_size=60), st.integers(0, 10_000))
@settings(max_examples=300, deadline=None)
def test_broken_pickles_end_in_one_error(noise, at):
    data = pickle.dumps({"a": ARRAYS[0], "b": [ARRAYS[1], "text"]}, 4)
    at %= len(data)
    for broken in (noise, data[:at], data[:at] + noise + data[at + len(noise) :]):
        message = ""
        try:
            load_arrays(broken)
        except DataError as error:
            message = str(error)
        assert "\n" not in message


def test_a_file_is_named_in_the_error(tmp_path):
    with pytest.raises(DataError, match=r"labels\.pickle cannot be read .no such file"):
        load_arrays(tmp_path / "labels.pickle")
    (tmp_path / "labels.pickle").write_bytes(b"no pickle")
    with pytest.raises(DataError, match=r"labels\.pickle is no readable pickle"):
        load_arrays(tmp_path / "labels.pickle")
