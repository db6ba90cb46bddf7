from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.diff.facts import compare_programs
from inspector.diff.records import NameChange
from inspector.model.build import open_checkpoint
from tests.builders import pickles as p
from tests.builders.states import Raw, T, save_zip


def compared(tmp_path: Path, a: Any, b: Any) -> tuple[tuple[NameChange, ...], tuple[str, str]]:
    files = [
        open_checkpoint(save_zip(tmp_path / f"{name}.pt", value)) for name, value in (("a", a), ("b", b))
    ]
    return compare_programs(*files)


def dropped(command: str) -> Raw:
    """A call whose result nobody sees."""
    return Raw(p.call("os.system", p.text(command)) + p.op("POP") + p.NONE)


def test_names_that_one_file_alone_imports_come_the_worst_first(tmp_path: Path) -> None:
    plain = {"w": T([1.0])}
    evil = {**plain, "n": Raw(p.call("my.thing")), "x": Raw(p.call("os.system", p.text("id")))}
    names, verdicts = compared(tmp_path, plain, evil)
    assert names == (NameChange("os.system", "dangerous", "b"), NameChange("my.thing", "unknown", "b"))
    assert verdicts == ("weights-only", "dangerous")
    names, _ = compared(tmp_path, evil, plain)
    assert [name.only_in for name in names] == ["a", "a"]


def test_names_that_every_file_may_import_are_no_news(tmp_path: Path) -> None:
    assert compared(tmp_path, {"w": T([1.0])}, {"w": T([1], dtype="int64", kind="parameter")})[0] == ()


def test_other_data_is_no_other_code(tmp_path: Path) -> None:
    def data(text: str) -> Raw:
        return Raw(p.call("_codecs.encode", p.text(text), p.text("latin1")) + p.op("POP") + p.NONE)

    assert compared(tmp_path, {"x": data("ab")}, {"x": data("cd")})[0] == ()


def test_calls_that_nobody_sees_are_compared_by_their_arguments(tmp_path: Path) -> None:
    names, _ = compared(tmp_path, {"x": dropped("id")}, {"x": dropped("rm")})
    assert names == (
        NameChange("os.system('rm')", "call", "b"),
        NameChange("os.system('id')", "call", "a"),
    ) or [(name.verdict, name.only_in) for name in names] == [("call", "b"), ("call", "a")]
    assert compared(tmp_path, {"x": dropped("id")}, {"x": dropped("id")})[0] == ()
