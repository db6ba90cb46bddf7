from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import pytest

from inspector.diff.copies import compare_objects
from inspector.errors import CancelledError, PlanError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.pickles.instructions import CODES
from inspector.pickles.machine import read_pickle
from inspector.pickles.trace import Built, trace_pickle
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.export import export_copy
from inspector.remap.plan import Plan, could_move, plan_remap, with_hidden
from inspector.remap.relabel import _literals, embedded_edits
from inspector.remap.rewrite import (
    Edit,
    apply_edits,
    fit_pickle,
    fitted_pickle,
    index_edit,
    index_instruction,
    literal_of,
    pad_pickle,
    rewrite_pickle,
    unpad_pickle,
)
from inspector.remap.rules import parse_rule
from inspector.remap.verify import compare_devices
from tests.builders.pickles import CPU_IN_EVERY_WAY
from tests.builders.scripts import net, script
from tests.sweep import table
from tests.unit.remap.samples import (
    CPU,
    CUDA_0,
    CUDA_1,
    call,
    checkpoint_of,
    container_of,
    device,
    devices_of,
    get,
    group,
    mapping,
    name,
    parameter,
    put,
    remapped,
    sent,
    storage,
    stream,
    tensor,
    text,
    wrapper,
    wrapper_args,
)


@table("literal", CPU_IN_EVERY_WAY)
def test_a_text_is_written_with_the_instruction_it_was_written_with(literal: bytes) -> None:
    data = literal + b"q\x00h\x00\x86."
    trace = trace_pickle(data, texts=frozenset({"cpu"}))
    again = list(trace.texts.values())[1]
    new = literal_of(data, trace, again, "cuda:11")
    assert new[0] == literal[0]
    assert read_pickle(new + b".").root == "cuda:11"
    assert literal_of(data, trace, again, "cpu") == literal


def built(data: bytes) -> Built:
    trace = trace_pickle(data + b".", texts=frozenset({"cuda", "cpu"}))
    return trace.tuples[id(trace.root)]


@table("index", [None, 0, 300])
@table(
    "data",
    [
        b"U\x04cuda\x85",
        b"(U\x04cudat",
        b"U\x04cudaK\x01\x86",
        b"U\x04cudaq\x00K\x01\x86",
        b"(U\x04cudaK\x01t",
        b"(U\x04cudaI1\nt",
        b"U\x04cudaq\x00\x85",
    ],
)
def test_the_number_of_a_device_changes_comes_and_goes(data: bytes, index: int | None) -> None:
    new = b"" if index is None else index_instruction(index)
    made = apply_edits(data, [index_edit(data, built(data), new)])
    assert pickle.loads(made + b".", encoding="ascii") == (("cuda",) if index is None else ("cuda", index))


VALUE = {"a": [1, 2, 300, "text"], "b": (1.5, None, True), "k": 7}


@table("protocol", [2, 3, 4, 5])
def test_every_greater_length_can_be_had_and_says_the_same(protocol: int) -> None:
    data = pickle.dumps(VALUE, protocol)
    for more in range(40):
        made = fit_pickle(data, len(data) + more)
        assert made is not None
        assert len(made) == len(data) + more
        assert pickle.loads(made) == VALUE
        assert pickle._loads(made) == VALUE  # the one in Python checks each FRAME


@table("protocol", [2, 3, 4, 5])
def test_a_number_that_was_made_wider_is_made_narrow_again(protocol: int) -> None:
    data = pickle.dumps(VALUE, protocol)
    for more in range(1, 9):
        longer = fit_pickle(data, len(data) + more)
        assert longer is not None
        assert fit_pickle(longer, len(data)) == data
        assert fitted_pickle(longer, 0) == (longer if more == 1 else data)
    assert fitted_pickle(data, 0) == data
    assert fitted_pickle(pickle.dumps(VALUE, 0), 0) == pickle.dumps(VALUE, 0)


