"""State that torch keeps on the CPU whatever the model's device, told from where it stands.

An optimizer's counters are told by `optimizer`, random generator states by their role.
"""

from __future__ import annotations

from inspector.model.checkpoint import Key, Tensor
from inspector.model.values.text import class_of
from inspector.pickles.values import Call, Value

NONE_PINNED: frozenset[Key] = frozenset()
_PINNED: dict[str, frozenset[Key]] = {
    "torch.nn.utils.rnn.PackedSequence": frozenset({1}),  # its batch sizes
    "torch.distributed.device_mesh.DeviceMesh": frozenset({"._rank_map", ".mesh"}),
    "torch.distributed._tensor.device_mesh.DeviceMesh": frozenset({".mesh"}),
}
_SEQUENCE_LENGTHS: frozenset[Key] = frozenset({"min_seqlen", "max_seqlen"})
_NESTED_METADATA = frozenset({("sizes",), ("strides",), ("offsets",)})
_MESH_RANKS = frozenset({(".mesh", "._rank_map"), (".mesh", ".mesh")})  # its name today and its former one


def pinned_keys(value: Value, key: Key | None) -> frozenset[Key]:
    """Return the keys inside a value whose tensors torch keeps on the CPU wherever the others are.

    Args:
        key: Its own key: the sequence lengths of a jagged tensor are cached in a plain dictionary.
    """
    if key in {"_metadata_cache", "._metadata_cache"}:
        return _SEQUENCE_LENGTHS
    if not isinstance(value, Call):
        return NONE_PINNED
    return _PINNED.get(class_of(value) or "", NONE_PINNED)


def is_metadata_on_cpu(whole: Tensor, keys: tuple[Key, ...]) -> bool:
    """Return whether a part of a tensor only describes it, and must lie on the CPU wherever the tensor is.

    These are the sizes, strides and offsets of nested tensors (`NestedTensorImpl` in torch's
    `aten/src/ATen/NestedTensorImpl.cpp`) and the ranks of a DTensor's mesh (in torch's
    `torch/distributed/device_mesh.py`).
    """
    if whole.layout == "nested":
        return keys[len(whole.keys) :] in _NESTED_METADATA
    return keys[-2:] in _MESH_RANKS
