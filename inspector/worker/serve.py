"""`serve.py`: answers requests that come over stdin, each by a script that the request names.

A frame is a letter, the lengths of a head and of a block (`<cIQ`), the head as JSON, and the block. In come
`R` (a request: the path of a script, and the head for its function), `B` (a block) and `E` (there are no
more); out go `P` (asks for a block), `A` (an answer), and as the last frame of a request `D` (done) or `F`
(failed). A script has a function `answer(head, blocks)`, which yields pairs of a head and a block; scripts
and all that they import stay in memory for the requests that follow.

It runs alone: the interpreter may be another one than the program's (Python 3.8 or newer), and may lack the
program's packages. Scripts that only ever run in the program's own may import all of `inspector`. It ends as
soon as stdin does, in the middle of an answer too.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # Python before 3.11: our own folder, whose modules are nobody's to import

import importlib.util
import json
import os
import queue
import struct
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:  # evaluated by no interpreter, so that the oldest one may be older than these
    from collections.abc import Callable, Iterator

    Blocks = Iterator[bytes]
    Answers = Iterator[tuple[dict[str, Any], bytes]]

_FRAME = struct.Struct("<cIQ")
_MOST_TEXT = 2000


class Server:
    """Both ends of the conversation, as this side has them."""

    def __init__(self, inward: BinaryIO, outward: BinaryIO, end: Callable[[int], object]) -> None:
        self._inward, self._outward, self._end = inward, outward, end
        self._frames: queue.Queue[tuple[bytes, bytes, bytes]] = queue.Queue()
        self._scripts: dict[str, Callable[[dict[str, Any], Blocks], Answers]] = {}

    def listen(self) -> None:
        """Read frames until there are no more, then end the process, whatever it is doing."""
        while len(start := self._inward.read(_FRAME.size)) == _FRAME.size:
            kind, head_nbytes, block_nbytes = _FRAME.unpack(start)
            self._frames.put((kind, self._inward.read(head_nbytes), self._inward.read(block_nbytes)))
        self._end(0)

    def serve(self) -> None:
        """Answer one request."""
        _, text, _ = self._frames.get()
        try:
            request = json.loads(text)
            for head, block in self._function(request["script"])(request["head"], self._blocks()):
                self._send(b"A", head, block)
        except Exception as error:  # noqa: BLE001 - what a request raises is its answer
            missing = str(error.name)[:_MOST_TEXT] if isinstance(error, ModuleNotFoundError) else ""
            self._send(b"F", {"error": f"{type(error).__name__}: {error}"[:_MOST_TEXT], "missing": missing})
        else:
            self._send(b"D")

    def _function(self, path: str) -> Callable[[dict[str, Any], Blocks], Answers]:
        if path not in self._scripts:
            spec = importlib.util.spec_from_file_location(Path(path).stem, path)
            assert spec is not None  # noqa: S101 - it is the path of a module
            assert spec.loader is not None  # noqa: S101 - the same
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self._scripts[path] = module.answer
        return self._scripts[path]

    def _blocks(self) -> Blocks:
        while True:
            self._send(b"P")
            kind, _, block = self._frames.get()
            if kind != b"B":
                return
            yield block

    def _send(self, kind: bytes, head: dict[str, Any] | None = None, block: bytes = b"") -> None:
        text = b"" if head is None else json.dumps(head).encode()
        self._outward.write(_FRAME.pack(kind, len(text), len(block)) + text)
        self._outward.write(block)
        self._outward.flush()


def pin_package() -> None:
    """Let scripts import the package that they belong to, and no other of its name."""
    root = Path(__file__).resolve().parents[1]
    if root.name in sys.modules or not (root / "__init__.py").is_file():
        return
    spec = importlib.util.spec_from_file_location(
        root.name, root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None  # noqa: S101 - it is the path of a package
    assert spec.loader is not None  # noqa: S101 - the same
    sys.modules[root.name] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)


def main() -> None:
    """Serve until stdin ends; what is printed meanwhile, by C++ too, goes to stderr and spoils no frame."""
    inward, outward = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    pin_package()
    server = Server(os.fdopen(inward, "rb"), os.fdopen(outward, "wb"), os._exit)
    threading.Thread(target=server.listen, daemon=True).start()
    while True:
        server.serve()


if __name__ == "__main__":
    main()