def test_wide_numbers_of_another_writer_stay_as_they_are() -> None:
    for body in (b"M\1\0.", b"M\0\1.", b"(M\1\0K\1t.", b"(K\1M\1\0t."):
        data = b"\x80\2" + body
        assert fit_pickle(data, len(data)) == data
        longer = fit_pickle(data, len(data) + 2)
        assert longer is not None
        assert pickle.loads(longer) == pickle.loads(data)


def test_oldest_pickles_must_be_as_long_as_they_are() -> None:
    data = pickle.dumps(VALUE, 0)
    assert fit_pickle(data, len(data)) == data
    assert fit_pickle(data, len(data) + 2) is None


# --- for files that weights_only never reads ----------------------------------------------------------------


@table("protocol", [2, 3, 4, 5])
def test_padding_says_the_same_and_is_taken_out_again(protocol: int) -> None:
    data = pickle.dumps(VALUE, protocol)
    for more in (0, *range(2, 40)):
        made = pad_pickle(data, len(data) + more)
        assert made is not None
        assert len(made) == len(data) + more
        assert pickle.loads(made) == VALUE
        assert pickle._loads(made) == VALUE
        assert unpad_pickle(made) == data


def test_what_cannot_be_padded() -> None:
    data = pickle.dumps(VALUE, 2)
    assert pad_pickle(data, len(data) + 1) is None
    assert pad_pickle(data, len(data) - 1) is None
    old = pickle.dumps(VALUE, 0)
    assert pad_pickle(old, len(old)) == old
    assert pad_pickle(old, len(old) + 2) is None
    assert unpad_pickle(old) == old


HOST, A, B = text("cpu"), text("cuda:0"), text("cuda:1")


def changed(body: bytes, *rules: str, protocol: int = 2, move_all: bool = False) -> Checkpoint:
    """The checkpoint after a remap, once it was found to be as planned."""
    before = stream(body, protocol)
    container = container_of(before)
    original = build_checkpoint(container)
    plan = plan_remap(original, [parse_rule(rule) for rule in rules], move_all=move_all)
    copy = container_of(rewrite_pickle(container.stream, plan))
    after = build_checkpoint(copy)
    devices = compare_objects(container, copy, Progress())
    assert devices is not None
    assert compare_devices(original, after, plan, devices) == []
    return after


def opcodes(data: bytes) -> set[str]:
    return {opcode.name for opcode, _, _ in pickletools.genops(data)}


PLAIN = name("torch._utils", "_rebuild_tensor_v2")
ARGS = tensor(A).removeprefix(PLAIN).removesuffix(b"R")
BARE = name("torch._utils", "_rebuild_wrapper_subclass") + wrapper_args(CUDA_0) + b"R"
SPEC_MESH = call(name("mine", "Mesh")) + mapping(_rank_map=tensor(HOST, "5")) + b"b"
SPEC = call(name("mine", "Spec")) + mapping(mesh=SPEC_MESH) + b"b"
DTYPE = call(name("numpy", "dtype"), text("f4"))
ARRAY = call(name("numpy._core.multiarray", "_reconstruct"))
ARRAY += group(b"K\x01", b"K\x01\x85", DTYPE, b"\x89", b"C\x04abcd") + b"b"
SENT = sent(ARRAY, text("maia:0"), "_rebuild_device_tensor_from_numpy")
MOVES = {
    "the device meant": (mapping(a=tensor(A, "0"), b=tensor(B, "1")), "cuda:1=cpu", ["cuda:0", "cpu"]),
    "every id of a storage": (group(tensor(A), tensor(A), storage(A)), "*=cpu", ["cpu"] * 3),
    "a parameter, and one bare": (mapping(p=parameter(wrapper(CUDA_0)), b=BARE), "*=cpu", ["cpu", "cpu"]),
    "a device that is a text": (mapping(w=wrapper(A)), "*=cpu", ["cpu"]),
    "one of two wrappers": (
        mapping(a=wrapper(CUDA_0), b=wrapper(CUDA_0)),
        "path:b@cpu",
        ["cuda:0", "cpu"],
    ),
    "a renamed backend": (
        mapping(w=wrapper(device(text("mine"), b"K\x00"), i=tensor(text("mine:0")))),
        "mine:*=cpu",
        ["cpu", "cpu"],
    ),
    "a container that is shown elsewhere": (
        mapping(first=b"]" + put(4) + tensor(A) + b"a", w=wrapper(CUDA_0, parts=get(4))),
        "cuda:0=cpu",
        ["cpu", "cpu"],
    ),
    "a subclass with data of its own": (
        call(name("torch._tensor", "_rebuild_from_type_v2"), PLAIN, name("mine", "T"), ARGS, b"N"),
        "*=cpu",
        ["cpu"],
    ),
    "a wrapper that holds what stays on the CPU": (
        mapping(w=wrapper(CPU, i=tensor(HOST), scale=tensor(B, "6"), spec=SPEC), other=tensor(B, "7")),
        "cpu=cuda:0",
        ["cuda:0", "cuda:0", "cuda:1", "cpu", "cuda:1"],
    ),
    "an array that is sent": (mapping(a=SENT, b=SENT), "path:b@cpu", ["maia:0", "cpu"]),
}


