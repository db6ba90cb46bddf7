"""What a path leads to that no reader here takes: another format, or a folder of one.

Code that loads it needs no more than that.
"""

from __future__ import annotations

import os.path

from inspector.errors import CheckpointError, UnsupportedFormatError

_INDEX = ".index.json"
# What transformers writes beside the shards of a model.
_INDICES = (f"model.safetensors{_INDEX}", f"pytorch_model.bin{_INDEX}")
# What is in a folder of PyTorch's DCP, and in one of transformers.
_FOLDERS = ((".metadata", "dcp"), ("config.json", "pretrained"))


def name_unopened(path: str, error: CheckpointError) -> tuple[str, str] | None:
    """Name what was refused.

    Args:
        path: The path as it was given.
        error: Why it was refused.

    Returns:
        The format in the words of `show --json` (`pretrained` for a folder of Hugging Face's whose weights
        are one file) and the path that its loader wants, or None.
    """
    if isinstance(error, UnsupportedFormatError):
        return (error.form, path) if error.form else None
    if path.endswith(_INDEX) and os.path.isfile(path):  # noqa: PTH113 - the path goes into code as it was given
        return "sharded", path
    for name in _INDICES:
        if _holds(path, name):
            return "sharded", os.path.join(path, name)  # noqa: PTH118 - as above
    return next(((form, path) for name, form in _FOLDERS if _holds(path, name)), None)


def _holds(path: str, name: str) -> bool:
    return os.path.isfile(os.path.join(path, name))  # noqa: PTH113, PTH118 - as above
