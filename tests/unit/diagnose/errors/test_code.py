"""Messages about classes and modules that a file needs, and about files taken for what they are not."""

from __future__ import annotations

import pytest

from inspector.diagnose.errors.explain import explain_error
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


def test_classes_of_another_torch_may_be_older_ones() -> None:
    text = "Can't get attribute '_LinearWithBias' on <module 'torch.nn.modules.linear' from 'x.py'>"
    found = explain_error(text, None)
    assert "came later, or was removed" in found.cause
    assert "version of torch that wrote the file" in found.advice


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


def test_bytes_that_are_no_text() -> None:
    text = "UnicodeDecodeError: '{}' codec can't decode byte 0x80 in position 0: invalid start byte"
    assert explain_error(text.format("utf-8"), None).title == "A binary file was read as text"
    assert explain_error(text.format("ascii"), None).title == "The file was written by Python 2"


def test_main_of_a_program_is_not_the_users_script() -> None:
    text = "AttributeError: Can't get attribute 'Tokens' on <module '__main__' from '{}'>"
    found = explain_error(text.format("/opt/venv/bin/gunicorn"), None)
    assert "Here __main__ is /opt/venv/bin/gunicorn: a program" in found.cause
    assert "import __main__; __main__.Tokens = Tokens" in found.advice
    for own in ("/home/u/serve.py", "/home/u/lib/serve.py", "/home/u/bin/serve.py"):
        assert "another script is running" in explain_error(text.format(own), None).cause


def test_packages_that_pickle_code_ask_for_the_python_as_well() -> None:
    text = "AttributeError: Can't get attribute '_make_function' on <module '{}' from '/v/x.py'>"
    assert "the Python that saved it" in explain_error(text.format("cloudpickle.cloudpickle"), None).advice
    assert "the Python that saved it" not in explain_error(text.format("timm.models"), None).advice


def test_what_is_read_as_text() -> None:
    text = "UnicodeDecodeError: '{}' codec can't decode byte 0x80 in position 0: invalid start byte"
    loading = '  File "/v/site-packages/torch/serialization.py", line 1, in _load\n    x\n'
    titles = {
        text.format("ascii"): "The file was written by Python 2",
        loading + text.format("utf-8"): "The file was written by Python 2",
        text.format("utf-8"): "A binary file was read as text",
        text.format("charmap"): "A file was read as text in the wrong encoding",
        text.format("cp1252"): "A file was read as text in the wrong encoding",
    }
    assert {said: explain_error(said, None).title for said in titles} == titles


def test_yolo_has_modules_of_the_same_names_in_each_version() -> None:
    text = "AttributeError: Can't get attribute 'SPPF' on <module 'models.common' from 'models/common.py'>"
    assert "YOLOv7" in explain_error(text, None).cause


def test_each_message_has_its_row() -> None:
    ids = {
        "RuntimeError: There is no such class as speechbrain.Foo": "not-in-registry",
        "ERROR: No matching distribution found for torch==1.4.0": "pip-version",
        "AssertionError: MMCV==1.7.1 is used but incompatible. Please install mmcv>=2.0": "package-versions",
    }
    assert {text: explain_error(text, None).id for text in ids} == ids


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


def test_keys_of_other_dictionaries_are_left_alone() -> None:
    frame = '  File "data.py", line 3, in f\n    {}\n'
    for text, id_ in (
        (frame.format("return row['size']") + "KeyError: 'size'", "unrecognised"),
        (frame.format("return ckpt['size']") + "KeyError: 'size'", "key-missing"),
        (frame.format("return row['x']") + "KeyError: 'model_state_dict'", "key-missing"),
        ("KeyError: 'Net is not in the registry'", "unrecognised"),
        ("KeyError: 'size'", "unrecognised"),
        ("KeyError: 'net_g'", "key-missing"),
        ("Resuming from last.ckpt\nKeyError: 'size'", "key-missing"),
    ):
        assert explain_error(text, None).id == id_, text


def test_a_state_dict_itself_has_no_key_to_it() -> None:
    made = on(("a.weight", "cpu"), ("b.weight", "cpu"))
    found = explained("KeyError: 'state_dict'", made, id_="key-missing")
    assert (found.fits, "Leave the key out" in found.advice) == ("yes", True)
    assert "skip what reads optimizer" in explained("KeyError: 'optimizer'", made, id_="key-missing").advice


def test_kinds_of_keys() -> None:
    said = {
        "base_model.model.layers.0.weight": "-U peft",
        "bert.embeddings.weight": "names in the file",
        "optimizer_state_dict": "leave out what resumes",
        "layers.23.mlp.down_proj.SCB": "how the file is quantized",
        "params_ema": "checkpoint.keys() lists them",
    }
    assert {
        key: part
        for key, part in said.items()
        if part not in explain_error(f"KeyError: '{key}'", None).advice
    } == {}


def test_an_error_as_repr_writes_it() -> None:
    assert explain_error("failed: KeyError('model_state_dict')", None).id == "key-missing"