@table("case", MOVES)
def test_devices_are_those_of_the_plan(case: str) -> None:
    body, rule, devices = MOVES[case]
    assert [row.device for row in changed(body, rule).tensors] == devices


# --- locations and the memo ---------------------------------------------------------------------------------


@table("again", [get(7), b"j\x07\x00\x00\x00", b"g7\n"])
def test_a_user_text_that_shares_the_slot_of_a_location_keeps_its_word(again: bytes) -> None:
    body = group(tensor(HOST + put(7)), again, mapping(cpu=again))
    data = remapped(stream(body), "*=cuda:1")
    assert devices_of(data) == ["cuda:1"]
    assert [value.text for value in checkpoint_of(data).values] == ["cpu", "cpu"]


@table("again", [get(7), b"j\x07\x00\x00\x00", b"g7\n"])
def test_a_location_that_shares_the_slot_of_a_user_text_changes_alone(again: bytes) -> None:
    body = group(HOST + put(7), tensor(again), again)
    after = changed(body, "*=cuda:1")
    assert [row.device for row in after.tensors] == ["cuda:1"]
    assert [value.text for value in after.values] == ["cpu", "cpu"]


def test_locations_share_a_slot_among_themselves() -> None:
    body = group(tensor(HOST + put(7), "0"), tensor(get(7), "1"), get(7), tensor(get(7), "2"))
    data = remapped(stream(body), "*=cuda:1")
    assert devices_of(data) == ["cuda:1"] * 3
    assert data.count(b"cuda:1") == 1  # the later ones still come from the memo
    assert read_pickle(data).root[2] == "cpu"


def test_a_slot_may_be_filled_from_a_slot() -> None:
    body = group(tensor(HOST + put(7), "0"), get(7) + put(8), tensor(get(8), "1"), get(8))
    after = changed(body, "*=cuda:1")
    assert [row.device for row in after.tensors] == ["cuda:1", "cuda:1"]
    assert [value.text for value in after.values] == ["cpu", "cpu"]


def test_a_text_may_be_doubled_on_the_stack() -> None:
    pid = group(text("storage"), name("torch", "FloatStorage"), HOST, b"2", b"K\x04") + b"Q"
    data = remapped(stream(group(pid, HOST, b"2")), "*=cuda:1")
    root = read_pickle(data).root
    assert root[0].pid[2:4] == ("cpu", "cuda:1")  # the key is a user's text like any other
    assert root[1:] == ("cpu", "cpu")


def test_memoize_goes_on_counting() -> None:
    body = group(HOST + b"\x94", tensor(b"h\x00", "0") + b"\x94", A + b"\x94", b"h\x01", b"h\x02")
    data = remapped(stream(body, 4), "cpu=cuda:7")
    root = read_pickle(data).root
    assert root[3] is root[1]
    assert root[4] == "cuda:0"
    assert devices_of(data) == ["cuda:7", "cuda:7"]


