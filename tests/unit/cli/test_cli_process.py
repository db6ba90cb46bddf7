"""The command as a stranger runs it: a process with streams, an environment and signals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.resources import demo_path
from tests.builders import pickles, zips

DEMO = demo_path()
ROOT = Path(__file__).parents[3]
PYTHON = [sys.executable, "-m", "inspector"]


def run(
    *arguments: object, env: dict[str, str] | None = None, **options: object
) -> subprocess.CompletedProcess:
    command = [*PYTHON, *map(os.fspath, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT, **options}
    return subprocess.run(command, env=environment(env), timeout=300, check=False, **options)


def environment(changes: dict[str, str] | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return {**kept, "PYTHONPATH": str(ROOT), **(changes or {})}


@pytest.mark.wide
def test_json_can_be_piped_into_a_program() -> None:
    answer = run("show", "--json", "/does/not/exist", DEMO)
    assert (answer.returncode, answer.stderr) == (3, b"")
    documents = [json.loads(line) for line in answer.stdout.splitlines()]
    assert ["error" in document for document in documents] == [True, False]


@pytest.mark.wide
def test_head_may_close_the_pipe(tmp_path) -> None:
    many = pickles.state_dict(
        **{f"layer{n}.weight": pickles.tensor(pickles.storage(), 2) for n in range(3000)}
    )
    big = tmp_path / "big.pt"
    big.write_bytes(zips.checkpoint(many, {"0": bytes(8)}))
    with subprocess.Popen(
        [*PYTHON, "show", str(big), str(big)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(None),
    ) as child:
        assert child.stdout.readline() == f"{big}\n".encode()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(100) == 0


@pytest.mark.wide
@pytest.mark.parametrize(
    "env", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}]
)
def test_names_in_any_script_survive_any_terminal(tmp_path, env) -> None:
    path = tmp_path / "名前.pt"
    path.write_bytes(
        zips.checkpoint(pickles.state_dict(重み=pickles.tensor(pickles.storage(), 2)), {"0": bytes(8)})
    )
    answer = run("show", path, tmp_path / "名", env=env)
    assert answer.returncode == 3
    assert rb"\u91cd\u307f" in answer.stdout
    assert answer.stderr.count(b"\n") == 1
    assert rb"\u" in answer.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full, a disk that is always full")
def test_a_full_disk_is_said_once() -> None:
    with Path("/dev/full").open("wb") as full:
        answer = run("show", DEMO, stdout=full)
    assert answer.returncode == 4
    assert answer.stderr == (
        b"checkpoint-inspector: error: the output cannot be written: No space left on device\n"
    )


@pytest.mark.wide
def test_streams_may_be_closed(tmp_path) -> None:
    def close_both() -> None:
        os.close(1)
        os.close(2)

    out = tmp_path / "out.pth"
    assert run("remap", DEMO, "-o", out, stdout=None, stderr=None, preexec_fn=close_both).returncode == 0
    assert out.exists()


# Ctrl+C comes some processor time after a file was opened: sooner than it is read or written, at any load.
INTERRUPTED = """
import os, runpy, signal, sys
folder, is_write = os.environ["FOLDER"], os.environ["MOMENT"] == "writing"
def watch(event, given):
    if event == "open" and str(given[0]).startswith(folder) and bool(given[2] & os.O_RDWR) == is_write:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)
signal.signal(signal.SIGVTALRM, lambda *_: (print(os.environ["MOMENT"]), os.kill(os.getpid(), signal.SIGINT)))
sys.addaudithook(watch)
runpy.run_module("inspector", run_name="__main__", alter_sys=True)
"""


@pytest.mark.wide
@pytest.mark.slow
@pytest.mark.usefixtures("heard")
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C comes by ITIMER_PROF, which Windows lacks")
@pytest.mark.parametrize("moment", ["reading", "writing"])
def test_ctrl_c_during_a_big_remap_leaves_no_file(tmp_path, moment) -> None:
    row = pickles.tensor(pickles.storage(location="cuda:0"), 2)
    many = {f"layer{number}.weight": row for number in range(8_000)}
    big = tmp_path / "big.pt"
    big.write_bytes(zips.checkpoint(pickles.state_dict(**many), {"0": bytes(8)}))
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "remap", str(big), "-o", str(tmp_path / "out.pt")],
        capture_output=True,
        cwd=ROOT,
        env=environment({"FOLDER": str(tmp_path), "MOMENT": moment}),
        timeout=300,
        check=False,
    )
    assert (done.stdout.decode(), done.stderr, done.returncode) == (f"{moment}\n", b"", 130)
    assert list(tmp_path.iterdir()) == [big]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no variable says whether there is a screen")
@pytest.mark.parametrize(
    "screen",
    [{}, {"DISPLAY": "127.0.0.1:59"}, {"DISPLAY": "nonsense"}, {"WAYLAND_DISPLAY": "no-such-compositor"}],
    ids=["no screen", "nobody there", "nonsense", "no compositor"],
)
def test_without_a_screen_there_is_one_line_and_no_abort(tmp_path, screen) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    kept = environment({"XDG_RUNTIME_DIR": str(runtime), **screen})
    for name in {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"} - set(screen):
        kept.pop(name, None)
    answer = subprocess.run(
        [*PYTHON, str(DEMO)], env=kept, cwd=ROOT, capture_output=True, timeout=300, check=False
    )
    assert (answer.returncode, answer.stdout) == (2, b"")
    assert answer.stderr == (
        b"checkpoint-inspector: error: there is no screen to open a window on "
        b"(use: checkpoint-inspector show " + os.fsencode(DEMO) + b")\n"
    )


@pytest.mark.wide
@pytest.mark.slow
def test_a_picture_is_a_picture(tmp_path) -> None:
    out = tmp_path / "out.png"
    assert run("screenshot", DEMO, out, "--size", "900x600").returncode == 0
    assert out.read_bytes().startswith(b"\x89PNG\r\n")
    assert list(tmp_path.iterdir()) == [out]


def test_a_mistake_can_be_traced_by_a_developer() -> None:
    code = "import inspector.cli as cli; cli.parse = lambda given: 1 / 0; raise SystemExit(cli.main())"
    plain = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=300, check=False
    )
    assert plain.returncode == 3
    assert plain.stderr.count(b"\n") == 1
    traced = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code], cwd=ROOT, capture_output=True, timeout=300, check=False
    )
    assert b"Traceback" in traced.stderr


@pytest.mark.wide
def test_it_runs_from_any_folder(tmp_path) -> None:
    shutil.copy(DEMO, tmp_path / "show")
    assert run("show", "show", "--depth", "1", cwd=tmp_path).stdout.startswith(b"show\n")


def test_plain_text_imports_nothing_for_terminals() -> None:
    code = (
        "import sys; from inspector.cli import main;"
        "main(['show', sys.argv[1]]); print(len(sys.modules), file=sys.stderr);"
        "main(['check', sys.argv[1], '--target', 'cuda']); print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    child = subprocess.run(
        [sys.executable, "-c", code, str(DEMO)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env=environment(None),
    )
    count, *imported = child.stderr.split("\n")
    heavy = ("rich", "pygments", "inspector.cli.terminal", "inspector.cli.progress", "numpy", "PySide6")
    assert [name for name in imported if name.startswith(heavy)] == []
    assert sum(name.startswith("inspector.") for name in imported) <= 260
    assert int(count) <= 340
