"""File name suffixes by what they are, for desktops that go by the name alone: Windows and macOS.

Where the content can be looked at, `resources/desktop/checkpoint-inspector.xml` says more than this.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        is_own: Whether this program is for such files; those of others are only offered to be opened.
    """

    id: str
    name: str
    suffixes: tuple[str, ...]
    is_own: bool = True


KINDS: tuple[Kind, ...] = (
    Kind("checkpoint", "PyTorch checkpoint", (".pth", ".pt", ".ckpt", ".pt2")),
    Kind("distributed", "Part of a distributed PyTorch checkpoint", (".distcp",)),
    Kind("safetensors", "Safetensors file", (".safetensors",)),
    Kind("gguf", "GGUF model", (".gguf",)),
    Kind("npy", "NumPy array", (".npy",), is_own=False),
    Kind("npz", "NumPy arrays", (".npz",), is_own=False),
    Kind("pickle", "Python pickle", (".pkl", ".pickle", ".joblib"), is_own=False),
)
"""Of names in two parts, such as `best.pth.tar`, these desktops look at the last one, which is not ours."""
