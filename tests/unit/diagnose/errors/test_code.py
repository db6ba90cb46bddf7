"""Messages about classes and modules that a file needs, and about files taken for what they are not."""

from __future__ import annotations

import pytest

from inspector.model.findings import Fix
from tests.unit.diagnose.explaining import asking, explained, on
from tests.unit.report.rows import checkpoint, tensor, value


def test_classes() -> None:
    text = "AttributeError: Can't get attribute 'Net' on <module '__main__' from 'main.py'>"
    found = explained(text, asking("__main__.Net", module_class="__main__.Net"), id_="class-missing")
    assert (found.fits, found.finding) == ("yes", "whole-module")
    assert explained(text, asking("other.Net"), id_="class-missing").here == "This file asks for other.Net."
    assert explained(text, asking("__main__.Head"), id_="class-missing").fits == "no"
    old = "AttributeError: module '__main__' has no attribute 'Net'"
    assert explained(old, asking("__main__.Net"), id_="class-missing").fits == "yes"


def test_classes_of_packages() -> None:
    text = "AttributeError: Can't get attribute 'C3k2' on <module 'ultralytics.nn.modules.block' from 'x'>"
    found = explained(text, asking("ultralytics.nn.modules.block.C3k2"), id_="class-missing")
    assert "another version of ultralytics" in found.title
    assert "pip install -U ultralytics" in found.advice


@pytest.mark.parametrize("versions", [(), (("torch", "2.13.0"),)])
def test_functions_of_a_newer_torch(versions) -> None:
    text = "Can't get attribute '_rebuild_tensor_v3' on <module 'torch._utils' from 'x.py'>"
    made = asking("torch._utils._rebuild_tensor_v3", versions=versions)
    for said in (text, "AttributeError: 'module' object has no attribute '_rebuild_tensor_v3'"):
        found = explained(said, made, id_="class-missing")
        assert found.advice.startswith("Update torch")
        assert ("It was written by torch 2.13.0." in found.here) == bool(versions)


def test_dictionaries_taken_for_models() -> None:
    text = "AttributeError: 'collections.OrderedDict' object has no attribute 'eval'"
    found = explained(text, on(("model/a", "cpu"), ("model/b", "cpu")), id_="dict-for-model")
    assert (found.fits, found.paths, found.fix) == ("yes", ("model/a", "model/b"), Fix(style="plain"))
    assert "the weights (2) are under model." in found.here
    assert "are at its top." in explained(text, on(("a", "cpu")), id_="dict-for-model").here
    assert "without tensors" in explained(text, checkpoint(), id_="dict-for-model").here
    assert explained(text, checkpoint(module_class="a.B"), id_="dict-for-model").fits == "no"
    assert explained(text, checkpoint(root="sequence"), id_="dict-for-model").fits == "unknown"


def test_modules_of_other_versions() -> None:
    text = "AttributeError: 'GELU' object has no attribute 'approximate'"
    made = asking("torch.nn.modules.activation.GELU", versions=(("torch", "1.9"),))
    found = explained(text, made, id_="module-changed")
    assert found.here == "This file holds pickled modules, written by torch 1.9."
    whole = explained(text, checkpoint(module_class="a.B"), id_="module-changed")
    assert whole.here == "This file holds pickled modules."
    assert explained(text, asking("torch.Size"), id_="module-changed").fits == "no"


def test_keys() -> None:
    text = "KeyError: 'state_dict'"
    made = checkpoint(tensor("model", "w"), value("args", "state_dict"), value("epoch"))
    found = explained(text, made, id_="key-missing")
    assert (found.fits, found.here.partition(";")[0]) == ("yes", "state_dict is in this file, but deeper")
    assert explained(text, on(("state_dict/w", "cpu")), id_="key-missing").fits == "no"
    other = explained(text, on(("net/w", "cpu")), id_="key-missing")
    assert (other.fits, "top-level keys are net" in other.here) == ("unknown", True)
    bare = on(*((f"layer{number}.weight", "cpu") for number in range(50)))
    assert "it is itself a state dict" in explained(text, bare, id_="key-missing").here
    assert "it has no keys" in explained(text, checkpoint(), id_="key-missing").here


def test_a_state_dict_itself_has_no_key_to_it() -> None:
    made = on(("a.weight", "cpu"), ("b.weight", "cpu"))
    found = explained("KeyError: 'state_dict'", made, id_="key-missing")
    assert (found.fits, "Leave the key out" in found.advice) == ("yes", True)
    assert "skip what reads optimizer" in explained("KeyError: 'optimizer'", made, id_="key-missing").advice


def test_a_key_that_the_model_in_memory_lacks() -> None:
    text = "  File \"a.py\", line 3, in f\n    x = params_dict[name]\nKeyError: 'b.weight'"
    made = on(("a.weight", "cpu"), ("b.weight", "cpu"))
    assert "has no parameter" in explained(text, made, id_="key-missing").here
    assert explained(text, on(("a.weight", "cpu")), id_="key-missing").fits == "no"
