"""Files that were opened in another way than they are read."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_each_message_has_its_row() -> None:
    ids = {
        "io.UnsupportedOperation: seek": "file-mode",
        "tarfile.ReadError: not a gzip file": "not-gzip",
        "PermissionError: [WinError 5] Access is denied": "file-busy",
        "OSError: [Errno 5] Input/output error": "disk-error",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids
