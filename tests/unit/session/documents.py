"""Documents made of rows, and a session that works at once."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import MagicMock

from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.model.totals import device_totals
from inspector.progress import Progress
from inspector.report.colors import device_colors
from inspector.report.tree import build_tree
from inspector.session.document import Document
from inspector.session.view import View
from tests.unit.report.rows import checkpoint, storage, tensor


def document_of(rows: Checkpoint) -> Document:
    totals = device_totals(rows)
    return Document(
        checkpoint=rows,
        totals=totals,
        tree=build_tree(rows, device_colors(total.device for total in totals)),
        open_seconds=0.25,
    )


def saved_on(*devices: str, names: tuple[str, ...] = (), **fields: object) -> Document:
    """A model with one tensor of 4 KB on each device."""
    rows: list[object] = []
    for index, device in enumerate(devices):
        key = None if device == "meta" else str(index)
        rows.append(tensor("model", f"layer{index}.weight", device=device, storage=key, nbytes=4000))
        if key is not None:
            rows.append(storage(key, device, 4000))
    uses = tuple(GlobalUse(name=name, count=1) for name in names)
    return document_of(checkpoint(*rows, globals=uses, **fields))


class AtOnce:
    """A `TaskRunner` that works at once, or when it is told to."""

    def __init__(self) -> None:
        self.waits = False
        self.waiting: list[Callable[[], None]] = []

    def run(self, work, progress: Progress, on_done, on_failed) -> None:
        def go() -> None:
            try:
                result = work(progress)
            except Exception as error:  # noqa: BLE001 - as the real one does
                on_failed(error)
            else:
                on_done(result)

        if self.waits:
            self.waiting.append(go)
        else:
            go()

    def go_on(self) -> None:
        """Do the work that waits longest."""
        self.waiting.pop(0)()


def a_view() -> MagicMock:
    """A view whose tree is painted as soon as it is shown."""
    view = MagicMock(spec=View)
    view.when_shown.side_effect = lambda act: act()
    return view
