from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from inspector.model.build import open_checkpoint
from inspector.resources import demo_path
from tests.corpus import CORPUS

DEMO = demo_path()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(DEMO, tmp_path / "demo.pth"))


def devices(path: Path) -> set[str]:
    return {storage.device for storage in open_checkpoint(str(path)).storages}


# ----------------------------------------------------------------------------------------------- snippet


def test_a_snippet_is_code_and_nothing_else(cli) -> None:
    answer = cli("snippet", DEMO)
    assert (answer.code, answer.err) == (0, "")
    ast.parse(answer.out)
    assert "torch.load" in answer.out
    assert answer.out.endswith("\n")


@pytest.mark.parametrize("style", ["plain", "resume"])
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--target", "cpu"],
        ["--target", "this"],
        ["--target", "cuda:2", "--map", "cuda:1=cpu"],
        ["--map", "*=cpu"],
    ],
)
def test_snippets_for_maps_and_targets(cli, style, options) -> None:
    answer = cli("snippet", DEMO, "--style", style, *options)
    assert answer.code == 0
    ast.parse(answer.out)
    assert "cpu" in answer.out or not options or options == ["--target", "this"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing"], 3, "there is no such file: missing"),
        ([DEMO, "--map", "cuda0=cpu"], 2, "the rule matches nothing: nothing in the file is on 'cuda0'"),
        ([DEMO, "--style", "baroque"], 2, "this file offers no snippet in the style 'baroque'"),
        ([DEMO, "--target", "moon"], 2, "there is no target 'moon'"),
        ([DEMO, "--map", "moon"], 2, "the rule 'moon' is not understood"),
        ([DEMO, "--map", "path:optimizer/**@cpu"], 2, "code can map devices only, no path"),
    ],
)
def test_snippets_that_cannot_be_given(cli, arguments, code, said) -> None:
    answer = cli("snippet", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith(f"checkpoint-inspector: error: {said}")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("torchscript/conv.pt", [], "torch.jit.load("),
        ("torchscript/conv.pt", ["--map", "*=cpu"], 'map_location="cpu"'),
        ("safetensors/all.safetensors", ["--target", "cuda"], 'device="cuda:0"'),
        ("export/model.pt2", [], "torch.export.load("),
        ("plain_pickle/tensor_p2.pkl", [], "CPUUnpickler(file)"),
        ("dcp/plain", [], "dcp_to_torch_save("),
        ("dcp/plain", ["--style", "distributed"], "dcp.load("),
        ("hf_sharded/pytorch_model.bin.index.json", [], '["weight_map"]'),
        ("hf_sharded/pytorch_model.bin.index.json", ["--style", "transformers"], "from_pretrained("),
    ],
)
def test_code_for_files_that_are_not_read(cli, name, options, said) -> None:
    answer = cli("snippet", CORPUS / name, *options)
    assert answer.code == 0
    ast.parse(answer.out)
    assert said in answer.out
    assert answer.err.startswith("checkpoint-inspector: the file itself was not read: this is ")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "style", "code"),
    [("package/pkg.pt", "plain", 3), ("zip", "plain", 3), ("torchscript/conv.pt", "lightning", 2)],
)
def test_no_code_for_what_no_loader_is_known_for(cli, name, style, code) -> None:
    answer = cli("snippet", CORPUS / name, "--style", style)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("checkpoint-inspector: error: this ")


# -------------------------------------------------------------------------------------------- screenshot


PNG = b"\x89PNG\r\n\x1a\nold"


