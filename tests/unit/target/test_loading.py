"""A call with its refusal; the words and the order are compared with torch in test_simulation_table."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import GlobalUse, Safety, Verb
from inspector.pickles.instructions import CODES
from inspector.safety.verdict import judge
from inspector.target.loading import load_call, refusal_of
from inspector.target.refusal import Refusal
from tests.corpus import CORPUS
from tests.unit.report.rows import checkpoint, tensor, value

INT = Safety(opcodes=("INT", "STOP"), protocol=1, oddities=())


def refusal(found) -> Refusal | None:
    return refusal_of(found, judge(found))


def names(*dotted: str) -> tuple[GlobalUse, ...]:
    return tuple(GlobalUse(name=name, count=1) for name in dotted)


def test_a_plain_state_dict_is_refused_by_nobody() -> None:
    found = checkpoint(tensor("w"))
    call = load_call(found, judge(found), "cpu", weights_only=True, mmap=True)
    assert (call.map_location, call.weights_only, call.mmap, call.refusal) == ("cpu", True, True, None)


@pytest.mark.parametrize(
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
    found = checkpoint(format=form, safety=Safety(opcodes=opcodes, protocol=protocol, oddities=()))
    assert refusal(found) == Refusal(finding="runs-code", opcode=CODES[opcode])


@pytest.mark.parametrize(
    ("row", "before"),
    [(value("epoch"), 1), (value("flag", type="bool"), 0)],
)
def test_old_truth_comes_with_the_first_tensor_or_before_it(row, before: int) -> None:
    found = refusal(checkpoint(row, tensor("w"), value("later", type="bool"), safety=INT))
    assert found is not None
    assert (found.opcode, found.tensors_before) == (CODES["INT"], before)


def test_a_name_stands_where_its_value_does() -> None:
    rows = (tensor("w"), value("args", type="argparse.Namespace"), tensor("v"))
    found = refusal(checkpoint(*rows, value("more", type="argparse.Namespace"), globals=names(rows[1].type)))
    assert found == Refusal(finding="needs-allow-list", name="argparse.Namespace", tensors_before=1)


def test_the_name_that_stands_first_is_the_one() -> None:
    rows = (tensor("w"), value("args", type="a.B"))
    found = refusal(checkpoint(*rows, globals=names("a.B", "c.Module")))
    assert found == Refusal(finding="needs-allow-list", name="c.Module")


def test_a_tensor_of_a_numpy_array_asks_for_numpy_s_names() -> None:
    array = tensor("n", device="xla:0", stride=None, storage_offset=None)
    listed = names("torch._utils._rebuild_device_tensor_from_numpy", "numpy.core.multiarray._reconstruct")
    found = refusal(checkpoint(tensor("w"), array, globals=listed))
    assert found is not None
    assert (found.name, found.tensors_before) == ("numpy.core.multiarray._reconstruct", 1)


def test_what_is_dangerous_says_so() -> None:
    found = refusal(checkpoint(globals=names("os.system")))
    assert found == Refusal(finding="dangerous-global", name="os.system")


def test_a_misuse_has_neither_name_nor_instruction() -> None:
    safety = Safety(opcodes=("STOP",), protocol=2, oddities=(), uses=(("", Verb.CALL),))
    assert refusal(checkpoint(safety=safety)) == Refusal(finding="runs-code")


def test_a_genuine_module(tmp_path: Path) -> None:
    found = refusal(open_checkpoint(str(CORPUS / "zip" / "module_custom.pt")))
    assert found is not None
    assert (found.name, found.tensors_before) == ("__main__.Net", 0)