def test_no_instruction_comes_in_that_weights_only_refuses() -> None:
    body = group(tensor(HOST + put(7)), get(7), wrapper(device(HOST) + put(8), i=tensor(get(7), "1")), get(8))
    data = stream(body)
    for rule in ("*=cuda:1", "*=mps"):
        assert opcodes(remapped(data, rule)) - opcodes(data) <= {
            "GLOBAL",
            "TUPLE1",
            "TUPLE2",
            "BININT1",
            "REDUCE",
        }


def test_a_stranger_s_persistent_id_is_left_alone() -> None:
    body = group(group(text("module"), name("mine", "Net"), text("net.py"), HOST) + b"Q", tensor(HOST))
    assert read_pickle(remapped(stream(body), "*=cuda:0")).root[0].pid[3] == "cpu"


def test_a_persistent_id_that_is_pushed_again_changes_once() -> None:
    pid = storage(HOST).removesuffix(b"Q") + put(5)
    body = group(pid + b"Q", get(5) + b"Q", get(5))
    data = remapped(stream(body), "*=cuda:0")
    root = read_pickle(data).root
    assert root[0].pid is root[1].pid is root[2]
    assert root[2][3] == "cuda:0"


def test_another_label_of_a_storage_that_moves_goes_with_the_first() -> None:
    hidden = call(name("copyreg", "hidden"), storage(text("npu:3")))
    data = stream(group(tensor(A), hidden))
    assert remapped(data, "cuda:7=cpu") == data
    assert remapped(data, "cuda:0=cpu") == stream(
        group(tensor(HOST), call(name("copyreg", "hidden"), storage(HOST)))
    )


@table("tag", ["gpu\x1b[1m", "\u202ecuda:0", "x" * 300, "GPU 1"])
def test_a_tag_that_is_shown_differently_from_how_it_is_written_moves(tag: str) -> None:
    body = mapping(a=tensor(text(tag)), b=text(tag))
    data = remapped(stream(body), "*=cpu")
    assert data == stream(mapping(a=tensor(HOST), b=text(tag)))


def test_a_device_that_is_shown_differently_from_how_it_is_written_stays() -> None:
    body = group(sent(tensor(HOST), text("xla\x1b:0")), wrapper(device(text("gpu\x1b"))), tensor(A, "1"))
    data = stream(body)
    assert remapped(data, "cuda:0=cpu") == stream(body.replace(A, HOST))
    with pytest.raises(PlanError, match="is written in a way that cannot be changed"):
        remapped(data, "*=cpu")


def test_a_location_that_is_no_text_of_the_stream_cannot_be_changed() -> None:
    container = container_of(stream(tensor(A)))
    plan = plan_remap(build_checkpoint(container), [parse_rule("*=cpu")])
    other = replace(container.stream, persistent_ids=())
    with pytest.raises(PlanError, match="the device cuda:0 is written in a way that cannot be changed"):
        rewrite_pickle(other, replace(plan, texts=frozenset()))


def test_storages_that_no_row_shows_move_by_device() -> None:
    hidden = call(name("copyreg", "hidden"), storage(A, "7"))
    data = remapped(stream(group(tensor(A), hidden)), "cuda:0=cpu")
    assert b"cuda" not in data


VIEWS = [b"(X\x01\x00\x00\x00%dK\x00K\x02t" % number for number in (7, 8)]


def test_views_of_one_storage_go_together() -> None:
    body = mapping(a=tensor(A, view=VIEWS[0]), b=tensor(A, view=VIEWS[1]))
    data = remapped(stream(body), "cuda:0=cpu")
    assert b"cuda" not in data
    with pytest.raises(PlanError, match="views of one storage are sent to different devices"):
        remapped(stream(body), "path:a@cpu")


def test_a_rewrite_can_be_cancelled() -> None:
    container = container_of(stream(tensor(A)))
    plan = plan_remap(build_checkpoint(container), [parse_rule("*=cpu")])
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        rewrite_pickle(container.stream, plan, progress=progress)


