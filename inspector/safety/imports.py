"""Names that torch puts on its list by itself, as soon as a module of its own is imported.

The restricted unpickler imports nothing. Since 2.6 it says for the best known of them that the module must
be imported (`torch/_weights_only_unpickler.py`). The modules call `add_safe_globals`, see
`torch/distributed/tensor/__init__.py` and `torch/_dynamo/__init__.py`. What `import torch` imports is on the
list of `allowlist.json`, `torch.nested` among it.
"""

from __future__ import annotations

from collections.abc import Iterable

_TENSOR, _DYNAMO = "torch.distributed.tensor", "torch._dynamo"
_TENSOR_NAMES = (
    "torch.distributed.device_mesh.DeviceMesh",
    f"{_TENSOR}.DTensor",
    f"{_TENSOR}._dtensor_spec.DTensorSpec",
    f"{_TENSOR}._dtensor_spec.TensorMeta",
    f"{_TENSOR}.placement_types.Partial",
    f"{_TENSOR}.placement_types.Replicate",
    f"{_TENSOR}.placement_types.Shard",
)
_UNTOLD = (f"{_TENSOR}._dtensor_spec.ShardOrderEntry", f"{_TENSOR}.placement_types._StridedShard")
_DYNAMO_NAME = "torch._dynamo.decorators._DimRange"

IMPORTS = {**dict.fromkeys((*_TENSOR_NAMES, *_UNTOLD), _TENSOR), _DYNAMO_NAME: _DYNAMO}
"""The module that puts a name on the list, by the name."""

IMPORT_ERRORS = {
    **dict.fromkeys(_TENSOR_NAMES, "``torch.distributed.tensor`` must be imported to load DTensors"),
    _DYNAMO_NAME: (
        "``torch.nested`` and ``torch._dynamo`` must be imported to load nested jagged tensors (NJTs)"
    ),
}
"""What torch says to a name whose module was not imported; to the others it says what it says to any name."""


def imports_for(names: Iterable[str]) -> tuple[str, ...]:
    """Return the modules that put names on torch's list, each once."""
    return tuple(dict.fromkeys(IMPORTS[name] for name in names if name in IMPORTS))
