from __future__ import annotations

import pytest

from inspector.diagnose.script.answer import ScriptAnswer, answer_script
from inspector.errors import ModelError
from inspector.model.build import open_checkpoint
from inspector.report.page import plain_lines
from inspector.report.scripts import script_lines
from inspector.target.profile import CPU_ONLY
from tests.corpus import CORPUS
from tests.unit.diagnose.script.following import follow, loaded_as, machine, opened, said

LOAD = 'import torch\nsd = torch.load("sd_cuda.pth")'


def shown(answer: ScriptAnswer) -> str:
    return "\n".join(plain_lines(script_lines(answer)))


def test_line_that_fails_and_its_patch() -> None:
    answer = follow(f"{LOAD}\n", "sd_cuda.pth")
    assert (answer.outcome, answer.line, answer.load_line, answer.kind) == ("fails", 2, 2, "load-fails")
    assert answer.source == 'sd = torch.load("sd_cuda.pth")'
    assert answer.message.startswith("RuntimeError: Attempting to deserialize object on a CUDA device")
    assert '+sd = torch.load("sd_cuda.pth", map_location="cpu")' in answer.diff
    assert not answer.is_good


def test_patch_keeps_the_ends_of_lines() -> None:
    assert follow(LOAD, "sd_cuda.pth").diff.count("\\ No newline at end of file") == 2
    crlf = follow(f"{LOAD}\n".replace("\n", "\r\n"), "sd_cuda.pth").diff
    assert crlf.count("\r\n") == 3
    assert '+sd = torch.load("sd_cuda.pth", map_location="cpu")\r\n' in crlf


def test_one_patch_for_all_that_fails() -> None:
    answer = follow(f"{LOAD}\nx = f().cuda()\n", "sd_cuda.pth")
    assert [(one.line, one.kind) for one in answer.further] == [(3, "no-device")]
    assert '+device = torch.device("cuda" if torch.cuda.is_available() else "cpu")' in answer.diff
    assert "+x = f().to(device)" in answer.diff
    assert not answer.leaves


def test_patch_that_leaves_something_says_so() -> None:
    answer = follow(f'{LOAD}["nothing"]\nx = 1\n', "sd_cuda.pth")
    assert [one.kind for one in answer.further] == []
    answer = follow(f"{LOAD}\nsd.eval()\n", "sd_cuda.pth")
    assert answer.leaves
    assert answer.diff.count("\n+") == 2
    assert "With this patch the load works; the other lines that are named still fail." in shown(answer)


@pytest.mark.parametrize("count", [5, 9])
def test_a_long_patch_is_cut_down_to_the_load(count: int) -> None:
    text = f"{LOAD}\n" + "".join(f"x{number} = f().cuda()\n\n\n" for number in range(count))
    answer = follow(text, "sd_cuda.pth")
    assert answer.leaves
    assert "+x" not in answer.diff


def test_a_name_that_is_taken_is_no_name_for_a_device() -> None:
    text = f'{LOAD}\nf().cuda()\ndef g():\n    device = "cuda"\n'
    answer = follow(text, "sd_cuda.pth")
    assert '+f().to("cuda" if torch.cuda.is_available() else "cpu")' in answer.diff
    text = 'import torch\ndevice = torch.device("cpu")\nf().cuda()\ntorch.load("sd_cuda.pth", device)\n'
    assert "+f().to(device)" in follow(text, "sd_cuda.pth").diff
    assert "-xpu().xpu()" in follow("import torch\ntorch.load('sd_cpu.pth')\nxpu().xpu()\n").diff


def test_no_patch_where_none_helps() -> None:
    too_long = f"{LOAD}\n#".ljust(1 << 20, "#")
    too_deep = f"{LOAD}\nx = {'f(' * 99}1{')' * 99}\n"
    for text in (too_long, too_deep.replace('"sd_cuda.pth")', '"sd_cuda.pth")')):
        answer = follow(text, "sd_cuda.pth")
        assert (answer.kind, answer.line) == ("load-fails", 2)
    assert follow(too_long, "sd_cuda.pth").diff == ""
    assert follow('import torch\ntorch.load("sd_cuda.pth", **{})\n', "sd_cuda.pth").diff == ""
    evil = follow('import torch\ntorch.load("sd_cuda.pth")  # \x1b\n', "sd_cuda.pth")
    assert (evil.kind, evil.diff) == ("load-fails", "")
    assert "\x1b" not in shown(evil)


