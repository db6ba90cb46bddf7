"""Names in lines to paste: the shell reads back what was written, and runs nothing on the way."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from inspector.quoting import cell_text, command, file_word, pasted_cell, python_text, shell_word

NAMES = (
    "best.pth",
    "my best model.pth",
    "it's.pth",
    'say "hi".pth',
    "both ' and \".pth",
    "$(touch injected).pth",
    "`touch injected`.pth",
    "a;touch injected;b.pth",
    "a\ntouch injected\nb.pth",
    "a\r\tb\x1b[31m.pth",
    "!!.pth",
    "~.pth",
    "*?[a].pth",
    "#.pth",
    "%PATH%.pth",
    "back\\slash.pth",
    "\u043c\u043e\u0434\u0435\u043b\u044c \u540d\u524d.pth",
    "left\u202eright.pth",
    os.fsdecode(b"caf\xe9.pth"),
    "-rf.pth",
    "--map",
    "=ls.pth",
    "a&b|c>d<e.pth",
    "{a,b}.pth",
    "",
)


@pytest.mark.skipif(os.name == "nt", reason="asks a shell of Unix")
@pytest.mark.parametrize("shell", [name for name in ("bash", "zsh", "dash") if shutil.which(name)])
def test_a_shell_reads_each_name_back(shell: str, tmp_path: Path) -> None:
    names = [name for name in NAMES if shell != "dash" or name.isprintable()]
    words = " ".join(shell_word(name, windows=False) for name in names)
    script = f"printf '%s\\0' {words}".encode()  # a terminal hands over what was copied from it: text
    done = subprocess.run(
        [shell], input=script, capture_output=True, cwd=tmp_path, check=True, env={"PATH": os.defpath}
    )
    assert done.stdout == b"".join(os.fsencode(name) + b"\0" for name in names)
    assert list(tmp_path.iterdir()) == []


def test_a_line_is_one_line_that_a_terminal_shows() -> None:
    for name in NAMES:
        for text in (python_text(name), shell_word(name, windows=False), shell_word(name, windows=True)):
            assert text.isprintable(), name


def test_python_reads_each_name_back() -> None:
    for name in NAMES:
        assert ast.literal_eval(python_text(name)) == name
    assert python_text("best.pth") == '"best.pth"'
    assert python_text("it's") == '"it\'s"'


def test_no_file_is_taken_for_an_option() -> None:
    assert file_word("-o.pth", windows=False) == "./-o.pth"
    assert file_word("=ls", windows=False) == "./=ls"
    assert file_word("a/-o.pth", windows=False) == "a/-o.pth"
    assert file_word("-o x.pth", windows=True) == '"./-o x.pth"'


def test_on_windows_both_shells_take_it_for_one_word() -> None:
    for name, word in (
        (r"C:\models\best.pth", r"C:\models\best.pth"),
        (r"C:\my models\best.pth", r'"C:\my models\best.pth"'),
        ("a&calc.pth", '"a&calc.pth"'),
        ("it's.pth", '"it\'s.pth"'),
        ("$(calc)&b.pth", '"`$(calc)&b.pth"'),
        ("%CMDCMDLINE%&calc&.pth", '"`%CMDCMDLINE`%&calc&.pth"'),
        ("a\u201d; calc; \u201cb.pth", '"a`\u201d; calc; `\u201cb.pth"'),
        ("a`b.pth", '"a``b.pth"'),
        ("left\u202eright.pth", '"left`u{202e}right.pth"'),
        ("@x.pth", '"@x.pth"'),
        ("a,b.pth", '"a,b.pth"'),
        ("cuda:*=cpu", '"cuda:*=cpu"'),
    ):
        assert shell_word(name, windows=True) == word


def test_a_command() -> None:
    assert command("show", "best.pth") == "checkpoint-inspector show best.pth"


def test_no_cell_is_a_formula() -> None:
    for text in ("=cmd|'/c calc'!A1", "+a", "-a", "@SUM(1)", "\uff1d1", "\r=1"):
        assert cell_text(text) == pasted_cell(text) == f"'{text}"
    for text in ("-0.5", "+1", "-inf", "a=b", "", " =1"):
        assert cell_text(text) == pasted_cell(text) == text
    assert cell_text('"a') == '"a'
    assert pasted_cell('"a\tb') == "'\"a b"
