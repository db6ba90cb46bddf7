"""Values that are not what the code takes them for."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.unit.diagnose.explaining import asking, explained, on

NOT_A_CALL = """Traceback (most recent call last):
  File "train.py", line 9, in <module>
    {}
TypeError: 'int' object is not callable
"""


def test_a_number_for_map_location() -> None:
    found = explain_error(NOT_A_CALL.format("torch.load(path, map_location=0)"), on(("a", "cpu")))
    assert (found.id, found.fits) == ("map-location-type", "no")
    in_torch = (
        '  File "x/site-packages/torch/serialization.py", line 9, in restore_location\n    result = f(x)\n'
        "TypeError: 'int' object is not callable"
    )
    assert explain_error(in_torch, None).id == "map-location-type"
    assert explain_error(NOT_A_CALL.format("len = 3; len(x)"), None).id == "unrecognised"


def test_whole_models_taken_for_dictionaries() -> None:
    text = "  File \"a.py\", line 2, in f\n    x = {}['net']\nTypeError: 'Net' object is not subscriptable"
    whole = asking("a.Net", module_class="a.Net")
    found = explained(text.format("checkpoint"), whole, id_="module-for-dict")
    assert (found.fits, found.finding) == ("yes", "whole-module")
    assert explained(text.format("checkpoint"), on(), id_="module-for-dict").fits == "no"
    assert explain_error(text.format("batch"), None).id == "unrecognised"
    assert explain_error(text.format("ckpt").replace("Net", "NoneType"), None).id == "value-none"


def test_attributes_of_modules() -> None:
    text = "AttributeError: 'Net' object has no attribute '_non_persistent_buffers_set'"
    whole = asking("torch.nn.modules.linear.Linear")
    assert explained(text, whole, id_="module-internals").fits == "yes"
    assert explained(text, on(("a", "cpu")), id_="module-internals").fits == "no"
    assert explained(text, asking(module_class="a.Net"), id_="module-internals").fits == "yes"
    asked = (
        "  File \"x/torch/nn/modules/module.py\", line 9, in __getattr__\nAttributeError: 'Net' object "
        "has no attribute 'fc'"
    )
    assert explain_error(asked, None).id == "module-attribute"
    assert explain_error(asked.replace("__getattr__", "f"), None).id == "object-attribute"
