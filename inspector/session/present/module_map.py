"""The map page: what is measured once for a file, and what of it is shown."""

from __future__ import annotations

from inspector.report.charts.areas import Areas, Coloring, Property, color_by, measure
from inspector.report.charts.modules import ModuleMap, module_map
from inspector.session.cache import remembered
from inspector.session.document import Document


def module_map_of(document: Document, by: Property | None, root: int) -> ModuleMap | None:
    """Return the map of modules; None as long as nobody looks at it, for it has to be measured."""
    return None if by is None else _shown(document, by, root)


@remembered
def _shown(document: Document, by: Property, root: int) -> ModuleMap:
    return module_map(_areas(document), _coloring(document, by), root)


@remembered
def _areas(document: Document) -> Areas:
    return measure(document.checkpoint, document.tree)


@remembered
def _coloring(document: Document, by: Property) -> Coloring:
    return color_by(_areas(document), by)
