"""What a walk starts with."""

from __future__ import annotations

from inspector.model.checkpoint import Verb
from inspector.model.found import Found, Frame


def test_nothing_is_shared_between_two_walks() -> None:
    one, other = Found(), Found()
    one.uses.add(("a", Verb.CALL))
    one.views.add("0", (0, 4))
    one.tensors.append(None)  # type: ignore[arg-type]
    assert (other.uses, other.tensors, other.views.total("0")) == (set(), [], (0, 0))


def test_a_frame_knows_nothing_of_itself() -> None:
    frame = Frame(iter([]))
    assert (frame.keys, frame.prefix, frame.part_of, frame.weight) == ((), "", None, 0)
