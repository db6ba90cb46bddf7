"""What loading code may use of torch, release by release: the one table that every style asks.

A release that is not known counts as the newest, but for what one line can ask torch itself: see `device`.
The figures are those of the file that is named, in the releases of 1.8 to 2.13 that have it.
"""

from __future__ import annotations

from typing import Literal

from inspector.records import dataclass
from inspector.target.profile import Profile
from inspector.target.versions import HAS_MMAP, HAS_WEIGHTS_ONLY, SAFE_GLOBALS, Release, release_of

Name = Literal["weights_only", "add_safe_globals", "mmap", "consume_prefix", "dcp", "fully_shard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Something that not every torch has."""

    name: str
    since: Release
    source: str


FEATURES: dict[Name, Feature] = {
    "weights_only": Feature(
        name="torch.load(weights_only=)", since=HAS_WEIGHTS_ONLY, source="torch/serialization.py, load"
    ),
    "add_safe_globals": Feature(
        name="torch.serialization.add_safe_globals",
        since=SAFE_GLOBALS,
        source="torch/serialization.py, add_safe_globals",
    ),
    "mmap": Feature(name="torch.load(mmap=)", since=HAS_MMAP, source="torch/serialization.py, load"),
    "consume_prefix": Feature(
        name="torch.nn.modules.utils.consume_prefix_in_state_dict_if_present",
        since=(1, 9),
        source="torch/nn/modules/utils.py",
    ),
    "dcp": Feature(
        name="torch.distributed.checkpoint.format_utils.dcp_to_torch_save",
        since=(2, 3),
        source="torch/distributed/checkpoint/format_utils.py",
    ),
    "fully_shard": Feature(
        name="torch.distributed.fsdp.fully_shard",
        since=(2, 6),
        source="torch/distributed/fsdp/__init__.py",
    ),
}
"""By the name under which the styles ask for it. Devices are asked for by `model.roles.device_types`."""


def has(target: Profile, name: Name) -> bool:
    """Return whether the torch of a machine has a feature; where its release is not known, the newest's."""
    return release_of(target.torch_version) >= FEATURES[name].since
