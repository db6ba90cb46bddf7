from __future__ import annotations

from inspector.diagnose.beliefs.belief import Belief
from inspector.report.believing import belief_lines
from inspector.report.page.blocks import plain_lines

PLAIN = Belief(id="a", claim="It is so.", truth="false", here="Here not.", why="It never is.", code="")


def test_an_answer_is_read_from_top_to_bottom() -> None:
    coded = Belief(id="b", claim="Or so.", truth="depends", here="x.", why="y.", code="a\n  b")
    assert list(plain_lines(belief_lines((PLAIN, coded)))) == [
        "Beliefs, answered from this file",
        '  Not so: "It is so."',
        "     Here not. It never is.",
        '  It depends: "Or so."',
        "     x. y.",
        "     => a",
        "          b",
    ]
