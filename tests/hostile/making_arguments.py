"""Writes which calls of listed names torch accepts, so that tests without torch know it.

`python -m tests.hostile.making_arguments` loads files of calls of every name on torch's list, right ones and
ones with one argument exchanged, left out or added, with the installed torch in a child.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Call
from tests.builders.pickles import NONE, call, list_, name, number, op, stream, text, tuple_
from tests.hostile.asking_torch import ask_torch
from tests.hostile.palette import FALSE, OD, TRUE, floating, made, palette, stored, zip_file

ANSWERS = Path(__file__).parents[1] / "data" / "arguments.json"


_FOUR, _ONE = tuple_(number(4)), tuple_(number(1))


class Combination(NamedTuple):
    """One call: of what, what is done to the right arguments, and the instructions."""

    callable: str
    what: str
    push: bytes


def right_calls() -> dict[str, tuple[tuple[bytes, ...], ...]]:
    """For each callable, arguments that it takes."""
    floats, longs = stored("s-float"), stored("s-long")
    indices = made("s-long", 1, 4)
    affine = tuple_(name("torch.per_tensor_affine"), floating(0.5), number(0))
    scales = made("s-double")
    channels = tuple_(name("torch.per_channel_affine"), scales, made("s-long"), number(0))
    listed = tuple_(
        name("torch.per_channel_affine"), list_(*[floating(0.5)] * 4), list_(*[number(0)] * 4), number(0)
    )
    csr = tuple_(made("s-long", 3), made("s-long", 4), made(), tuple_(number(2), number(4)))
    plain = tuple_(floats, number(0), _FOUR, _ONE)
    whole = call("torch._utils._rebuild_tensor_v2", floats, number(0), _FOUR, _ONE, FALSE, OD)
    cpu = call("torch.device", text("cpu"))
    strided = call("torch.serialization._get_layout", text("torch.strided"))
    table = made("s-long", 1, 1)
    return {
        "collections.OrderedDict": ((), (list_(tuple_(text("a"), number(1))),)),
        "collections.Counter": ((), (text("aab"),)),
        "builtins.set": ((), (list_(number(1)),)),
        "builtins.complex": ((), (floating(1.0), floating(2.0)), (text("1j"),)),
        "builtins.bytearray": ((), (list_(number(1)),), (text("ab"), text("latin1")), (number(3),)),
        "_codecs.encode": (
            (text("ab"), text("latin1")),
            (text("ab"),),
            (text("a"), text("utf8"), text("strict")),
        ),
        "torch.Size": ((), (list_(number(2)),)),
        "torch.device": ((text("cpu"),), (text("cuda"), number(0)), (text("cuda:1"),), (number(0),)),
        "torch.serialization._get_layout": ((text("torch.strided"),), (text("torch.sparse_coo"),)),
        "torch._utils._rebuild_tensor": ((floats, number(0), _FOUR, _ONE),),
        "torch._utils._rebuild_tensor_v2": (
            (floats, number(0), _FOUR, _ONE, FALSE, OD),
            (longs, number(0), _FOUR, _ONE, FALSE, OD, NONE),
            (floats, number(0), _FOUR, _ONE, TRUE, OD),
        ),
        "torch._utils._rebuild_tensor_v3": (
            (stored("s-byte"), number(0), _FOUR, _ONE, FALSE, OD, name("torch.uint16")),
            (stored("s-untyped"), number(0), _FOUR, _ONE, FALSE, OD, name("torch.float32"), NONE),
        ),
        "torch._utils._rebuild_parameter": ((made(), TRUE, OD), (made("s-long"), FALSE, OD)),
        "torch._utils._rebuild_parameter_with_state": ((made(), TRUE, OD, call("collections.OrderedDict")),),
        "torch._utils._rebuild_qtensor": (
            (stored("s-qint"), number(0), _FOUR, _ONE, affine, FALSE, OD),
            (stored("s-qint"), number(0), _FOUR, _ONE, channels, FALSE, OD),
            (stored("s-qint"), number(0), _FOUR, _ONE, listed, FALSE, OD),
        ),
        "torch._utils._rebuild_sparse_tensor": (
            (
                call("torch.serialization._get_layout", text("torch.sparse_coo")),
                tuple_(indices, made(), _FOUR, FALSE),
            ),
            (call("torch.serialization._get_layout", text("torch.sparse_csr")), csr),
        ),
        "torch._utils._rebuild_nested_tensor": ((made(), table, table, made("s-long", 1)),),
        "torch._utils._rebuild_meta_tensor_no_storage": ((name("torch.float32"), _FOUR, _ONE, FALSE),),
        "torch._utils._rebuild_wrapper_subclass": (
            (*(name("torch.Tensor"), name("torch.float32"), _FOUR, _ONE), *(number(0), strided, cpu, FALSE)),
        ),
        "torch._utils._rebuild_device_tensor_from_cpu_tensor": (
            (made(), name("torch.float32"), text("cpu"), FALSE),
        ),
        "torch._utils._rebuild_device_tensor_from_numpy": (
            (made(), name("torch.float32"), text("cpu"), FALSE),
        ),
        "torch._tensor._rebuild_from_type_v2": (
            (name("torch._utils._rebuild_tensor"), name("torch.Tensor"), plain, op("EMPTY_DICT")),
            (
                *(name("torch._utils._rebuild_parameter"), name("torch.nn.parameter.Parameter")),
                *(tuple_(whole, FALSE, OD), op("EMPTY_DICT")),
            ),
        ),
        "torch.nn.parameter.Parameter": ((), (made(),), (made(), FALSE)),
        "torch.Tensor": ((), (number(2),), (list_(floating(1.0)),), (made(),)),
        "torch.FloatTensor": ((), (number(2),), (stored("s-float"),)),
        "torch.storage.UntypedStorage": ((), (number(4),), (list_(number(1)),)),
        "torch.storage.TypedStorage": ((), (number(4),)),
        "torch.sparse.FloatTensor": ((), (indices, made(), call("torch.Size", list_(number(4))))),
        "torch.cuda.FloatTensor": ((),),
        "torch.cuda.sparse.FloatTensor": ((),),
        "torch.FloatStorage": ((),),
        "torch.cuda.FloatStorage": ((),),
        "torch.float32": ((),),
        "torch.per_tensor_affine": ((),),
    }


def combinations() -> Iterator[Combination]:
    """All of them, in the same order in every run."""
    colors = palette()
    for dotted, rights in right_calls().items():
        for number_, args in enumerate(rights):
            yield Combination(dotted, f"right {number_}", _call(dotted, args))
            yield Combination(dotted, f"right {number_} anew", _call(dotted, args, "NEWOBJ"))
            for count in range(len(args)):
                yield Combination(dotted, f"right {number_} cut to {count}", _call(dotted, args[:count]))
            for color, push in colors.items():
                yield Combination(dotted, f"right {number_} and {color}", _call(dotted, (*args, push)))
                for place in range(len(args)):
                    given = (*args[:place], push, *args[place + 1 :])
                    yield Combination(dotted, f"right {number_}, {place} is {color}", _call(dotted, given))
        for color, push in colors.items():
            yield Combination(dotted, f"of {color} itself", name(dotted) + push + op("REDUCE"))
            yield Combination(dotted, f"anew of {color} itself", name(dotted) + push + op("NEWOBJ"))
            yield Combination(dotted, f"anew of {color}", _call(dotted, (push,), "NEWOBJ"))


def _call(dotted: str, args: tuple[bytes, ...], verb: str = "REDUCE") -> bytes:
    return name(dotted) + tuple_(*args) + op(verb)


def asked(wanted: Iterable[Combination]) -> list[tuple[Combination, str]]:
    wanted = list(wanted)
    with tempfile.TemporaryDirectory() as folder:
        files = [(Path(folder) / f"{number}.pt", ()) for number, _ in enumerate(wanted)]
        for (path, _), combination in zip(files, wanted, strict=True):
            path.write_bytes(zip_file(combination.push))
        return [(one, said) for one, (said,) in zip(wanted, ask_torch(files), strict=True)]


def call_in(combination: Combination) -> Call:
    """The call that a combination makes, unmade."""
    call = read_pickle(stream(combination.push)).root
    assert isinstance(call, Call)
    return call


def packed(answers: Iterable[tuple[Combination, str]]) -> dict[str, str]:
    """Which of a name's calls are accepted, in their order: four to a hexadecimal digit."""
    bits: dict[str, str] = defaultdict(str)
    for one, said in answers:
        bits[one.callable] += str(int(said == "accepts"))
    return {name: f"{int(row[::-1], 2):x}" for name, row in bits.items()}


def recorded() -> list[tuple[Combination, bool]]:
    """All combinations, and whether torch accepted each when the table was made."""
    numbers = {name: int(row, 16) for name, row in json.loads(ANSWERS.read_text(encoding="utf-8")).items()}
    found = []
    for one in combinations():
        found.append((one, bool(numbers[one.callable] & 1)))
        numbers[one.callable] >>= 1
    return found


def main() -> int:
    ANSWERS.write_text(json.dumps(packed(asked(combinations())), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
