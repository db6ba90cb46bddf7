from __future__ import annotations

import pytest

import inspector


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
