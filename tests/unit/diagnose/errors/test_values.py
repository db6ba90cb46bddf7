"""Values of another type than the line expects."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.unit.diagnose.explaining import on

FRAME = '  File "{}", line 2, in f\n    {}\n'
NONE = "AttributeError: 'NoneType' object has no attribute 'shape'"


def test_none_from_functions_that_return_it_without_a_word() -> None:
    assert "cv2.imread" in explain_error(FRAME.format("a.py", "x = cv2.imread(p).shape") + NONE, None).cause
    assert "search" in explain_error(FRAME.format("a.py", "re.match(p, s).group(1)") + NONE, None).cause
    assert "function returned nothing" in explain_error(FRAME.format("a.py", "x.shape") + NONE, None).cause


def test_none_within_a_framework_is_a_matter_of_versions() -> None:
    path = "x/site-packages/fairseq/checkpoint_utils.py"
    found = explain_error(FRAME.format(path, 'state["args"].task = 1') + NONE, None)
    assert "fairseq found None" in found.title
    assert "update it" in found.advice


def test_each_kind_of_value_has_its_answer() -> None:
    text = "AttributeError: '{}' object has no attribute 'to'"
    assert "[item.to(device)" in explain_error(text.format("list"), None).advice
    assert "Load it first" in explain_error(text.format("str"), None).advice
    assert "from_numpy" in explain_error(text.format("ndarray"), None).cause
    assert "from_numpy" in explain_error("TypeError: 'method' object is not subscriptable", None).cause


def test_lists_in_files() -> None:
    text = "TypeError: list indices must be integers or slices, not str"
    assert explain_error(text, on(("a", "cpu"), root="sequence")).fits == "yes"
    assert explain_error(text, on(("a", "cpu"))).fits == "no"


def test_classes_of_packages() -> None:
    text = "AttributeError: '{}' object has no attribute 'state'"
    assert "pytorch-lightning" in explain_error(text.format("LightningOptimizer"), None).title
    assert "another version than the code" not in explain_error(text.format("Net"), None).title


OF_ARGUMENTS_FRAME = '  File "a.py", line 2, in f\n    {}\n'


def test_whose_function_it_is() -> None:
    text = "TypeError: {}() got an unexpected keyword argument 'device'"
    assert "safetensors" in explain_error(text.format("load_model"), None).advice
    assert "requirements.txt" in explain_error(text.format("build"), None).advice
    missing = explain_error("TypeError: __init__() missing 1 required positional argument: 'layers'", None)
    assert "save_hyperparameters" in missing.advice
    saved = OF_ARGUMENTS_FRAME.format("model = Net(**hparams)") + text.format("__init__")
    assert "Settings that were saved" in explain_error(saved, None).cause


def test_imports() -> None:
    text = "ImportError: cannot import name 'a' from {}'pack.b' (x/pack/b.py)"
    assert "the pack that is installed" in explain_error(text.format(""), None).cause
    assert "in a circle" in explain_error(text.format("partially initialized module "), None).title
    assert (
        "the pack that is" in explain_error("AttributeError: module 'pack' has no attribute 'a'", None).cause
    )
