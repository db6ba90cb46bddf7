"""Packages whose names begin like torch's or NumPy's are nobody's but their own."""

from __future__ import annotations

import re
from pathlib import Path

from inspector.diagnose.errors.explain import explain_error
from inspector.model.checkpoint import Checkpoint
from inspector.model.tensors.rebuild import looks_like_tensor
from inspector.pickles.values import Call, Global, package_of
from inspector.remap.pickle_writer import view_of
from inspector.safety.verdict import judge
from tests.builders.pickles import call, dict_, name, number, op, read, storage, text, tuple_
from tests.sweep import table
from tests.unit.model.making import by_hand

ROOT = Path(__file__).parents[2]
PACKAGES = ("torch", "numpy", "collections", "copyreg", "copy_reg", "builtins", "transformers", "lightning")
FALSE_TORCH = ("torchevil", "torch_", "torch2", "xtorch", "evil.torch", "tor\u0441h")
FALSE_NUMPY = ("numpyx", "evil", "numpy_", "evil.numpy")


def rebuilt(package: str, module: str = "_utils") -> bytes:
    """A tensor as torch writes it, but rebuilt by a function of another package."""
    args = (storage(), number(0), tuple_(number(2)), tuple_(number(1)), op("NEWFALSE"))
    return call(f"{package}.{module}._rebuild_tensor_v2", *args, call("collections.OrderedDict"))


def array(package: str) -> bytes:
    """An array as NumPy writes it, but reconstructed by a function of another package."""
    dtype = call("numpy.dtype", text("f4"), op("NEWFALSE"), op("NEWTRUE"))
    made = call(f"{package}.core.multiarray._reconstruct", name("numpy.ndarray"), tuple_(number(0)))
    state = tuple_(number(1), tuple_(number(1)), dtype, op("NEWFALSE"), op("BINBYTES", b"\4\0\0\0abcd"))
    return made + state + op("BUILD")


def opened(value: bytes) -> Checkpoint:
    return by_hand(dict_((text("w"), value)))


@table("package", FALSE_TORCH)
def test_a_function_called_as_torch_s_makes_no_tensor(package: str) -> None:
    found = opened(rebuilt(package))
    assert [row.layout for row in found.tensors if row.path == "w"] == []
    verdict = judge(found)
    assert not verdict.weights_only
    assert verdict.globals[0] != "tensor"
    assert len(opened(rebuilt("torch")).tensors) == 1


@table("package", FALSE_TORCH)
def test_no_view_and_no_tensor_is_read_from_its_arguments(package: str) -> None:
    root = read(rebuilt(package)).root
    assert isinstance(root, Call)
    assert not looks_like_tensor(root)
    assert view_of(root) is None
    honest = read(rebuilt("torch")).root
    assert isinstance(honest, Call)
    assert looks_like_tensor(honest)
    assert view_of(honest) is not None


@table("package", FALSE_NUMPY)
def test_a_function_called_as_numpy_s_makes_no_array(package: str) -> None:
    found = opened(array(package))
    assert all(value.type != "numpy.ndarray" for value in found.values)
    assert not any(verb == "build" and used.startswith("numpy.dtypes.") for used, verb in found.safety.uses)
    scalar = opened(call(f"{package}.core.multiarray.scalar", call("numpy.dtype", text("f4")), text("x")))
    assert all(not value.type.startswith("numpy.float") for value in scalar.values)
    honest = opened(array("numpy"))
    assert any(used == "numpy.dtypes.Float32DType" for used, _ in honest.safety.uses)


def test_the_calls_of_a_lookalike_are_noted() -> None:
    assert ("torchevil._utils._rebuild_tensor_v2", "call") in opened(rebuilt("torchevil")).safety.uses


def test_an_error_about_a_lookalike_is_no_reason_to_update_torch() -> None:
    found = opened(call("torchevil.nn.Net"))
    said = "AttributeError: Can't get attribute 'Net' on <module '{}.nn' from '/x.py'>"
    assert "Update torch" not in explain_error(said.format("torchevil"), found).advice
    assert "Update torch" in explain_error(said.format("torch"), opened(call("torch.nn.Net"))).advice


def test_packages_are_compared_whole() -> None:
    assert (package_of("torch"), package_of("torch.nn"), package_of("torchevil.nn")) == (
        "torch",
        "torch",
        "torchevil",
    )
    assert Global("torch.nn", "X").package == "torch"


def test_no_module_is_told_by_how_its_name_begins() -> None:
    """A prefix of a package's name without the dot behind it takes look-alikes for the package."""
    begins = re.compile(rf"startswith\(\s*\(?\s*[\"']({'|'.join(PACKAGES)})[\"']")
    ends = re.compile(r"endswith\(\s*[\"'](multiarray|numeric)\.")
    for file in (ROOT / "inspector").rglob("*.py"):
        code = file.read_text(encoding="utf-8")
        assert not begins.search(code), file
        assert not ends.search(code), file
