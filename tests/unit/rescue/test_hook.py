from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path

import pytest

from inspector.errors import ExportError
from inspector.rescue import running
from inspector.rescue.running import hooked
from inspector.target.wish import parse_wish

THIS = parse_wish("this")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_is_private_complete_and_gone_afterwards(temporary: Path) -> None:
    with hooked([("cuda:*", "cpu")], THIS) as made:
        assert stat.S_IMODE(made.folder.stat().st_mode) == 0o700
        files = {
            path.relative_to(made.folder).as_posix() for path in made.folder.rglob("*") if path.is_file()
        }
        assert files == {"start/sitecustomize.py", "parts/calls.py", "parts/rescue.py", "settings.json"}
        assert list(made.journal.iterdir()) == []
        settings = json.loads((made.folder / "settings.json").read_bytes())
    assert settings == {
        "rules": [["cuda:*", "cpu"]],
        "maps_missing": True,
        "target": None,
        "kinds": ["cuda", "mps", "xpu"],
        "lacks": {"mps": ["complex128", "float64"]},
    }
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "counts", "destination", "takes_all"),
    [
        ("cuda", {"cuda": 1}, "cuda:0", False),
        ("cpu", {}, "cpu", False),
        ("2xcuda:1", {"cuda": 2}, "cuda:1", True),
        ("this@cuda:1", None, "cuda:1", True),
    ],
)
def test_a_target_brings_its_devices(
    temporary: Path, text: str, counts: object, destination: str, takes_all: bool
) -> None:
    with hooked([], parse_wish(text), maps_missing=False) as made:
        settings = json.loads((made.folder / "settings.json").read_bytes())
    assert settings["target"] == {"counts": counts, "destination": destination, "takes_all": takes_all}
    assert settings["maps_missing"] is False


@pytest.mark.parametrize("before", [None, "", "/a:/b"])
def test_the_folder_is_first_and_an_empty_path_adds_no_working_directory(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONPATH", before)
    with hooked([], THIS) as made:
        places = made.environment["PYTHONPATH"].split(os.pathsep)
    assert places == [str(made.folder / "start"), *(["/a", "/b"] if before else [])]
    assert os.environ.get("PYTHONPATH") == before


def test_no_place_for_the_folder_is_said(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(running, "_fill", fail)
        with pytest.raises(ExportError, match="the start-up hook cannot be written"), hooked([], THIS):
            pass
    assert list(temporary.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "none"))
    with pytest.raises(ExportError, match="the folder of the start-up hook cannot be made"), hooked([], THIS):
        pass
