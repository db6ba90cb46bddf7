"""Findings about code: which modules must be importable, and what the verdict on the pickle says."""

from __future__ import annotations

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import GlobalUse
from tests.corpus import CORPUS
from tests.unit.diagnose.cases import findings
from tests.unit.report.rows import checkpoint


def whole_module(*names: str) -> str:
    made = checkpoint(
        module_class="net.model.Net", globals=tuple(GlobalUse(name=name, count=1) for name in names)
    )
    return findings(made)["whole-module"].detail


def test_modules_of_the_file_are_listed_and_torchs_own_are_not() -> None:
    detail = whole_module("net.model.Net", "torch.nn.modules.linear.Linear", "net.model.Head", "numpy.dtype")
    assert "in a compatible version: net.model, numpy. A state dict" in detail


def test_what_loading_needs_is_what_the_code_does() -> None:
    assert "Loading it needs those classes allowed, and" in whole_module("net.model.Net")
    assert "Loading it needs weights_only=False, and" in whole_module("net.model.Net", "numpy.load_it")
    assert "with which it can run commands" in whole_module("net.model.Net", "os.system")
    doubtful = checkpoint(module_class="net.model.Net", notes=(Note(NoteKind.SHARED_NAME),))
    assert "needs care, since programs read different" in findings(doubtful)["whole-module"].detail
    assert findings(doubtful)["runs-code"].title == (
        "Needs your trust: programs read different things from this file"
    )


def test_damage_is_no_ambiguity() -> None:
    cut_off = checkpoint(notes=(Note(NoteKind.NO_DIRECTORY),))
    assert findings(cut_off)["runs-code"].detail.startswith("Without its end, other programs")


def test_many_modules_are_cut() -> None:
    detail = whole_module(*(f"a{number}.B" for number in range(20)))
    assert "a7, and 12 more." in detail


def test_the_script_itself_is_explained() -> None:
    found = findings(open_checkpoint(str(CORPUS / "zip" / "module_custom.pt")))["whole-module"]
    assert "__main__ is the script that saved it" in found.detail


def test_without_names_the_class_tells_its_module() -> None:
    assert "compatible version: net.model." in whole_module(
        "torch.nn.modules.linear.Linear", "builtins.set", "x"
    )


@pytest.mark.torch
def test_nested_pickles_are_found_in_a_genuine_file(tmp_path) -> None:
    import io

    import torch

    class Tensor:
        def __reduce__(self) -> tuple[object, ...]:
            buffer = io.BytesIO()
            torch.save(torch.ones(2).untyped_storage(), buffer)
            return torch.storage._load_from_bytes, (buffer.getvalue(),)

    path = tmp_path / "nested.pt"
    torch.save({"w": Tensor()}, path)
    found = findings(open_checkpoint(str(path)))
    assert "nested-pickle" in found
    assert found.keys() & {"runs-code", "dangerous-global"}


def test_archives_say_what_their_own_loader_runs() -> None:
    one = findings(checkpoint(format="torchscript"))["runs-code"]
    assert one.title == "Needs your trust: a TorchScript program, which runs code of the file and no Python"
    named = (GlobalUse(name="os.system", count=1),)
    titles = {
        "Dangerous: a pickle in it is made to run commands": checkpoint(format="torchscript", globals=named),
        "Dangerous: loading it can run commands": checkpoint(format="package", globals=named),
        "Dangerous: loading it can read and write files": checkpoint(
            format="torchscript",
            notes=(Note(NoteKind.RUNS_AT_LOAD, ("a:1",)), Note(NoteKind.FILE_ACCESS, ("b",))),
        ),
    }
    found = {title: findings(made)["dangerous-global"].title for title, made in titles.items()}
    assert found == {title: title for title in titles}


def test_tensors_of_a_plain_pickle_are_named_where_no_map_location_reaches_them() -> None:
    made = open_checkpoint(str(CORPUS / "plain_pickle/state_p4.pkl"))
    found = findings(made)["nested-pickle"]
    assert found.title == "No map_location reaches the tensors of this pickle"
    assert found.detail.startswith("pickle.load has torch.storage._load_from_bytes restore")
    assert list(found.paths) == [row.path for row in made.tensors if row.device == "cuda:1"] != []
    on_cpu = open_checkpoint(str(CORPUS / "plain_pickle/tensor_p4.pkl"))
    assert "nested-pickle" not in findings(on_cpu)
