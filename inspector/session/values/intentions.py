"""The intentions about values: those of the selected tensor, and the scan of all tensors.

Each kind of question has a child process of its own, so that a scan keeps no click waiting. What is small is
read as soon as a tensor is looked at, what is large when it is asked for; whoever selects another tensor
stops what was under way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from inspector.overriding import override
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.jobs.job import Job
from inspector.session.jobs.machines import Probe
from inspector.session.jobs.running import start, stop
from inspector.session.rows import RowIntentions
from inspector.session.values.kinds import (
    CELLS,
    PICTURE,
    RANK,
    SAVE,
    SCALARS,
    SCAN,
    STATISTICS,
    TAKE,
    selected_row,
)
from inspector.session.values.page import CellBlock, Picture, SliceChoice

if TYPE_CHECKING:
    from inspector.session.document import Document
    from inspector.session.present.presenter import Presenter
    from inspector.session.values.taking import Taking
    from inspector.values.asking import ValueReader
    from inspector.values.request import Request
    from inspector.values.statistics import Ranks, Scan, Statistics

# What is asked of a tensor, and how, is imported by the first who selects one: the tree is painted before.

_OF_SELECTED = (STATISTICS, RANK, PICTURE, CELLS, SAVE)
_MOST_CELLS = (224, 288)
"""How many rows and columns of cells a picture has."""
_LABEL = "reading values"
_SCALAR, _MANY = ((), (1,), (1, 1)), 5000


class Values(RowIntentions):
    """The intentions about values."""

    def __init__(self, desk: Presenter, probe: Probe | None) -> None:
        """Start without children: the first question starts one."""
        super().__init__(desk, probe)
        self._readers: dict[str, ValueReader] = {}

    @override
    def select(self, node: int | None) -> None:
        before = self._state.selected
        with self._desk.together():
            super().select(node)
            self._follow(before)

    @override
    def go(self, step: int) -> None:
        before = self._state.selected
        with self._desk.together():
            super().go(step)
            self._follow(before)

    @override
    def _on_judged(self) -> None:
        super()._on_judged()
        document = self._ready
        tensors = () if document is None else document.checkpoint.tensors
        if document is not None and (len(tensors) > _MANY or any(row.shape in _SCALAR for row in tensors)):
            from inspector.values.request import read_scalars  # noqa: PLC0415 - see above

            job = Job(kind=SCALARS, about=self._state.path, progress=Progress(_LABEL))
            start(self._desk, job, partial(read_scalars, document.checkpoint))

    def _follow(self, before: int | None) -> None:
        if self._state.selected != before:
            self._read_selected()

    def watch_values(self, watches: bool) -> None:  # noqa: FBT001 - a signal's argument
        """Read the values of what is selected, now and later, or no more; what is read or known stays."""
        if watches == self._state.watches_values:
            return
        with self._desk.together():
            self._show(replace(self._state, watches_values=watches))
            if watches and self._state.job(STATISTICS) is None and self._state.job(PICTURE) is None:
                self._read_selected()

    def compute_values(self) -> None:
        """Read the values of the selected tensor, however large it is."""
        asked = self._asked()
        if asked is not None:
            self._read_statistics(*asked)

    def rank_values(self) -> None:
        """Work out how many dimensions the selected matrix really uses."""
        asked = self._asked()
        if asked is not None:
            document, row, _ = asked
            job = Job(kind=RANK, about=self._state.path, progress=Progress("computing singular values"))
            start(self._desk, job, partial(_ranks, self._reader(STATISTICS), document, row))

    def stop_values(self) -> None:
        """Stop reading them."""
        stop(self._desk, STATISTICS)
        stop(self._desk, RANK)

    def choose_slice(self, choice: SliceChoice) -> None:
        """Look at another slice of the selected tensor."""
        asked = self._asked()
        if asked is not None:
            with self._desk.together():
                self._show(replace(self._state.without_job(PICTURE).without_job(CELLS), slice=choice))
                self._read_picture(*asked)

    def look_at_cells(self, row: int, column: int, rows: int, columns: int, digits: int) -> None:
        """Read some cells of the slice as texts."""
        asked = self._asked()
        shape = () if asked is None else self._slice_shape(asked)
        if asked is None or not shape:
            return
        from inspector.session.values.showing import choice_of  # noqa: PLC0415 - see above

        document, _, request = asked
        head = _head(document, request, "cells", choice_of(self._state, shape))
        head |= {"rows": [row, row + rows], "columns": [column, column + columns], "digits": digits}
        self._ask_slice(CELLS, head, lambda found: _cells(row, column, digits, found))

    def scan_values(self) -> None:
        """Read the values of all tensors, and find what is odd about some."""
        document = self._ready
        if document is not None:
            job = Job(kind=SCAN, about=self._state.path, progress=Progress(_LABEL))
            start(self._desk, job, partial(_scan, self._reader(SCAN), document))

    def stop_scan(self) -> None:
        """Stop that."""
        stop(self._desk, SCAN)

    def save_values(self, path: str) -> None:
        """Save the values of the selected tensor as a `.npy` file."""
        asked = self._asked()
        if asked is not None:
            from inspector.values.request import Requests, read_nbytes  # noqa: PLC0415 - see above

            document, _, request = asked
            head = {"what": "rows", **Requests(document.checkpoint).file, "tensor": request}
            job = Job(kind=SAVE, about=self._state.path, progress=Progress("saving values"))
            start(self._desk, job, partial(_save, self._reader(SAVE), head, path, read_nbytes(request)))

    def take_out(self, nodes: tuple[int, ...]) -> Taking | None:
        """Begin to drag rows out: their tensors become files, in a job; None without an open file."""
        document = self._ready
        if document is None or not nodes:
            return None
        from inspector.session.values.taken import take_out, temporary_root  # noqa: PLC0415 - see above
        from inspector.session.values.taking import plan_taking  # noqa: PLC0415 - see above

        taking = plan_taking(document, nodes, temporary_root())
        if taking.files:
            job = Job(kind=TAKE, about=self._state.path, progress=Progress("preparing arrays"))
            start(self._desk, job, partial(take_out, document, self._reader(SAVE), taking))
        return taking

    def end_taking(self, taking: Taking, *, kept: bool) -> None:
        """End a drag: the files stay for whoever took them, and go where nobody did."""
        if not taking.files:
            return
        from inspector.session.values.taken import remove_taken  # noqa: PLC0415 - see above

        self._show(self._state.without_job(TAKE))
        if not kept:
            self._desk.runner.run(lambda _: remove_taken(taking), Progress(), _ignore, _ignore)

    def remove_left(self) -> None:
        """Remove the files of drags that ended long ago."""
        from inspector.session.values.taken import KEPT_S, remove_left, temporary_root  # noqa: PLC0415 - as above

        root = temporary_root()
        self._desk.runner.run(lambda _: remove_left(root, KEPT_S), Progress(), _ignore, _ignore)

    def _read_selected(self) -> None:
        """Forget the values of what was selected before, and read those of what is, if they are looked at."""
        state = self._state
        for kind in _OF_SELECTED:
            state = state.without_job(kind)
        if state.slice is not None or len(state.jobs) < len(self._state.jobs):
            self._show(replace(state, slice=None))
        asked = self._asked() if state.watches_values else None
        if asked is None:
            return
        from inspector.session.values.showing import AUTOMATIC_NBYTES  # noqa: PLC0415 - see above
        from inspector.values.request import read_nbytes  # noqa: PLC0415 - see above

        document, _, request = asked
        is_packed = request["place"]["file_offset"] is None
        nbytes = document.checkpoint.file_nbytes if is_packed else read_nbytes(request)
        if nbytes <= AUTOMATIC_NBYTES:
            self._read_statistics(*asked)
        if nbytes <= AUTOMATIC_NBYTES or not is_packed:
            self._read_picture(*asked)

    def _read_statistics(self, document: Document, row: int, _request: Request) -> None:
        job = Job(kind=STATISTICS, about=self._state.path, progress=Progress(_LABEL))
        start(self._desk, job, partial(_statistics, self._reader(STATISTICS), document, row))

    def _read_picture(self, document: Document, row: int, request: Request) -> None:
        from inspector.session.values.showing import choice_of  # noqa: PLC0415 - see above

        shape = self._slice_shape((document, row, request))
        choice = choice_of(self._state, shape)
        if shape and choice.row is not None and choice.column is not None:
            head = _head(document, request, "slice", choice) | {"most": _MOST_CELLS}
            self._ask_slice(PICTURE, head, _picture)

    def _slice_shape(self, asked: tuple[Document, int, Request]) -> tuple[int, ...]:
        from inspector.session.values.showing import slice_shape  # noqa: PLC0415 - see above

        document, row, request = asked
        return slice_shape(document.checkpoint.tensors[row], request)

    def _ask_slice(self, kind: str, head: dict[str, Any], build: Callable[[Any], object]) -> None:
        job = Job(kind=kind, about=self._state.path, progress=Progress(_LABEL))
        reader = self._reader(PICTURE)
        start(self._desk, job, lambda progress: build(reader.ask(head, progress, is_short=kind == CELLS)))

    def _asked(self) -> tuple[Document, int, Request] | None:
        document, row = self._ready, selected_row(self._state)
        if document is None or row is None:
            return None
        from inspector.session.values.showing import request_for  # noqa: PLC0415 - see above

        request = request_for(document, row)
        return None if isinstance(request, str) else (document, row, request)

    def _reader(self, kind: str) -> ValueReader:
        if kind not in self._readers:
            from inspector.values.asking import ValueReader  # noqa: PLC0415 - many windows never read values

            self._readers[kind] = ValueReader()
        return self._readers[kind]

    def _end_readers(self) -> None:
        """End the children that are idle; those that work end when their cancelled job does."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()


