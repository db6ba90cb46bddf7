"""What the answers look at: the figures of a file, added up once for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from inspector.containers.formats import format_of
from inspector.model.checkpoint import Checkpoint, Role, Tensor
from inspector.model.roles.devices import is_accelerator
from inspector.model.roles.roles import DICTIONARIES
from inspector.model.totals import DeviceTotal, device_totals, role_totals
from inspector.quoting import command, file_word, python_text
from inspector.records import dataclass, replace
from inspector.target.default_load import DefaultLoad
from inspector.target.loading import load_call
from inspector.target.machine.profile import Profile
from inspector.target.simulate import first_failure
from inspector.units import cut_text, escape_text, format_count, format_nbytes

_MOST_NAMED = 4
_MOST_NAME_CHARS = 60
_WEIGHTS: tuple[Role, ...] = ("parameter", "buffer")
_HALF_NBYTES = 2
_FLOATS = {"float32": 4, "float64": 8}
"""Types that are made smaller by `.half()`, and their sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A file and its figures.

    Attributes:
        checkpoint: The file.
        target: The machine where it is to be loaded.
        load: What `torch.load(path)` does there.
        totals: Its devices, the accelerators first.
        roles: The stored bytes by role.
        has_module: Whether it holds pickled modules and not only their tensors.
        loads_on_cpu: Whether `torch.load(path, map_location="cpu")` works there.
    """

    checkpoint: Checkpoint
    target: Profile
    load: DefaultLoad
    totals: tuple[DeviceTotal, ...]
    roles: dict[str, int]
    has_module: bool
    loads_on_cpu: bool

    # --- where it was saved ---------------------------------------------------------------------------------

    @property
    def accelerators(self) -> tuple[DeviceTotal, ...]:
        """The devices besides the CPU."""
        return tuple(total for total in self.totals if is_accelerator(total.device))

    @property
    def nbytes(self) -> int:
        """What the file stores of all tensors."""
        return sum(storage.nbytes for storage in self.checkpoint.storages)

    @property
    def places(self) -> str:
        """The accelerators and what is on them, as text."""
        return and_joined(
            [f"{_name(total.device)} ({format_nbytes(total.nbytes)})" for total in self.accelerators]
        )

    # --- what it holds --------------------------------------------------------------------------------------

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The tensors of models: parameters and buffers."""
        rows = self.checkpoint.tensors
        return tuple(row for row in rows if row.role in _WEIGHTS and row.part_of is None)

    @property
    def weight_nbytes(self) -> int:
        """The stored bytes of the models."""
        return sum(self.roles.get(role, 0) for role in _WEIGHTS)

    @property
    def slots(self) -> tuple[Tensor, ...]:
        """The tensors of optimizers."""
        return tuple(row for row in self.checkpoint.tensors if row.role == "optimizer")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its state dicts; what is inside of pickled modules has none."""
        rows = (row for row in self.weights if row.keys and DICTIONARIES.isdisjoint(row.keys))
        return tuple(str(row.keys[-1]) for row in rows)

    @property
    def is_for_torch(self) -> bool:
        """Whether `torch.load` reads this format."""
        return format_of(self.checkpoint.format).torch_loads

    def values_at(self, name: str) -> Iterator[str]:
        """Yield the texts of the values under a key, such as `.training`."""
        return (row.text for row in self.checkpoint.values if row.keys and row.keys[-1] == name)

    def halved_nbytes(self, roles: Iterable[str] = ()) -> int:
        """Return how many bytes float16 would save, of these roles or of all."""
        wanted = frozenset(roles)
        sizes = {storage.key: storage.nbytes for storage in self.checkpoint.storages}
        saved = 0
        for row in self.checkpoint.tensors:
            nbytes = sizes.pop(row.storage, 0) if row.storage is not None else 0
            if row.dtype in _FLOATS and (not wanted or row.role in wanted):
                saved += nbytes - nbytes * _HALF_NBYTES // _FLOATS[row.dtype]
        return saved

    # --- code -----------------------------------------------------------------------------------------------

    def path(self, suffix: str = "") -> str:
        """Return the name of the file as a Python literal, or with a suffix that of another beside it."""
        name = PurePath(self.checkpoint.path)
        return python_text(f"{name.stem}{suffix}{name.suffix}" if suffix else name.name)

    def loading(self) -> str:
        """Return the line that loads this file anywhere, or the command that writes more than a line."""
        if self.loads_on_cpu:
            return f'checkpoint = torch.load({self.path()}, map_location="cpu")'
        if self.load.way == "never":
            return ""
        return command("snippet", file_word(self.checkpoint.path))


def gather_facts(checkpoint: Checkpoint, load: DefaultLoad, target: Profile) -> Facts:
    """Add up a file."""
    on_cpu = replace(load_call(checkpoint, load.safety), map_location="cpu")
    return Facts(
        checkpoint=checkpoint,
        target=target,
        load=load,
        totals=device_totals(checkpoint),
        roles=dict(role_totals(checkpoint)),
        has_module=checkpoint.module_class is not None
        or any(not DICTIONARIES.isdisjoint(row.keys) for row in checkpoint.tensors),
        loads_on_cpu=format_of(checkpoint.format).torch_loads
        and first_failure(checkpoint, target, on_cpu) is None,
    )


def by_dtype(rows: Iterable[Tensor]) -> list[tuple[str, int, int]]:
    """Return how many tensors and bytes there are of each dtype, the most bytes first."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[row.dtype].append(row.nbytes)
    sizes = [(dtype, len(nbytes), sum(nbytes)) for dtype, nbytes in found.items()]
    return sorted(sizes, key=lambda row: -row[2])


def and_joined(items: Sequence[str], word: str = "and") -> str:
    """Return a few items as text, and how many more there are."""
    more = len(items) - _MOST_NAMED
    named = [*items[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
    return f" {word} ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def tensors(count: int) -> str:
    """Return a number of tensors as text."""
    return format_count(count, "tensor")


def shown(text: str) -> str:
    """Return a text of the file as part of a sentence."""
    return _name(text)


def _name(text: str) -> str:
    return escape_text(cut_text(text, _MOST_NAME_CHARS))