@pytest.fixture
def camera(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Stands in for the window: remembers what was asked of it, and fails as it is told to."""
    asked: dict[str, object] = {"error": None}

    def screenshot(path: str, out: str, **options: object) -> None:
        asked.update(options, path=path)
        Path(out).write_bytes(b"half")
        if isinstance(asked["error"], Exception):
            raise asked["error"]
        Path(out).write_bytes(b"picture")

    app = ModuleType("inspector.gui.app")
    app.screenshot = screenshot
    app.main = lambda files, **options: asked.update(options, files=files) or 0
    monkeypatch.setitem(sys.modules, "inspector.gui.app", app)
    return asked


def test_a_picture_is_taken_as_asked(cli, copy, camera) -> None:
    out = copy.with_name("out.png")
    options = ["--size", "640x480", "--theme", "dark", "--page", "code"]
    assert cli("screenshot", copy, out, *options).code == 0
    assert out.read_bytes() == b"picture"
    assert camera == {"error": None, "path": str(copy), "size": (640, 480), "theme": "dark", "page": "code"}
    assert sorted(path.name for path in copy.parent.iterdir()) == ["demo.pth", "out.png"]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError("it could not be written"), 4, "the picture cannot be written: the folder takes no file"),
        (PermissionError(13, "Permission denied"), 4, "the picture cannot be written: Permission denied"),
        (TimeoutError("the window did not come to rest"), 3, "the window did not come to rest"),
        (ImportError("libEGL.so.1"), 2, "the window's libraries cannot be loaded: libEGL.so.1"),
    ],
)
def test_a_picture_that_fails_leaves_nothing_and_keeps_what_was_there(
    cli, copy, camera, error, code, said
) -> None:
    out = copy.with_name("out.png")
    out.write_bytes(PNG)
    camera["error"] = error
    answer = cli("screenshot", copy, out)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert out.read_bytes() == PNG
    assert sorted(path.name for path in copy.parent.iterdir()) == ["demo.pth", "out.png"]


def test_what_cannot_be_read_is_told_in_words(cli, tmp_path, camera) -> None:
    answer = cli("screenshot", tmp_path / "missing", tmp_path / "out.png")
    assert (answer.code, answer.err.count("\n")) == (3, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("there", "code"), [(PNG, 0), (b"", 0), (None, 0), (b"GIF89a", 4), (b"PK\3\4", 4), (PNG[:7], 4)]
)
def test_what_is_no_picture_is_replaced_only_where_that_is_asked_for(cli, copy, camera, there, code) -> None:
    out = copy.with_name("other.pth")
    if there is not None:
        out.write_bytes(there)
    answer = cli("screenshot", copy, out)
    assert answer.code == code
    if code:
        assert out.read_bytes() == there
        assert "there is a file already" in answer.err
    assert cli("screenshot", copy, out, "--force").code == 0
    assert out.read_bytes() == b"picture"


def test_a_link_to_nothing_is_no_picture(cli, copy, camera) -> None:
    out = copy.with_name("out.png")
    out.symlink_to(copy.with_name("missing"))
    assert cli("screenshot", copy, out).code == 4
    assert cli("screenshot", copy, out, "--force").code == 0


def test_a_picture_never_replaces_the_checkpoint(cli, copy, camera) -> None:
    assert cli("screenshot", copy, copy).code == 4
    assert cli("screenshot", copy, copy.parent).code == 4
    assert cli("screenshot", copy, copy.parent / "no" / "such.png").code == 4
    assert copy.read_bytes() == DEMO.read_bytes()


def test_only_linux_is_told_what_debian_calls_it(cli, copy, camera, monkeypatch) -> None:
    camera["error"] = ImportError("DLL load failed")
    monkeypatch.setattr(sys, "platform", "win32")
    assert "apt" not in cli("screenshot", copy, copy.with_name("out.png")).err


# ------------------------------------------------------------------------------------------- the desktop


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_the_desktop_registration_names_its_files_and_is_taken_back(cli, home) -> None:
    installed = cli("desktop", "install")
    assert (installed.code, installed.err) == (0, "")
    paths = [Path(line) for line in installed.out.splitlines()]
    assert paths
    assert all(path.is_relative_to(home) and path.exists() for path in paths)
    removed = cli("desktop", "remove")
    assert removed.code == 0
    assert {Path(line) for line in removed.out.splitlines()} == set(paths)
    assert not any(path.exists() for path in paths)
    again = cli("desktop", "remove")
    assert (again.code, again.out) == (0, "")


def test_a_registration_that_cannot_be_written(cli, home, monkeypatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "file"))
    answer = cli("desktop", "install")
    assert (answer.code, answer.out, answer.err.count("\n")) == (4, "", 1)


# -------------------------------------------------------------------------------------------- the window


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """No program runs that files could be handed to."""
    from inspector.desktop import handover

    asked: list[list[str]] = []
    monkeypatch.setattr(handover, "hand_over", asked.append)
    return asked


def test_files_go_to_the_running_program(cli, monkeypatch, camera) -> None:
    from inspector.desktop import handover

    monkeypatch.setattr(handover, "hand_over", lambda files: True)
    assert cli("a.pth").code == 0
    assert "files" not in camera


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {"files": [], "demo": False, "fresh": False}),
        (["a.pth", "./show", "--fresh"], {"files": ["a.pth", "./show"], "demo": False, "fresh": True}),
        (["--demo"], {"files": [], "demo": True, "fresh": False}),
    ],
)
def test_or_to_a_window_of_their_own(cli, nobody, camera, arguments, options) -> None:
    assert cli(*arguments).code == 0
    assert {name: camera[name] for name in options} == options
    assert len(nobody) == (0 if options["demo"] else 1)


def test_without_a_screen_the_window_is_a_wrong_command(cli, nobody, camera, monkeypatch) -> None:
    for name in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    answer = cli(DEMO)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "checkpoint-inspector: error: there is no screen to open a window on "
        "(use checkpoint-inspector show FILE)\n"
    )
