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

TEMPLATE = resource_path("desktop/checkpoint-inspector.desktop").read_text(encoding="utf-8")
THUMBNAILER = resource_path("desktop/checkpoint-inspector.thumbnailer").read_text(encoding="utf-8")
SCRIPT = resource_path("desktop/launch.sh").read_text(encoding="utf-8")


def test_only_the_command_of_the_template_changes():
    text = entry.format_entry(TEMPLATE, "/data/launch.sh", "a/b:c.desktop;")
    changed = [line for line in text.splitlines() if line not in TEMPLATE.splitlines()]
    assert changed == ["Exec=/bin/sh /data/launch.sh %F", "X-CheckpointInspector-Kept=a/b:c.desktop;"]
    assert "TryExec" in TEMPLATE
    assert "TryExec" not in text
    assert entry.read_kept(text) == "a/b:c.desktop;"
    assert entry.read_kept(TEMPLATE) == ""


def test_the_program_itself_must_be_there_not_env():
    assert entry.find_program_word(["env", "A=/a b", "/usr/bin/python3", "-m", "x"]) == "/usr/bin/python3"
    assert entry.find_program_word(["checkpoint-inspector"]) == "checkpoint-inspector"


def test_the_thumbnailer_is_ignored_once_the_program_is_gone():
    text = entry.format_thumbnailer(THUMBNAILER, ["/my $p/50%/python", "-P", "/a/__main__.py"])
    assert text.splitlines()[:3] == [
        "[Thumbnailer Entry]",
        "TryExec=/my $p/50%/python",
        'Exec="/my \\\\$p/50%%/python" -P /a/__main__.py screenshot %i %o --thumbnail %s',
    ]
    assert text.splitlines()[3:] == THUMBNAILER.splitlines()[3:]


def test_only_formats_that_can_be_drawn_have_thumbnails():
    types = entry.read_own_types(THUMBNAILER)
    assert set(types) == set(entry.read_own_types(TEMPLATE)) - {
        "application/x-pytorch-distributed-checkpoint"
    }


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
    assert entry.format_entry("Exec=\n", "/a$b", "").startswith('Exec=/bin/sh "/a\\\\$b" %F\n')


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
def test_the_launcher_is_valid(tmp_path):
    path = tmp_path / "checkpoint-inspector.desktop"
    path.write_text(
        entry.format_entry(TEMPLATE, "/my $data/50%/launch.sh", "a/b:c.desktop;"), encoding="utf-8"
    )
    done = subprocess.run(["desktop-file-validate", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(shutil.which("gio") is None, reason="needs gio of libglib2.0-bin")
def test_a_real_launcher_understands_the_quoting(tmp_path):
    """GLib starts the entry, the script the program, which finds the words and files as they were meant."""
    program = tmp_path / "my $50% `programs` @COMMAND@ @PROGRAM@" / 'a"b\\c'
    said = tmp_path / "said"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{shlex.quote(str(said))}\n', encoding="utf-8")
    program.chmod(0o755)
    script = tmp_path / "it's %F data" / "launch.sh"
    script.parent.mkdir()
    script.write_text(
        entry.format_script(SCRIPT, [str(program), "%F", "two words", "@COMMAND@"]), encoding="utf-8"
    )
    path = tmp_path / "x.desktop"
    path.write_text(entry.format_entry(TEMPLATE, str(script), ""), encoding="utf-8")
    subprocess.run(["gio", "launch", path, tmp_path / "model 1.pth"], check=True, timeout=300)
    for _ in range(100):
        if said.exists() and said.read_text().count("\n") == 4:
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert said.read_text().splitlines() == ["%F", "two words", "@COMMAND@", str(tmp_path / "model 1.pth")]


# ------------------------------------------------------------------ the script of the launcher


class Home:
    """A home folder with programs in it, and a script that was written for one of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools = folder / "tools"
        self.tools.mkdir()
        self.old = folder / "old place" / "checkpoint-inspector"
        script = folder / "data" / "launch.sh"
        script.parent.mkdir()
        script.write_text(entry.format_script(SCRIPT, [str(self.old), "--x"]), encoding="utf-8")
        self.script = script

    def add(self, path: Path, *, answer: str = "", code: int = 0) -> None:
        """Make a program that writes its name and its arguments down, but for `--version`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        said = shlex.quote(str(self.folder / "said"))
        text = f"""#!/bin/sh
case "$*" in *--version) exit {answer or 0};; esac
printf '%s\\n' {shlex.quote(path.name)} "$@" >>{said}
exit {code}
"""
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def launch(self, path: str = "") -> tuple[int, list[str], str]:
        """Launch with a file; return the exit code, what programs wrote down, and what was said."""
        (self.folder / "said").unlink(missing_ok=True)
        done = subprocess.run(
            ["/bin/sh", self.script, "/a b/x.pth"],
            env={"HOME": str(self.folder), "PATH": f"{path}{self.tools}"},
            cwd=self.folder,
            check=False,
            capture_output=True,
            text=True,
        )
        said = self.folder / "said"
        return done.returncode, said.read_text().splitlines() if said.exists() else [], done.stderr


NAME = "checkpoint-inspector"


def test_the_program_where_it_was_registered_is_started(tmp_path):
    home = Home(tmp_path)
    home.add(home.old)
    home.add(home.tools / NAME)
    assert home.launch() == (0, [NAME, "--x", "/a b/x.pth"], "")


def test_a_program_that_fails_by_itself_has_said_why(tmp_path):
    home = Home(tmp_path)
    home.add(home.old, code=4)
    home.add(home.tools / "zenity")
    assert home.launch() == (4, [NAME, "--x", "/a b/x.pth"], "")


def test_another_installation_is_found(tmp_path):
    """On the path, else where pipx and pip put it; one that does not run itself is passed over."""
    home = Home(tmp_path)
    home.add(home.old, answer="1", code=1)  # its Python is there, what it imports is gone
    home.add(tmp_path / ".local/bin" / NAME)
    assert home.launch()[1] == [NAME, "--x", "/a b/x.pth", NAME, "/a b/x.pth"]
    home.old.unlink()
    assert home.launch()[:2] == (0, [NAME, "/a b/x.pth"])
    home.add(home.tools / NAME, answer="1")
    assert home.launch()[:2] == (0, [NAME, "/a b/x.pth"])
    home.add(home.tools / NAME)
    (tmp_path / ".local/bin" / NAME).unlink()
    assert home.launch()[:2] == (0, [NAME, "/a b/x.pth"])


def test_no_program_is_taken_from_the_folder_of_the_file(tmp_path):
    home = Home(tmp_path)
    home.add(tmp_path / NAME)
    assert home.launch(path=".:")[:2] == (127, [])


def test_a_dialog_says_what_to_do(tmp_path):
    home = Home(tmp_path)
    for tool in ("xdg-open", "xmessage", "yad", "kdialog", "zenity"):  # each is preferred to those before it
        home.add(home.tools / tool)
        code, said, error = home.launch()
        assert (code, said[0]) == (127, tool)
        words = "\n".join(said) if tool != "xdg-open" else (tmp_path / "data/moved.txt").read_text()
        assert str(home.old) in words
        assert "checkpoint-inspector desktop install" in words
        assert str(home.old) in error
    assert home.launch()[1].count("zenity") == 1
