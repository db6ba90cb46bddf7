"""What changed in `torch.load` from release to release, as far as its answers changed with it.

Each figure is the first release that has the change, read from `torch/serialization.py`, `torch/_utils.py`
and `torch/_weights_only_unpickler.py` of the releases 1.2, 1.3.1, 1.5.1, 1.6, 1.10, 1.11, 1.12.1, 1.13.1,
2.0.1, 2.1.2, 2.3.1, 2.4.1, 2.5.1, 2.6, 2.7.1, 2.9.1, 2.10, 2.11, 2.12 and 2.13; a change between two of them
counts from the later one. The text of 1.0 is that of the genuine 1.0.1.
"""

from __future__ import annotations

import re

Release = tuple[int, int]

NEWEST: Release = (2, 13)
"""The release that is assumed where it is not known."""

SAYS_TORCH_DEVICE: Release = (1, 2)  # "map_location=torch.device('cpu')", before that "map_location='cpu'"
READS_ZIP: Release = (1, 4)  # older ones take every zip for TorchScript
READS_ZIP_3: Release = (1, 6)  # older ones read archives of version 1 and 2 only
UNTYPED_STORAGE: Release = (1, 11)  # torch._UntypedStorage, before that torch.FloatStorage and others
PUBLIC_STORAGE: Release = (1, 13)  # torch.storage.UntypedStorage
HAS_WEIGHTS_ONLY: Release = (1, 13)
HAS_MMAP: Release = (2, 1)
NAMES_MMAP_FILE: Release = (2, 3)  # the error about mmap is one text, with the file's name in it
MPS_BY_PREFIX: Release = (2, 1)  # "mps:0" is a location tag as well
ONE_DESERIALIZE: Release = (2, 4)  # one function restores cuda, hpu, xpu and privateuse1
OWN_DEVICES_MAPPED: Release = (2, 4)  # map_location reaches wrappers and tensors that are sent
SAFE_GLOBALS: Release = (2, 4)  # names can be allowed, and the refusal says so
BLOCKED_MODULES: Release = (2, 5)
WEIGHTS_ONLY_DEFAULT: Release = (2, 6)
MATCHES_WHOLE_TAG: Release = (2, 11)  # a tag is matched by a pattern, before that by its beginning
SKIPS_FOR_META: Release = (2, 11)  # map_location="meta" reads no storage at all
READS_SAFETENSORS: Release = (2, 13)  # a path that ends so is handed to safetensors.torch.load_file

_RELEASE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


def release_of(version: str | None) -> Release:
    """Return the release that a version text such as `2.6.0+cu124` names; the newest where it names none."""
    match = None if version is None else _RELEASE.match(version)
    return NEWEST if match is None else (int(match[1]), int(match[2]))
