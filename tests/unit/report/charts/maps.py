"""Trees with areas, for the tests of the map of modules."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.report.charts.areas import Areas, Property, color_by, measure
from inspector.report.charts.modules import ModuleMap, module_map
from inspector.report.colors import device_colors
from inspector.report.tree import build_tree
from tests.unit.report.rows import checkpoint, storage, tensor


def areas_of(file: Checkpoint) -> Areas:
    return measure(file, build_tree(file, device_colors(row.device for row in file.tensors)))


def map_of(file: Checkpoint, by: Property = "device", root: int = 0) -> ModuleMap:
    areas = areas_of(file)
    return module_map(areas, color_by(areas, by), root)


def node_of(areas: Areas, *names: str) -> int:
    """Find a row by the names on the way to it."""
    node = 0
    for name in names:
        node = next(id_ for id_ in areas.tree.nodes[node].children if areas.tree.nodes[id_].name == name)
    return node


def sized(sizes: dict[str, int], **fields: object) -> Checkpoint:
    """Return a file with a tensor and a storage for each dotted name below `model`."""
    rows = []
    for number, (name, nbytes) in enumerate(sizes.items()):
        device = "cpu" if name.endswith("bias") else "cuda:0"
        keys = ("model", name)
        rows.append(tensor(*keys, storage=str(number), nbytes=nbytes, shape=(nbytes // 4,), device=device))
        rows.append(storage(str(number), device, nbytes))
    return checkpoint(*rows, **fields)
