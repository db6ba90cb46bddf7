from __future__ import annotations

import gc
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.containers.collector import collector_paused, keep_from_collector
from inspector.containers.container import first_storage_ids
from inspector.containers.element_types import ITEMSIZES
from inspector.containers.notes import AMBIGUOUS, Note, NoteKind, sentences
from inspector.containers.persistent_ids import STORAGE_DTYPES
from inspector.containers.rebuilds import EXPECTED, JAGGED, JUDGED, PARAMETERS, REBUILDS, SENT, VIEWS
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.model.arguments import kind_of_name
from inspector.model.tensors import rebuild
from inspector.pickles.values import Global, PersistentId
from inspector.safety.names import default_allow_list
from tests.hostile.loaders.test_loaders import CASES, WRONG, judged


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


@pytest.fixture(autouse=True)
def _enabled() -> Iterator[None]:
    gc.enable()
    gc.unfreeze()
    yield
    gc.enable()


def test_collector_rests_within_and_runs_again_behind() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collector_runs_again_after_a_failure() -> None:
    with pytest.raises(RuntimeError), collector_paused():
        raise RuntimeError
    assert gc.isenabled()


def test_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_overlapping_pauses_end_with_the_collector_running() -> None:
    first, second = collector_paused(), collector_paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.isenabled()


class _Holder:
    """Something that refers to much."""


def _looked_at() -> list[int]:
    """Return how many objects the collector walked over since, in its youngest generation."""
    return [len(gc.get_objects(generation=generation)) for generation in (0, 1)]


def test_what_was_made_meanwhile_is_old_at_once() -> None:
    with collector_paused():
        made = [[number] for number in range(150_000)]
    assert sum(_looked_at()) < 50_000
    assert any(found is made for found in gc.get_objects(generation=2))  # nothing is held from it for good


def test_few_objects_stay_young() -> None:
    gc.collect(0)
    with collector_paused():
        made = [[number] for number in range(100)]
    assert any(found is made for found in gc.get_objects(generation=0))


def test_what_a_holder_refers_to_is_looked_at_again_when_it_is_gone() -> None:
    first, second = _Holder(), _Holder()
    assert gc.get_freeze_count() == 0
    keep_from_collector(first)
    keep_from_collector(second)
    with collector_paused():
        made = [[number] for number in range(150_000)]
    assert gc.get_freeze_count() > len(made)
    del first
    assert gc.get_freeze_count() > len(made)
    del second
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("reader", dict.fromkeys(case.reader for case in CASES))
def test_payloads_are_never_called_safe_nor_refused_without_a_word(reader: str, tmp_path: Path) -> None:
    found = {}
    for number, case in enumerate(CASES):
        if case.reader == reader:
            home = tmp_path / str(number)
            home.mkdir()
            found[case.name, case.loader] = judged(case.write(home))
    assert {case: verdict for case, verdict in found.items() if verdict in WRONG} == {}


SILENT = {NoteKind.PART_OF, NoteKind.NO_KEYS, NoteKind.ODD_KEYS}


def test_every_kind_has_a_sentence_but_those_that_findings_tell() -> None:
    for kind in NoteKind:
        sentence = Note(kind, ("1", "2", "3", "4")).sentence
        assert (sentence == "") == (kind in SILENT), kind
        assert not sentence or sentence.endswith((".", "!")), kind
    assert sentences([Note(NoteKind.NO_KEYS), Note(NoteKind.TOO_DEEP, ("3",))]) == [
        "3 values are nested too deeply to be shown."
    ]


def test_what_programs_read_differently_is_ambiguous() -> None:
    assert NoteKind.TWO_FORMATS in AMBIGUOUS
    assert NoteKind.NO_DIRECTORY in AMBIGUOUS
    assert not AMBIGUOUS & {NoteKind.REFUSED, NoteKind.GZIP, NoteKind.UNLISTED}


def test_functions_of_torchs_list_are_judged() -> None:
    names = {name for name in default_allow_list().names if name.rpartition(".")[2].startswith("_rebuild")}
    assert {name.rpartition(".")[2] for name in names - JUDGED} == {JAGGED}  # imported by torch.nested alone
    assert names > JUDGED


def test_each_function_is_described_and_all_that_are_described_are_here() -> None:
    assert rebuild._REBUILDS.keys() == {one.name for one in REBUILDS}
    assert {kind_of_name(name) for name in JUDGED} == {"function"}


def test_groups_are_told_by_the_table() -> None:
    arities = {one.dotted: one.arity for one in REBUILDS if one.arity > 0}
    assert EXPECTED.common == {"collections.OrderedDict": -1, **arities}
    assert (len(SENT), len(PARAMETERS), len(VIEWS)) == (3, 2, 4)


@pytest.mark.torch
def test_functions_are_where_the_table_says_and_take_what_it_says() -> None:
    pytest.importorskip("torch")
    for one in REBUILDS:
        found = getattr(importlib.import_module(one.module), one.name, None)
        if found is None:
            assert not one.judged, one  # of an earlier release
            continue
        places = list(inspect.signature(found).parameters)
        assert one.arity <= len(places), one
        if one.grad_at >= 0:
            assert places[one.grad_at] == "requires_grad", one
        if one.class_at >= 0:
            assert places[one.class_at] in {"cls", "type", "new_type"}, one


def test_storages_have_the_sizes_of_their_elements() -> None:
    assert all(ITEMSIZES[dtype] == itemsize for dtype, itemsize in STORAGE_DTYPES.values())
