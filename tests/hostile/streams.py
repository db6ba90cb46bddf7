"""Pickles that attack whoever reads them: groups 1 to 17."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from tests.builders import zips
from tests.builders.pickles import (
    MARK,
    NONE,
    STOP,
    call,
    dict_,
    list_,
    name,
    number,
    op,
    proto,
    state_dict,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)

Rows = dict[int, dict[str, tuple[Callable[[], bytes], dict[str, Any]]]]
SYSTEM = name("posix.system")
PAYLOAD = SYSTEM + tuple_(text("id")) + op("REDUCE")
PAYLOAD_AS_TEXT = b"cposix\nsystem\n(S'id'\ntR."
MODULUS = 2**61 - 1


def zipped(*parts: bytes, version: int = 2) -> bytes:
    return zips.checkpoint(stream(proto(version), *parts))


def made(*parts: bytes, version: int = 2) -> Callable[[], bytes]:
    return lambda: zipped(*parts, version=version)


def long_int(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return op("LONG1", bytes([len(data)]) + data)


def _laughs() -> bytes:
    """Lists of the list before twice, 60 in a row: 2 to the 60 when written out."""
    rows = [text("0") + op("EMPTY_LIST") + op("BINPUT", b"\0")]
    for row in range(1, 60):
        twice = op("MARK") + op("BINGET", bytes([row - 1])) * 2 + op("APPENDS")
        rows.append(text(f"{row}") + op("EMPTY_LIST") + op("BINPUT", bytes([row])) + twice)
    return zipped(op("EMPTY_DICT"), MARK, *rows, op("SETITEMS"))


def _doubling_key() -> bytes:
    half = op("BINPUT", b"\0") + op("BINGET", b"\0") + op("TUPLE2")
    return zipped(op("EMPTY_DICT"), op("EMPTY_TUPLE") + half * 60, NONE, op("SETITEM"))


def straddling_frame() -> bytes:
    """A frame that ends within a text of 8 bytes, 5 of which are in it.

    CPython's unpickler in C throws away what is left of the frame and takes all 8 bytes from behind it. From
    there on it is five bytes ahead of `pickletools`: what that takes for another text is carried out.
    """
    hidden = PAYLOAD + STOP
    in_frame = op("SHORT_BINUNICODE", b"\x08abcde")
    behind = b"xyz" + op("BINUNICODE", struct.pack("<I", len(hidden))) + hidden
    return proto(4) + op("FRAME", struct.pack("<Q", len(in_frame))) + in_frame + behind + STOP


def _self_holding() -> bytes:
    own_list = op("EMPTY_LIST") + op("BINPUT", b"\0") + op("BINGET", b"\0") + op("APPEND")
    own_dict = op("EMPTY_DICT") + op("BINPUT", b"\1") + text("d") + op("BINGET", b"\1") + op("SETITEM")
    return zipped(list_(own_list, own_dict))


ODD_INTS = op("INT", b"0x10\n") + op("POP") + op("INT", b"1\0z\n") + op("POP")
DEEP = {"document_nbytes": r"", "notes": "nested too deeply", "verdict": "weights-only"}
NEVER = {"verdict": "dangerous", "answer": "never"}
SAFE = {"verdict": "weights-only"}

CASES: Rows = {
    1: {
        "memo slot 4 thousand million": (made(NONE, op("LONG_BINPUT", b"\xff" * 4)), SAFE),
        "memo slot 268 million": (made(NONE, op("LONG_BINPUT", b"\xff\xff\xff\x0f")), SAFE),
    },
    2: {
        "memo slot 10 to the 18": (
            made(NONE, op("PUT", b"1" + b"0" * 18 + b"\n")),
            {"oddities": "memo slot is too large", "answer": "opcode"},
        ),
        "memo slot of 70 digits": (made(NONE, op("PUT", b"1" * 70 + b"\n")), {"error": "PUT"}),
    },
    3: {
        **{
            f"{opcode} of a terabyte": (
                made(op(opcode, struct.pack("<Q", 1 << 40)), version=5),
                {"error": f"breaks off before its end.*{opcode}"},
            )
            for opcode in ("BINBYTES8", "BYTEARRAY8", "BINUNICODE8")
        },
        "FRAME of a terabyte": (
            made(op("FRAME", struct.pack("<Q", 1 << 40)), NONE, version=4),
            {"answer": "opcode"},
        ),
        "BINSTRING of negative length": (made(op("BINSTRING", b"\xff" * 4)), {"error": "length is negative"}),
    },
    4: {
        "lists a million deep": (lambda: zipped(op("EMPTY_LIST") * 1_000_000, op("APPEND") * 999_999), DEEP),
        "tuples a million deep": (lambda: zipped(op("EMPTY_TUPLE"), op("TUPLE1") * 1_000_000), DEEP),
        "dictionaries a million deep": (
            lambda: zipped(b"}N" * 1_000_000, NONE, op("SETITEM") * 1_000_000),
            DEEP,
        ),
        "calls half a million deep": (
            lambda: zipped(name("a.B") * 500_000, op("EMPTY_TUPLE"), op("REDUCE") * 500_000),
            {"verdict": "runs-code", "answer": "errors"},
        ),
    },
    5: {
        "a tuple a million deep as a key": (
            lambda: zipped(
                op("EMPTY_DICT"), op("EMPTY_TUPLE"), op("TUPLE1") * 1_000_000, NONE, op("SETITEM")
            ),
            {"answer": "errors", "reason": "so deeply that torch crashes", "values": r"\(\(…\),?\)|\(…\)"},
        )
    },
    6: {
        "a tuple of itself doubled 60 times as a key": (
            _doubling_key,
            {"answer": "errors", "reason": "torch hangs"},
        )
    },
    7: {
        "lists of lists that are 2 to the 60 written out": (
            _laughs,
            {"verdict": "weights-only", "answer": "accepts"},
        )
    },
    8: {
        "60,000 integers with the same hash as keys": (
            lambda: zipped(
                op("EMPTY_DICT"), MARK, *(long_int(k * MODULUS) + NONE for k in range(60_000)), op("SETITEMS")
            ),
            {"answer": "errors", "reason": "the same hash"},
        )
    },
    9: {"a list and a dictionary that hold themselves": (_self_holding, {"values": "the same object as"})},
    10: {
        "a list as a key": (
            made(op("EMPTY_DICT"), list_(number(1)), NONE, op("SETITEM")),
            {"answer": "errors", "reason": "an unhashable key"},
        ),
        "a dictionary in a tuple as a key": (
            made(op("EMPTY_DICT"), tuple_(dict_()), NONE, op("SETITEM")),
            {"answer": "errors", "reason": "an unhashable key"},
        ),
    },
    11: {
        "an integer of a megabyte": (
            lambda: zipped(op("LONG4", struct.pack("<i", 1 << 20) + b"\x7f" * (1 << 20))),
            {"values": "int.*1.0 MB"},
        ),
        "an integer of 60 kilobytes": (
            lambda: zipped(op("LONG4", struct.pack("<i", 60_000) + b"\x7f" * 60_000)),
            {"values": "479,999-bit integer 0xfefe"},
        ),
        "an integer of 100,000 digits": (
            lambda: zipped(op("INT", b"7" * 100_000 + b"\n")),
            {"values": "100 KB"},
        ),
        "a float of 100,000 digits": (
            lambda: zipped(op("FLOAT", b"7" * 100_000 + b"\n")),
            {"error": "too long"},
        ),
    },
    12: {
        "a frame that ends within an instruction": (
            lambda: zips.checkpoint(straddling_frame()),
            {"oddities": "crosses the end of its frame", "verdict": "runs-code"},
        )
    },
    13: {
        "integers that readers understand differently": (
            made(ODD_INTS, PAYLOAD),
            {"oddities": "readers understand differently", "globals": "posix.system", **NEVER},
        )
    },
    14: {
        "a payload and then garbage": (
            lambda: zips.checkpoint(proto() + PAYLOAD + b"\xff\xff"),
            {"error": "no pickle opcode", "runs": "posix.system", "verdict": "dangerous"},
        ),
        "a payload and no end": (
            lambda: zips.checkpoint(proto() + PAYLOAD),
            {"error": "breaks off", "runs": "posix.system", "verdict": "dangerous"},
        ),
        "a payload and an empty stack": (
            made(PAYLOAD, op("POP") * 2),
            {"error": "not on its stack", "runs": "posix.system", "verdict": "dangerous"},
        ),
    },
    15: {
        "a name made of a memo slot": (
            made(
                text("posix")
                + op("BINPUT", b"\0")
                + text("system")
                + op("STACK_GLOBAL")
                + tuple_()
                + op("REDUCE")
            ),
            {"globals": "posix.system", **NEVER},
        ),
        "a name made of a number": (
            made(text("posix") + number(1) + op("STACK_GLOBAL"), version=4),
            {"oddities": "computed while loading", **NEVER},
        ),
        "a name that is called for": (
            made(text("posix") + PAYLOAD + op("STACK_GLOBAL"), version=4),
            {"oddities": "computed while loading", **NEVER},
        ),
    },
    16: {
        **{
            f"extension code {code}": (
                made(op(f"EXT{width}", code.to_bytes(width, "little"))),
                {"oddities": f"extension code {code} names", "verdict": "runs-code|dangerous"},
            )
            for width, code in ((1, 7), (2, 777), (4, 77777))
        }
    },
    17: {
        "the state of a module is set": (
            made(name("torch.serialization"), dict_((text("_get_layout"), SYSTEM)), op("BUILD")),
            {"oddities": "the state of the name torch.serialization is set", **NEVER},
        ),
        "the state of a harmless function is set": (
            made(name("torch._utils._rebuild_tensor_v2"), dict_((text("x"), NONE)), op("BUILD")),
            {"verdict": "dangerous", "answer": "errors"},
        ),
    },
    0: {
        "a payload whose result is dropped": (
            made(PAYLOAD, op("POP"), dict_()),
            {"calls": r"None, 'posix.system\(\"id\"\)', 'dangerous'", **NEVER},
        ),
        "a payload among the hooks of a tensor": (
            lambda: zips.checkpoint(
                stream(
                    proto(),
                    dict_(
                        (text("w"), tensor(storage(), 2).replace(call("collections.OrderedDict"), PAYLOAD))
                    ),
                ),
                {"0": bytes(8)},
            ),
            {"calls": "posix.system", "tensors": 1, **NEVER},
        ),
        "a payload in a legacy rebuild function": (
            made(
                call(
                    "torch._tensor._rebuild_from_type_v2",
                    SYSTEM,
                    name("torch.Tensor"),
                    tuple_(text("id")),
                    NONE,
                )
            ),
            {"calls": r"_rebuild_from_type_v2\(posix.system", **NEVER},
        ),
        "a payload through functools": (
            made(call("functools.partial", SYSTEM, text("id")) + tuple_() + op("REDUCE")),
            {"calls": "posix.system", **NEVER},
        ),
        "an honest state dict": (
            lambda: zips.checkpoint(state_dict(w=tensor(storage(), 2)), {"0": bytes(8)}),
            {"verdict": "weights-only", "answer": "accepts", "calls": [], "problems": []},
        ),
    },
}
