from __future__ import annotations

from inspector.diagnose.script.answer import ScriptAnswer, answer_script
from inspector.model.build import open_checkpoint
from inspector.report.page.blocks import plain_lines
from inspector.report.scripts import script_document, script_lines
from inspector.target.machine.profile import CPU_ONLY
from tests.corpus import CORPUS
from tests.unit.diagnose.script.following import LOADED, follow

FAILS = 'import torch\nsd = torch.load("sd_cuda.pth")\nx = torch.zeros(2).cuda()\n'


def lines(answer: ScriptAnswer) -> str:
    return "\n".join(plain_lines(script_lines(answer)))


def headline_role(answer: ScriptAnswer) -> str:
    return list(script_lines(answer))[1].role


def test_line_message_reason_and_patch() -> None:
    answer = follow(FAILS, "sd_cuda.pth")
    assert headline_role(answer) == "bad"
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
    assert headline_role(answer) == "good"
    assert lines(answer).endswith("Nothing in this script fails with this file on this target.")
    document = script_document(answer)
    assert (document["line"], document["message"], document["diff"]) == (None, None, None)


def test_advice_stands_beside_a_patch() -> None:
    text = lines(follow('import torch\nx = torch.load("args_cuda.pth", "cpu")\n', "args_cuda.pth"))
    assert "Allow the names above if you know the file" in text
    assert "+import argparse; torch.serialization.add_safe_globals([argparse.Namespace])" in text


def evil(text: str) -> ScriptAnswer:
    return answer_script(text, "a.py", open_checkpoint(str(CORPUS / "hostile" / "os_system.pt")), CPU_ONLY)


def test_script_that_lets_a_file_run_commands_is_never_good() -> None:
    load = 'import torch\nx = torch.load("os_system.pt", map_location="cpu", weights_only=False)\n'
    for script in (load, load + "helper(x)\n"):
        answer = evil(script)
        assert answer.is_dangerous
        assert headline_role(answer) == "bad"
        assert not answer.is_good
        assert "Do not run this script: loading this file can run commands" in lines(answer)
        assert script_document(answer)["dangerous"] is True
    other = evil("import torch\n")
    assert (other.outcome, other.is_dangerous) == ("not-loaded", False)
    refused = evil('import torch\nx = torch.load("os_system.pt")\n')
    assert (refused.outcome, refused.diff) == ("fails", "")
    assert "weights_only=False)" not in refused.advice


def test_what_is_taken_for_true_is_said() -> None:
    script = "import torch\nif resume:\n    sd = torch.load('sd_cuda.pth')\n"
    assert "Taken for true: line 2: resume." in lines(follow(script, "sd_cuda.pth"))


def test_where_following_ends() -> None:
    answer = follow("import torch\nhelper(torch.load('sd_cpu.pth'))\n")
    assert script_document(answer)["lost"]["line"] == 2
    assert headline_role(answer) == "caution"
    assert "From there on it cannot be followed" in lines(answer)
