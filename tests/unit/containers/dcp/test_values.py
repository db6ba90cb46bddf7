from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.container import StoredBytes
from inspector.containers.dcp import VALUES, Values
from inspector.containers.programs import Programs
from inspector.containers.source import BytesSource
from inspector.errors import CheckpointError, DamagedError
from inspector.limits import Limits
from inspector.pickles.values import Call, PersistentId
from inspector.progress import Progress
from tests.builders.dcp import saved_value, saved_zip
from tests.builders.pickles import call, list_, number, op, proto, storage, stream, tensor, text, tuple_
from tests.work import growth


def test_storages_get_keys_of_their_own() -> None:
    data = saved_zip(
        stream(proto(), list_(tensor(storage("0"), 2), storage("0"), call("x.Y"))), {"0": b"12345678"}
    )
    values = Values(Programs(), Limits(), Progress())
    source = BytesSource(b"--" + data + data, "part")
    first = values.read(source, 3, 2, len(data), "a")
    values.read(source, 3, 2 + len(data), len(data), "a")
    assert list(values.storage_ids) == ["a:0", "a:0'"]
    assert values.stored["a:0"] == StoredBytes(3, 2 + data.index(b"12345678"), 8)
    assert isinstance(first, list)
    assert isinstance(first[0], Call)
    assert isinstance(first[0].args, tuple)
    node = first[0].args[0]
    assert isinstance(node, PersistentId)
    assert isinstance(node.pid, tuple)
    assert node.pid[2] == "a:0"


def test_no_storage_gets_the_key_of_a_tensor() -> None:
    data = saved_zip(stream(proto(), tensor(storage("0"), 2)), {"0": b"12345678"})
    values = Values(Programs(), Limits(), Progress(), {"a:0"})
    values.read(BytesSource(data, "part"), 0, 0, len(data), "a")
    assert list(values.storage_ids) == list(values.stored) == ["a:0'"]


def test_many_storages_are_renamed_in_one_walk() -> None:
    def prepare(count: int) -> Callable[[], object]:
        pickle = stream(proto(), list_(*(storage(str(index)) for index in range(count))))
        data = saved_zip(pickle)
        values = Values(Programs(), Limits(), Progress())
        return lambda: values.read(BytesSource(data, "part"), 0, 0, len(data), "a")

    assert growth(prepare, 50, 400) < 2


def test_ids_of_other_things_are_left_alone() -> None:
    data = saved_zip(stream(proto(), list_(tuple_(text("0")) + op("BINPERSID"), storage("0"))), {})
    values = Values(Programs(), Limits(), Progress())
    found = values.read(BytesSource(data, "part"), 0, 0, len(data), "a")
    assert isinstance(found, list)
    assert isinstance(found[0], PersistentId)
    assert found[0].pid == ("0",)
    assert values.stored == {}


def test_programs_are_kept_where_reading_fails() -> None:
    programs = Programs()
    values = Values(programs, Limits(), Progress())
    data = saved_zip(stream(proto(), call("os.system", text("id")))[:-1])
    with pytest.raises(CheckpointError):
        values.read(BytesSource(data, "part"), 0, 0, len(data), "a")
    (program,) = programs.all()
    assert (program.name, program.is_whole) == (VALUES, False)
    cut = saved_value(number(1))[:-30]
    with pytest.raises(DamagedError, match="a value is damaged"):
        values.read(BytesSource(cut, "part"), 0, 0, len(cut), "a")


def test_long_texts_are_held() -> None:
    data = saved_value(text("x" * 100))
    values = Values(Programs(), Limits(text_nbytes=10), Progress())
    assert values.read(BytesSource(data, "part"), 0, 0, len(data), "a") == "x" * 100
