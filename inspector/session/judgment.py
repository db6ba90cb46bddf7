"""The judgment of a document on the chosen machine, worked out once for all parts of the screen."""

from __future__ import annotations

from inspector.session.cache import remembered
from inspector.session.document import Document
from inspector.target.default_load import DefaultLoad, judge_load
from inspector.target.machine.profile import Profile


@remembered
def load_of(document: Document, target: Profile) -> DefaultLoad:
    """Return what loading does on a machine."""
    return judge_load(document.checkpoint, target, document.safety)
