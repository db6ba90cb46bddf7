from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import inspector
from inspector.library import answers, sources
from inspector.library.sources import machine_of, opened_of, path_of, rules_of, texts_of
from inspector.remap.rules import parse_rule
from inspector.target.profile import Profile
from inspector.target.wish import parse_wish


def test_a_map_may_be_text_a_list_or_a_mapping() -> None:
    one, other = parse_rule("cuda:1=cuda:0"), parse_rule("path:optimizer/**@cpu")
    assert rules_of("cuda:1=cuda:0") == (one,)
    assert rules_of(["cuda:1=cuda:0", "path:optimizer/**@cpu"]) == (one, other)
    assert rules_of({"cuda:1": "cuda:0", "path:optimizer/**": "cpu"}) == (one, other)
    assert rules_of({"role:rng": "cpu", "dtype:float64": "cpu"}) == (
        parse_rule("role:rng@cpu"),
        parse_rule("dtype:float64@cpu"),
    )
    assert rules_of(()) == ()
    for wrong in ("nonsense", {"cuda:0": "moon"}, ["cuda:0=cpu:0"]):
        with pytest.raises(inspector.PlanError):
            rules_of(wrong)


def test_one_text_is_no_list_of_letters() -> None:
    assert texts_of("optimizer") == ("optimizer",)
    assert texts_of(["a", "b"]) == ("a", "b")


def test_a_checkpoint_is_read_again_from_where_it_was_opened(demo: inspector.Checkpoint) -> None:
    assert path_of(demo) == demo.path
    assert path_of(Path("a.pth")) == path_of("a.pth") == "a.pth"
    assert opened_of(demo) is opened_of(demo)
    assert opened_of(demo.path).facts.tensors == opened_of(demo).facts.tensors


def test_this_machine_is_asked_in_the_python_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    def probe(progress: object, python: str | None) -> Profile:
        asked.append(python)
        return Profile(id="this", label="this machine")

    monkeypatch.setattr(sources, "probe_this_machine", probe)
    machine_of(parse_wish("this"), None)
    machine_of(parse_wish("this"), Path("/other/python"))
    assert machine_of(parse_wish("cpu"), None).id == "cpu"
    monkeypatch.setattr(sys, "executable", "")
    machine_of(parse_wish("this"), None)
    assert asked == [sys._base_executable and asked[0], "/other/python", None]
    assert asked[0]


def test_every_answer_says_its_document_and_its_text_in_the_same_way() -> None:
    told = SimpleNamespace(_document={"schema": 1}, _text="done")
    assert (answers.to_dict(told), answers.text_of(told)) == ({"schema": 1}, "done")
    assert answers.repr_of(SimpleNamespace(_document={}, _text="a\nb")) == "<SimpleNamespace: a>"
    kinds = (
        inspector.Recovered,
        inspector.Remapped,
        inspector.Statistics,
        inspector.Undone,
        inspector.Verified,
    )
    for kind in kinds:
        assert (kind.to_dict, kind.__str__) == (answers.to_dict, answers.text_of)


def test_a_cell_shows_an_answer_as_print_does(demo: inspector.Checkpoint) -> None:
    shown: list[str] = []
    printer = SimpleNamespace(text=shown.append)
    found = inspector.remap(demo, dry_run=True)
    found._repr_pretty_(printer, cycle=False)
    found._repr_pretty_(printer, cycle=True)
    checked = inspector.check(demo, target="cpu")
    checked._repr_pretty_(printer, cycle=False)
    assert shown == [str(found), repr(found), str(checked)]
    assert repr(found).startswith("<Remapped: cuda:0 -> cpu: parameter, 30 tensors")
    assert "_document" not in repr(found)


def test_code_that_loads_the_file(demo: inspector.Checkpoint) -> None:
    code = inspector.snippet(demo, map={"cuda:1": "cuda:0"}, style="plain", target="cuda")
    compile(code, "snippet", "exec")
    assert f'"{demo.path}"' in code
    assert '"cuda:1": "cuda:0"' in code
    assert inspector.snippet(demo.path, target="cpu") != code


def test_wrong_wishes_are_told(demo: inspector.Checkpoint, tmp_path) -> None:
    for arguments in (
        {"style": "poem"},
        {"map": "path:model/**@cpu"},
        {"map": "xpu:3=cpu"},
        {"target": "moon"},
    ):
        with pytest.raises(inspector.PlanError):
            inspector.snippet(demo, **arguments)
    with pytest.raises(inspector.PlanError):  # before any file is opened
        inspector.snippet(tmp_path / "missing.pth", map="path:model/**@cpu")
