from __future__ import annotations

import os

import pytest

from inspector.errors import CancelledError, ExportError
from inspector.progress import Progress
from inspector.remap import export_form as form_check
from inspector.remap import export_form as form_export
from inspector.remap import planner
from inspector.remap.export_form import export_form
from inspector.remap.forms import Form
from tests.unit.remap import samples
from tests.unit.remap.form_samples import Halved, exported, file_of, mapping, numbers, tensor

ROOT = mapping({"a": tensor("0"), "b": tensor("1"), "part": tensor("1", geometry="2;1;1")})
FORMS = [
    Form(only_weights=True),
    Form(only_weights=True, container="legacy"),
    Form(only_weights=True, compact=True),
    Form(compact=True, exclude=("b",)),
    Form(shape="safetensors"),
]


def spoil(monkeypatch: pytest.MonkeyPatch, wanted: bytes) -> None:
    """Changes the last byte of these wherever they stand in the file."""
    write = form_export._write

    def write_and_spoil(content, stock, target, *more) -> None:
        write(content, stock, target, *more)
        data = os.pread(target, 1 << 20, 0)
        assert data.count(wanted) == 1
        os.pwrite(target, b"\xee", data.index(wanted) + len(wanted) - 1)

    monkeypatch.setattr(form_export, "_write", write_and_spoil)


@pytest.mark.parametrize("form", FORMS)
def test_bytes_of_the_copy_are_compared(tmp_path, monkeypatch, form) -> None:
    source = file_of(tmp_path, ROOT)
    exported(source, form)
    spoil(monkeypatch, numbers("0"))
    with pytest.raises(ExportError, match="the bytes of the copy differ from the file's: storage 0"):
        exported(source, form, "spoiled.pt")
    assert not (tmp_path / "spoiled.pt").exists()


def test_every_run_that_is_left_is_looked_at(tmp_path, monkeypatch) -> None:
    root = mapping({"a": tensor("0", geometry="0;1;1"), "b": tensor("0", geometry="3;1;1"), "c": tensor("1")})
    source = file_of(tmp_path, root)
    spoil(monkeypatch, numbers("0")[:4] + numbers("0")[12:])
    with pytest.raises(ExportError, match="differ"):
        exported(source, Form(compact=True))


def test_large_runs_are_compared_at_both_ends(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(form_check, "SAMPLE_NBYTES", 4)
    source = file_of(tmp_path, ROOT)
    read = []
    at = form_check.read_at
    monkeypatch.setattr(form_check, "read_at", lambda *place: read.append(place[2]) or at(*place))
    exported(source, Form(only_weights=True))
    assert read == [4] * 4
    spoil(monkeypatch, numbers("0"))
    with pytest.raises(ExportError, match="differ"):
        exported(source, Form(only_weights=True), "spoiled.pt")


@pytest.mark.parametrize("shape", ["same", "safetensors"])
def test_what_was_cast_is_not_looked_at_again(tmp_path, monkeypatch, shape) -> None:
    monkeypatch.setattr(form_export, "Caster", Halved)
    source = file_of(tmp_path, mapping({"a": tensor("0"), "b": tensor("1", cls="torch.IntStorage")}))
    form = Form(only_weights=True, cast="float16", shape=shape)
    exported(source, form)
    spoil(monkeypatch, numbers("1"))
    with pytest.raises(ExportError, match="differ"):
        exported(source, form, "spoiled.pt")


def test_checking_can_be_cancelled(tmp_path, monkeypatch) -> None:
    source = file_of(tmp_path, ROOT)
    read = form_check.read_container

    def read_and_cancel(path, limits, progress):
        progress.cancel()
        return read(path, limits, progress)

    monkeypatch.setattr(form_check, "read_container", read_and_cancel)
    with pytest.raises(CancelledError):
        export_form(str(source), tmp_path / "out.pt", None, FORMS[0], Progress())
    assert not (tmp_path / "out.pt").exists()


def test_a_value_that_was_damaged_while_it_was_written_is_noticed(tmp_path, monkeypatch) -> None:
    """Character 5,000 of a text: no row shows it, and no tensor is another."""
    long = "x" * 9000
    body = samples.mapping(t=samples.tensor(samples.text("cpu")), note=samples.text(long))
    source = samples.written(tmp_path, samples.zip_of(samples.stream(body), {"0": bytes(samples.NBYTES)}))
    real = planner.write_pickle

    def damaged(root, how) -> bytes:
        return real(root, how).replace(b"x" * 5000, b"x" * 4999 + b"y", 1)

    export_form(str(source), tmp_path / "good.pt", None, Form(container="legacy"))
    monkeypatch.setattr(planner, "write_pickle", damaged)
    with pytest.raises(ExportError, match="not as planned: values other than tensors"):
        export_form(str(source), tmp_path / "bad.pt", None, Form(container="legacy"))
    assert not (tmp_path / "bad.pt").exists()
