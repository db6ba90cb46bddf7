from __future__ import annotations

import pytest

from inspector.containers.container import Container, StoredBytes, first_storage_ids
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.pickles.values import Global, PersistentId
from tests.builders.pickles import NONE, read


def node(key: str, location: str = "cpu", view: tuple[str, int, int] | None = None) -> PersistentId:
    return PersistentId(("storage", Global("torch", "FloatStorage"), key, location, 4, view))


def test_first_id_of_a_key_counts() -> None:
    found = first_storage_ids([node("1", "cuda:0"), node("0"), node("1", "cuda:1")], Limits())
    assert [(key, storage.location) for key, storage in found.items()] == [("1", "cuda:0"), ("0", "cpu")]


def test_ids_of_others_are_passed_over() -> None:
    assert first_storage_ids([PersistentId("module"), PersistentId(None)], Limits()) == {}


def test_view_has_a_key_of_its_own() -> None:
    found = first_storage_ids(
        [node("root", view=("view", 1, 2)), node("root", view=("other", 0, 1))], Limits()
    )
    assert [(storage.key, storage.numel) for storage in found.values()] == [
        ("root", 4),
        ("view", 2),
        ("other", 1),
    ]


def test_number_of_storages_is_bounded() -> None:
    nodes = [node(str(number)) for number in range(5)]
    assert len(first_storage_ids(nodes, Limits(storages=5))) == 5
    with pytest.raises(ContainerError, match="the file has more than 4 storages"):
        first_storage_ids(nodes, Limits(storages=4))


def test_container_cannot_be_changed() -> None:
    container = Container(
        path="a.pt",
        format="zip",
        file_nbytes=1,
        root=read(NONE).root,
        stream=read(NONE),
        programs=(),
        storage_ids={},
        stored={"0": StoredBytes(0, None, 8)},
    )
    assert (container.versions, container.notes) == ((), ())
    with pytest.raises(AttributeError):
        container.path = "b.pt"
