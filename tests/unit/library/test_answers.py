from __future__ import annotations

from types import SimpleNamespace

import inspector
from inspector.library import answers


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
