"""Modules that cannot be imported: what kind of module it is decides what helps."""

from __future__ import annotations

import re

from inspector.diagnose.errors.explain import explain_error
from inspector.model.findings import Fix
from tests.unit.diagnose.explaining import asking, explained, on

# module: row, a word of the answer
NAMES = {
    "flash_attn_2_cuda": ("extension-missing", "pip install"),
    "my_ops.rasterize_cuda": ("extension-missing", "with the torch that will use it"),
    "mmcv._ext": ("extension-missing", "mim install mmcv"),
    "torch_scatter": ("extension-missing", "data.pyg.org"),
    "torch._six": ("torch-module-gone", "from math import inf"),
    "torch.utils.ffi.x": ("torch-module-gone", "before 1.0"),
    "torch.new.thing": ("torch-module-gone", "in another version"),
    "torch": ("library-missing", "pip install torch"),
    "cv2": ("library-missing", "opencv-python"),
    "transformers.models.odd": ("library-missing", "of another version"),
    "cPickle": ("library-missing", "Python 2"),
    "_lzma": ("library-missing", "compiled without it"),
    "models.yolo": ("module-missing", "sys.path.insert"),
    "numpy._core": ("numpy-version", "Update NumPy"),
    "numpy.core._multiarray_umath": ("numpy-abi", "numpy<2"),
}


def test_each_kind_of_module_has_its_answer() -> None:
    amiss = []
    for name, (id_, word) in NAMES.items():
        found = explain_error(f"ModuleNotFoundError: No module named '{name}'", None)
        said = f"{found.title} {found.cause} {found.advice}"
        if found.id != id_ or word not in said or (id_ != "module-missing" and "sys.path" in said):
            amiss.append((name, found.id, said))
    assert amiss == []


def test_no_compiled_module_is_sought_in_a_folder() -> None:
    for name in NAMES:
        found = explain_error(f"No module named '{name}'", None)
        assert re.search("sys.path", found.advice) is None or found.id == "module-missing"


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


def test_modules_that_an_installed_package_does_not_have() -> None:
    text = "ModuleNotFoundError: No module named '{}'"
    for name in ("mmcv.utils.config", "detectron2.utils.old"):
        found = explain_error(text.format(name), None)
        assert (found.id, "is installed" in found.cause) == ("library-missing", True), name
    for name in ("mmcv", "mmcv.ops", "mmcv._ext", "apex.amp"):
        assert explain_error(text.format(name), None).id == "extension-missing", name


def test_torchscript_is_the_archive() -> None:
    text = "ModuleNotFoundError: No module named '__torch__'"
    found = explained(text, on(("a", "cpu"), format="torchscript"), id_="torchscript-file")
    assert (found.fits, found.here) == ("yes", "This file is such an archive, with code of its own.")
