"""What a worker does for an export, step by step; imported with all it needs when somebody exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from inspector.remap.torch_check import try_with_torch
from inspector.session.export import work
from inspector.session.export.draft import draft_of, picked, with_outlook
from inspector.session.export.kinds import first_wish
from inspector.session.export.looking import absolute, look_at, wanted_by
from inspector.session.export.work import Order, Outcome, save_receipt, undo
from inspector.session.present.compose import ask
from inspector.session.targets import target_of

if TYPE_CHECKING:
    from inspector.progress import Progress
    from inspector.session.device_map import DeviceMap
    from inspector.session.document import Document
    from inspector.session.export.page import Destination, ExportDraft, ExportWish
    from inspector.session.state import ExportState, State

__all__ = ["absolute", "carry_out", "look_at", "propose", "save_receipt", "try_with_torch", "undo"]


def propose(state: State, export: ExportState, progress: Progress) -> tuple[ExportDraft, Destination]:
    """Return a draft, and what exists at the destination that is meant."""
    document = cast("Document", state.ready)
    rows = len(document.checkpoint.tensors) + len(document.tree.nodes)  # what becomes of each, and its box
    progress.start("listing what is written", rows, is_counted=True)
    device_map = _feasible(state)
    wish = picked(document, export.wish or first_wish(document.checkpoint), export.picks)
    draft = draft_of(device_map, wish, document.tree, progress)
    draft = with_outlook(draft, device_map, target_of(state))
    last, typed = export.draft, export.destination
    path = draft.destination
    if last is not None and typed is not None and typed.path != last.destination:
        path = typed.path  # the dialog keeps what was typed
    return draft, look_at(path, wanted_by(document.checkpoint, draft))


def carry_out(
    state: State, wish: ExportWish, destination: str, progress: Progress, *, overwrite: bool
) -> Outcome:
    """Write what was ordered."""
    order = Order(
        device_map=_feasible(state),
        wish=wish,
        destination=destination,
        overwrite=overwrite,
        target=target_of(state),
        python=state.python or None,
    )
    return work.carry_out(order, progress)


def _feasible(state: State) -> DeviceMap:
    """Return the device map; with many tensors that takes a while."""
    device_map: DeviceMap = ask(state, "routes")
    if device_map.refusal is not None:
        raise device_map.refusal
    return device_map
