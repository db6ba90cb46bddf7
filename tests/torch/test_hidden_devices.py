"""Every place of a file that holds a device: found, predicted, remapped by default or by choice.

Each place is written by torch itself, once with the device `cuda:1` and once with the CPU, and the copies
are loaded by torch on the CPU: what was sent there must be what would have been saved there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.two_tensor import TwoTensor

from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.roles.hidden import devices_outside
from inspector.records import replace
from inspector.remap.export import export_copy
from inspector.remap.plan import plan_remap, with_hidden
from inspector.remap.rules import parse_rule
from inspector.safety.verdict import judge
from inspector.target.call import LoadCall
from inspector.target.simulate import first_failure
from inspector.target.wish import parse_target
from tests.builders.pickles import As
from tests.torch.remapping import tagged
from tests.torch.sameness import differences

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
CUDA = "cuda:1"


def wrapper(value: torch.Tensor, device: str) -> As:
    """A wrapper as torch writes it on a machine where it is on this device."""
    func, (rebuild, cls, args, state) = value.__reduce_ex__(2)
    return As(func, (rebuild, cls, (*args[:6], torch.device(device), *args[7:]), state))


def sent(function: str, data: Any) -> Callable[[str], Any]:
    """A tensor that its backend stores on the CPU."""
    return lambda device: As(getattr(torch._utils, function), (data, torch.float32, device, False))


def mesh(device: str) -> Any:
    made = dist.device_mesh.DeviceMesh("cpu", [0, 1])
    made._device_type = torch.device(device).type
    return made


def dtensor(device: str) -> Any:
    from torch.distributed.tensor import DTensor, Shard

    made = DTensor.from_local(torch.ones(2, 3), mesh("cpu"), [Shard(0)], run_check=False)
    made._spec.mesh._device_type = torch.device(device).type
    return wrapper(made, device)


def module(device: str) -> torch.nn.Module:
    made = torch.nn.Linear(1, 1)
    made.device = device
    torch.nn.init.ones_(made.weight)
    torch.nn.init.ones_(made.bias)
    return made


def parallel(device: str) -> torch.nn.Module:
    made = torch.nn.DataParallel(module("cpu"))
    made.device_ids, made.output_device = [1], 1
    made.src_device_obj = torch.device(device)
    return made


def fake(device: str) -> torch.Tensor:
    with torch._subclasses.FakeTensorMode():
        return torch.empty(3, device=device)


def generator(device: str) -> Any:
    state = torch.Generator().get_state() if device == "cpu" else torch.zeros(16, dtype=torch.uint8)
    return As(torch._C.Generator, (torch.device(device),), (7, None if device == "cpu" else 0, state))


def quantized(_: str) -> torch.Tensor:
    scales, points = torch.tensor([0.1, 0.2]), torch.tensor([0, 1])
    return torch.quantize_per_channel(torch.ones(2, 2), scales, points, 0, torch.qint8)


def nested(_: str) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2, 5), torch.zeros(2, 5)])


def coo(_: str) -> torch.Tensor:
    return torch.eye(3).to_sparse()


def csr(_: str) -> torch.Tensor:
    return torch.eye(3).to_sparse_csr()


DEVICE, MESH = "torch.device", "DeviceMesh"


class Place(NamedTuple):
    """One row of the table.

    Attributes:
        make: The value, on a device.
        tagged: Whether its storages carry the device.
        hidden: What is found outside of tensors: paths below the value, and the kinds of place.
        fails: How torch's error begins on a machine without the device; empty where it loads there.
        follows: Whether the device follows the rules by default, by choice, or never.
    """

    make: Callable[[str], Any]
    tagged: bool = False
    hidden: tuple[tuple[str, str], ...] = ()
    fails: str = ""
    follows: str = "choice"


NO_CUDA = "Attempting to deserialize object on a CUDA device"
IS_FOR_CUDA = torch.version.cuda is not None
NO_BUILD = "Found no NVIDIA driver" if IS_FOR_CUDA else "Torch not compiled with CUDA enabled"
NO_GENERATOR = "CUDA error: CUDA driver version" if IS_FOR_CUDA else "Cannot get CUDA generator"
PLACES = {
    "a storage's persistent id": Place(lambda _: torch.ones(3), True, (), NO_CUDA, "default"),
    "a bare typed storage": Place(
        lambda _: torch.storage.TypedStorage([1.0], device="cpu"), True, (), NO_CUDA, "default"
    ),
    "a bare untyped storage": Place(lambda _: torch.ones(2).untyped_storage(), True, (), NO_CUDA, "default"),
    "quantized by channel": Place(quantized, True, (), NO_CUDA, "default"),
    "sparse coo": Place(coo, True, (), NO_CUDA, "default"),
    "sparse csr": Place(csr, True, (), NO_CUDA, "default"),
    "nested": Place(nested, True, (), NO_CUDA, "default"),
    "from numpy": Place(
        sent("_rebuild_device_tensor_from_numpy", torch.ones(2).numpy()), False, (), NO_BUILD, "default"
    ),
    "xla": Place(sent("_rebuild_xla_tensor", torch.ones(2).numpy()), False, (), NO_BUILD, "default"),
    "from a cpu tensor": Place(
        sent("_rebuild_device_tensor_from_cpu_tensor", torch.ones(2)), False, (), NO_BUILD, "default"
    ),
    "a wrapper": Place(
        lambda device: wrapper(TwoTensor(torch.ones(2), torch.ones(2)), device), True, (), NO_CUDA, "default"
    ),
    "a fake tensor": Place(fake, False, (), NO_CUDA, "default"),
    "a device": Place(torch.device, False, (("", DEVICE),)),
    "a device as one text": Place(lambda device: As(torch.device, (device,)), False, (("", DEVICE),)),
    "a device in a list, twice": Place(
        lambda device: [one := torch.device(device), one, "cpu"], False, (("/0", DEVICE), ("/1", DEVICE))
    ),
    "a device as a key": Place(
        lambda device: {torch.device(device): torch.ones(2), "other": 3},
        True,
        (('/torch.device("cuda", 1)', "the key torch.device"),),
        NO_CUDA,
    ),
    "a device in a tuple as a key, and as a value": Place(
        lambda device: [{(one := torch.device(device), 3): [4]}, one],
        False,
        (("/0/(torch.device(…), 3)", "the key torch.device"), ("/1", DEVICE)),
    ),
    "a mesh": Place(mesh, False, (("", MESH),)),
    "a distributed tensor": Place(dtensor, True, (("/._spec/.mesh", MESH),), NO_CUDA),
    "a generator": Place(generator, False, (("", "torch.Generator"),), NO_GENERATOR, "never"),
    "a text": Place(module, False, (("/.device", "the text"),), "", "never"),
    "a class of tensors": Place(
        lambda device: torch.FloatTensor if device == "cpu" else torch.cuda.FloatTensor,
        False,
        (("", "the tensor type"),),
        "",
        "never",
    ),
    "data parallel": Place(
        parallel, False, (("", "DataParallel"), ("/.src_device_obj", "DataParallel")), "", "never"
    ),
}


def write(path: Path, place: Place, device: str) -> Path:
    value = place.make(device)
    on_cpu = {80: CUDA} if place.make is nested else None  # the sizes of a nested tensor stay on the CPU

    def tag(storage: torch.UntypedStorage) -> str:
        if getattr(storage, "_fake_device", None) is not None:
            return str(storage._fake_device)
        return device if place.tagged and (on_cpu is None or storage.nbytes() in on_cpu) else "cpu"

    with (
        tagged(tag),
        torch.serialization.skip_data(materialize_fake_tensors=True) if place.make is fake else (tagged(tag)),
    ):
        torch.save({"x": value, "cpu": "cpu"}, path)
    return path


def error_of(path: Path) -> str:
    try:
        torch.load(path, weights_only=False)
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        return str(error)
    return ""


def copy_of(path: Path, checkpoint: Checkpoint, rule: str, *, chosen: bool) -> Path:
    plan = plan_remap(checkpoint, [parse_rule(rule)])
    plan = with_hidden(checkpoint, plan) if chosen else plan
    copy = path.with_name(f"{path.stem}-{chosen}.pt")
    assert export_copy(str(path), copy, plan, overwrite=True).verified
    return copy


def outside(path: Path) -> list[tuple[str, str, str]]:
    return [(row.path, row.device, row.what) for row in devices_outside(open_checkpoint(str(path)))]


def are_same(*paths: Path) -> bool:
    return not differences(*(torch.load(path, weights_only=False) for path in paths))


def wrong_about(name: str, place: Place, folder: Path) -> Iterator[str]:
    path, truth = write(folder / "in.pt", place, CUDA), write(folder / "cpu.pt", place, "cpu")
    checkpoint = open_checkpoint(str(path))
    found = outside(path)
    if [(row, what) for row, _, what in found] != [(f"x{below}", what) for below, what in place.hidden]:
        yield f"finds {found}"
    listed = [one for one in diagnose(checkpoint, judge(checkpoint), None) if one.id == "hidden-device"]
    if bool(listed) != bool(place.hidden):
        yield f"lists {listed}"
    said = error_of(path)
    here = replace(parse_target("cpu"), torch_version=torch.__version__)
    failure = first_failure(checkpoint, here, LoadCall(weights_only=False))
    if not bool(said) == bool(place.fails) == (failure is not None) or not said.startswith(place.fails):
        yield f"torch says {said[:80]!r}, we {failure}"
    there = copy_of(path, checkpoint, "*=cpu", chosen=False)
    if outside(there) != found or {row.device for row in open_checkpoint(str(there)).tensors} - {"cpu"}:
        yield "the default is not the tensors alone"
    chosen = copy_of(path, checkpoint, "*=cpu", chosen=True)
    is_same = not error_of(chosen) and are_same(truth, chosen)
    if is_same != (place.follows != "never"):
        yield f"by choice it is {outside(chosen)}, and loading says {error_of(chosen)[:80]!r}"
    if place.follows == "default" and not are_same(truth, there):
        yield "the default does not bring it to the CPU"
    if place.follows == "never" and outside(chosen) != found:
        yield f"it is changed to {outside(chosen)}"


def test_every_place_that_holds_a_device(tmp_path: Path, process_group: None) -> None:
    wrong = {
        name: found for name, place in PLACES.items() if (found := list(wrong_about(name, place, tmp_path)))
    }
    assert wrong == {}
