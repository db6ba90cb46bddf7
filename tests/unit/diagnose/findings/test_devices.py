"""Each rule about devices, with a checkpoint that has the finding and one that has not."""

from __future__ import annotations

from inspector.diagnose.run import diagnose
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.model.findings import Finding
from inspector.safety.verdict import judge
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.unit.report.rows import checkpoint, storage, tensor


def found(made: Checkpoint, id_: str, target: Profile | None = None) -> list[Finding]:
    return [finding for finding in diagnose(made, judge(made), target) if finding.id == id_]


def on(device: str, *names: str, **fields: object) -> list[object]:
    rows: list[object] = []
    for name in names:
        rows += [
            storage(f"{device}/{name}", device),
            tensor(name, device=device, storage=f"{device}/{name}", **fields),
        ]
    return rows


def test_cuda_unavailable() -> None:
    made = checkpoint(*on("cuda:0", "a", "b"), *on("cpu", "c"))
    (finding,) = found(made, "cuda-unavailable", CPU_ONLY)
    assert finding.severity == "error"
    assert finding.paths == ("a", "b")
    assert "Attempting to deserialize object on a CUDA device" in finding.detail
    assert finding.fix is not None
    assert finding.fix.rule == "cuda:0=cpu"
    assert found(made, "cuda-unavailable", parse_target("cuda")) == []
    assert found(made, "cuda-unavailable") == []


def test_devices_of_one_kind_make_one_finding() -> None:
    made = checkpoint(*on("cuda:0", "a"), *on("cuda:1", "b"), *on("mps", "c"))
    (finding,) = found(made, "cuda-unavailable", CPU_ONLY)
    assert finding.paths == ("a", "b")
    assert finding.fix is not None
    assert finding.fix.rule == "*=cpu"  # one map for whatever stops the load
    assert len(found(made, "mps-unavailable", CPU_ONLY)) == 1


def test_index_out_of_range() -> None:
    made = checkpoint(*on("cuda:3", "a"))
    (finding,) = found(made, "cuda-index-out-of-range", parse_target("2xcuda"))
    assert "device_count() is 2" in finding.detail
    assert found(made, "cuda-index-out-of-range", parse_target("4xcuda")) == []


def test_other_devices() -> None:
    made = checkpoint(*on("mps", "a"), *on("xpu:0", "b"), *on("npu:0", "c"), *on("x=y", "d"))
    assert len(found(made, "mps-unavailable", CPU_ONLY)) == 1
    assert len(found(made, "xpu-unavailable", CPU_ONLY)) == 1
    assert len(found(made, "unknown-device", CPU_ONLY)) == 1


def test_a_tag_that_no_rule_can_name_has_no_fix() -> None:
    (finding,) = found(checkpoint(*on("x=y", "d")), "unknown-device", CPU_ONLY)
    assert finding.fix is None


def test_tensors_without_data() -> None:
    empty = tensor("m", "weight", device="meta", storage=None)
    (finding,) = found(checkpoint(*on("cuda:0", "a.weight"), empty), "meta-tensors", CPU_ONLY)
    assert (finding.severity, finding.paths, finding.count) == ("warning", ("m/weight",), 1)
    assert (finding.title, finding.fix) == ("1 tensor without data", None)
    (finding,) = found(checkpoint(empty), "meta-tensors")
    assert finding.title == "The tensors have no data"
    assert found(checkpoint(*on("cuda:0", "a.weight"), *on("cpu", "b.weight")), "meta-tensors") == []


def test_tensors_on_one_device_are_not_looked_at_closer() -> None:
    loss = tensor("criterion", "pos_weight", device="cpu", role="other")
    left = "loss-buffer-left-behind"
    assert found(checkpoint(*on("cpu", "a.weight"), loss), left) == []
    assert len(found(checkpoint(*on("cuda:0", "a.weight"), loss), left)) == 1


def slot(name: str, device: str, **fields: object) -> object:
    return tensor("o", "state", 0, name, device=device, role="optimizer", slot=name, parameter="w", **fields)


def test_optimizer_apart() -> None:
    home = tensor("model", "w", device="cuda:0")
    made = checkpoint(
        home, slot("exp_avg", "cpu"), slot("step", "cpu"), slot("mu", "cpu", on_cpu_by_design=True)
    )
    (finding,) = found(made, "optimizer-off-parameter-device")
    assert finding.paths == ("o/state/0/exp_avg",)
    assert found(checkpoint(home, slot("exp_avg", "cuda:0")), "optimizer-off-parameter-device") == []


