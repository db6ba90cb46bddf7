"""CPython's unpickler in C with nothing to import: what it asks for is noted, and nothing happens."""

from __future__ import annotations

import io
import pickle
from typing import Any


class Inert:
    """Stands for whatever a stream imports; everything may be done to it, and nothing happens."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Inert()

    def __setstate__(self, state: Any) -> None: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def append(self, item: Any) -> None: ...
    def extend(self, items: Any) -> None: ...
    def add(self, item: Any) -> None: ...


class Watching(pickle.Unpickler):
    """Notes what a stream asks for; `encoding` is how it reads the texts of Python 2."""

    def __init__(self, data: bytes, *, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(data), encoding=encoding, errors="surrogateescape")
        self.asked: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.asked.add(f"{module}.{name}")
        return Inert

    def persistent_load(self, pid: Any) -> Any:
        return Inert()
