"""Code that opens a file which is compressed as a whole, as something that can be read and gone back in."""

from __future__ import annotations

from typing import NamedTuple


class Opener(NamedTuple):
    """How one kind of file is opened: what stands before its path and behind it, and what that imports."""

    head: str
    tail: str
    modules: tuple[str, ...]


OPENERS: dict[str, Opener] = {
    "gzip": Opener("gzip.open(", ")", ("gzip",)),
    "bzip2": Opener("bz2.open(", ")", ("bz2",)),
    "xz": Opener("lzma.open(", ")", ("lzma",)),
    "lzma": Opener("lzma.open(", ")", ("lzma",)),
    "lz4": Opener("lz4.frame.open(", ")", ("lz4.frame",)),
    # What these return cannot be gone back in.
    "zstd": Opener(
        "io.BytesIO(zstandard.ZstdDecompressor().stream_reader(pathlib.Path(",
        ").read_bytes()).read())",
        ("io", "pathlib", "zstandard"),
    ),
    "zlib": Opener("io.BytesIO(zlib.decompress(pathlib.Path(", ").read_bytes()))", ("io", "pathlib", "zlib")),
}
"""By the name of the packing."""
