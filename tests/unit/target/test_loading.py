"""A call with its refusal; the words and the order are compared with torch in test_simulation_table."""

from __future__ import annotations

from pathlib import Path

import torch

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import GlobalUse, Safety, UnusualOpcode, Verb
from inspector.pickles.instructions import CODES
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.call import Refusal, load_call, refusal_of
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor

INT = Safety(opcodes=("INT", "STOP"), protocol=1, oddities=(), unread=())


def refusal(found) -> Refusal | None:
    return refusal_of(found, judge(found))


def names(*dotted: str) -> tuple[GlobalUse, ...]:
    return tuple(GlobalUse(name=name, count=1) for name in dotted)


def test_a_plain_state_dict_is_refused_by_nobody() -> None:
    found = checkpoint(tensor("w"))
    call = load_call(found, judge(found), "cpu", weights_only=True, mmap=True)
    assert (call.map_location, call.weights_only, call.mmap, call.refusal) == ("cpu", True, True, None)


@table(
    ("opcodes", "protocol", "form", "opcode"),
    [
        (("POP", "STOP"), 2, "zip", "POP"),
        (("FRAME", "MEMOIZE", "STACK_GLOBAL"), 4, "zip", "FRAME"),
        (("LONG", "STOP"), 0, "legacy", "LONG"),
        (("FRAME", "MEMOIZE", "STOP"), 5, "legacy", "FRAME"),
        (("POP", "STOP"), 2, "legacy", "POP"),
    ],
)
def test_the_first_instruction_that_is_not_known(
    opcodes: tuple[str, ...], protocol: int, form: str, opcode: str
) -> None:
    found = checkpoint(format=form, safety=Safety(opcodes=opcodes, protocol=protocol, oddities=(), unread=()))
    assert refusal(found) == Refusal(finding="runs-code", opcode=CODES[opcode])


@table(
    ("opcode", "asked", "expected"),
    [
        ("INT", 1, Refusal(finding="runs-code", name="net.Net", storages_before=1)),
        ("INT", 0, Refusal(finding="runs-code", opcode=CODES["INT"], storages_before=2)),
    ],
)
def test_an_instruction_stops_it_where_it_stands_unless_a_name_stands_before(
    opcode: str, asked: int, expected: Refusal
) -> None:
    safety = replace(INT, opcodes=(opcode, "STOP"), unusual=(UnusualOpcode("INT", 2, asked),))
    rows = storage("0"), storage("1"), storage("2")
    listed = (GlobalUse(name="net.Net", count=1, storages_before=1),)
    assert refusal(checkpoint(*rows, globals=listed, safety=safety)) == expected


def test_where_unusual_instructions_stand_is_read_from_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    torch.save({"a": torch.ones(2), "b": 1 << 70, "c": torch.ones(2)}, path, pickle_protocol=1)
    unusual = open_checkpoint(str(path)).needs.unusual
    assert [*unusual] == [UnusualOpcode("INT", 1, 2), UnusualOpcode("LONG", 1, 3)]


def test_the_name_that_the_file_asks_for_first_is_the_one() -> None:
    listed = (
        GlobalUse(name="a.B", count=3, storages_before=2),
        GlobalUse(name="c.D", count=1, storages_before=1),
    )
    found = refusal(checkpoint(storage("0"), storage("1"), globals=listed))
    assert found == Refusal(finding="needs-allow-list", name="a.B", storages_before=2)


def test_where_a_name_that_the_file_does_not_hold_is_asked_for_is_not_known() -> None:
    safety = Safety(
        opcodes=("STOP",),
        protocol=2,
        oddities=(),
        unread=(),
        uses=(("numpy.dtypes.Float64DType", Verb.CALL),),
    )
    found = refusal(checkpoint(storage("0"), safety=safety))
    assert found == Refusal(finding="needs-allow-list", name="numpy.dtypes.Float64DType", storages_before=1)


def test_what_is_dangerous_says_so() -> None:
    found = refusal(checkpoint(globals=names("os.system")))
    assert found == Refusal(finding="dangerous-global", name="os.system")


def test_a_misuse_has_neither_name_nor_instruction() -> None:
    safety = Safety(opcodes=("STOP",), protocol=2, oddities=(), unread=(), uses=(("", Verb.CALL),))
    assert refusal(checkpoint(safety=safety)) == Refusal(finding="runs-code")


def test_a_genuine_module(tmp_path: Path) -> None:
    found = refusal(open_checkpoint(str(CORPUS / "zip" / "module_custom.pt")))
    assert found is not None
    assert (found.name, found.storages_before) == ("__main__.Net", 0)
