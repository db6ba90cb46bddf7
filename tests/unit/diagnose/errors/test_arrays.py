"""Messages of NumPy, tied to the NumPy objects of a file."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.unit.diagnose.explaining import asking, explained


def test_numpy() -> None:
    text = "ModuleNotFoundError: No module named 'numpy._core'"
    assert explained(text, asking("numpy._core.multiarray.scalar"), id_="numpy-version").fits == "yes"
    assert explained(text, asking("torch.Size"), id_="numpy-version").fits == "no"


def test_which_numpy_is_too_old_or_too_new() -> None:
    size = "ValueError: numpy.dtype size changed. Expected {} from C header, got {} from PyObject"
    version = "RuntimeError: module compiled against A{}I version {} but this version of numpy is {}"
    advice = {
        size.format(96, 88): "install -U numpy.",
        size.format(88, 96): "'numpy<2'",
        version.format("P", "0xf", "0xd"): "install -U numpy.",
        version.format("B", "0x1000009", "0x2000000"): "'numpy<2'",
        version.format("P", "odd", "0xd"): "'numpy<2'",
        "ImportError: numpy.core.multiarray failed to import": "'numpy<2'",
    }
    assert [text for text, said in advice.items() if said not in explain_error(text, None).advice] == []
