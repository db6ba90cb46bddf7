from __future__ import annotations

from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.model.tensors.storages import find_own_device
from inspector.model.walk import walk
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Value
from inspector.progress import Progress
from inspector.remap.plan import plan_remap
from inspector.remap.rewrite import planned_own_devices
from inspector.remap.rules import parse_rule
from tests.sweep import table
from tests.unit.remap.samples import (
    CPU,
    CUDA_0,
    call,
    container_of,
    mapping,
    name,
    parameter,
    sent,
    stream,
    tensor,
    text,
    wrapper,
    wrapper_args,
)

HOST = text("cpu")
BARE = name("torch._utils", "_rebuild_wrapper_subclass") + wrapper_args(CUDA_0) + b"R"


def read(body: bytes) -> Value:
    return read_pickle(stream(body)).root


@table(
    ("body", "place", "has_parts"),
    [
        (BARE, 6, True),
        (wrapper(CUDA_0, inner=tensor(HOST)), 6, True),
        (parameter(wrapper(CUDA_0)), 6, True),
        (sent(tensor(HOST), text("xla:0")), 2, False),
        (sent(tensor(HOST), text("xla:0"), "_rebuild_xla_tensor"), 2, False),
        (parameter(sent(tensor(HOST), text("xla:0"))), 2, False),
    ],
)
def test_a_device_of_its_own_is_found(body: bytes, place: int, has_parts: bool) -> None:
    own = find_own_device(read(body))
    assert (own.place, own.has_parts) == (place, has_parts)


@table(
    "body",
    [
        tensor(HOST),
        parameter(tensor(HOST)),
        b"K\x01",
        CUDA_0,
        call(name("torch._utils", "_rebuild_parameter")),  # no arguments
        call(name("torch._utils", "_rebuild_wrapper_subclass"), b"N"),  # too few
        call(
            name("torch._tensor", "_rebuild_from_type_v2"), name("torch._utils", "_rebuild_wrapper_subclass")
        ),
        call(
            name("torch._tensor", "_rebuild_from_type_v2"),
            *(name("torch._utils", "_rebuild_wrapper_subclass"), b"N", b"N", b"N"),
        ),
        BARE.replace(b"torch._utils", b"mine"),
        call(name("torch._tensor", "_rebuild_from_type_v2"), b"K\x01", b"N", wrapper_args(CUDA_0), b"N"),
        name("torch._utils", "_rebuild_parameter") + b"NR",
        name("torch._tensor", "_rebuild_from_type_v2") + b"NR",
    ],
)
def test_other_values_have_none(body: bytes) -> None:
    assert find_own_device(read(body)) is None


def test_rows_tell_where_their_devices_go() -> None:
    container = container_of(
        stream(mapping(a=tensor(HOST), w=wrapper(CUDA_0), x=wrapper(CPU), y=parameter(wrapper(CUDA_0))))
    )
    plan = plan_remap(build_checkpoint(container), [parse_rule("cuda:0=cuda:3")])
    sources = walk(container.stream.root, DEFAULT_LIMITS, Progress()).sources
    found = planned_own_devices(sources, plan)
    assert [to for _, to in found] == ["cuda:3", None, "cuda:3"]
