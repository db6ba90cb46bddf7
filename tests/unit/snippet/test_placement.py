"""Where devices go: as the user says, else as saved, else to the best device that the machine has."""

from __future__ import annotations

import pytest

from inspector.records import replace
from inspector.snippet.models import find_models
from inspector.snippet.placement import Placement, place_devices
from inspector.snippet.script import Bracketed
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.snippet.rows import THIS, checkpoint, storage, tensor

ONE, TWO, SECOND, MPS, XPU = (parse_target(text) for text in ("cuda", "2xcuda", "cuda:1", "mps", "xpu"))
STEP = tensor("step", on_cpu_by_design=True)
WITH_OWN_DEVICE = "torch._utils._rebuild_wrapper_subclass"


def place(*devices: str, on: Profile, mapping: tuple[tuple[str, str], ...] = ()) -> Placement:
    rows = [tensor("model", device, device=device) for device in devices]
    return place_devices(checkpoint(*rows), on, mapping)


def location(placement: Placement) -> str | None:
    code = placement.map_location()
    return code.flat() if isinstance(code, Bracketed) else code


@table(
    ("devices", "target", "expected"),
    [
        (["cpu"], CPU_ONLY, None),
        (["cpu"], ONE, None),
        (["cpu"], THIS, None),
        (["meta"], CPU_ONLY, None),
        (["cuda:0"], ONE, None),
        (["cuda"], ONE, None),
        (["cuda:0", "cuda:1", "meta"], TWO, None),
        (["cuda:0", "cuda:1", "cpu"], CPU_ONLY, 'map_location="cpu"'),
        (["cpu:0"], CPU_ONLY, 'map_location="cpu"'),
        (["no\ndevice"], CPU_ONLY, 'map_location="cpu"'),
        (["no\ndevice"], ONE, 'map_location={"no\\ndevice": "cuda:0"}'),
        (["cuda:0", "cuda:1", "cpu"], ONE, 'map_location={"cuda:1": "cuda:0"}'),
        (["cuda:0", "cuda:3"], TWO, 'map_location={"cuda:3": "cuda:0"}'),
        (["mps"], TWO, 'map_location={"mps": "cuda:0"}'),
        (["cuda:0", "cuda:1"], SECOND, 'map_location={"cuda:0": "cuda:1"}'),
        (["cuda:1", "cpu"], SECOND, None),
        (["cuda:3", "mps", "cpu"], SECOND, 'map_location={"cuda:3": "cuda:1", "mps": "cuda:1"}'),
        (["cuda:0"], replace(THIS, wanted="cuda:1"), 'map_location={"cuda:0": "cuda:1"}'),
        (["npu:0", "cpu"], XPU, 'map_location={"npu:0": "xpu:0"}'),
        (["cuda:0", "cpu"], MPS, 'map_location={"cuda:0": "mps"}'),
        (["cuda:0"], THIS, 'map_location={"cuda:0": device}'),
        (["cuda:3", "cpu"], THIS, 'map_location={"cuda:3": device}'),
        (["xpu:0", "xpu:1"], THIS, 'map_location={"xpu:0": device, "xpu:1": device}'),
        (["no\ndevice", "mps"], THIS, 'map_location={"mps": device, "no\\ndevice": device}'),
        (
            ["cuda:0", "cuda:1", "cpu"],
            THIS,
            (
                'map_location={"cuda:0": device, '
                '"cuda:1": "cuda:1" if torch.cuda.device_count() > 1 else device}'
            ),
        ),
    ],
)
def test_map_location(devices: list[str], target: Profile, expected: str | None) -> None:
    assert location(place(*devices, on=target)) == expected


def test_tags_of_storages_count_too() -> None:
    assert (
        location(place_devices(checkpoint(storages=(storage("cuda:0"),)), CPU_ONLY, ()))
        == 'map_location="cpu"'
    )


def test_the_user_decides() -> None:
    mapping = (("cuda:0", "cuda:1"), ("cuda:1", "cpu"), ("cuda:7", "cpu"))
    assert location(place("cuda:0", "cuda:1", "cuda:2", on=ONE, mapping=mapping)) == (
        'map_location={"cuda:0": "cuda:1", "cuda:1": "cpu", "cuda:2": "cuda:0"}'
    )
    assert location(place("cuda:0", "cuda:1", on=THIS, mapping=(("cuda:0", "cpu"),))) == (
        'map_location={"cuda:0": "cpu", "cuda:1": device}'
    )