def test_a_patch_is_not_given_for_what_is_not_known_then() -> None:
    text = 'import torch\ndef f(d):\n    torch.load("sd_cuda.pth", d)\ntorch.load("sd_cuda.pth")\n'
    answer = follow(text, "sd_cuda.pth")
    assert (answer.line, answer.diff) == (4, "")


def test_names_are_allowed_one_a_line_and_imports_stand_at_the_top() -> None:
    text = '"""Text."""\nfrom __future__ import annotations\nimport torch\nif x:\n    m = torch.load("whole_cpu.pth")\n'  # noqa: E501
    answer = follow(text.replace("if x", "class Net: pass\nif x"), "whole_cpu.pth")
    assert "+    torch.serialization.add_safe_globals([\n+        Net,\n+        torch.nn" in answer.diff
    assert "Net, torch.nn.modules" in answer.why
    single = follow('import torch\nm = torch.load("args_cuda.pth", "cpu")\n', "args_cuda.pth")
    assert "+import argparse\n+torch.serialization.add_safe_globals([argparse.Namespace])\n" in single.diff
    withheld = follow(text, "whole_cpu.pth", version="2.4")
    assert withheld.kind == "class-missing"
    assert "Define or import Net" in withheld.advice


def test_an_import_where_all_are_imports() -> None:
    text = 'import torch\nif x:\n    torch.load("args_cuda.pth", "cpu")\n'
    assert "@@ -1,3 +1,5 @@\n import torch\n+import argparse\n" in follow(text, "args_cuda.pth").diff


def test_options_of_the_call() -> None:
    mapped = follow('import torch\nx = torch.load("old.pth", mmap=True)\n', "sd_cpu.pth", version="2.0")
    assert mapped.kind == "load-fails"
    assert '+x = torch.load("old.pth", mmap=False)' in mapped.diff
    wrong = follow("import torch\nx = torch.load('sd_cuda.pth', 3)\n", "sd_cuda.pth")
    assert wrong.why == "map_location is something that torch.load cannot work with."


def test_python_2() -> None:
    rows = {
        "print 'a', 1": "print is a function in Python 3",
        "x.cuda(async = True)": "async is a keyword since Python 3.7: write non_blocking",
        "try: pass\nexcept E, e: pass": "Python 3 writes except ... as ...",
        "raise E, 'x'": "Python 3 raises an exception that a call makes",
        "exec 'x'": "exec is a function in Python 3",
        "a <> 1": "Python 3 writes !=",
        "a = 10L": "numbers have no L in Python 3",
    }
    for line, why in rows.items():
        answer = follow(f"# print x\n{LOAD}\n{line}\n", "sd_cuda.pth")
        assert (answer.line, answer.further[-1].why, answer.diff) == (3, f"{why}.", ""), line
        good = follow(f"# print x\n{LOAD}\n{line}\n", "sd_cuda.pth", "cuda")
        assert (good.kind, good.why, good.outcome) == ("python-2", f"{why}.", "fails"), line
        assert why in shown(answer)


def test_outcomes() -> None:
    answer = follow("import torch\ntorch.load('a.pth')\ntorch.load('b.pth')\n")
    assert (answer.outcome, answer.load_line) == ("not-loaded", 0)
    assert "It loads other files, at line 2, 3: none has the name of this one." in answer.why
    assert "No call in it is torch.load" in shown(follow("x = 1\n"))
    works = follow("import torch\ntorch.load('sd_cpu.pth')\n")
    assert shown(works).endswith("Line 2 loads this file on this target.\n      2: torch.load('sd_cpu.pth')")
    with pytest.raises(ModelError):
        follow("def f(:\n")


def test_files_that_torch_load_is_not_for() -> None:
    path = next((CORPUS / "safetensors").glob("*.safetensors"))
    checkpoint = open_checkpoint(str(path))
    text = f"from safetensors.torch import load_file\nload_file({path.name!r})\n"
    assert answer_script(text, "a.py", checkpoint, CPU_ONLY).outcome == "works"
    wrong = f"from safetensors.torch import load_file\nload_file({path.name!r}, device='cuda')\n"
    answer = answer_script(wrong, "a.py", checkpoint, CPU_ONLY)
    assert answer.kind == "load-fails"
    assert "device=" in answer.diff
    lost = answer_script(wrong.replace("'cuda'", "what"), "a.py", checkpoint, CPU_ONLY)
    assert "device, which is what" in shown(lost)


