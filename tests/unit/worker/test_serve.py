"""The child's side of the conversation; tests/unit/test_child.py has both sides speak."""

from __future__ import annotations

import ast
import io
import json
import struct
import sys
from pathlib import Path

import pytest

from inspector.child import worker_script
from inspector.worker.serve import Server, pin_package


def frame(kind: bytes, head: bytes = b"", block: bytes = b"") -> bytes:
    return struct.pack("<cIQ", kind, len(head), len(block)) + head + block


def test_syntax_is_that_of_the_oldest_python() -> None:
    """Requests may run in an environment of the user's."""
    for script in worker_script("serve").parent.glob("*.py"):
        ast.parse(script.read_text(encoding="utf-8"), script.name, feature_version=(3, 8))


def test_requests_are_answered_frame_by_frame(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "def answer(head, blocks):\n    for block in blocks:\n        yield head, block + b'!'\n"
    )
    request = json.dumps({"script": str(script), "head": {"a": 1}}).encode()
    wrong = json.dumps({"script": str(tmp_path / "none.py"), "head": {}}).encode()
    inward = frame(b"R", request) + frame(b"B", block=b"one") + frame(b"E") + frame(b"R", wrong)
    outward, ended = io.BytesIO(), []
    server = Server(io.BytesIO(inward + b"torn"), outward, ended.append)
    server.listen()
    server.serve()
    assert outward.getvalue() == frame(b"P") + frame(b"A", b'{"a": 1}', b"one!") + frame(b"P") + frame(b"D")
    outward.seek(outward.truncate(0))
    server.serve()
    assert b"FileNotFoundError" in outward.getvalue()
    assert outward.getvalue()[:1] == b"F"
    assert ended == [0]


def test_scripts_import_the_package_that_they_belong_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another `inspector` on the path of modules is nobody's to import."""
    ours = sys.modules["inspector"]
    pin_package()
    assert sys.modules["inspector"] is ours
    monkeypatch.delitem(sys.modules, "inspector")
    monkeypatch.setattr(sys, "path", [])
    pin_package()
    pinned = sys.modules["inspector"]
    assert pinned is not ours
    assert list(pinned.__path__) == [str(worker_script("serve").parents[1])]
    monkeypatch.setitem(sys.modules, "inspector", ours)
