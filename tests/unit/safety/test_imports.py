"""Names that torch allows once a module of it is imported."""

from __future__ import annotations

from inspector.safety.names import default_allow_list, known_classes
from inspector.safety.words import IMPORT_ERRORS, IMPORTS, imports_for


def test_each_module_stands_once_in_the_order_of_the_names() -> None:
    dynamo, tensor = "torch._dynamo", "torch.distributed.tensor"
    assert imports_for([]) == imports_for(["a.B"]) == ()
    names = ["torch._dynamo.decorators._DimRange", f"{tensor}.DTensor", f"{tensor}.placement_types.Shard"]
    assert imports_for(names) == (dynamo, tensor)
    assert imports_for(names[::-1]) == (tensor, dynamo)


def test_the_names_may_be_offered_and_are_not_on_the_list_from_the_start() -> None:
    assert IMPORT_ERRORS.keys() <= IMPORTS.keys() <= known_classes().keys()
    assert not IMPORTS.keys() & default_allow_list().names
