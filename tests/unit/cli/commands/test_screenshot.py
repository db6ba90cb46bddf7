from __future__ import annotations

import sys

import pytest

from inspector.resources import demo_path
from inspector.target import profile_file
from inspector.target.profile import Profile

DEMO = demo_path()

PNG = b"\x89PNG\r\n\x1a\nold"


def test_a_picture_is_taken_as_asked(cli, copy, camera) -> None:
    out = copy.with_name("out.png")
    options = ["--size", "640x480", "--theme", "dark", "--page", "code"]
    assert cli("screenshot", copy, out, *options).code == 0
    assert out.read_bytes() == b"picture"
    taken = {"path": str(copy), "size": (640, 480), "theme": "dark", "page": "code", "target": None}
    assert camera == {"error": None, **taken}
    assert sorted(path.name for path in copy.parent.iterdir()) == ["demo.pth", "out.png"]


def test_the_window_can_show_another_machine(cli, copy, camera, monkeypatch) -> None:
    here = Profile(id="this", label="this machine (2 CUDA GPUs)", accelerators=(("cuda", 2),))
    monkeypatch.setattr(profile_file, "probe_this_machine", lambda progress, python=None: here)
    for word, label, wanted in (
        ("4xcuda:2", "4 NVIDIA GPUs", "cuda:2"),
        ("this@cuda:1", "this machine (2 CUDA GPUs)", "cuda:1"),
    ):
        assert cli("screenshot", copy, copy.with_name("out.png"), "--target", word, "--force").code == 0
        assert (camera["target"].label, camera["target"].wanted) == (label, wanted)
    assert cli("screenshot", copy, copy.with_name("out.png"), "--target", "gpu").code == 2


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError("it could not be written"), 4, "the picture cannot be written: the folder takes no file"),
        (PermissionError(13, "Permission denied"), 4, "the picture cannot be written: Permission denied"),
        (TimeoutError("the window did not settle"), 3, "the window did not settle"),
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
        assert "the file already exists" in answer.err
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


def test_a_thumbnail_needs_no_window(cli, copy, camera) -> None:
    """The desktop makes an empty file first, and reads that very file; nothing else is replaced."""
    out = copy.with_name("out.png")
    with out.open("w+b") as held:
        assert cli("screenshot", copy, out, "--thumbnail", "64").code == 0
        assert held.read()[:24].endswith((64).to_bytes(4, "big") * 2)
    assert cli("screenshot", copy, out, "--thumbnail", "32").code == 0
    assert out.read_bytes()[:24].endswith((32).to_bytes(4, "big") * 2)
    assert camera == {"error": None}
    out.write_text("mine")
    assert cli("screenshot", copy, out, "--thumbnail", "64").code == 4
    assert out.read_text() == "mine"
    assert cli("screenshot", copy.with_name("none.pth"), out, "--thumbnail", "64").code == 3
    for wrong in ("31", "1025", "64x64", "-1"):
        assert cli("screenshot", copy, out, "--thumbnail", wrong).code == 2


def test_a_suffix_of_another_format_is_refused(cli, copy, camera) -> None:
    answer = cli("screenshot", copy, copy.with_name("window.JPG"))
    assert answer.code == 2
    assert (
        f"the picture would be a PNG: {copy.with_name('window.JPG')} (name it with the suffix .png)"
        in answer.err
    )
    assert list(copy.parent.iterdir()) == [copy]