# --- devices of tensors that name their own -----------------------------------------------------------------

DEVICES = {"cpu": CPU, "cuda:0": CUDA_0, "cuda:1": CUDA_1, "xpu": device(text("xpu"))}


@table("before", DEVICES)
@table("after", DEVICES)
def test_a_wrapper_moves_with_what_it_is_made_of(before: str, after: str) -> None:
    data = stream(mapping(w=wrapper(DEVICES[before], inner=tensor(text(before)))))
    wanted = stream(mapping(w=wrapper(DEVICES[after], inner=tensor(text(after)))))
    assert remapped(data, f"{before}={after}") == wanted


@table("after", DEVICES)
def test_a_device_may_be_written_as_old_pickles_do(after: str) -> None:
    old = name("torch", "device") + b"(" + text("cuda") + put(3) + b"I1\nt" + put(4) + b"R"
    data = changed(mapping(w=wrapper(old, inner=tensor(B))), f"cuda:1={after}")
    assert [row.device for row in data.tensors] == [after, after]
    new = name("torch", "device") + b"(" + text("cpu") + put(3) + b"t" + put(4) + b"R"
    assert changed(mapping(w=wrapper(new, inner=tensor(HOST))), f"cpu={after}").tensors[0].device == after


@table("after", DEVICES)
def test_a_device_may_be_written_as_one_text(after: str) -> None:
    data = changed(mapping(w=wrapper(device(B), inner=tensor(B))), f"cuda:1={after}")
    assert [row.device for row in data.tensors] == [after, after]


@pytest.mark.parametrize("function", ["_rebuild_device_tensor_from_cpu_tensor", "_rebuild_xla_tensor"])
def test_a_tensor_that_is_sent_goes_elsewhere_and_its_storage_stays(function: str) -> None:
    data = remapped(stream(sent(tensor(HOST), text("xla:0"), function)), "xla:0=cuda:1")
    assert data == stream(sent(tensor(HOST), B, function))


# --- devices that are values of their own -------------------------------------------------------------------


def shown(checkpoint: Checkpoint) -> list[str]:
    return [hidden.device for hidden in checkpoint.hidden_devices]


@table("spelling", [CUDA_0, device(A), device(text("cuda"), b"I0\n")])
def test_a_device_of_the_user_that_shares_a_wrapper_s_slot_stays(spelling: bytes) -> None:
    body = group(wrapper(spelling + put(7), i=tensor(A)), get(7), b"2")
    after = changed(body, "*=cpu")
    assert [row.device for row in after.tensors] == ["cpu", "cpu"]
    assert shown(after) == ["cuda:0", "cuda:0"]


@pytest.mark.parametrize("to", ["cpu", "cuda:9"])
def test_a_wrapper_that_shares_the_slot_of_a_user_s_device_moves_alone(to: str) -> None:
    body = group(CUDA_0 + put(7), wrapper(get(7), i=tensor(A)), get(7), wrapper(get(7)))
    after = changed(body, f"*={to}")
    assert [row.device for row in after.tensors] == [to, to, to]
    assert shown(after) == ["cuda:0", "cuda:0"]


def test_parts_of_a_device_may_be_shared_as_well() -> None:
    kind, torch_device = text("cuda"), name("torch", "device")
    first = torch_device + put(1) + kind + put(2) + b"K\x00\x86R"
    later = get(1) + get(2) + b"K\x00\x86R"
    body = group(wrapper(first), later, get(2), wrapper(later), mapping(cuda=get(2)))
    after = changed(body, "*=cpu")
    assert [row.device for row in after.tensors] == ["cpu", "cpu"]
    assert shown(after) == ["cuda:0"]
    assert [value.text for value in after.values if value.type == "str"] == ["cuda", "cuda"]


def test_devices_no_wrapper_is_on_stay_whatever_they_are() -> None:
    strange = name("torch", "device") + b"NR"
    body = group(
        CUDA_0, strange, put(5)[:0] + device(text("cuda"), b"J\xc8\xff\xff\xff") + put(5), get(5), tensor(A)
    )
    assert shown(changed(body, "*=cpu")) == ["cuda:0", "?", "cuda:-56", "cuda:-56"]


