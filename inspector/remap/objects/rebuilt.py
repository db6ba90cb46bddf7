"""Tensors of formats without a pickle as torch.save would write them: as calls of its rebuild functions.

A storage class stands for an element type; types that came after those classes are written with the third
generation's function, which names the type beside a storage of bytes (`_reduce_ex_internal` in
`torch/_tensor.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from inspector.containers.persistent_ids import StorageId
from inspector.errors import ExportError
from inspector.model.tensors.dtypes import known_dtype
from inspector.model.tensors.views import contiguous
from inspector.pickles.values import Call, Global, PersistentId, StoredTensor, Value
from inspector.remap.objects.views import as_written

_STRIDED = "strided"


class Rebuilding:
    """Makes the calls, one for each tensor however often it is met, so that what is shared stays shared."""

    def __init__(self, storage_ids: Mapping[str, StorageId]) -> None:
        """Make calls for tensors of these storages, by key."""
        self._storage_ids = storage_ids
        self._calls: dict[int, tuple[StoredTensor, Call]] = {}
        self._nodes: dict[str, PersistentId] = {}
        self._names: dict[tuple[str, str], Global] = {}

    def call_for(self, tensor: StoredTensor) -> Call:
        """Return the call that rebuilds a tensor."""
        made = self._calls.get(id(tensor))
        if made is None:
            made = self._calls[id(tensor)] = tensor, self._make(tensor)
        return made[1]

    def _make(self, tensor: StoredTensor) -> Call:
        storage = self._storage_ids.get(tensor.key)
        if storage is None or known_dtype(tensor.dtype) is None or tensor.layout != _STRIDED:
            raise ExportError(f"torch has no {tensor.layout} tensors of {tensor.dtype}")
        hooks = Call(self._name("collections", "OrderedDict"), (), "reduce")
        stride = contiguous(tensor.shape) if tensor.stride is None else tensor.stride
        place = (self._node(storage), tensor.offset, tensor.shape, stride)
        args: tuple[Value, ...] = (*place, tensor.requires_grad, hooks)
        written = as_written(storage)
        if written.untyped or written.dtype != tensor.dtype:
            args = (*args, self._name("torch", tensor.dtype))
        name = "_rebuild_tensor_v2" if len(args) == len(place) + 2 else "_rebuild_tensor_v3"
        return Call(self._name("torch._utils", name), args, "reduce")

    def _name(self, module: str, name: str) -> Global:
        """Return one node for each name, which all calls share."""
        return self._names.get((module, name)) or self._names.setdefault((module, name), Global(module, name))

    def _node(self, storage: StorageId) -> PersistentId:
        node = self._nodes.get(storage.key)
        if node is None:
            node = self._nodes[storage.key] = PersistentId(None)
            node.meaning = storage
        return node
