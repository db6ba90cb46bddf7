"""One call of `torch.load`, as data."""

from __future__ import annotations

from inspector.records import dataclass
from inspector.target.map_location import MapLocation
from inspector.target.refusal import Refusal
from inspector.target.versions import HAS_WEIGHTS_ONLY, WEIGHTS_ONLY_DEFAULT, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCall:
    """How a file is loaded.

    Attributes:
        map_location: The argument of that name.
        weights_only: The argument of that name; None where the call does not give it.
        mmap: The argument of that name.
        by_path: Whether torch is given a path, rather than an open file.
        current: The number of the current device: `torch.cuda.set_device`, the rank on many a cluster.
        by_loader: Whether the format's own loader is called in place of `torch.load`.
        refusal: Why `weights_only=True` would stop, see `target.loading`; None if it would not. It is asked
            only where the call means `weights_only=True`.
    """

    map_location: MapLocation = None
    weights_only: bool | None = None
    mmap: bool = False
    by_path: bool = True
    current: int = 0
    by_loader: bool = False
    refusal: Refusal | None = None

    def is_weights_only(self, release: Release) -> bool:
        """Return whether the restricted unpickler is used: since 2.6 unless the call says otherwise."""
        if self.weights_only is None:
            return release >= WEIGHTS_ONLY_DEFAULT
        return self.weights_only


def plain_call(release: Release) -> LoadCall:
    """Return the call in which nothing but the file and the machine decides.

    That is `torch.load(path, weights_only=False)`, without the argument where torch does not know it yet.
    """
    return LoadCall(weights_only=False if release >= HAS_WEIGHTS_ONLY else None)
