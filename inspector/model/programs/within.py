"""Names that are dangerous as such, and harmless in a file whose use of them was followed."""

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.container import Container
from inspector.containers.unread import OPENER
from inspector.model.values.parts import iter_values
from inspector.pickles.values import Global, Value

WRAPPER = "joblib.numpy_pickle.NumpyArrayWrapper"
_FOLLOWED = (OPENER, WRAPPER)


def read_within(container: Container, look: Callable[[int], None]) -> tuple[str, ...]:
    """Return the names by which a file unpickles bytes in turn, if all of those were read.

    A name that stands anywhere but in the place of what is called may be called by what it is handed to.
    """
    named = {node.present for one in container.programs for node in one.stream.globals}
    if named.isdisjoint(_FOLLOWED) or not all(one.is_whole for one in container.programs):
        return ()
    found = {name for name in _FOLLOWED if name in named}
    roots: list[Value] = [container.root]
    for program in container.programs:
        for call in program.stream.calls:
            roots += [call.args, call.kwargs, call.state, *(call.items or ())]
            roots += [part for pair in call.pairs or () for part in pair]
    for value in iter_values(roots):
        look(1)
        if isinstance(value, Global):
            found.discard(value.present)
    return tuple(sorted(found))
