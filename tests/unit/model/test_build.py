"""From a file to a checkpoint."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.errors import CancelledError, CheckpointError, ModelError
from inspector.limits import Limits
from inspector.model.build import build_checkpoint, collector_paused, open_checkpoint
from inspector.model.found import Found
from inspector.progress import Progress
from tests.builders.pickles import STOP, list_, name, number, op, text, tuple_
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.model.making import built, by_hand, call, numbers, pairs, storage, view

FILE = str(CORPUS / "zip" / "state_dict.pt")


def test_facts_of_the_file() -> None:
    checkpoint = open_checkpoint(FILE)
    assert (checkpoint.path, checkpoint.format) == (FILE, "zip")
    assert checkpoint.file_nbytes == Path(FILE).stat().st_size
    assert dict(checkpoint.versions)["version"] == "3"
    assert checkpoint.safety.protocol == 2
    assert set(checkpoint.safety.opcodes) >= {"PROTO", "STOP", "BINPERSID"}
    assert [use.name for use in checkpoint.globals][:2] == [
        "collections.OrderedDict",
        "torch._utils._rebuild_tensor_v2",
    ]
    assert all(use.count > 0 for use in checkpoint.globals)


@table(
    ("made", "root"),
    [
        (view(), "tensor"),
        (storage(), "tensor"),
        (pairs(a=number(1)), "mapping"),
        (call("collections.OrderedDict") + text("a") + number(1) + op("SETITEM"), "mapping"),
        (list_(number(1)), "sequence"),
        (tuple_(number(1)), "sequence"),
        (call("a.B"), "object"),
        (number(1), "value"),
        (built(call("a.Net"), pairs(_parameters=pairs(), _modules=pairs())), "module"),
        (built(call("a.Net"), pairs(_parameters=pairs())), "object"),
    ],
)
def test_kind_of_the_root(made: bytes, root: str) -> None:
    checkpoint = by_hand(made)
    assert checkpoint.root == root
    assert checkpoint.module_class == ("a.Net" if root == "module" else None)


def test_names_and_oddities_are_fit_to_be_shown() -> None:
    checkpoint = by_hand(call("a.b\u202e" + "x" * 1000), op("MARK") + op("POP_MARK"))
    assert checkpoint.globals[0].name.startswith("a.b\\u202e")
    assert len(checkpoint.globals[0].name) < 600
    assert all(len(found) < 600 for found, _ in checkpoint.safety.uses)
    odd = by_hand(name("a.b") + pairs() + op("BUILD"))
    assert [str(oddity) for oddity in odd.safety.oddities] == ["the state of the name a.b is set (byte 10)"]


def test_tuples_with_rows_below_are_known() -> None:
    nest = list_(tuple_(view(), pairs(a=view())))
    found = by_hand(
        pairs(pair=tuple_(view(), view()), list=list_(view()), nest=nest, betas=tuple_(number(1)))
    )
    assert found.tuples == ("pair", "nest/0")
    assert by_hand(tuple_(view(), view())).tuples == ("",)
    assert by_hand(list_(view())).tuples == ()


def test_limits_and_cancellation_reach_the_model() -> None:
    with pytest.raises(CheckpointError):
        open_checkpoint(FILE, Limits(opcodes=10, records=1))
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        open_checkpoint(FILE, progress=progress)


def test_who_needs_the_values_behind_the_rows_is_given_them() -> None:
    given: list[Found] = []
    checkpoint = build_checkpoint(read_container(FILE), on_walked=given.append)
    (found,) = given
    assert len(found.sources) == len(checkpoint.tensors) > 0


def test_very_many_tensors_that_cannot_be_are_refused() -> None:
    """Each of them is spoken of, which takes longer than to read it."""
    good, limits = view(), Limits(storages=2)
    bad = {f"bad{number}": view(size=numbers(9)) for number in range(3)}
    few = dict(list(bad.items())[:2])

    assert len(by_hand(pairs(**few, good=good, other=good), limits=limits).tensors) == 4
    with pytest.raises(ModelError, match="more than 2 tensors of the checkpoint cannot be as it says"):
        by_hand(pairs(**bad, good=good, other=good), limits=limits)


@pytest.mark.parametrize("enabled", [True, False])
def test_collector_is_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        open_checkpoint(FILE)
        assert gc.isenabled() == enabled
        with collector_paused():
            assert not gc.isenabled()
    finally:
        (gc.enable if before else gc.disable)()


def test_source_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "copy.pt"
    path.write_bytes(Path(FILE).read_bytes())
    path.chmod(0o400)
    before = path.stat().st_mtime_ns
    open_checkpoint(str(path))
    assert path.stat().st_mtime_ns == before
    assert path.read_bytes()[-len(STOP) :] is not None


def test_lack_of_memory_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_given: object, **_options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("inspector.model.build.build_checkpoint", exhausted)
    with pytest.raises(ModelError, match="there is not enough memory to describe this file: ") as caught:
        open_checkpoint(FILE)
    assert len(caught.value.programs) == 1


def test_what_loading_runs_is_known_where_there_is_too_much_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> None:
        raise ModelError("there is too much to be listed")

    monkeypatch.setattr("inspector.model.build.walk", refuse)
    with pytest.raises(ModelError) as caught:
        open_checkpoint(FILE)
    assert len(caught.value.programs) == 1
