"""Modules that cannot be imported: what kind of module it is decides what helps."""

from __future__ import annotations

from inspector.model.findings import Fix
from tests.unit.diagnose.explaining import asking, explained, on


def test_modules() -> None:
    text = "ModuleNotFoundError: No module named 'models'"
    found = explained(text, asking("models.yolo.Model", "torch.Size"), id_="module-missing")
    assert (found.fits, found.finding, found.fix) == (
        "yes",
        "runs-code",
        Fix(style="plain"),
    )  # no module here
    assert found.here == "This file asks for models.yolo.Model."
    whole = asking("models.yolo.Model", module_class="models.yolo.Model")
    found = explained(text, whole, id_="module-missing")
    assert found.finding == "whole-module"
    assert "It is a whole pickled module, models.yolo.Model." in found.here
    assert explained(text, asking("modelsx.A"), id_="module-missing").fits == "no"


def test_torchscript_is_no_package() -> None:
    text = "ModuleNotFoundError: No module named '__torch__'"
    found = explained(text, on(("a", "cpu")), id_="torchscript-file")
    assert found.fits == "no"
    assert "torch.jit.load" in found.advice


def test_torchscript_is_the_archive() -> None:
    text = "ModuleNotFoundError: No module named '__torch__'"
    found = explained(text, on(("a", "cpu"), format="torchscript"), id_="torchscript-file")
    assert (found.fits, found.here) == ("yes", "This file is such an archive, with code of its own.")
