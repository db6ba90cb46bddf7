"""The parameters of an optimizer that was pickled whole: it holds them itself.

In such a file a model's tensors are the same ones, or share their storages, since `torch.save` writes what
lies at one address once. So what a slot belongs to is known for certain, and nothing is compared by shape.
"""

from __future__ import annotations

from collections.abc import Mapping

from inspector.model.checkpoint import Key
from inspector.model.optimizer.parameters import Parameters, View, view_of
from inspector.model.optimizer.state_dict import OptimizerDraft
from inspector.model.tensors.rebuild import describe_tensor
from inspector.model.tensors.views import Known


def held_views(optimizer: OptimizerDraft, known: Known) -> dict[Key, View]:
    """Return what each parameter that an optimizer holds views, by its key there."""
    found: dict[Key, View] = {}
    for key, value in optimizer.held.items():
        known.look(1)
        facts = describe_tensor(value, known)
        storage = None if facts is None else facts.storage
        view = None if facts is None or storage is None else view_of(storage.key, facts.offset, facts.shape)
        if view is not None:
            found[key] = view
    return found


def names_held(held: Mapping[Key, View], model: Parameters) -> dict[Key, str]:
    """Return the names of those parameters that are a model's."""
    names = {view: name for view, name in zip(model.views, model.names, strict=False) if view is not None}
    return {key: names[view] for key, view in held.items() if view in names}
