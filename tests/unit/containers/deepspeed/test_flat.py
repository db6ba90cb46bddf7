from __future__ import annotations

from inspector.containers.deepspeed_joining import cut, cut_evenly, flat_of
from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.pickles.values import Call, Dict
from tests.builders.dcp import saved_zip
from tests.builders.deepspeed import vector
from tests.builders.pickles import NONE, call, name, number, op, proto, storage, stream, tuple_


def flat(push: bytes, nbytes: int = 12) -> tuple[int, int] | None:
    """Offset from the storage's beginning, and length, of a vector over three elements."""
    data = saved_zip(stream(proto(), push), {"0": bytes(nbytes)})
    container = read_container(BytesSource(data, "x.pt"))
    found = flat_of(container.root, container, 4)
    if found is None:
        return None
    assert found.part == 4
    return found.offset - (container.stored["0"].offset or 0), found.numel


def view(*arguments: bytes) -> bytes:
    return call("torch._utils._rebuild_tensor_v2", storage("0", numel=3), *arguments)


def test_vectors_are_read_out_of_what_wraps_them() -> None:
    plain = vector("0", [1, 2, 3])
    assert flat(plain) == (0, 3)
    assert flat(call("torch._utils._rebuild_parameter", plain, op("NEWTRUE"), NONE)) == (0, 3)
    function = name("torch._utils._rebuild_tensor_v2")
    arguments = tuple_(storage("0", numel=3), number(1), tuple_(number(2)), tuple_(number(1)), NONE, NONE)
    wrapped = call("torch._tensor._rebuild_from_type_v2", function, name("torch.Tensor"), arguments, NONE)
    assert flat(wrapped) == (4, 2)
    assert flat(view(number(0), tuple_(number(1), number(3)), tuple_(number(9), number(1)))) == (0, 3)
    assert flat(view(number(0), tuple_(), tuple_())) == (0, 1)


def test_other_values_are_no_vectors() -> None:
    nested = vector("0", [1, 2, 3])
    for _ in range(5):
        nested = call("torch._utils._rebuild_parameter", nested, op("NEWTRUE"), NONE)
    others = [
        number(3),
        call("os.system"),
        call("os.system", number(3)),
        nested,
        view(number(0), number(3), tuple_(number(1))),
        view(number(0), tuple_(number(3)), number(1)),
        view(number(-1), tuple_(number(3)), tuple_(number(1))),
        view(number(0), tuple_(number(3)), tuple_(number(2))),
        view(number(0), tuple_(number(3)), tuple_()),
        view(number(1), tuple_(number(3)), tuple_(number(1))),
        call("torch._utils._rebuild_tensor_v2", number(0), number(0), tuple_(), tuple_()),
        call("torch._utils._rebuild_tensor_v2", storage("9", numel=3), number(0), tuple_(), tuple_()),
    ]
    for push in others:
        assert flat(push) is None, push
    container = read_container(BytesSource(saved_zip(stream(proto(), number(3))), "x.pt"))
    assert flat_of(Call(Dict([]), (1,), "reduce"), container, 0) is None


def test_parameters_are_cut_out_of_vectors() -> None:
    data = saved_zip(stream(proto(), vector("0", [1, 2, 3])), {"0": bytes(12)})
    container = read_container(BytesSource(data, "x.pt"))
    one = flat_of(container.root, container, 0)
    assert one is not None
    two = one._replace(part=1, offset=100)
    assert [(part.starts, part.sizes, part.part, part.offset) for part in cut([one, two], 2, 3)] == [
        ((0,), (1,), 0, one.offset + 8),
        ((1,), (2,), 1, 100),
    ]
    assert list(cut([one, two], 6, 3)) == []
    assert [(part.starts, part.sizes, part.part) for part in cut_evenly([[one], [two]], 1, 3)] == [
        ((0,), (2,), 0),
        ((2,), (1,), 1),
    ]
    assert list(cut_evenly([], 0, 3)) == []
