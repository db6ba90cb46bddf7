"""Messages about paths, compared with the file that is open."""

from __future__ import annotations

from tests.unit.diagnose.explaining import explained, on

MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '{}'"
DENIED = "PermissionError: [Errno 13] Permission denied: '{}'"


def test_a_file_of_the_same_name_elsewhere() -> None:
    made = on(("a", "cpu"))
    found = explained(MISSING.format("run/best.pth"), made, id_="file-missing")
    assert found.fits == "unknown"
    assert "looks for it in another folder" in found.here
    assert explained(MISSING.format("other.pth"), made, id_="file-missing").fits == "no"
    assert (
        explained("RuntimeError: Parent directory a does not exist.", made, id_="file-missing").fits == "no"
    )


def test_folders() -> None:
    made = on(("a", "cpu"))
    assert (
        explained("IsADirectoryError: [Errno 21] Is a directory: 'a'", made, id_="folder-given").fits == "no"
    )
    for path in ("./best_model/", "C:/models/checkpoints", "run.dir"):
        found = explained(DENIED.format(path), made, id_="folder-given")
        assert found.title == "A folder was given instead of a file", path
    own = explained(DENIED.format("/root/out.log"), made, id_="folder-given")
    assert "no right" in own.cause
    found = explained(DENIED.format("C:/models/best.pth"), made, id_="folder-given")
    assert found.title == "Access to the file is denied"
    assert "also where a folder is named like a file" in found.cause


def test_a_denial_elsewhere_is_no_folder() -> None:
    text = '  File "x/torch/optim/adam.py", line 3, in step\n' + DENIED.format("/dev/nvidia0")
    assert explained(text, on(), id_="unrecognised").fits == "unknown"