def test_a_file_that_stops_every_load() -> None:
    first, *rest = opened("sd_cpu.pth").storages
    other = loaded_as("sd_cpu.pth", storages=(first._replace(missing=True), *rest))
    answer = answer_script("import torch\ntorch.load('sd_cpu.pth', 'cpu')\n", "a.py", other, CPU_ONLY)
    assert (answer.kind, answer.why) == (
        "load-fails",
        "The file itself stops this call, whatever the script does.",
    )


def test_a_file_that_runs_commands_is_offered_nothing() -> None:
    evil = open_checkpoint(str(CORPUS / "hostile" / "os_system.pt"))
    answer = answer_script("import torch\ntorch.load('os_system.pt')\n", "a.py", evil, CPU_ONLY)
    assert (answer.kind, answer.diff, answer.is_dangerous) == ("refused", "", True)


def test_other_roots() -> None:
    tensor = loaded_as("sd_cpu.pth", root="tensor")
    text = "import torch\nt = torch.load('sd_cpu.pth')\nt.eval()['x']\n"
    assert answer_script(text, "a.py", tensor, machine("cpu")).outcome == "works"
    several = loaded_as("sd_cpu.pth", root="sequence")
    assert answer_script(text, "a.py", several, machine("cpu")).outcome == "works"
    assert answer_script(text.replace("t.eval()", "t"), "a.py", several, machine("cpu")).outcome == "works"
    empty = loaded_as("sd_cpu.pth", tensors=())
    assert (
        answer_script(text.replace(".eval()['x']", ".items()"), "a.py", empty, machine("cpu")).outcome
        == "works"
    )


def test_what_is_no_archive_of_torchscript() -> None:
    text = (
        "import torch\ntry:\n    m = torch.jit.load(p).eval()\n"
        "except RuntimeError:\n    m = torch.load(p, 'cpu')\n"
    )
    assert said(text, "sd_cuda.pth") == "works 5"
    assert said("import torch\nm = torch.jit.load(p)\n", "sd_cuda.pth") == "load-fails 2"
    assert said("import io, torch\nm = torch.jit.load(io.BytesIO(p))\n", "sd_cuda.pth") == "not-loaded"
    own = loaded_as("sd_cpu.pth", format="torchscript")
    assert answer_script("import torch\ntorch.jit.load(p)\n", "a.py", own, CPU_ONLY).load_line == 2


def test_a_load_whose_keys_fit_counts_more_than_one_of_an_unknown_file() -> None:
    """The usual path of a script is named by a default; another branch takes whatever it is given."""
    text = (
        "import os\nimport torch\n\n\n"
        "def main(args, other=None):\n"
        "    if other is not None:\n"
        "        net.load_state_dict(torch.load(other))\n"
        '    path = os.path.join("runs", "best_ckpt.pth") if args is None else args\n'
        '    ckpt = torch.load(path, map_location="cpu")\n'
        '    net.load_state_dict(ckpt["model"])\n\n\n'
        "main(None)\n"
    )
    answer = follow(text, "train_cuda.pth")
    assert (answer.outcome, answer.load_line) == ("works", 9)


def test_bytes_of_another_program_are_no_file() -> None:
    text = "import io\nimport torch\nbuffer = io.BytesIO(run())\nx = torch.load(buffer)\n"
    assert follow(text, "sd_cuda.pth").outcome == "not-loaded"


def test_what_is_no_file_of_safetensors() -> None:
    text = 'from safetensors.torch import load_file\nx = load_file("sd_cuda.pth", device="cpu")\n'
    answer = follow(text, "sd_cuda.pth")
    assert (answer.outcome, answer.line) == ("fails", 2)
    assert answer.message.startswith("SafetensorError")


def test_two_loads_of_one_argument_are_judged_both() -> None:
    text = (
        "import torch\n\n\n"
        'def convert(checkpoint):\n    pkg = torch.load(checkpoint, "cpu")\n    return pkg["klass"]\n\n\n'
        'def compare(checkpoint):\n    return build(torch.load(checkpoint, "cpu"))\n\n\n'
        "convert(args())\ncompare(args())\n"
    )
    answer = follow(text, "train_cuda.pth")
    assert (answer.outcome, answer.line, answer.message) == ("fails", 6, "KeyError: 'klass'")


def test_a_path_whose_end_is_written_names_its_file() -> None:
    text = 'import torch\nfolder = home()\na = torch.load(folder / "a.pt")\nb = torch.load(folder / "b.pt")\n'
    assert follow(text, "train_cuda.pth").outcome == "not-loaded"
    assert follow(text.replace("b.pt", "train_cuda.pth"), "train_cuda.pth").load_line == 4
