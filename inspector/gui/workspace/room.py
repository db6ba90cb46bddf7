"""How high the parts above the tree are, which is the same for every file."""

from __future__ import annotations

BANNER_HEIGHT = 44
MAP_HEIGHT = 36