def test_two_devices_with_one_tuple_of_arguments_go_together_or_not_at_all() -> None:
    arguments = text("cuda") + b"K\x00\x86"
    first = name("torch", "device") + arguments + put(3) + b"R"
    later = name("torch", "device") + get(3) + b"R"
    after = changed(group(wrapper(first), wrapper(later)), "*=cpu")
    assert [row.device for row in after.tensors] == ["cpu", "cpu"]
    with pytest.raises(
        PlanError, match=r"one torch\.device is used by tensors that are sent to different devices"
    ):
        remapped(stream(group(wrapper(first), later)), "*=cpu")


def test_a_device_of_wrong_arguments_is_not_guessed_at() -> None:
    odd = name("torch", "device") + text("cuda") + b"K\x00N\x87R"
    data = stream(wrapper(odd))
    assert devices_of(data) == ["cuda:0"]
    with pytest.raises(PlanError, match="the number of a device is written"):
        remapped(data, "*=cpu")


def test_a_device_whose_number_is_remembered_is_not_guessed_at() -> None:
    odd = device(text("cuda"), b"K\x00" + put(9))
    with pytest.raises(PlanError, match="the number of a device is written"):
        remapped(stream(group(wrapper(odd), get(9))), "*=cpu")


def test_a_device_that_is_made_in_another_way_is_not_guessed_at() -> None:
    odd = wrapper(b"(" + text("cuda") + b"K\x00itorch\ndevice\n")
    data = stream(mapping(w=odd, a=tensor(B)))
    assert devices_of(data) == ["cuda:0", "cuda:1"]
    assert devices_of(remapped(data, "cuda:1=cpu")) == ["cuda:0", "cpu"]
    with pytest.raises(PlanError, match="the device cuda:0 is written in a way that cannot be changed"):
        remapped(data, "*=cpu")


def test_a_strange_device_that_no_row_shows_is_not_guessed_at() -> None:
    hidden = call(name("copyreg", "hidden"), wrapper(device(text("mine"), b"K\x00")))
    data = stream(group(tensor(A), hidden))
    assert devices_of(remapped(data, "cuda:0=cpu")) == ["cpu"]
    with pytest.raises(PlanError, match="the device mine:0 is written in a way that cannot be changed"):
        remapped(data, "*=cpu")


def test_a_wrapper_without_a_device_that_can_be_read_stays() -> None:
    data = stream(mapping(w=wrapper(b"N"), a=tensor(A)))
    assert devices_of(remapped(data, "cuda:0=cuda:1")) == ["cpu", "cuda:1"]
    with pytest.raises(PlanError, match="the device of a tensor is written in a way that cannot be changed"):
        remapped(data, "cpu=cuda:1")


# --- what must not be torn ----------------------------------------------------------------------------------


def test_wrappers_that_no_row_shows_move_by_device() -> None:
    hidden = call(name("copyreg", "hidden"), wrapper(CUDA_0, i=tensor(A, "7")))
    data = remapped(stream(group(tensor(A), hidden)), "cuda:0=cpu")
    assert b"cuda" not in data
    meta = call(name("copyreg", "hidden"), wrapper(device(text("meta"))))
    assert b"meta" in remapped(stream(group(tensor(A), meta)), "*=cpu")


def test_a_wrapper_is_not_torn_from_storages_that_no_row_shows() -> None:
    hidden = call(name("copyreg", "hidden"), storage(A, "7"))
    body = mapping(w=wrapper(CUDA_0, closed=hidden), other=tensor(A, "8"))
    assert [row.device for row in changed(body, "cuda:0=cpu").tensors] == ["cpu", "cpu"]
    assert [row.device for row in changed(body, "path:other@cpu").tensors] == ["cuda:0", "cpu"]
    with pytest.raises(PlanError, match="a tensor on cuda:0 and the storages it is made of"):
        remapped(stream(body), "path:w@cpu")


