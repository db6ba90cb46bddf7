"""What a worker does for an export, step by step; imported with all it needs when somebody exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from inspector.session.export import work
from inspector.session.export.draft import draft_of, picked
from inspector.session.export.kinds import first_wish
from inspector.session.export.looking import Wanted, look_at, wanted_by
from inspector.session.export.work import Order, Outcome, save_receipt, undo

if TYPE_CHECKING:
    from inspector.progress import Progress
    from inspector.session.device_map import DeviceMap
    from inspector.session.document import Document
    from inspector.session.export.page import Destination, ExportDraft
    from inspector.session.state import ExportState

__all__ = ["Order", "carry_out", "look", "propose", "save_receipt", "undo"]
Ask = Callable[[], "DeviceMap"]
"""Computes the device map, in the worker: with many tensors that takes a while."""


def propose(
    ask: Ask, document: Document, export: ExportState, progress: Progress
) -> tuple[ExportDraft, Destination]:
    """Return a draft, and what exists at the destination that is meant."""
    rows = len(document.checkpoint.tensors) + len(document.tree.nodes)  # what becomes of each, and its box
    progress.start("listing what is written", rows, is_counted=True)
    device_map = _feasible(ask)
    wish = picked(document, export.wish or first_wish(document.checkpoint), export.picks)
    draft = draft_of(device_map, wish, document.tree, progress)
    last, typed = export.draft, export.destination
    path = draft.destination
    if last is not None and typed is not None and typed.path != last.destination:
        path = typed.path  # the dialog keeps what was typed
    return draft, look_at(path, wanted_by(document.checkpoint, draft))


def look(path: str, wanted: Wanted, _progress: Progress) -> Destination:
    """Return what exists at a path."""
    return look_at(path, wanted)


def carry_out(ask: Ask, order: Callable[..., Order], progress: Progress) -> Outcome:
    """Write what was ordered."""
    return work.carry_out(order(device_map=_feasible(ask)), progress)


def _feasible(ask: Ask) -> DeviceMap:
    """Return the device map."""
    device_map = ask()
    if device_map.refusal is not None:
        raise device_map.refusal
    return device_map
