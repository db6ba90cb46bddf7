"""`inspector.open`, and the open checkpoint that it returns."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.errors import PlanError
from inspector.library.notebook import page_of
from inspector.library.rows import Global, Safety, Storage, Tensor, Value
from inspector.library.sources import Opened, Readable, content_of, shown
from inspector.library.telling import Told, told
from inspector.model.checkpoint import Key, Optimizer
from inspector.model.findings import Finding
from inspector.model.totals import DeviceTotal, device_totals
from inspector.overriding import override
from inspector.report.colors import device_name
from inspector.report.jsonable import write_show
from inspector.report.outline.node import count_parameters
from inspector.safety.verdict import FileVerdict
from inspector.safety.words import verdict_words
from inspector.units import format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.library.arrays import Framework
    from inspector.model.checkpoint import Tensor as Row

_WRAPPERS = frozenset({"._modules", "._parameters", "._buffers"})
_MOST_DEVICES, _MOST_COMPARED, _MOST_OFFERED, _MOST_CANDIDATES = 4, 2000, 5000, 5


class Checkpoint:
    """What a checkpoint file says, read without executing anything in it. `inspector.open` returns one.

    It is a mapping of the paths of tensors to `Tensor` objects, in the order of the file: `checkpoint[path]`,
    `path in checkpoint`, `len`, `keys`, `values`, `items`, `get`, and iteration over the paths. A path is
    also found with dots all through, `model.layer1.weight`, and by its end, `layer1.weight`, where only one
    tensor is meant by it.

    What it says is what the file said when it was opened. A `with` block ends with `close`.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file that numbers were read from; to ask for more opens it again."""
        self._opened.close()

    # --- the file -------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The file, as it was named."""
        return self._opened.facts.path

    @property
    def format(self) -> str:
        """Its format, in the words of `show --json`: `zip`, `legacy`, `safetensors`, ..."""
        return self._opened.facts.format

    @property
    def file_nbytes(self) -> int:
        """The size of the file, or of all files of a folder that belong to it."""
        return self._opened.facts.file_nbytes

    @property
    def parameters(self) -> int:
        """How many numbers its tensors of the role `parameter` hold; what is tied counts once."""
        return count_parameters(self._opened.facts)

    @property
    def devices(self) -> tuple[DeviceTotal, ...]:
        """The devices that it was saved on, each with its tensors, storages and bytes."""
        return device_totals(self._opened.facts)

    @property
    def versions(self) -> dict[str, str]:
        """Versions that the file names."""
        return dict(self._opened.facts.versions)

    @property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """The optimizer state dicts in it, and how their slots came by the names of parameters."""
        return self._opened.facts.optimizers

    @cached_property
    def storages(self) -> tuple[Storage, ...]:
        """The runs of bytes that tensors view, in the order of their first use."""
        rows = self._opened.facts.storages
        names = ("key", "device", "dtype", "nbytes", "file_offset")
        return tuple([Storage(**{name: getattr(row, name) for name in names}) for row in rows])

    @cached_property
    def other_values(self) -> tuple[Value, ...]:
        """What is no tensor: numbers, texts and objects, in the order of the file."""
        rows = self._opened.facts.values
        return tuple(Value(path=row.path, type=row.type, text=row.text) for row in rows)

    # --- what loading it does -------------------------------------------------------------------------------

    @property
    def verdict(self) -> FileVerdict:
        """What loading it runs: `weights-only`, `needs-allow-list`, `runs-code`, `unknown` or `dangerous`."""
        return self._opened.safety.verdict

    @property
    def safety(self) -> Safety:
        """The verdict with its reasons, and the classes that torch has to be told to allow."""
        found = self._opened.safety
        return Safety(
            verdict=found.verdict,
            weights_only=found.weights_only,
            globals_to_allow=found.to_allow,
            reasons=found.reasons,
        )

    @property
    def globals(self) -> tuple[Global, ...]:
        """The names that loading it would import, each with its verdict."""
        rows = zip(self._opened.facts.globals, self._opened.safety.globals, strict=True)
        return tuple(Global(name=use.name, count=use.count, verdict=verdict) for use, verdict in rows)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What its owner should know, worst first: devices, safety, damage."""
        return self._opened.findings

    # --- tensors --------------------------------------------------------------------------------------------

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors, in the order of the file."""
        return tuple([Tensor(self._opened, index) for index in range(len(self))])

    def filter(self, query: str) -> tuple[Tensor, ...]:
        """Return the tensors that a query finds, as `show --filter` does: `"role:parameter size>10MB"`.

        Raises:
            QueryError: A word of it can find nothing in any file.
        """
        from inspector.report.query import parse_query, refuse_mistakes, searchable  # noqa: PLC0415 - few ask

        rows = searchable(self._opened.facts)
        refuse_mistakes(query, rows)
        found, _ = parse_query(query).find(rows)
        return tuple([self.tensors[index] for index in found])

    def state_dict(
        self, branch: str = "", *, framework: Framework = "numpy", progress: Told = None
    ) -> dict[str, Any]:
        """Read all tensors, or those of a branch, and return them by name, as `load_state_dict` takes them.

        A name is made of the keys below the branch, joined by dots. What is widened or dequantized is said
        at `Tensor.numpy` and `Tensor.torch`. Tensors that share a storage come as copies.

        Args:
            branch: Where they are, such as `model`; everywhere by default, optimizer state too.
            framework: `numpy` for arrays, `torch` for tensors on the CPU.
            progress: Called with each `Step` of the work; what it raises ends the work.

        Raises:
            KeyError: There is no tensor in the branch.
            PlanError: Two tensors have one name.
            CheckpointError: One of them cannot be read.
        """
        from inspector.library.arrays import Arrays  # noqa: PLC0415 - most files are only listed

        start = f"{branch.replace('/', '.')}." if branch else ""
        names = {
            row: name.removeprefix(start)
            for row, name in enumerate(self._names)
            if name.startswith(start) and self._opened.facts.tensors[row].part_of is None
        }
        if branch and not names:
            raise KeyError(f"there is no tensor below {shown(branch)}")
        for name, rows in _index(iter(names.values())).items():
            if len(rows) > 1:
                raise PlanError(f"{len(rows)} tensors have the name {shown(name)}", remedy="name a branch")
        with told(progress) as steps:
            found = Arrays(self._opened, steps, framework).read_all(list(names))
            return dict(zip(names.values(), found, strict=True))

    def __getitem__(self, path: str) -> Tensor:
        """Return the tensor at a path.

        Raises:
            KeyError: There is none, or there are several.
        """
        rows = self._rows(path)
        if len(rows) == 1:
            return self.tensors[rows[0]]
        raise KeyError(self._why_not(path, rows))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.keys()[:_MOST_OFFERED])

    def __contains__(self, path: object) -> bool:
        return bool(self._rows(path))

    def __len__(self) -> int:
        return len(self._opened.facts.tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> tuple[str, ...]:
        """Return the paths of all tensors."""
        return tuple([row.path for row in self._opened.facts.tensors])

    def values(self) -> tuple[Tensor, ...]:
        """Return all tensors."""
        return self.tensors

    def items(self) -> tuple[tuple[str, Tensor], ...]:
        """Return all tensors, each with its path."""
        return tuple(zip(self.keys(), self.tensors, strict=True))

    def get(self, path: str) -> Tensor | None:
        """Return the tensor at a path; None where there is none, or there are several."""
        rows = self._rows(path)
        return self.tensors[rows[0]] if len(rows) == 1 else None

    def _rows(self, path: object) -> list[int]:
        if not isinstance(path, str):
            return []
        return self._by_path.get(path) or self._by_name.get(path) or (self._by_end(path) if path else [])

    def _by_end(self, path: str) -> list[int]:
        """Return the tensors whose last steps these are."""
        rows = self._opened.facts.tensors
        found = [row for row, name in enumerate(self._names) if name.endswith(f".{path}")]
        return found or [row for row, one in enumerate(rows) if one.path.endswith(f"/{path}")]

    @cached_property
    def _by_path(self) -> dict[str, list[int]]:
        return _index(row.path for row in self._opened.facts.tensors)

    @cached_property
    def _names(self) -> list[str]:
        return list(map(_dotted, self._opened.facts.tensors))

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        return _index(iter(self._names))

    def _why_not(self, path: str, rows: list[int]) -> str:
        named = shown(str(path))
        if rows:
            candidates = [shown(self._opened.facts.tensors[row].path) for row in rows[:_MOST_CANDIDATES]]
            more = len(rows) - len(candidates)
            listed = f"{', '.join(candidates)}{f' and {more:,} more' if more else ''}"
            return f"{len(rows):,} tensors are meant by {named}: {listed}"
        from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

        near = get_close_matches(str(path), self.keys()[:_MOST_COMPARED], 1)
        meant = f"; did you mean {shown(near[0])}?" if near else ""
        return f"there is no tensor {named}{meant}"

    # --- as documents ---------------------------------------------------------------------------------------

    def json(self) -> str:
        """Return the document of `show --json`, as text."""
        opened = self._opened
        return "".join(write_show(opened.facts, opened.safety, opened.findings, open_seconds=opened.seconds))

    def to_dict(self) -> dict[str, Any]:
        """Return the document of `show --json`."""
        found: dict[str, Any] = json.loads(self.json())
        return found

    def text(self, *, depth: int | None = None) -> str:
        """Return what `show` prints; `depth` is how many levels of the tree."""
        from inspector.report.text import format_report  # noqa: PLC0415 - few ask
        from inspector.report.tree import build_tree  # noqa: PLC0415 - the same

        opened = self._opened
        tree = build_tree(opened.facts, {})
        return format_report(opened.facts, opened.safety, opened.findings, tree, depth=depth)

    @override
    def __repr__(self) -> str:
        names = [device_name(total.device) for total in self.devices if total.device != NO_DEVICE]
        more = f" and {len(names) - _MOST_DEVICES:,} more" if len(names) > _MOST_DEVICES else ""
        devices = f" on {', '.join(names[:_MOST_DEVICES])}{more}" if names else ""
        return (
            f"<Checkpoint {shown(self.path)}: {self.format}, {format_count(len(self), 'tensor')}{devices}, "
            f"{format_nbytes(self.file_nbytes)}; {verdict_words(self._opened.safety)}>"
        )

    def _repr_html_(self) -> str:
        return page_of(self._opened.facts, self._opened.safety, self._opened.findings)


def open(path: Readable, *, progress: Told = None) -> Checkpoint:  # noqa: A001 - the library's word: inspector.open
    """Open a checkpoint: a file, or a folder that is one. Nothing in it is executed, and no weights are read.

    The file is closed when this returns; numbers that are asked for later open it again.

    Args:
        path: That of the file or folder; or the bytes of a file, or a file that is open for reading in
            binary mode, which is read from where it stands.
        progress: Called with each `Step` of the work; what it raises ends the work.

    Raises:
        CheckpointError: It is missing, no checkpoint, of a format that is not read, or damaged.
    """
    named, data = content_of(path)
    with told(progress) as steps:
        return Checkpoint(Opened(named, steps, data))


def _index(names: Iterator[str]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        found[name].append(index)
    return dict(found)


def _dotted(row: Row) -> str:
    return ".".join(map(_step, (key for key in row.keys if key not in _WRAPPERS)))


def _step(key: Key) -> str:
    return str(key).removeprefix(".")
