from __future__ import annotations

from inspector.diagnose.script.answer import ScriptAnswer, answer_script
from inspector.model.build import open_checkpoint
from inspector.report.page import plain_lines
from inspector.report.scripts import script_document, script_lines
from inspector.target.profile import CPU_ONLY
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
    assert text.startswith('The script train.py\n  Line 2 fails.\n      2: sd = torch.load("sd_cuda.pth")\n')
    assert "Also line 3: AssertionError: Torch not compiled with CUDA enabled" in text
    assert '+sd = torch.load("sd_cuda.pth", map_location="cpu")' in text
    document = script_document(answer)
    assert (document["outcome"], document["line"], document["kind"]) == ("fails", 2, "load-fails")
    assert document["further"][0]["line"] == 3
    assert (document["lost"], document["file"], document["load_line"]) == (None, None, 2)


def test_script_that_works() -> None:
    answer = follow(LOADED)
    assert headline_role(answer) == "good"
    assert "Line 12 loads this file on this target." in lines(answer)
    assert lines(answer).endswith("Not judged: whether all names and shapes fit the model.")
    document = script_document(answer)
    assert (document["line"], document["message"], document["diff"]) == (None, None, None)


def test_advice_stands_beside_a_patch() -> None:
    text = lines(follow('import torch\nx = torch.load("args_cuda.pth", "cpu")\n', "args_cuda.pth"))
    assert "Allow these names if you know the file" in text
    assert "WeightsUnpickler error: Unsupported" in text
    assert "+torch.serialization.add_safe_globals([argparse.Namespace])" in text


def evil(text: str) -> ScriptAnswer:
    return answer_script(text, "a.py", open_checkpoint(str(CORPUS / "hostile" / "os_system.pt")), CPU_ONLY)


def test_script_that_lets_a_file_run_commands_is_never_good() -> None:
    load = 'import torch\nx = torch.load("os_system.pt", map_location="cpu", weights_only=False)\n'
    unknown = 'import torch\ndef f(d):\n    torch.load("os_system.pt", d, weights_only=False)\n'
    for script in (load, unknown):
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
    script = "import torch\nif n > 1:\n    sd = torch.load('sd_cpu.pth')\n"
    assert "Taken for true: `n > 1` is true (line 2)." in lines(follow(script))


def test_what_is_not_known_is_said() -> None:
    answer = follow("import torch\ntorch.load('sd_cpu.pth', map_location=where)\n")
    assert script_document(answer)["lost"]["line"] == 2
    assert headline_role(answer) == "caution"
    assert "hangs on map_location, which is where" in " ".join(lines(answer).split())


def test_what_raises_nothing_is_bad() -> None:
    script = (
        'import torch\nck = torch.load("ckpt_dp_cuda.pth.tar", "cpu", weights_only=False)\n'
        'm = N()\nm.load_state_dict(ck["state_dict"], strict=False)\n'
    )
    answer = follow(script, "ckpt_dp_cuda.pth.tar")
    assert headline_role(answer) == "bad"
    assert "Line 4 raises nothing, and does nothing." in lines(answer)


def test_no_escape_sequence_is_shown_as_text() -> None:
    script = "import torch\nif 1:\n\tsd\t=\ttorch.load('whole_cpu.pth')  # \x1b[1m\n"
    shown = lines(follow(script, "whole_cpu.pth"))
    assert "\\u0009" not in shown
    assert "\\u001b[1m" not in shown.replace("# \\u001b[1m", "")