def test_this_machine_once_it_is_known_and_the_user_has_decided() -> None:
    known = Profile(id="this", label="", accelerators=(("cuda", 1),))
    mapping = (("cuda:1", "cuda:0"),)
    assert (
        location(place("cuda:0", "cuda:1", on=known, mapping=mapping)) == 'map_location={"cuda:1": "cuda:0"}'
    )
    assert location(place("cuda:0", on=known)) == 'map_location={"cuda:0": device}'


def test_what_belongs_on_the_cpu_stays_there() -> None:
    rows = checkpoint(tensor("model", "w"), STEP)
    placement = place_devices(rows, ONE, (("cpu", "cuda:0"),))
    assert location(placement) is None
    assert not placement.puts(["cpu"])
    placement = place("cpu", on=ONE, mapping=(("cpu", "cuda:0"),))
    assert location(placement) == 'map_location={"cpu": "cuda:0"}'
    assert placement.puts(["cuda:0", "meta"])


def test_one_device_only_where_torch_takes_no_dictionary() -> None:
    rows = checkpoint(tensor("w", device="cuda:0"), names=(WITH_OWN_DEVICE,))
    placement = place_devices(rows, MPS, ())
    assert location(placement) == 'map_location="cpu"'
    assert not placement.puts(["cuda:0"])
    assert (
        location(place_devices(checkpoint(tensor("w"), names=(WITH_OWN_DEVICE,)), MPS, (("cpu", "mps"),)))
        is None
    )


def test_what_is_copied_into_a_model_may_lie_anywhere() -> None:
    rows = checkpoint(tensor("m", "w", device="cuda:3"), tensor("m", "b", device="cuda:0"))
    models = find_models(rows)
    for target, expected in (
        (THIS, 'map_location="cpu"'),
        (ONE, 'map_location="cpu"'),
        (MPS, 'map_location="cpu"'),
    ):
        assert location(place_devices(rows, target, (), models)) == expected
    assert location(place_devices(rows, parse_target("4xcuda"), (), models)) is None
    whole = checkpoint(tensor("._parameters", "w", device="cuda:3"))
    assert location(place_devices(whole, ONE, (), find_models(whole))) == 'map_location={"cuda:3": "cuda:0"}'


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_apples_gpu_knows_no_double_precision(dtype: str) -> None:
    rows = checkpoint(tensor("w", device="cuda:0", dtype=dtype))
    assert location(place_devices(rows, MPS, ())) == 'map_location="cpu"'
    choice = "\n".join(place_devices(rows, THIS, ()).choice)
    assert "mps" not in choice
    assert "xpu" in choice
    harmless = checkpoint(tensor("w", device="cuda:0"), tensor("lr", dtype=dtype))
    assert location(place_devices(harmless, MPS, ())) == 'map_location={"cuda:0": "mps"}'
    assert "mps" in "\n".join(place_devices(harmless, THIS, ()).choice)


def test_choice_is_code() -> None:
    compile("\n".join(place("cuda:0", on=THIS).choice), "choice", "exec")


SPLIT = "# It was split over devices: where model places its parts itself, do not move it."


@table(
    ("devices", "target", "expected"),
    [
        (["cpu"], THIS, ["model.to(device)"]),
        (["meta"], THIS, ["model.to(device)"]),
        (["cpu"], ONE, ['model.to("cuda:0")']),
        (["cpu"], SECOND, ['model.to("cuda:1")']),
        (["cpu"], replace(THIS, wanted="cuda:3"), ['model.to("cuda:3")']),
        (["cuda:0"], CPU_ONLY, []),
        (["cuda:0"], ONE, ['model.to("cuda:0")']),
        (["cuda:0", "cpu"], ONE, ['model.to("cuda:0")']),
        (["cuda:0", "cuda:1"], ONE, ['model.to("cuda:0")']),
        (["cuda:0", "cuda:1"], TWO, [SPLIT, 'model.to("cuda:0")']),
        (["cuda:1"], THIS, ["model.to(device)"]),
        (["cuda:0", "mps"], THIS, ["model.to(device)"]),
        (["cuda:0", "cuda:2"], THIS, [SPLIT, "model.to(device)"]),
        (["cuda:0", "cpu"], THIS, ["model.to(device)"]),
    ],
)
def test_move(devices: list[str], target: Profile, expected: list[str]) -> None:
    assert list(place(*devices, on=target).move("model", tuple(devices))) == expected


