from __future__ import annotations

from pathlib import Path

import pytest

from inspector.diagnose.findings.unreadable import diagnose_failure
from inspector.errors import (
    CheckpointError,
    ContainerError,
    DamagedError,
    NotACheckpointError,
    PickleError,
    UnsupportedFormatError,
)
from inspector.model.build import open_checkpoint
from tests.builders.pickles import call, proto
from tests.sweep import table


@table(
    ("error", "id_", "title"),
    [
        (NotACheckpointError("this is a PNG picture"), "not-a-checkpoint", "This is not a checkpoint"),
        (
            NotACheckpointError("this is a web page", finding="html-page"),
            "html-page",
            "This is a web page, not the file itself",
        ),
        (
            NotACheckpointError("this is a Git LFS pointer", finding="lfs-pointer"),
            "lfs-pointer",
            "This is a pointer to the file, not the file itself",
        ),
        (DamagedError("the file ends too early"), "truncated", "The file is damaged or incomplete"),
    ],
)
def test_errors_about_the_file_are_findings(error: CheckpointError, id_: str, title: str) -> None:
    (found,) = diagnose_failure(error)
    assert (found.id, found.severity, found.title) == (id_, "error", title)
    assert (found.paths, found.count, found.fix) == ((), 0, None)
    assert found.detail == error.what[0].upper() + error.what[1:] + "."


def test_the_remedy_is_told() -> None:
    (found,) = diagnose_failure(DamagedError("it is cut off.", remedy="fetch it again!"))
    assert found.detail == "It is cut off. Fetch it again!"


@table("kind", [CheckpointError, ContainerError, PickleError, UnsupportedFormatError])
def test_other_errors_are_none(kind: type[CheckpointError]) -> None:
    assert diagnose_failure(kind("no such file")) == ()


def test_what_loading_runs_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "file.pkl"
    for called, id_, severity in (
        ("posix.system", "dangerous-global", "error"),
        ("sklearn.svm.SVC", "runs-code", "warning"),
    ):
        path.write_bytes(proto() + call(called))
        with pytest.raises(CheckpointError) as caught:
            open_checkpoint(str(path))
        found, *_ = diagnose_failure(caught.value)
        assert (found.id, found.severity) == (id_, severity)
        assert f"it calls {called}()" in found.detail
        damage = DamagedError("it is cut off", remedy="fetch it again")
        damage.programs = caught.value.programs
        _, second = diagnose_failure(damage)
        assert ("Fetch it again." in second.detail) == (called == "sklearn.svm.SVC")


def test_devices_in_traced_code_are_a_note() -> None:
    error = UnsupportedFormatError("this is a TorchScript archive", form="torchscript")
    assert diagnose_failure(error) == ()
    error.devices = ("cpu", "cuda:0")
    (found,) = diagnose_failure(error)
    assert (found.id, found.severity) == ("traced-device", "note")
    assert "The code makes tensors on cpu and cuda:0" in found.detail
