"""The complaints of torch, each in a message as torch 2.13 writes it."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.target.after_load import (
    At,
    Code,
    Complaint,
    Course,
    Way,
    follow,
    landed_places,
    usual_way,
)
from inspector.target.parts import parts_of
from tests.unit.report.rows import checkpoint, optimizer, tensor, value

MESSAGES = {
    Complaint.SAME_DEVICE: "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on "
    "cuda:0, different from other tensors on cpu (when checking argument in method wrapper_CUDA_addmm)",
    Complaint.NOT_EXPECTED: "RuntimeError: Tensor on device meta is not on the expected device cpu!",
    Complaint.FOREACH: "RuntimeError: Tensors of the same index must be on the same device and the same "
    "dtype except `step` tensors that can be CPU and float32/64, and optimizer states that can be bfloat16 "
    "for mixed-precision training",
    Complaint.CAPTURABLE: "AssertionError: If capturable=True, params, mu_products and state_steps must "
    "be on supported devices: ['cuda', 'xpu', 'hpu', 'privateuseone', 'xla'].",
    Complaint.BYTE_TENSOR: "TypeError: RNG state must be a torch.ByteTensor",
    Complaint.FIRST_DEVICE: "RuntimeError: module must have its parameters and buffers on device cuda:0 "
    "(device_ids[0]) but found one of them on device: cpu",
    Complaint.NO_DATA: "NotImplementedError: Cannot copy out of meta tensor; no data! Please use "
    "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different "
    "device.",
    Complaint.NO_OP: "UserWarning: for fc.weight: copying from a non-meta parameter in the checkpoint to a "
    "meta parameter in the current model, which is a no-op. (Did you mean to pass `assign=True` to assign "
    "items in the state dictionary to their corresponding key in the module instead of copying "
    "them in place?)",
}


def test_each_is_part_of_its_message_and_of_no_other() -> None:
    for complaint in Complaint:
        assert [known for known, message in MESSAGES.items() if complaint in message] == [complaint]


CPU, GPU, META = At("cpu"), At("cuda:0"), At("meta")


def course(made: Checkpoint, code: Code | None = None, landed: tuple[str, ...] = ()) -> Course:
    return follow(made, parts_of(made)[0], code or Code(), landed)


SAME = Complaint.SAME_DEVICE
STATE = checkpoint(
    tensor("model", "a.weight", device="cuda:0"),
    tensor("model", "b.weight", device="cuda:1", dtype="float16"),
)
MODULE = checkpoint(
    tensor("._modules", "a", "._parameters", "w", device="cuda:0"),
    tensor("._modules", "b", "._buffers", "n", device="cuda:1"),
    tensor("._modules", "b", ".mask", device="cuda:1", role="other"),
)


def test_a_state_dict_on_two_devices_breaks_nothing() -> None:
    found = course(STATE, Code(built_on="cuda:0", built_as="float32"))
    assert found.devices == ("cuda:0",)
    assert found.places[1].dtype == "float32"
    assert not found.by_file
    assert not found.failure


def test_assigned_it_does() -> None:
    found = course(STATE, Code(way=Way.ASSIGN, built_on="cuda:0"))
    assert found.devices == ("cuda:0", "cuda:1")
    assert found.places[1].dtype == "float16"
    assert found.by_file
    assert found.failure == Complaint.SAME_DEVICE
    assert not course(STATE, Code(way=Way.ASSIGN), ("cpu", "cpu")).failure
    moved = course(STATE, Code(way=Way.ASSIGN, moved_to="cpu"))
    assert moved.devices == ("cpu",)
    assert not moved.by_file


def test_a_model_that_was_never_moved_meets_its_batch() -> None:
    assert course(STATE, Code(inputs="cuda:0")).failure == Complaint.SAME_DEVICE
    assert not course(STATE, Code(moved_to="cuda:0", inputs="cuda:0")).failure


def test_a_model_without_data() -> None:
    found = course(STATE, Code(built_on="meta"))
    assert (found.warning, found.error) == (Complaint.NO_OP, None)
    found = course(STATE, Code(built_on="meta", moved_to="cpu"))
    assert (found.error, found.failure) == (Complaint.NO_DATA, None)
    found = course(STATE, Code(moved_to="cuda:0"), ("meta", "meta"))
    assert (found.error, found.failure) == (Complaint.NO_DATA, None)


def test_a_whole_module_comes_with_its_devices() -> None:
    assert course(MODULE).failure == Complaint.SAME_DEVICE
    assert course(MODULE).by_file
    assert not course(MODULE, landed=("cpu", "cpu", "cpu")).failure


def test_moving_leaves_plain_attributes_where_they_are() -> None:
    found = course(MODULE, Code(moved_to="cuda:0"))
    assert [place.device for place in found.places] == ["cuda:0", "cuda:0", "cuda:1"]
    assert found.failure == Complaint.SAME_DEVICE


def test_data_parallel_wants_its_first_device() -> None:
    ids = tuple(HiddenDevice(path="", device=f"cuda:{at}", what=HiddenPlace.DATA_PARALLEL) for at in (0, 1))
    rows = (tensor("._modules", "module", "._parameters", "w", device="cuda:1"),)
    made = checkpoint(*rows, hidden_devices=ids)
    assert course(made).failure == Complaint.FIRST_DEVICE
    assert not course(made, Code(moved_to="cuda:0")).failure
    away = checkpoint(
        *rows, hidden_devices=(HiddenDevice(path="x", device="cuda:0", what=HiddenPlace.DEVICE),)
    )
    assert not course(away).failure


def trained(step: str = "cpu", moment: str = "cuda:1", **flags: str) -> Checkpoint:
    return checkpoint(
        tensor("o", "state", 0, "step", role="optimizer", slot="step", shape=(), device=step),
        tensor("o", "state", 0, "exp_avg", role="optimizer", slot="exp_avg", device=moment),
        *(value("o", "param_groups", 0, name, text=text) for name, text in flags.items()),
        optimizer("o", capturable="True" in flags.values()),
    )


def test_optimizer_state_follows_the_parameters_of_the_code() -> None:
    found = course(trained(), Code(built_on="cuda:0", built_as="bfloat16"))
    assert found.places == (At("cpu", "float32", is_number=True), At("cuda:0", "bfloat16"))
    assert not found.by_file
    assert not found.failure


def test_it_stays_behind_when_the_model_moves_later() -> None:
    assert course(trained(), Code(moved_to="cuda:0")).failure is Complaint.SAME_DEVICE
    assert course(trained(), Code(built_as="float16", moved_to="cuda:0")).failure is Complaint.FOREACH
    assert course(trained(), Code(built_as="float16", moved_to="cuda:0", foreach=False)).failure is SAME
    assert course(trained(), Code(built_on="cuda:1", moved_to="cuda:0")).failure is Complaint.FOREACH
    assert course(trained(), Code(moved_to="mps")).failure is SAME


def test_one_state_for_all_parameters_is_never_updated_at_once() -> None:
    made = checkpoint(
        tensor("o", "state", 0, "d", role="optimizer", slot="d"),
        tensor("o", "state", 0, "old_dirs", 0, role="optimizer", slot="old_dirs/0"),
        optimizer("o"),
    )
    assert course(made, Code(built_on="cuda:1", moved_to="cuda:0")).failure is SAME


def test_counters_of_another_gpu_stay_there() -> None:
    assert course(trained("cuda:1"), Code(built_on="cuda:0")).failure == Complaint.FOREACH
    assert not course(trained("cuda:1"), Code(built_on="cpu")).failure
    assert not course(trained("cuda:1", capturable="True"), Code(built_on="cuda:0")).failure


def test_capturable_state_cannot_go_on_on_the_cpu() -> None:
    assert course(trained("cuda:0", capturable="True")).failure == Complaint.CAPTURABLE
    assert not course(trained("cuda:0", fused="True")).failure
    assert not course(trained("cuda:0", capturable="False")).failure


def test_state_that_is_set_without_loading() -> None:
    found = course(trained(), Code(way=Way.USE, built_on="cuda:0"))
    assert found.by_file
    assert found.failure == Complaint.FOREACH


def test_counters_of_layers_meet_nothing() -> None:
    made = checkpoint(
        tensor("._parameters", "w"), tensor("._buffers", "num_batches_tracked", shape=(), device="cuda:0")
    )
    assert course(made).devices == ("cpu", "cuda:0")
    assert not course(made).failure


def whole(moment: str, *parameters: str, **flags: str) -> Checkpoint:
    return checkpoint(
        tensor(".state", "p", "exp_avg", device=moment),
        *(tensor(".param_groups", 0, "params", at, device=name) for at, name in enumerate(parameters)),
        *(value(".param_groups", 0, name, text=text) for name, text in flags.items()),
    )


def test_a_whole_optimizer_comes_with_its_parameters() -> None:
    assert not course(whole("cuda:0", "cuda:0")).failure
    assert course(whole("cpu", "cuda:0")).failure is SAME
    assert course(whole("cuda:1", "cuda:0")).failure is Complaint.FOREACH
    assert not course(whole("cpu", "cuda:0", "cpu")).failure  # which is whose is not told
    assert course(whole("cpu", "cpu"), Code(moved_to="cuda:0")).failure is SAME
    assert course(whole("cpu", "cuda:0")).by_file


def test_its_shape_tells_whose_state_it_is() -> None:
    rows = (
        tensor(".state", "p", "exp_avg", shape=(2,), device="cpu"),
        tensor(".state", "q", "exp_avg", shape=(7,), device="cpu"),
        tensor(".param_groups", 0, "params", 0, shape=(2,), device="cuda:0"),
        tensor(".param_groups", 0, "params", 1, shape=(3,), device="cpu"),
    )
    assert course(checkpoint(*rows)).failure is SAME
    assert not course(checkpoint(rows[1], *rows[2:])).failure  # of a shape that no parameter has


def test_learning_rate_in_a_tensor_is_copied_as_it_is() -> None:
    rate = tensor("o", "param_groups", 0, "lr", role="optimizer", shape=(), device="cuda:1")
    found = course(checkpoint(rate, optimizer("o")), Code(built_on="cuda:0"))
    assert found.devices == ("cuda:1",)
    assert not found.failure
    rows = (
        tensor(".state", "p", "exp_avg"),
        tensor(".param_groups", 0, "params", 0),
        tensor(".param_groups", 0, "lr", shape=(), device="cuda:1"),
    )
    found = course(checkpoint(*rows), Code(moved_to="cuda:0"))
    assert [place.device for place in found.places] == ["cpu", "cuda:0", "cuda:1"]


def test_scheduler_takes_its_state_as_it_is() -> None:
    made = checkpoint(tensor("scheduler", "table", role="scheduler", device="cuda:1"))
    assert course(made, Code(built_on="cpu")).devices == ("cuda:1",)


def test_random_states_are_used_as_they_come() -> None:
    made = checkpoint(tensor("rng", role="rng", dtype="uint8"))
    assert not course(made).failure
    assert course(made, landed=("cuda:0",)).failure == Complaint.BYTE_TENSOR


def test_data_is_used_as_it_comes() -> None:
    made = checkpoint(tensor("obs", device="cuda:0", role="other"))
    assert not course(made).failure
    assert course(made, Code(inputs="cpu")).failure == Complaint.SAME_DEVICE


def test_who_decides() -> None:
    state, module = parts_of(STATE)[0], parts_of(MODULE)[0]
    assert (usual_way(state), usual_way(module)) == (Way.COPY, Way.USE)


def test_places_after_the_load() -> None:
    part = parts_of(STATE)[0]
    assert landed_places(STATE, part) == (At("cuda:0"), At("cuda:1", "float16"))
    assert landed_places(STATE, part, ("cpu", "cpu"))[1] == At("cpu", "float16")
