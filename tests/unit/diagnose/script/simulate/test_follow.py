from __future__ import annotations

from tests.unit.diagnose.script.following import follow, said


def test_functions_that_nobody_calls() -> None:
    text = (
        "import torch\ndef other(): return 1\n"
        "def load(path):\n    return torch.load(path)\ndef again(path):\n    return torch.load(path)\n"
    )
    assert said(text, "sd_cuda.pth") == "load-fails 4"


def test_work_is_bounded() -> None:
    doubling = "\n".join(f"def f{n}(): return f{n - 1}() + f{n - 1}()" for n in range(1, 40))
    answer = follow(f"import torch\ndef f0(): return 1\n{doubling}\nf39()\n")
    assert answer.lost is not None
    assert answer.lost.why == "the script takes more steps than are followed"