def test_a_tensor_reached_by_two_paths_goes_one_way() -> None:
    body = mapping(a=wrapper(CUDA_0) + put(6), b=get(6))
    assert [row.device for row in changed(body, "path:*@cpu").tensors] == ["cpu", "cpu"]
    with pytest.raises(PlanError, match="one tensor is sent to different devices"):
        remapped(stream(body), "path:a@cpu")


def test_one_text_cannot_serve_two_devices() -> None:
    shared = text("xla:0") + put(3)
    arguments = group(tensor(HOST), name("torch", "float32"), shared, b"\x89") + put(8)
    first = name("torch._utils", "_rebuild_xla_tensor") + arguments + b"R"
    later = name("torch._utils", "_rebuild_xla_tensor") + get(8) + b"R"
    body = mapping(a=first, b=later)
    assert [row.device for row in changed(body, "xla:0=cpu").tensors] == ["cpu", "cpu"]
    with pytest.raises(PlanError, match="one tensor is sent to different devices"):
        remapped(stream(body), "path:a@cpu")


# --- frames -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["*=cuda:11", "*=mps"])
def test_frames_stay_exact(rule: str) -> None:
    short = b"\x8c\x03cpu"
    inner = (
        group(tensor(short + b"\x94", "0"), b"h\x00", wrapper(device(short), i=tensor(b"h\x00", "1"))) + b"."
    )
    data = b"\x80\x04\x95" + len(inner).to_bytes(8, "little") + inner
    made = remapped(data, rule)
    assert int.from_bytes(made[3:11], "little") == len(made) - 11
    assert set(devices_of(made)) == {rule.removeprefix("*=")}


torch = pytest.importorskip("torch")
remapping = pytest.importorskip("tests.torch.remapping")


def inner(place: str, numel: int = 4, **options: Any) -> bytes:
    """A file whose tensors were on this device, but for a step that stays on the CPU."""
    buffer = io.BytesIO()
    with remapping.tagged(lambda _: place):
        torch.save({"w": torch.arange(float(numel))}, buffer, **options)
    return buffer.getvalue()


def outer(path: Path, value: Any, protocol: int = 2, **options: Any) -> Path:
    torch.save(value, path, pickle_protocol=protocol, **options)
    return path


def planned(checkpoint: Checkpoint, *rules: str) -> Plan:
    return with_hidden(checkpoint, plan_remap(checkpoint, [parse_rule(rule) for rule in rules]))


def places(data: bytes) -> set[str]:
    with io.BytesIO(data) as file:
        seen: set[str] = set()
        torch.load(file, map_location=lambda storage, tag: seen.add(tag) or storage, weights_only=True)
    return seen


@pytest.mark.wide
def test_every_way_of_writing_bytes(tmp_path: Path) -> None:
    old = {"_use_new_zipfile_serialization": False}
    one = inner("cuda:0")
    value = {
        "a": one,
        "again": [one],
        "old": inner("cuda:1", **old),
        "array": bytearray(inner("cuda:0", 6)),
        "large": inner("cuda:0", 300_000),
        "cpu": inner("cpu"),
        "t": torch.ones(2),
    }
    for protocol in (2, 3, 4, 5):
        for options in ({}, old):
            path = outer(tmp_path / "in.pt", value, protocol, **options)
            opened = open_checkpoint(str(path))
            assert {row.device for row in opened.hidden_devices} == {"cuda:0", "cuda:1"}
            for rules, wanted in ((("*=cpu",), "cpu"), (("cuda:0=cuda:12", "cuda:1=cuda:12"), "cuda:12")):
                plan = planned(opened, *rules)
                copy = tmp_path / "out.pt"
                done = export_copy(str(path), copy, plan, overwrite=True)
                assert done.moved_hidden == len(opened.hidden_devices)
                found = torch.load(copy, weights_only=False)
                for key, before in value.items():
                    data = found[key][0] if key == "again" else found[key]
                    if key == "t":
                        continue
                    assert type(data) is type(one if key == "again" else before)
                    assert places(bytes(data)) == {"cpu" if key == "cpu" else wanted}, key
                    mine, theirs = (
                        torch.load(io.BytesIO(x), map_location="cpu")
                        for x in (
                            data,
                            one if key == "again" else before,
                        )
                    )
                    assert torch.equal(mine["w"], theirs["w"])


