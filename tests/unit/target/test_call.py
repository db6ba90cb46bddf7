"""Maps as data; what torch does with them is compared in tests/torch/test_simulation_table.py."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import GlobalUse, Safety, UnusualOpcode, Verb
from inspector.pickles.instructions import CODES
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.call import (
    BAD_MAP,
    CUT,
    Function,
    LoadCall,
    MapLocation,
    Refusal,
    TagMap,
    TorchDevice,
    WrongType,
    behind_message,
    device_for,
    load_call,
    plain_call,
    refusal_message,
    refusal_of,
    short_message,
    tag_for,
)
from inspector.target.versions import NEWEST, release_of
from tests.builders import pickles
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor

NOW, OLD = (2, 13), (2, 3)
CPU = TorchDevice(text="cpu")
DICTIONARY = TagMap(pairs=(("cuda:0", "cpu"), ("cuda:1", CPU), (TorchDevice(text="cuda:0"), "meta")))


@table(
    ("map_location", "tag", "asked"),
    [
        (None, "cuda:0", "cuda:0"),
        ("mps", "cuda:0", "mps"),
        (CPU, "cuda:0", "cpu"),
        (DICTIONARY, "cuda:0", "cpu"),
        (DICTIONARY, "cuda", "cuda"),
        (TagMap(pairs=(("a", "b"), ("a", "c"))), "a", "c"),
        (Function(gives="storage"), "cuda:0", "cpu"),
        (Function(gives="nothing"), "cuda:0", "cuda:0"),
    ],
)
def test_storages(map_location: MapLocation, tag: str, asked: str) -> None:
    assert tag_for(map_location, tag, NOW) == asked


@table(
    ("map_location", "release", "message"),
    [
        (DICTIONARY, NOW, "TypeError: expected string or bytes-like object, got 'torch.device'"),
        (DICTIONARY, OLD, "AttributeError: 'torch.device' object has no attribute 'startswith'"),
        (WrongType(name="bytes"), NOW, "TypeError: cannot use a string pattern on a bytes-like object"),
        (
            WrongType(name="bytes"),
            OLD,
            "TypeError: startswith first arg must be bytes or a tuple of bytes, not str",
        ),
        (WrongType(name="int"), NOW, "TypeError: 'int' object is not callable"),
    ],
)
def test_what_torch_stumbles_over(map_location: MapLocation, release: tuple[int, int], message: str) -> None:
    assert tag_for(map_location, "cuda:1", release) == (BAD_MAP, message)


def test_python_says_so_itself() -> None:
    """The texts of releases that are not installed come from Python and can be had without them."""
    with pytest.raises(TypeError) as raised:
        b"cpu".startswith("cuda")  # type: ignore[arg-type]
    assert tag_for(WrongType(name="bytes"), "cpu", OLD)[1] == f"TypeError: {raised.value}"


@table(
    ("map_location", "is_wrapper", "device"),
    [
        (None, True, "cuda:0"),
        ("cpu", False, "cpu"),
        (CPU, True, "cpu"),
        (DICTIONARY, True, "meta"),
        (DICTIONARY, False, "cpu"),
        (TagMap(pairs=()), True, "cuda:0"),
    ],
)
def test_devices_of_their_own(map_location: MapLocation, is_wrapper: bool, device: str) -> None:
    assert device_for(map_location, "cuda:0", NOW, is_wrapper=is_wrapper) == device
    assert device_for(map_location, "cuda:0", OLD, is_wrapper=is_wrapper) == "cuda:0"  # not yet mapped


@pytest.mark.parametrize(
    ("map_location", "beginning"),
    [
        (Function(), "RuntimeError: Callable map_location not supported"),
        (WrongType(name="bytes"), "AssertionError: expected callable map_location, got bytes"),
    ],
)
def test_devices_of_their_own_that_cannot_be_mapped(map_location: MapLocation, beginning: str) -> None:
    finding, message = device_for(map_location, "cuda:0", NOW, is_wrapper=True)
    assert finding == BAD_MAP
    assert message.startswith(beginning)


UNKNOWN = Refusal(finding="needs-allow-list", name="argparse.Namespace")
BLOCKED = Refusal(finding="dangerous-global", name="os.getcwd")
OPCODE = Refusal(finding="runs-code", opcode=pickle.POP[0])
IMPORTED = Refusal(finding="needs-allow-list", name="torch.distributed.tensor.DTensor")
STREAMS = {
    "unknown": (UNKNOWN, pickles.name("argparse.Namespace")),
    "blocked": (BLOCKED, pickles.name("os.getcwd")),
    "opcode": (OPCODE, pickles.number(1) + pickles.number(2) + pickle.POP),
}


@pytest.mark.torch
@pytest.mark.parametrize("what", STREAMS)
def test_the_words_are_torchs(what: str) -> None:
    torch = pytest.importorskip("torch")
    refusal, stream = STREAMS[what]
    genuine, made = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.zeros(2)}, genuine)
    with zipfile.ZipFile(genuine) as before, zipfile.ZipFile(made, "w") as after:
        for name in before.namelist():
            is_pickle = name.endswith("data.pkl")
            after.writestr(name, pickles.proto(2) + stream + b"." if is_pickle else before.read(name))
    made.seek(0)
    with pytest.raises(pickle.UnpicklingError) as raised:
        torch.load(made, weights_only=True)
    assert refusal_message(refusal, NEWEST) == f"UnpicklingError: {raised.value}"


@table(
    ("release", "refusal", "words"),
    [
        ((2, 3), UNKNOWN, "WeightsUnpickler error: Unsupported class argparse.Namespace"),
        ((2, 0), OPCODE, "WeightsUnpickler error: Unsupported operand 48"),
        ((2, 4), UNKNOWN, "have two options \n\t(1) Re-running `torch.load`"),
        ((2, 4), UNKNOWN, "`torch.serialization.add_safe_globals([Namespace])` to allowlist this global"),
        ((2, 4), BLOCKED, "Unsupported global: GLOBAL os.getcwd was not an allowed global by default."),
        ((2, 4), OPCODE, "trusted source.\n Please file an issue with the following"),
        ((2, 5), BLOCKED, "Trying to load unsupported GLOBAL os.getcwd whose module os is blocked."),
        ((2, 5), UNKNOWN, "two options, \033[1mdo those steps only if you trust"),
        ((2, 6), UNKNOWN, "In PyTorch 2.6, we changed the default value"),
        ((2, 6), UNKNOWN, "`torch.serialization.safe_globals([Namespace])` context manager"),
        ((2, 7), UNKNOWN, "`torch.serialization.safe_globals([argparse.Namespace])` context manager"),
        ((2, 7), OPCODE, "WeightsUnpickler error: Unsupported operand 48\n\nCheck the documentation"),
        ((2, 5), IMPORTED, "Unsupported global: GLOBAL torch.distributed.tensor.DTensor was not"),
        (
            (2, 6),
            IMPORTED,
            "failed. ``torch.distributed.tensor`` must be imported to load DTensors\n In",
        ),
        ((2, 9), OPCODE, "WeightsUnpickler error: \n\nUnsupported operand 48\n\nCheck the documentation"),
    ],
)
def test_words_of_other_releases(release: tuple[int, int], refusal: Refusal, words: str) -> None:
    message = refusal_message(refusal, release)
    assert message.startswith("UnpicklingError: Weights only load failed. ")
    assert words in message


@table(
    ("refusal", "release", "said"),
    [
        (
            UNKNOWN,
            (2, 13),
            "Unsupported global: GLOBAL argparse.Namespace was not an allowed global by default.",
        ),
        (UNKNOWN, (2, 3), "Unsupported class argparse.Namespace"),
        (BLOCKED, (2, 13), "Trying to load unsupported GLOBAL os.getcwd whose module os is blocked."),
        (OPCODE, (2, 13), "Unsupported operand 48"),
        (OPCODE, (2, 4), "Unsupported operand 48"),
    ],
)
def test_a_refusal_in_short_is_its_first_sentence_and_the_reason(
    refusal: Refusal, release: tuple[int, int], said: str
) -> None:
    shown = short_message(refusal_message(refusal, release))
    assert shown.removesuffix(f" {CUT}") == f"UnpicklingError: Weights only load failed. {CUT} {said}"


@table(
    ("message", "shown"),
    [
        ("EOFError: Ran out of input", "EOFError: Ran out of input"),
        ("RuntimeError: no.", "RuntimeError: no."),
        ("RuntimeError: no. Try this.", f"RuntimeError: no. {CUT}"),
        ("RuntimeError: a\nb. c", f"RuntimeError: a b. {CUT}"),
    ],
)
def test_other_messages_in_short(message: str, shown: str) -> None:
    assert short_message(message) == shown
    for quoted in (message, shown):
        assert behind_message(f"It fails with: {quoted} Do that.", message) == "Do that."
    assert behind_message("Do that.", message) == "Do that."


@table(
    ("given", "release", "meant"),
    [
        (None, (2, 5), False),
        (None, (2, 6), True),
        (True, (2, 5), True),
        (False, (2, 13), False),
    ],
)
def test_weights_only_is_the_default_since_2_6(
    given: bool | None, release: tuple[int, int], meant: bool
) -> None:
    assert LoadCall(weights_only=given).is_weights_only(release) is meant


@table(("release", "given"), [((1, 12), None), ((1, 13), False), ((2, 13), False)])
def test_the_plain_call_depends_on_the_file_alone(release: tuple[int, int], given: bool | None) -> None:
    plain = plain_call(release)
    assert plain == LoadCall(weights_only=given)
    assert not plain.is_weights_only(release)


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
    assert (found.name, found.storages_before) == ("__main__.Net", 0)


@table(
    ("text", "release"),
    [
        ("2.13.0+cpu", (2, 13)),
        ("1.4.0", (1, 4)),
        ("2.6.0a0+git1234", (2, 6)),
        (None, NEWEST),
        ("", NEWEST),
        ("unknown", NEWEST),
        ("99999999999999.1", NEWEST),
    ],
)
def test_release_of(text: str | None, release: tuple[int, int]) -> None:
    assert release_of(text) == release
