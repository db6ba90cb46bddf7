"""Devices outside of tensors: what fails on a target that lacks them, and what to set."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.model.findings import Finding
from tests.unit.diagnose.cases import findings
from tests.unit.report.rows import checkpoint, value

COPY = " In a copy, remap --hidden-devices changes it."


def hiding(path: str, device: str, what: HiddenPlace = HiddenPlace.DEVICE, **fields: object) -> Checkpoint:
    return checkpoint(hidden_devices=(HiddenDevice(path=path, device=device, what=what),), **fields)


def found(made: Checkpoint, target: str | None) -> Finding:
    return findings(made, target)["hidden-device"]


def test_an_attribute_of_a_module_is_used() -> None:
    one = found(hiding(".device", "cuda:0"), "cpu")
    assert one.severity == "warning"
    assert "an error such as: AssertionError: Torch not compiled with CUDA enabled." in one.detail
    assert one.detail.endswith(f'Set it after loading, such as model.device = torch.device("cpu").{COPY}')
    assert found(hiding("._modules/a/.device", "cuda:0"), "mps").detail.endswith(
        f'such as torch.device("mps").{COPY}'
    )


def test_a_copy_is_offered_where_it_helps() -> None:
    assert not found(hiding(".device", "cuda:0", format="torchscript"), "cpu").detail.endswith(COPY)


def test_a_value_may_be_a_mere_record() -> None:
    assert found(hiding("args/device", "cuda:0"), "cpu").severity == "note"
    for target in (None, "cuda"):
        there = found(hiding(".device", "cuda:0"), target)
        assert (there.severity, there.paths) == ("note", (".device",))
        assert there.detail.endswith(f"code that uses it will expect that device.{COPY}")


def test_a_number_that_is_not_there() -> None:
    one = found(hiding(".device", "cuda:1"), "cuda")
    assert "CUDA error: invalid device ordinal." in one.detail
    assert found(hiding(".device", "cuda:1"), "2xcuda").severity == "note"


def test_only_what_is_missing_is_named() -> None:
    both = tuple(
        HiddenDevice(path=f".d{number}", device=f"cuda:{number}", what=HiddenPlace.DEVICE)
        for number in (0, 1)
    )
    one = found(checkpoint(hidden_devices=both), "cuda")
    assert one.paths == (".d1",)
    assert "holds torch.device cuda:1 outside" in one.detail


def test_each_kind_of_place_has_its_remedy() -> None:
    for what, target, said, remedy in (
        (
            HiddenPlace.GENERATOR,
            "cpu",
            "On the target, torch.load ends with an error such as: RuntimeError: Cannot get CUDA generator",
            "Make a new generator",
        ),
        (HiddenPlace.KEY, "cpu", "looks its own device up there ends with a KeyError.", "dictionary anew"),
        (
            HiddenPlace.NESTED,
            "cpu",
            "RuntimeError: Attempting to deserialize object on a CUDA",
            "map_location",
        ),
        (HiddenPlace.MESH, "cpu", "code that uses it ends with an error.", "init_device_mesh"),
        (
            HiddenPlace.DATA_PARALLEL,
            "cpu",
            "buffers on device cuda:0 (device_ids[0]).",
            "model = model.module",
        ),
        (
            HiddenPlace.DATA_PARALLEL,
            "mps",
            "buffers on device cuda:0 (device_ids[0]).",
            "model = model.module",
        ),
    ):
        one = found(hiding("", "cuda:0", what), target)
        assert said in one.detail, what
        assert remedy in one.detail, what
    assert found(hiding("", "cuda:0", HiddenPlace.DATA_PARALLEL), "cpu").severity == "warning"
    fewer = found(hiding("", "cuda:1", HiddenPlace.DATA_PARALLEL), "cuda")
    assert "invalid device ordinal" in fewer.detail


def test_texts_that_modules_keep() -> None:
    made = checkpoint(value("._modules", "m", ".device", type="str", text="cuda:0"))
    one = found(made, "cpu")
    assert (one.severity, one.paths) == ("warning", ("._modules/m/.device",))
    assert one.detail.endswith('such as "cpu".')
    one = found(checkpoint(value("t", type="global", text="torch.cuda.FloatTensor")), "cpu")
    assert (one.severity, one.paths) == ("note", ("t",))
    assert one.detail.endswith("ends with an error. Set it after loading, such as torch.FloatTensor.")
    for keys, text, kind in (
        ((".device",), "cpu", "str"),
        ((".device",), "the GPU", "str"),
        ((".device",), "cuda:0", "bytes"),
        (("device",), "cuda:0", "str"),
        ((".name",), "cuda:0", "str"),
        ((), "cuda:0", "str"),
        (("t",), "torch.FloatTensor", "global"),
        (("t",), "torch.cuda.FloatTensor", "str"),
        (("t",), "torch.cpu.FloatTensor", "global"),
    ):
        assert "hidden-device" not in findings(checkpoint(value(*keys, type=kind, text=text)), "cpu"), (
            keys,
            text,
        )


def test_a_tag_that_is_no_device() -> None:
    assert found(hiding(".device", "odd!"), "cpu").severity == "warning"


def test_devices_in_code_are_told_with_their_lines() -> None:
    place = "code/__torch__.py:6"
    for device, target, severity, stops in (
        ("cuda:0", "cpu", "warning", True),
        ("cuda:0", "cuda", "warning", False),
        ("cuda:0", None, "warning", False),
        ("cpu", "cuda", "note", False),
    ):
        one = findings(hiding(place, device, HiddenPlace.CODE, format="torchscript"), target)["traced-device"]
        assert (one.severity, one.paths) == (severity, (place,)), (device, target)
        assert f"makes tensors on {device} when it runs" in one.detail
        assert ("it stops there" in one.detail) == stops, (device, target)
    assert "hidden-device" not in findings(hiding(place, "cuda:0", HiddenPlace.CODE), "cpu")