def test_the_default_leaves_them_and_says_so(tmp_path: Path) -> None:
    path = outer(tmp_path / "in.pt", {"a": inner("cuda:0")})
    opened = open_checkpoint(str(path))
    plan = plan_remap(opened, [parse_rule("*=cpu")])
    assert [row.path for row in could_move(opened, plan)] == ["a"]
    copy = tmp_path / "out.pt"
    export_copy(str(path), copy, plan)
    assert places(torch.load(copy)["a"]) == {"cuda:0"}


def test_a_file_within_a_file_within_is_left_closed(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with remapping.tagged(lambda _: "cuda:1"):
        torch.save({"deep": inner("cuda:0"), "w": torch.ones(2)}, buffer)
    path = outer(tmp_path / "in.pt", {"a": buffer.getvalue()})
    opened = open_checkpoint(str(path))
    assert [row.device for row in opened.hidden_devices] == ["cuda:1"]
    copy = tmp_path / "out.pt"
    export_copy(str(path), copy, planned(opened, "*=cpu"))
    data = torch.load(copy)["a"]
    assert places(data) == {"cpu"}
    assert places(torch.load(io.BytesIO(data))["deep"]) == {"cuda:0"}


def test_one_file_in_two_places_goes_one_way(tmp_path: Path) -> None:
    one = inner("cuda:0")
    path = outer(tmp_path / "in.pt", {"a": one, "b": one})
    opened = open_checkpoint(str(path))
    with pytest.raises(PlanError, match="stands in several places, which are sent to different devices"):
        export_copy(str(path), tmp_path / "out.pt", planned(opened, "path:a@cpu", "path:b@cuda:1"))


def test_only_what_moves_is_written(tmp_path: Path) -> None:
    path = outer(tmp_path / "in.pt", {"a": inner("cuda:0"), "b": inner("cuda:1")})
    opened = open_checkpoint(str(path))
    copy = tmp_path / "out.pt"
    export_copy(str(path), copy, planned(opened, "cuda:1=cpu"))
    found = torch.load(copy)
    assert (places(found["a"]), places(found["b"])) == ({"cuda:0"}, {"cpu"})
    assert found["a"] == torch.load(path)["a"]


def edits(data: bytes, contents: bytes) -> list[Edit]:
    row = HiddenDevice(path="a", device="cuda:0", what=HiddenPlace.NESTED)
    return embedded_edits(data, [(row, contents)], {0: "cpu"}, Progress())


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(PlanError, match="written in a way that cannot be changed"):
        edits(b"", inner("cuda:0"))
    with pytest.raises(PlanError, match="of a format whose devices cannot be changed there"):
        edits(b"", script(net("cuda:0")))


def test_short_literals_become_longer_ones() -> None:
    for short, long in (("SHORT_BINBYTES", "BINBYTES"), ("SHORT_BINUNICODE", "BINUNICODE")):
        pushed = bytes([CODES[short], 3]) + b"abc" + b"."
        (edit,) = _literals(pushed, b"abc", b"x" * 300)
        assert edit == Edit(0, 5, bytes([CODES[long]]) + (300).to_bytes(4, "little") + b"x" * 300)
        (edit,) = _literals(pushed, b"abc", b"de")
        assert edit.data == bytes([CODES[short], 2]) + b"de"
    wide = bytes([CODES["BINBYTES8"]]) + (3).to_bytes(8, "little") + b"abc."
    (edit,) = _literals(wide, b"abc", b"d")
    assert edit.data == bytes([CODES["BINBYTES8"]]) + (1).to_bytes(8, "little") + b"d"
