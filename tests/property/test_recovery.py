"""What must hold however a file was damaged: what is saved is what was there, and all else is in words."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.remap.recover import check_file, recover
from tests.builders.archives import archive, directory_of
from tests.builders.legacy import checkpoint as legacy_checkpoint
from tests.builders.pickles import legacy_storage, state_dict, storage, tensor
from tests.corpus import cases
from tests.property.bounds import LIMITS
from tests.sweep import tries

few = settings(max_examples=tries(20, 60), deadline=None)
many = settings(max_examples=tries(60, 200), deadline=None)

SIZES = {str(number): numel for number, numel in enumerate((3, 70, 0, 500, 16, 1, 900))}
STORAGES = {key: random.Random(key).randbytes(4 * numel) for key, numel in SIZES.items()}


def objects(push: Callable[..., bytes]) -> bytes:
    return state_dict(**{f"t{key}": tensor(push(key, numel=numel), numel) for key, numel in SIZES.items()})


ZIP = archive(objects(storage), STORAGES)
OLD = legacy_checkpoint(objects(legacy_storage), *((key, SIZES[key], data) for key, data in STORAGES.items()))
ZIP_BODY, OLD_BODY = ZIP.index(STORAGES["0"]) - 128, OLD.index(STORAGES["0"]) - 8
SMALL = [
    case.path.read_bytes() for case in cases() if case.path.is_file() and case.path.stat().st_size < 20_000
]

Edit = tuple[str, float, int, bytes]
edits = st.lists(
    st.tuples(
        st.sampled_from(["overwrite", "zeros", "cut", "insert", "remove", "move"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(1, 3000),
        st.binary(min_size=1, max_size=40),
    ),
    min_size=1,
    max_size=4,
)


# Bytes of the last storage are lost, and the file ends where it would if what follows had moved up.
REMOVED_AND_CUT: list[Edit] = [("cut", 0.41796875, 1, b"?"), ("remove", 0.5, 193, b"?")]


def damaged(data: bytes, changes: list[Edit], first: int = 0) -> bytes:
    """Change the bytes from `first` on."""
    head, body = data[:first], data[first:]
    for kind, where, nbytes, new in changes:
        at = int(where * len(body))
        behind = body[at + nbytes :]
        body = {
            "overwrite": body[:at] + new + body[at + len(new) :],
            "zeros": body[:at] + bytes(min(nbytes, len(body) - at)) + behind,
            "cut": body[:at],
            "insert": body[:at] + new + body[at:],
            "remove": body[:at] + behind,
            "move": body[:at] + behind + body[at : at + nbytes],
        }[kind]
    return head + body


@pytest.fixture(scope="module")
def save(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bytes], dict[str, bytes] | None]]:
    """Recover these bytes and give the bytes of each tensor saved; None when they are refused."""
    folder = tmp_path_factory.mktemp("recovery")
    path, out = folder / "damaged.pt", folder / "out.pt"

    def save(data: bytes) -> dict[str, bytes] | None:
        path.write_bytes(data)
        try:
            done = recover(str(path), out, overwrite=True, limits=LIMITS)
        except CheckpointError as error:
            return None if str(error) else pytest.fail("the error says nothing")
        finally:
            assert path.read_bytes() == data
        found = contents(out)
        assert done.tensors <= len(found)
        assert not {row.path for row in done.lost} & found.keys()
        return found

    yield save
    assert {found.name for found in folder.iterdir()} <= {"damaged.pt", "out.pt"}


def contents(path: Path) -> dict[str, bytes]:
    """The bytes of each tensor's storage in a file that must have nothing wrong with it."""
    copy = open_checkpoint(str(path))
    assert copy.notes == ()
    assert not any(row.missing or row.expected_nbytes is not None for row in copy.storages)
    assert not any(row.problem for row in copy.tensors)
    assert check_file(str(path)).is_intact
    data = path.read_bytes()
    places = {row.key: (row.file_offset or 0, row.nbytes) for row in copy.storages}
    return {
        row.path: data[places[row.storage][0] : sum(places[row.storage])] if row.storage else b""
        for row in copy.tensors
    }


Save = Callable[[bytes], "dict[str, bytes] | None"]


@many
@given(changes=edits, with_directory=st.booleans())
@example(changes=REMOVED_AND_CUT, with_directory=False)
def test_damage_behind_the_description_of_a_zip_never_passes(
    save: Save, changes: list[Edit], with_directory: bool
) -> None:
    """Whatever happened to the storages and the directory, with checksums each tensor saved is as it was."""
    whole = ZIP if with_directory else ZIP[: directory_of(ZIP)]
    found = save(damaged(whole, changes, ZIP_BODY))
    for path, data in (found or {}).items():
        assert data == STORAGES[path[1:]]


@many
@given(where=st.floats(0, 1), form=st.sampled_from([ZIP, OLD, gzip.compress(OLD, 1)]))
def test_cut_file_gives_what_was_in_front_of_the_cut(save: Save, where: float, form: bytes) -> None:
    nbytes = int(where * len(form))
    found = save(form[:nbytes])
    for path, data in (found or {}).items():
        assert data == STORAGES[path[1:]]
    if form is not OLD and form is not ZIP:
        return
    tail = 16 if form is ZIP else 0  # the checksum, without which bytes may be others
    behind = {
        f"t{key}" for key, data in STORAGES.items() if form.index(data) + len(data) + tail <= nbytes and data
    }
    if found is not None:
        assert {path for path, data in found.items() if data} == behind


@many
@given(changes=edits)
def test_damaged_legacy_file_ends_in_a_file_or_in_words(save: Save, changes: list[Edit]) -> None:
    found = save(damaged(OLD, changes, OLD_BODY))
    for path, data in (found or {}).items():
        assert len(data) == len(STORAGES[path[1:]])


@few
@given(changes=edits, case=st.sampled_from(SMALL))
def test_genuine_file_damaged_anywhere_ends_in_a_file_or_in_words(
    save: Save, changes: list[Edit], case: bytes
) -> None:
    save(damaged(case, changes))


@few
@given(changes=edits, with_directory=st.booleans())
def test_check_of_a_file_finds_what_recover_finds(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Edit], with_directory: bool
) -> None:
    whole = ZIP if with_directory else ZIP[: directory_of(ZIP)]
    folder = tmp_path_factory.mktemp("check")
    path = folder / "file.pt"
    path.write_bytes(damaged(whole, changes, ZIP_BODY))
    try:
        done = recover(str(path), folder / "out.pt", limits=LIMITS)
    except CheckpointError:
        return
    found = check_file(str(path), limits=LIMITS)
    assert found.lost == done.lost
    assert {name for finding in found.findings for name in finding.paths} == {row.path for row in done.lost}