def _statistics(reader: ValueReader, document: Document, row: int, progress: Progress) -> Statistics:
    from inspector.session.values.showing import requests_of  # noqa: PLC0415 - as above

    return reader.statistics(requests_of(document), row, progress)


def _ranks(reader: ValueReader, document: Document, row: int, progress: Progress) -> Ranks:
    from inspector.session.values.showing import requests_of  # noqa: PLC0415 - as above

    return reader.ranks(requests_of(document), row, progress)


def _scan(reader: ValueReader, document: Document, progress: Progress) -> Scan:
    from inspector.session.values.showing import prepare_scan  # noqa: PLC0415 - few files are scanned
    from inspector.values.statistics import scan_checkpoint  # noqa: PLC0415 - as above

    scan = scan_checkpoint(document.checkpoint, reader, progress)
    prepare_scan(document, scan)
    return scan


def _save(reader: ValueReader, head: dict[str, Any], path: str, nbytes: int, progress: Progress) -> str:
    from inspector.session.export.npy import write_npy  # noqa: PLC0415 - few are saved

    progress.start("saving values", nbytes)
    return write_npy(path, reader.answers(head, progress))


def _head(document: Document, request: Request, what: str, choice: SliceChoice) -> dict[str, Any]:
    from inspector.values.request import Requests  # noqa: PLC0415 - see above

    chosen = {"row": choice.row, "column": choice.column, "index": list(choice.index)}
    return {"what": what, **Requests(document.checkpoint).file, "tensor": request, "choice": chosen}


def _picture(found: dict[str, Any]) -> Picture:
    import base64  # noqa: PLC0415 - see above

    pairs: dict[str, Any] = {name: tuple(found[name]) for name in ("shape", "seen", "steps")}
    numbers: dict[str, Any] = {name: base64.b64decode(found[name]) for name in ("cells", "levels")}
    plain = {name: found[name] for name in ("rows", "columns", "limit")}
    return Picture(**pairs, **numbers, **plain)


def _cells(row: int, column: int, digits: int, found: list[list[str]]) -> CellBlock:
    return CellBlock(row=row, column=column, digits=digits, texts=tuple(map(tuple, found)))


def _ignore(_: object) -> None:
    """Take an answer that nobody waits for."""
