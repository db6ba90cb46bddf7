"""What people do today, to compare with: `python with_torch.py load|mmap|resave|resave-all FILE [OUT]`."""

from __future__ import annotations

import os
import sys

import torch

action, path, *rest = sys.argv[1:]
checkpoint = torch.load(path, map_location="cpu", weights_only=action != "resave-all", mmap=action == "mmap")
if action.startswith("resave"):
    torch.save(checkpoint, rest[0])
    with open(rest[0], "rb+") as file:  # noqa: PTH123 - as short as what it stands for
        os.fsync(file.fileno())