@table(
    ("devices", "target", "expected"),
    [
        (["cpu"], ONE, ['model.to("cuda:0")']),
        (["cuda:0", "cuda:1"], TWO, ["# model is split over several devices, as it was when it was saved."]),
        (
            ["cuda:0", "cuda:2"],
            THIS,
            ["if torch.cuda.device_count() < 3:  # too few to split it as it was", "    model.to(device)"],
        ),
    ],
)
def test_whole_module_stays_split(devices: list[str], target: Profile, expected: list[str]) -> None:
    assert list(place(*devices, on=target).move("model", tuple(devices), is_module=True)) == expected


def test_model_saved_on_the_cpu_goes_beside_what_the_user_has_sent_somewhere() -> None:
    mapping = (("cuda:0", "cpu"),)
    assert place("cuda:0", "cpu", on=ONE, mapping=mapping).move("model", ("cpu",)) == ()
    assert place("cpu", on=ONE, mapping=(("cpu", "cpu"),)).move("model", ("cpu",)) == ()


def test_dtypes_of_a_model_on_the_cpu_count_as_well() -> None:
    rows = checkpoint(tensor("m", "w", dtype="float64"))
    assert place_devices(rows, MPS, (), find_models(rows)).move("m", ("cpu",)) == ()
    assert "mps" not in "".join(place_devices(rows, THIS, (), find_models(rows)).choice)


def test_whole() -> None:
    assert place("cuda:0", on=ONE).whole(["cuda:0"]).code == '"cuda:0"'
    assert place("cpu", on=ONE).whole(["cpu"]).code == '"cuda:0"'
    assert place("cuda:0", on=THIS).whole(["cuda:0"]).code == "device"
    assert place("cuda:0", "cuda:1", on=TWO).whole(["cuda:0", "cuda:1"]).code == '"cpu"'


def test_what_is_open() -> None:
    placement = place("cuda:0", "cpu", "meta", on=THIS)
    assert placement.choice_for(["cpu", "cuda:0"]) == placement.choice
    assert placement.choice_for(["cpu", "meta"]) == placement.choice
    assert placement.choice_for(["cpu", "meta"], moved=False) == ()
    assert place("cuda:0", on=ONE).choice_for(["cuda:0"]) == ()


def test_the_map_that_a_user_made_is_said_whole() -> None:
    rows = checkpoint(*(tensor("model", device, device=device) for device in ("cuda:0", "cuda:1", "cpu")))
    models = find_models(rows)
    split = (("cuda:0", "cpu"), ("cuda:1", "cuda:1"))
    exact = place_devices(rows, ONE, split, models, is_exact=True)
    assert location(exact) == 'map_location={"cuda:0": "cpu"}'
    assert exact.for_copying() == exact.map_location()
    lines = exact.move("model", ("cuda:0", "cuda:1"))
    assert " ".join(lines).startswith("# The map puts parts of model on cpu and cuda:1:")
    assert exact.move("net", ("cuda:0", "cuda:1"), is_module=True) == (
        "# net is split over cpu and cuda:1, as the map says.",
    )
    assert exact.move("model", ("cuda:1",)) == ('model.to("cuda:1")',)
    loose = place_devices(rows, ONE, split, models)
    assert loose.for_copying() == loose.to_cpu() == 'map_location="cpu"'
    everything = place_devices(rows, ONE, (("cuda:0", "cpu"), ("cuda:1", "cpu")), models, is_exact=True)
    assert location(everything) == 'map_location="cpu"'


def test_a_file_that_takes_one_device_takes_that_of_the_map() -> None:
    rows = checkpoint(tensor("w", device="cuda:0"), names=(WITH_OWN_DEVICE,))
    assert (
        location(place_devices(rows, ONE, (("cuda:0", "cuda:3"),), is_exact=True)) == 'map_location="cuda:3"'
    )
    rows = checkpoint(tensor("w", device="cuda:0"), tensor("v", device="cuda:1"), names=(WITH_OWN_DEVICE,))
    two = (("cuda:0", "cuda:3"), ("cuda:1", "cpu"))
    assert location(place_devices(rows, ONE, two, is_exact=True)) == 'map_location="cpu"'
