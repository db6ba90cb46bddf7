from __future__ import annotations

from inspector.session.jobs.machines import Part


def test_every_part_of_a_session_works_on_its_state(opened) -> None:
    part = Part(opened._desk)
    assert part.screen is opened.screen
    assert part._ready is opened._state.document
    part._show(opened._state.without_file())
    assert (opened.screen.phase, part._ready) == ("empty", None)
