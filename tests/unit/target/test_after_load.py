"""The complaints of torch, each in a message as torch 2.13 writes it."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.target.after_load import (
    At,
    Complaint,
    first_of_parallel,
    is_registered,
    landed_places,
    meeting,
    mixing_failure,
    whole_optimizer_failure,
)
from inspector.target.parts import parts_of
from tests.sweep import table
from tests.unit.report.rows import checkpoint, tensor, value

MESSAGES = {
    Complaint.SAME_DEVICE: "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on "
    "cuda:0, different from other tensors on cpu (when checking argument in method wrapper_CUDA_addmm)",
    Complaint.NOT_EXPECTED: "RuntimeError: Tensor on device meta is not on the expected device cpu!",
    Complaint.FOREACH: "RuntimeError: Tensors of the same index must be on the same device and the same "
    "dtype except `step` tensors that can be CPU and float32/64, and optimizer states that can be bfloat16 "
    "for mixed-precision training",
    Complaint.CAPTURABLE: "AssertionError: If capturable=True, params, mu_products and state_steps must "
    "be on supported devices: ['cuda', 'xpu', 'hpu', 'privateuseone', 'xla'].",
    Complaint.FIRST_DEVICE: "RuntimeError: module must have its parameters and buffers on device cuda:0 "
    "(device_ids[0]) but found one of them on device: cpu",
}


def test_each_is_part_of_its_message_and_of_no_other() -> None:
    for complaint in Complaint:
        assert [known for known, message in MESSAGES.items() if complaint in message] == [complaint]


SAME = Complaint.SAME_DEVICE
MODULE = checkpoint(
    tensor("._modules", "a", "._parameters", "w", device="cuda:0"),
    tensor("._modules", "b", "._buffers", "num_batches_tracked", device="cuda:1", dtype="int64"),
    tensor("._modules", "b", ".mask", device="cuda", role="other"),
)


def test_what_of_a_module_meets_and_what_moves_with_it() -> None:
    (part,) = parts_of(MODULE)
    places = landed_places(MODULE, part)
    assert places == (At("cuda:0"), At("cuda:1", "int64"), At("cuda:0"))
    assert [place.device for place in meeting(MODULE, part, places)] == ["cuda:0", "cuda:0"]
    assert [is_registered(row) for row in MODULE.tensors] == [True, True, False]


@table(
    ("places", "said"),
    [
        ([At("cuda:0"), At("cuda:0")], None),
        ([At("cuda:0"), At("cuda:1")], SAME),
        ([At("cuda:0"), At("cpu", is_number=True)], None),
        ([At("cpu"), At("meta")], Complaint.NOT_EXPECTED),
    ],
)
def test_tensors_that_meet(places: list[At], said: Complaint | None) -> None:
    assert mixing_failure(places) is said


def test_data_parallel_wants_its_first_device() -> None:
    ids = tuple(HiddenDevice(path="", device=f"cuda:{at}", what=HiddenPlace.DATA_PARALLEL) for at in (0, 1))
    rows = (tensor("._modules", "module", "._parameters", "w", device="cuda:1"),)
    for hidden, first in ((ids, "cuda:0"), ((), "")):
        made = checkpoint(*rows, hidden_devices=hidden)
        assert first_of_parallel(made, parts_of(made)[0]) == first
    state = checkpoint(tensor("w", device="cuda:1"), hidden_devices=ids)
    assert first_of_parallel(state, parts_of(state)[0]) == ""


def said(made: Checkpoint) -> Complaint | None:
    return whole_optimizer_failure(made, parts_of(made)[0])


def whole(slots: dict[str, str], *parameters: str, **flags: str) -> Checkpoint:
    return checkpoint(
        *(tensor(".state", "p", name, device=device, slot=name) for name, device in slots.items()),
        *(tensor(".param_groups", 0, "params", at, device=name) for at, name in enumerate(parameters)),
        *(value(".param_groups", 0, name, text=text) for name, text in flags.items()),
    )


@table(
    ("moment", "parameters", "expected"),
    [
        ("cuda:0", ("cuda:0",), None),
        ("cpu", ("cuda:0",), SAME),
        ("cuda:1", ("cuda:0",), Complaint.FOREACH),
        ("cpu", ("cuda:0", "cpu"), None),  # which is whose is not told
        ("cpu", ("mps",), SAME),
        ("cuda:0", (), SAME),
    ],
)
def test_a_whole_optimizer_comes_with_its_parameters(
    moment: str, parameters: tuple[str, ...], expected: Complaint | None
) -> None:
    assert said(whole({"exp_avg": moment}, *parameters)) is expected


@table(
    ("step", "flags", "expected"),
    [
        ("cpu", {}, None),
        ("cpu", {"capturable": "True"}, Complaint.CAPTURABLE),
        ("cpu", {"capturable": "False"}, None),
        ("cpu", {"fused": "True"}, None),
        ("cuda:0", {"capturable": "True"}, None),
        ("cuda:1", {}, Complaint.FOREACH),
    ],
)
def test_counters(step: str, flags: dict[str, str], expected: Complaint | None) -> None:
    assert said(whole({"step": step, "exp_avg": "cuda:0"}, "cuda:0", **flags)) is expected


def test_capturable_state_cannot_go_on_on_the_cpu() -> None:
    assert said(whole({"step": "cpu"}, "cpu", capturable="True")) is Complaint.CAPTURABLE


def test_one_state_for_all_parameters_is_never_updated_at_once() -> None:
    assert said(whole({"d": "cuda:1", "old_dirs": "cuda:1"}, "cuda:0")) is SAME


def test_its_shape_tells_whose_state_it_is() -> None:
    rows = (
        tensor(".state", "p", "exp_avg", shape=(2,), device="cpu"),
        tensor(".state", "q", "exp_avg", shape=(7,), device="cpu"),
        tensor(".param_groups", 0, "params", 0, shape=(2,), device="cuda:0"),
        tensor(".param_groups", 0, "params", 1, shape=(3,), device="cpu"),
    )
    assert said(checkpoint(*rows)) is SAME
    assert said(checkpoint(rows[1], *rows[2:])) is None  # of a shape that no parameter has
