"""Changes of the device map that can be undone, told from the states before and after them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.records import dataclass, replace
from inspector.units import cut_text, escape_text

if TYPE_CHECKING:
    from inspector.remap.rules import Rule
    from inspector.session.state import State

_MOST_EDITS = 100
_MOST_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class MapEdit:
    """A change of the map, with all that it was before.

    Attributes:
        text: What was done, to stand behind `Undo`.
    """

    text: str
    target: str
    wanted: str
    chosen: tuple[tuple[str, str], ...]
    branches: tuple[Rule, ...]


def with_history(old: State, new: State) -> State:
    """Return a state that remembers the map of the one before it, if that is another."""
    if old.ready is None or new.ready is not old.ready or _map_of(old) == _map_of(new):
        return new
    edits = (*old.edits, _edit(old, _text(old, new)))
    return replace(new, edits=edits[-_MOST_EDITS:], undone=())


def edit_texts(state: State) -> tuple[str, str]:
    """Return what can be undone, and what can be done again; empty where nothing can."""
    last = [edits[-1].text if edits else "" for edits in (state.edits, state.undone)]
    return last[0], last[1]


def undone(state: State) -> State:
    """Return the state with the map before the last change."""
    if state.ready is None or not state.edits:
        return state
    edit = state.edits[-1]
    return _restored(state, edit, edits=state.edits[:-1], undone=(*state.undone, _edit(state, edit.text)))


def redone(state: State) -> State:
    """Return the state with the map after the change that was undone last."""
    if state.ready is None or not state.undone:
        return state
    edit = state.undone[-1]
    return _restored(state, edit, edits=(*state.edits, _edit(state, edit.text)), undone=state.undone[:-1])


def _map_of(state: State) -> object:
    return state.chosen, state.branches


def _edit(state: State, text: str) -> MapEdit:
    return MapEdit(
        text=text,
        target=state.target,
        wanted=state.wanted,
        chosen=state.chosen,
        branches=state.branches,
    )


def _restored(
    state: State, edit: MapEdit, *, edits: tuple[MapEdit, ...], undone: tuple[MapEdit, ...]
) -> State:
    return replace(
        state,
        target=edit.target,
        wanted=edit.wanted,
        chosen=edit.chosen,
        branches=edit.branches,
        edits=edits,
        undone=undone,
    )


def _text(old: State, new: State) -> str:
    """Return what was done, in a few words."""
    if (old.target, old.wanted) != (new.target, new.wanted):
        return "the choice of another target"
    before = dict(old.chosen)
    changed = [(device, to) for device, to in new.chosen if before.get(device) != to]
    if len(changed) == 1:
        return f"map {_name(changed[0][0])} to {changed[0][1]}"
    if changed:
        return f"map {len(changed):,} devices"
    known = {rule.path for rule in new.branches}
    gone = [rule for rule in old.branches if rule.path not in known]
    if gone:
        return f"remove the rule for {_name(gone[0].path or '')}"
    added = [rule for rule in new.branches if rule not in old.branches]
    if len(added) > 1:
        return f"map {len(added):,} parts"
    return f"map {_name(added[0].path or '')} to {added[0].to}" if added else "map as suggested"


def _name(text: str) -> str:
    return escape_text(cut_text(text, _MOST_NAME))
