from __future__ import annotations

from inspector.session.pasted import is_script_name, may_be_script


def test_names_of_scripts() -> None:
    assert [is_script_name(name) for name in ("a.py", "B.IPYNB", "a.pth", "py")] == [True, True, False, False]


def test_scripts_and_errors() -> None:
    rows = {
        "import torch\nx = 1\n": True,
        "    from torch import nn\n": True,
        'model.load_state_dict(torch.load("best.pth"))': True,
        '{"cells": [{"cell_type": "code"}]}': True,
        '{"a": 1}': False,
        "RuntimeError: Attempting to deserialize": False,
        "Traceback (most recent call last):\n  model.load_state_dict(x)\n": False,
        "# torch.load(path) fails\n": False,
        "what is this": False,
        "": False,
    }
    assert {text: may_be_script(text) for text in rows} == rows
