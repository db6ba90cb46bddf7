"""The session: one method for each thing that a user can do, each ending in a new screen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from inspector.overriding import override
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.document import expression_of_node, path_of_node
from inspector.session.history import redone, undone
from inspector.session.jobs.check import FILE_JOBS
from inspector.session.jobs.export import Exports
from inspector.session.jobs.machines import Probe
from inspector.session.operations import Job, stop
from inspector.session.pasted import may_be_script
from inspector.session.present.presenter import Presenter
from inspector.session.screen import Loading
from inspector.session.state import ASK, State
from inspector.session.targets import target_of
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
    from inspector.model.findings import Fix
    from inspector.report.charts.areas import Property
    from inspector.report.outline.flat import Order
    from inspector.report.outline.node import Node
    from inspector.session.document import Document
    from inspector.session.values.taking import Taking
    from inspector.session.view import TaskRunner, View
    from inspector.values.asking import ValueReader
    from inspector.values.request import Request, Requests
    from inspector.values.statistics import Scan, Statistics


# Each kind of question about values has a child process of its own, so that a scan keeps no click waiting.
# What a click needs is imported by the first one: the worker that judges the file has imported most by then.

_MOST_VISITED = 200
_MOST_PICKED = 100_000
_OF_SELECTED = (STATISTICS, RANK, PICTURE, CELLS)
_MOST_CELLS = (224, 288)
"""How many rows and columns of cells a picture has."""
_LABEL = "reading values"
_SCALAR, _MANY = ((), (1,), (1, 1)), 5000
_MOST_ERROR_CHARS = 1 << 20


class Session(Exports):
    """All intentions of one window, over one state; those about files, machines and exports are inherited.

    Long work runs on the `TaskRunner` as jobs, each with its own progress and stopped on its own, see
    `operations`. An intention about the file needs an open one: if it comes late, it is not about the next.
    """

    def __init__(
        self,
        view: View,
        runner: TaskRunner,
        recent: tuple[str, ...] = (),
        probe: Probe | None = None,
        *,
        python: str = "",
        profiles: tuple[str, ...] = (),
    ) -> None:
        """Start empty, and on this machine: a remembered one made files green that do not load here.

        Args:
            probe: Probes this machine; None to leave it unknown.
            python: What names the Python whose torch stands for this machine; empty for the one that counts.
        """
        first = State(recent=recent, python=python, profiles=profiles)
        super().__init__(Presenter(view, runner, first), probe)
        self._readers: dict[str, ValueReader] = {}

    def dispose(self) -> None:
        """Release the file and the window, which is closed; nothing may be called afterwards.

        Nothing is left that refers to itself in a circle: the collector never sees what was made before a
        large file was read.
        """
        self._end_readers()
        self._desk.dispose()

    # --- choices --------------------------------------------------------------------------------------------

    def set_mapping(self, device: str, to: str) -> None:
        """Choose where the tensors of one original device go."""
        if self._ready is not None:
            self._show(self._state.with_choice(device, to))

    def map_all(self, to: str) -> None:
        """Send the tensors of every original device to one."""
        if self._ready is not None:
            self._show(self._state.with_all(self._ready, to))

    def map_as_saved(self) -> None:
        """Leave the tensors of every original device where they were saved."""
        if self._ready is not None:
            self._show(self._state.with_all(self._ready))

    def map_as_suggested(self) -> None:
        """Forget what was chosen for the devices: they go where the file loads on the target."""
        if self._ready is not None:
            self._show(replace(self._state, chosen=()))

    def remove_branch(self, pattern: str) -> None:
        """Remove the rule for a part of the tree."""
        if self._ready is not None:
            branches = tuple(rule for rule in self._state.branches if rule.path != pattern)
            self._show(replace(self._state, branches=branches))

    def undo_map(self) -> None:
        """Undo the last change of the device map."""
        self._desk.show(undone(self._state))

    def redo_map(self) -> None:
        """Do again what was undone last."""
        self._desk.show(redone(self._state))

    def turn_to(self, page: str) -> None:
        """Show a page, for as long as this file is open."""
        if self._ready is not None and page != self._state.page:
            self._show(replace(self._state, page=page))

    def apply_fix(self, fix: Fix, *, exports: bool = False) -> None:
        """Apply the fix of a finding: change the map and perhaps export a copy by it, or show the code."""
        document = self._ready
        if document is None:
            return
        if fix.rule:
            from inspector.remap.rules import parse_rule  # noqa: PLC0415 - findings come after the tree

            self._show(self._state.with_rule(parse_rule(fix.rule), document))
            if exports:
                self.begin_export()
        else:
            self._show(replace(self._state, style=fix.style or self._state.style, page="code"))

    def set_loading(self, loading: Loading) -> None:
        """Choose how many processes load the file, and whether they map it."""
        self._show(replace(self._state, loading=loading))

    def explain_error(self, text: str, folder: str = "") -> None:
        """Explain what an error message means for this file, or follow a script; an empty text ends that.

        Without a file, what it means at all is said, and which file it names: relative to `folder`, too.
        """
        text, name = text[:_MOST_ERROR_CHARS], self._state.script_name if may_be_script(text) else ""
        state = replace(self._state, error_text=text, script_name=name)
        if self._ready is not None:
            self._show(state)
        elif self._state.phase == "empty" and not text.strip():
            self._show(state.without_job(ASK))
        elif self._state.phase == "empty":
            from inspector.session.present.findings import answer_alone  # noqa: PLC0415 - few windows are asked

            answer = partial(answer_alone, text, target_of(state), folder, state.recent)
            self._run(ASK, "explaining", answer, state=state, is_about_file=False)

    def show_map(self, root: int) -> None:
        """Show the map of modules of one tree node and what is below it."""
        document = self._ready
        if document is not None and 0 <= root < len(document.tree.nodes):
            self._show(replace(self._state, map_root=root))

    def look_at_map(self) -> None:
        """Show the map of modules, also of files that are opened later."""
        if not self._state.looks_at_map:
            self._show(replace(self._state, looks_at_map=True))

    def color_map(self, by: Property) -> None:
        """Color the map of modules by a property of tensors, also for files that are opened later."""
        if self._state.map_by != by:
            self._show(replace(self._state, map_by=by))

    def set_code_style(self, style: str) -> None:
        """Choose the style of the loading snippet."""
        self._show(replace(self._state, style=style))

    # --- jobs about the file --------------------------------------------------------------------------------

    def start_job(self, kind: str) -> None:
        """Run one of `FILE_JOBS` on the open file, again if it has a result already."""
        if self._ready is not None:
            asked = FILE_JOBS[kind]
            self._run(kind, asked.label, partial(asked.work, self._state.path))

    def stop_job(self, kind: str) -> None:
        """Stop it."""
        stop(self._desk, kind)

    # --- rows of the tree -----------------------------------------------------------------------------------

    def select(self, node: int | None) -> None:
        """Show the facts of a tree node, and where the map of modules does not show it, more of that."""
        document = self._ready
        if document is not None:
            self._turn_to_row(_visited(_selected(self._state, document, node), node))

    def pick(self, nodes: tuple[int, ...]) -> None:
        """Show the sum of several rows; of none, the facts of the selected one."""
        picked = nodes[:_MOST_PICKED]
        if self._ready is not None and picked != self._state.picked:
            self._show(replace(self._state, picked=picked))

    def go(self, step: int) -> None:
        """Select what was selected before (-1), or after that (1)."""
        document, (nodes, place) = self._ready, self._state.visited
        if document is not None and 0 <= place + step < len(nodes):
            state = _selected(self._state, document, nodes[place + step])
            self._turn_to_row(replace(state, visited=(nodes, place + step)))

    def list_flat(self, order: Order | None) -> None:
        """Show all tensors, or what a search found, as one sorted list; None shows the tree again."""
        if self._ready is not None:
            self._show(replace(self._state, flat=order))

    def search(self, query: str) -> None:
        """Look for tree nodes; an empty query ends the search."""
        if self._ready is not None:
            self._show(replace(self._state, query=query))

    def search_sharing(self, node: int) -> None:
        """Look for the tensors that view the storage of a tensor."""
        row, document = self._row_at(node), self._ready
        if row is not None and document is not None and row.kind == "tensor":
            storage = document.checkpoint.tensors[row.index].storage
            if storage is not None:
                from inspector.report.terms import quoted  # noqa: PLC0415 - few ask

                self.search(f"storage:{quoted(storage)}")

    def search_device(self, node: int) -> None:
        """Look for the tensors that were saved on the device of a row, on that of most bytes of a group."""
        row = self._row_at(node)
        if row is not None and row.devices:
            from inspector.report.terms import quoted  # noqa: PLC0415 - few ask

            self.search(f"device:{quoted(row.devices[0][0])}")

    def map_branches(self, nodes: tuple[int, ...], to: str) -> None:
        """Send all tensors of some rows to one device."""
        document, state = self._ready, self._state
        if document is None:
            return
        from inspector.remap.rules import Rule, check_destination  # noqa: PLC0415 - see above

        for pattern in filter(None, (path_of_node(document, node) for node in nodes)):
            state = state.with_rule(Rule(path=pattern, to=check_destination(to)), document)
        self._show(state)

    # --- questions of the view ------------------------------------------------------------------------------

    def node_path(self, node: int) -> str:
        """Return the path of a tree node as the command line takes it; empty for a slice of a long list."""
        return "" if self._ready is None else path_of_node(self._ready, node)

    def node_expression(self, node: int) -> str:
        """Return a Python expression that reaches a tensor in the checkpoint; empty for other nodes."""
        return "" if self._ready is None else expression_of_node(self._ready, node)

    def nodes_json(self, nodes: tuple[int, ...]) -> str:
        """Return a row as `show --json` writes it, or several as a list; a group is its path and sums."""
        document = self._ready
        if document is None:
            return ""
        import json  # noqa: PLC0415 - see above

        from inspector.report.jsonable import row_document  # noqa: PLC0415 - see above

        rows = [json.dumps(row_document(document.checkpoint, document.tree.nodes[node])) for node in nodes]
        return rows[0] if len(rows) == 1 else "[\n  {}\n]".format(",\n  ".join(rows))

    def map_command(self) -> str:
        """Return the command that writes a copy as the device map says; empty where nothing moves."""
        if self._ready is None:
            return ""
        from inspector.session.export.draft import map_command  # noqa: PLC0415 - see above
        from inspector.session.present.compose import ask  # noqa: PLC0415 - after the tree

        return map_command(ask(self._state, "routes"))

    def can_leave_out(self, nodes: tuple[int, ...]) -> bool:
        """Return whether a copy can be without some rows: not, if all are single items of tuples."""
        document = self._ready
        if document is None or not document.checkpoint.tuples:
            return document is not None
        from inspector.session.export.choosing import bound_rows  # noqa: PLC0415 - see above

        return not bound_rows(document.checkpoint, document.tree).issuperset(nodes)

    def _row_at(self, node: int) -> Node | None:
        document = self._ready
        return None if document is None else document.tree.nodes[node]

    # --- values ---------------------------------------------------------------------------------------------

    @override
    def _on_judged(self) -> None:
        super()._on_judged()
        document = self._ready
        tensors = () if document is None else document.checkpoint.tensors
        if document is not None and (len(tensors) > _MANY or any(row.shape in _SCALAR for row in tensors)):
            from inspector.values.request import read_scalars  # noqa: PLC0415 - see above

            self._run(SCALARS, _LABEL, partial(read_scalars, document.checkpoint))

    def _turn_to_row(self, state: State) -> None:
        """Show another selected row, and read its values if they are looked at."""
        before = self._state.selected
        with self._desk.together():
            self._show(state)
            if state.selected != before:
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
            self._run(
                RANK,
                "computing singular values",
                partial(self._reader(STATISTICS).ranks, self._requests(document), row),
            )

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
            self._run(SCAN, _LABEL, partial(_scan, self._reader(SCAN), document))

    def stop_scan(self) -> None:
        """Stop that."""
        stop(self._desk, SCAN)

    def save_values(self, path: str) -> None:
        """Save the values of the selected tensor as what the suffix of a path says, or else as `.npy`."""
        asked = self._asked()
        if asked is not None:
            self._run(SAVE, "saving values", partial(_save, self._reader(SAVE), asked, path))

    def stop_saving(self) -> None:
        """Stop that."""
        stop(self._desk, SAVE)

    def tensor_code(self, node: int) -> str:
        """Return the code that loads one tensor; empty where there is none."""
        document, row = self._ready, self._row_at(node)
        if document is None or row is None or row.kind != "tensor":
            return ""
        from inspector.errors import PlanError  # noqa: PLC0415 - see above
        from inspector.safety.verdict import judge  # noqa: PLC0415 - see above
        from inspector.session.targets import target_of  # noqa: PLC0415 - see above
        from inspector.session.values.showing import request_for, wanted_code  # noqa: PLC0415 - see above
        from inspector.snippet.tensor import tensor_code, why_no_code  # noqa: PLC0415 - see above

        wanted = wanted_code(document, row.index, request_for(self._requests(document), row.index))
        if why_no_code(wanted, judge(document.checkpoint)):
            return ""
        try:
            return tensor_code(wanted, target_of(self._state))
        except PlanError:  # a torch that cannot check the file first: the code page says so
            return ""

    def take_out(self, nodes: tuple[int, ...]) -> Taking | None:
        """Begin to drag rows out: their tensors become files, in a job; None without an open file."""
        document = self._ready
        if document is None or not nodes:
            return None
        from inspector.session.values.taken import take_out, temporary_root  # noqa: PLC0415 - see above
        from inspector.session.values.taking import plan_taking  # noqa: PLC0415 - see above

        taking = plan_taking(document, nodes, temporary_root())
        if taking.files:
            self._run(TAKE, "preparing arrays", partial(take_out, document, self._reader(SAVE), taking))
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
        saving = state.job(SAVE)
        if saving is not None and saving.status != "running":  # what is being saved goes on
            state = state.without_job(SAVE)
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
        work = partial(self._reader(STATISTICS).statistics, self._requests(document), row)
        self._run(STATISTICS, _LABEL, work, partial(self._on_statistics, document, row))

    def _on_statistics(self, document: Document, row: int, found: Statistics) -> None:
        """Show the figures of a tensor, and keep what is odd about them: it marks the row from then on."""
        from inspector.values.statistics import Scan, Scanned, oddities_of  # noqa: PLC0415 - see above

        about, progress = self._state.path, Progress(_LABEL)
        job = Job(kind=STATISTICS, about=about, progress=progress, status="done", result=found)
        state, odd = self._state.with_job(job), oddities_of(document.checkpoint.tensors[row], found)
        if odd:
            known = () if state.sampled is None else state.sampled.tensors
            others = tuple(one for one in known if one.row != row)
            one = Scanned(row=row, statistics=found, oddities=odd)
            state = replace(state, sampled=Scan(tensors=(*others, one), nbytes=0))
        self._show(state)

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
        reader = self._reader(PICTURE)
        self._run(kind, _LABEL, lambda progress: build(reader.ask(head, progress, is_short=kind == CELLS)))

    def _asked(self) -> tuple[Document, int, Request] | None:
        document, row = self._ready, selected_row(self._state)
        if document is None or row is None:
            return None
        from inspector.session.values.showing import request_for  # noqa: PLC0415 - see above

        request = request_for(self._requests(document), row)
        return None if isinstance(request, str) else (document, row, request)

    def _requests(self, document: Document) -> Requests:
        from inspector.session.values.showing import requests_of  # noqa: PLC0415 - see above

        return requests_of(document)

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


def _selected(state: State, document: Document, node: int | None) -> State:
    """Return a state with another row selected, and the map of modules where that is."""
    from inspector.report.charts.modules import root_for  # noqa: PLC0415 - see above

    root = state.map_root if node is None else root_for(document.tree, state.map_root, node)
    return replace(state, selected=node, picked=(), map_root=root)


def _visited(state: State, node: int | None) -> State:
    """Return a state that remembers that a row was selected; those that one came back from are forgotten."""
    nodes, place = state.visited
    if node is None or (nodes and nodes[place] == node):
        return state
    kept = (*nodes[: place + 1], node)[-_MOST_VISITED:]
    return replace(state, visited=(kept, len(kept) - 1))


def _scan(reader: ValueReader, document: Document, progress: Progress) -> Scan:
    from inspector.values.statistics import scan_checkpoint  # noqa: PLC0415 - few files are scanned

    return scan_checkpoint(document.checkpoint, reader, progress)


def _save(reader: ValueReader, asked: tuple[Document, int, Request], path: str, progress: Progress) -> str:
    from pathlib import Path  # noqa: PLC0415 - few are saved

    from inspector.errors import ExportError  # noqa: PLC0415 - as above
    from inspector.remap.files import refuse_destination, refuse_parts  # noqa: PLC0415 - as above
    from inspector.session.export.arrays import write_npy, write_safetensors  # noqa: PLC0415 - as above
    from inspector.session.values.showing import NPY, SAFETENSORS, forms_of, saved_name  # noqa: PLC0415 - as above
    from inspector.values.request import Requests, read_nbytes  # noqa: PLC0415 - as above

    checkpoint, request = asked[0].checkpoint, asked[2]
    tensor = checkpoint.tensors[asked[1]]
    form = SAFETENSORS if path.lower().endswith(SAFETENSORS) else NPY
    if form not in dict(forms_of(tensor, request)):
        raise ExportError(f"{tensor.dtype} cannot be saved as {form}", where=tensor.path)
    refuse_destination(checkpoint.path, Path(path), overwrite=True)
    refuse_parts((part.path for part in checkpoint.parts), Path(path))
    progress.start("saving values", read_nbytes(request))
    head: dict[str, Any] = {"what": "rows", **Requests(checkpoint).file, "tensor": request}
    if form == NPY:
        return write_npy(path, reader.answers(head, progress))
    answers = reader.answers({**head, "is_stored": True}, progress)
    return write_safetensors(path, saved_name(tensor), tensor.dtype, answers)


def _head(document: Document, request: Request, what: str, choice: SliceChoice) -> dict[str, Any]:
    from inspector.values.request import Requests  # noqa: PLC0415 - see above

    chosen = {"row": choice.row, "column": choice.column, "index": list(choice.index)}
    return {"what": what, **Requests(document.checkpoint).file, "tensor": request, "choice": chosen}


def _picture(found: dict[str, Any]) -> Picture:
    import base64  # noqa: PLC0415 - see above

    pairs: dict[str, Any] = {name: tuple(found[name]) for name in ("shape", "seen", "steps")}
    numbers: dict[str, Any] = {name: base64.b64decode(found[name]) for name in ("cells", "levels")}
    plain = {name: found[name] for name in ("rows", "columns", "limit", "is_clipped")}
    return Picture(**pairs, **numbers, **plain)


def _cells(row: int, column: int, digits: int, found: list[list[str]]) -> CellBlock:
    return CellBlock(row=row, column=column, digits=digits, texts=tuple(map(tuple, found)))


def _ignore(_: object) -> None:
    """Take an answer that nobody waits for."""
