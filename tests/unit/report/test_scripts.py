from __future__ import annotations

from inspector.diagnose.script.answer import ScriptAnswer
from inspector.report.scripts import script_document, script_lines
from tests.unit.diagnose.script.following import LOADED, follow

FAILS = 'import torch\nsd = torch.load("sd_cuda.pth")\nx = torch.zeros(2).cuda()\n'


def lines(answer: ScriptAnswer) -> str:
    return "\n".join(script_lines(answer))


def test_line_message_reason_and_patch() -> None:
    answer = follow(FAILS, "sd_cuda.pth")
    text = lines(answer)
    assert "Line 2 fails." in text
    assert '2: sd = torch.load("sd_cuda.pth")' in text
    assert "RuntimeError: Attempting to deserialize object on a CUDA device" in text
    assert "Then line 3: AssertionError: Torch not compiled with CUDA enabled" in text
    assert '+sd = torch.load("sd_cuda.pth", map_location="cpu")' in text
    document = script_document(answer)
    assert (document["outcome"], document["line"], document["kind"]) == ("fails", 2, "load-fails")
    assert document["further"][0]["line"] == 3
    assert document["lost"] is None


def test_script_that_works() -> None:
    answer = follow(LOADED)
    assert lines(answer).endswith("Nothing in this script fails with this file on this target.")
    document = script_document(answer)
    assert (document["line"], document["message"], document["diff"]) == (None, None, None)


def test_advice_stands_beside_a_patch() -> None:
    text = lines(follow('import torch\nx = torch.load("args_cuda.pth", "cpu")\n', "args_cuda.pth"))
    assert "Allow the names above if you know the file" in text
    assert "+import argparse; torch.serialization.add_safe_globals([argparse.Namespace])" in text


def test_what_is_taken_for_true_is_said() -> None:
    script = "import torch\nif resume:\n    sd = torch.load('sd_cuda.pth')\n"
    assert "Taken for true: line 2: resume." in lines(follow(script, "sd_cuda.pth"))


def test_where_following_ends() -> None:
    answer = follow("import torch\nhelper(torch.load('sd_cpu.pth'))\n")
    assert script_document(answer)["lost"]["line"] == 2
    assert "From there on it cannot be followed" in lines(answer)
