"""The launcher's text."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from inspector.desktop.freedesktop import entry
from inspector.errors import ExportError
from inspector.resources import resource_path
from tests.sweep import table

ROOT = Path(entry.__file__).resolve().parents[2]
TEMPLATE = resource_path("desktop/checkpoint-inspector.desktop").read_text(encoding="utf-8")


def test_only_the_command_of_the_template_changes():
    text = entry.format_entry(TEMPLATE, ["/opt/ci/checkpoint-inspector"])
    changed = [line for line in text.splitlines() if line not in TEMPLATE.splitlines()]
    assert changed == ["Exec=/opt/ci/checkpoint-inspector %F", "TryExec=/opt/ci/checkpoint-inspector"]
    assert len(text.splitlines()) == len(TEMPLATE.splitlines())


def test_the_program_itself_must_be_there_not_env():
    text = entry.format_entry(
        "TryExec=x\n", ["env", "PYTHONPATH=/a b", "/usr/bin/python3", "-m", "inspector"]
    )
    assert text == "TryExec=/usr/bin/python3\n"
    assert entry.format_entry("TryExec=x\n", ["checkpoint-inspector"]) == "TryExec=checkpoint-inspector\n"


@table(
    ("word", "quoted"),
    [
        ("/usr/bin/python3.11", "/usr/bin/python3.11"),
        ("", '""'),
        ("/my programs/ci", '"/my programs/ci"'),
        ("50%", "50%%"),
        ("a b%F", '"a b%%F"'),
        ('"`$\\', '"\\"\\`\\$\\\\"'),
        ("~", '"~"'),
        ("/home/zoë/ci", '"/home/zoë/ci"'),
    ],
)
def test_words_are_quoted_for_a_launcher(word, quoted):
    assert entry.quote_argument(word) == quoted


@table("word", ["a\nExec=rm", "a\tb", "\x00"])
def test_control_characters_cannot_be_in_a_launcher(word):
    with pytest.raises(ExportError, match="control character"):
        entry.quote_argument(word)


def test_a_backslash_is_doubled_once_more_for_the_value():
    assert entry.format_entry("Exec=\n", ["/a$b"]) == 'Exec="/a\\\\$b" %F\n'


def test_our_types_are_those_of_the_launcher():
    assert entry.read_own_types(TEMPLATE) == [
        "application/x-pytorch-checkpoint",
        "application/x-pytorch-legacy-checkpoint",
        "application/x-pytorch-tar-checkpoint",
        "application/x-pytorch-distributed-checkpoint",
        "application/x-safetensors",
        "application/x-gguf",
    ]


@pytest.mark.skipif(shutil.which("desktop-file-validate") is None, reason="needs desktop-file-utils")
@pytest.mark.parametrize("command", ["/usr/bin/ci", "'/my $programs/50%/ci' --x", "env A=b /usr/bin/python3"])
def test_the_launcher_is_valid(tmp_path, command):
    path = tmp_path / "checkpoint-inspector.desktop"
    path.write_text(entry.format_entry(TEMPLATE, shlex.split(command)), encoding="utf-8")
    done = subprocess.run(["desktop-file-validate", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(shutil.which("gio") is None, reason="needs gio of libglib2.0-bin")
def test_a_real_launcher_understands_the_quoting(tmp_path):
    """GLib starts the entry, and the program finds the words and files as they were meant."""
    program = tmp_path / "my $50% `programs`" / 'a"b\\c'
    said = shlex.quote(str(tmp_path / "said"))
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{said}\n', encoding="utf-8")
    program.chmod(0o755)
    path = tmp_path / "x.desktop"
    path.write_text(entry.format_entry(TEMPLATE, [str(program), "%F", "two words"]), encoding="utf-8")
    subprocess.run(["gio", "launch", path, tmp_path / "model 1.pth"], check=True, timeout=300)
    for _ in range(100):
        if (tmp_path / "said").exists() and (tmp_path / "said").read_text().count("\n") == 3:
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert (tmp_path / "said").read_text().splitlines() == ["%F", "two words", str(tmp_path / "model 1.pth")]
