"""What a genuine `.metadata` names: classes that hold data and do nothing, of all releases that wrote one."""

from __future__ import annotations

_CLASSES = {
    "torch.distributed.checkpoint.metadata": (
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "StorageMeta",
        "TensorProperties",
        "TensorStorageMetadata",
        "_MEM_FORMAT_ENCODING",
    ),
    "torch.distributed.checkpoint.filesystem": ("_StorageInfo", "_StoragePrefix"),
    # Where they were in torch 1.13 to 2.2.
    "torch.distributed._shard.checkpoint.metadata": (
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "TensorStorageMetadata",
    ),
    "torch.distributed._shard.checkpoint.filesystem": ("_StorageInfo", "_StoragePrefix"),
    "torch.distributed._shard.sharded_tensor.metadata": ("MEM_FORMAT_ENCODING", "TensorProperties"),
    # The folder that it was saved to, as `StorageMeta.checkpoint_id`.
    "pathlib": ("PosixPath", "PurePosixPath", "PureWindowsPath", "WindowsPath"),
    "pathlib._local": ("PosixPath", "PurePosixPath", "PureWindowsPath", "WindowsPath"),
}
OWN_NAMES = frozenset(f"{module}.{name}" for module, names in _CLASSES.items() for name in names)
"""The dotted names."""