def test_optimizer_of_a_whole_module() -> None:
    home = tensor("m", "._modules", "l", "._parameters", "w", device="cuda:0")
    stray = tensor(
        "o", "state", 0, "exp_avg", device="cpu", role="optimizer", slot="exp_avg", parameter="l.w"
    )
    assert len(found(checkpoint(home, stray), "optimizer-off-parameter-device")) == 1


def test_step_on_accelerator() -> None:
    made = checkpoint(slot("step", "cuda:0", on_cpu_by_design=True))
    (finding,) = found(made, "step-on-accelerator")
    assert finding.fix is not None
    assert finding.severity == "note"
    assert found(checkpoint(slot("step", "cuda:0")), "step-on-accelerator") == []
    assert found(checkpoint(slot("step", "cpu", on_cpu_by_design=True)), "step-on-accelerator") == []


def test_rng_off_cpu() -> None:
    state = tensor("rng", role="rng", dtype="uint8", device="cuda:0")
    assert len(found(checkpoint(state), "rng-off-cpu")) == 1
    assert found(checkpoint(state._replace(device="cpu")), "rng-off-cpu") == []
    # What is no byte tensor is no generator's state, whatever it is called.
    assert found(checkpoint(state._replace(dtype="float32")), "rng-off-cpu") == []


def test_hidden() -> None:
    hidden = HiddenDevice(path="config/device", device="cuda:0", what=HiddenPlace.DEVICE)
    (finding,) = found(checkpoint(hidden_devices=(hidden,)), "hidden-device")
    assert finding.paths == ("config/device",)
    assert "torch.device cuda:0" in finding.detail
    harmless = HiddenDevice(path="d", device="cpu", what=HiddenPlace.DEVICE)
    assert found(checkpoint(hidden_devices=(harmless,)), "hidden-device") == []


def test_of_many_devices_the_first_are_named() -> None:
    made = checkpoint(*(row for at in range(40) for row in on(f"cuda:{at}", f"t{at}")))
    (finding,) = found(made, "cuda-unavailable", CPU_ONLY)
    assert "cuda:15 and 24 more to a device of the target" in finding.detail


def test_exported_programs_cannot_be_mapped() -> None:
    rows = (tensor("a", device="cuda:0", storage="0"), storage("0", "cuda:0"))
    (program,) = found(checkpoint(*rows, format="pt2"), "cuda-unavailable", CPU_ONLY)
    assert "torch.export.load puts each tensor where it was, and fails with: AssertionError" in program.detail
    assert ("No map_location reaches them" in program.detail, program.fix) == (True, None)
    (script,) = found(checkpoint(*rows, format="torchscript"), "cuda-unavailable", CPU_ONLY)
    assert "torch.jit.load without map_location fails with" in script.detail
    assert script.fix is not None


def test_loader_that_maps_is_not_stopped() -> None:
    made = checkpoint(storage("0", "cuda:0"), tensor("w", device="cuda:0", storage="0"), format="sharded")
    (finding,) = [one for one in diagnose(made, judge(made), CPU_ONLY) if one.id == "cuda-unavailable"]
    assert finding.severity == "note"
    assert finding.detail.startswith(
        "transformers.AutoModel.from_pretrained loads it all the same, on the CPU"
    )


def test_devices_that_cannot_be_changed_are_not_to_be_mapped() -> None:
    (finding,) = found(checkpoint(*on("cuda:0", "a"), format="deepspeed"), "cuda-unavailable", CPU_ONLY)
    assert (finding.severity, finding.fix) == ("note", None)
    loader = "get_fp32_state_dict_from_zero_checkpoint loads it all the same"
    assert finding.detail.startswith(loader)  # without its packages, which no window has room for
    assert finding.detail.endswith("Nothing has to be mapped.")
    assert " Map " not in finding.detail


def test_loaders_without_map_location_are_told_of_copies() -> None:
    made = checkpoint(storage("0", "cuda:0"), tensor("w", device="cuda:0", storage="0"), format="pickle")
    (one,) = [one for one in diagnose(made, judge(made), CPU_ONLY) if one.id == "cuda-unavailable"]
    assert one.detail.startswith("pickle.load puts each tensor where it was, and fails with: RuntimeError")
    assert one.detail.endswith("Map cuda:0 to a device of the target, in a copy or by the loading code.")


def test_agents_are_sent_where_their_loader_is_told() -> None:
    (finding,) = found(
        checkpoint(*on("cuda:0", "a"), format="stable-baselines3"), "cuda-unavailable", CPU_ONLY
    )
    assert (finding.severity, finding.fix) == ("note", None)
    assert finding.detail.startswith(
        "BaseAlgorithm.load loads it all the same, to the device that it is given. Of its files, torch.load"
    )
    assert finding.detail.endswith("Nothing has to be mapped.")
