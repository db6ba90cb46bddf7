"""The line that loads the optimizer, and the line that moves the model."""

from __future__ import annotations

from inspector.diagnose.errors.reading.pasted import read_pasted
from inspector.diagnose.errors.running.order import Disorder, find_disorder

LOAD = "optimizer.load_state_dict(ckpt['opt'])"
MOVE = "model.to(device)"


def test_only_the_wrong_order_is_reported() -> None:
    wrong = Disorder(load=LOAD, move=MOVE, load_line=0, move_line=0)
    assert find_disorder(read_pasted(f"x = 1\n{LOAD}\ny = 2\n{MOVE}\n")) == wrong
    assert find_disorder(read_pasted(f"{MOVE}\n{LOAD}\n")) is None
    assert find_disorder(read_pasted(LOAD)) is None
    assert find_disorder(read_pasted(f"model.load_state_dict(x)\n{MOVE}")) is None


def test_numbers_of_lines_are_read() -> None:
    found = find_disorder(read_pasted(f"15 {LOAD}\n---> 18 self.model.cuda()"))
    assert found is not None
    assert (found.load_line, found.move_line, found.move) == (15, 18, "self.model.cuda()")
