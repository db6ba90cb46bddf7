from __future__ import annotations

from types import SimpleNamespace

import inspector
from inspector.library import answers


def test_every_answer_says_its_document_and_its_text_in_the_same_way() -> None:
    told = SimpleNamespace(_document={"schema": 1}, _text="done")
    assert (answers.to_dict(told), answers.text_of(told)) == ({"schema": 1}, "done")
    kinds = (
        inspector.Recovered,
        inspector.Remapped,
        inspector.Statistics,
        inspector.Undone,
        inspector.Verified,
    )
    for kind in kinds:
        assert (kind.to_dict, kind.__str__) == (answers.to_dict, answers.text_of)
