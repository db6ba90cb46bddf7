"""From state to screen. Pure, and remembered part by part so that a click costs only what it changes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import PurePath

from inspector.diagnose.rules import diagnose
from inspector.errors import PlanError
from inspector.model.findings import Finding
from inspector.remap.plan import Plan
from inspector.report.charts import Chart, device_chart, dtype_chart, role_chart
from inspector.report.colours import device_colours
from inspector.report.details import FactGroup, file_facts, tensor_facts, value_facts, written_by
from inspector.report.query import matching_nodes, parse_query
from inspector.report.tree import Node
from inspector.session.document import Document
from inspector.session.mapping import Destinations, destinations, device_rows, moves_of, plan_for
from inspector.session.screen import Choice, CodePage, FindingRow, Screen, Tone
from inspector.session.state import State
from inspector.session.verdict import banner, safety_chip
from inspector.snippet.styles import render, styles
from inspector.target.profile import PRESETS, Profile
from inspector.units import cut_text, escape_text, format_count, format_nbytes

PROGRAM = "Checkpoint Inspector"
_MOST_NODES = 20
_TONES: dict[str, Tone] = {"error": "bad", "warning": "warning", "note": "neutral"}


def compose(state: State) -> Screen:
    """Give the screen that shows a state."""
    name = escape_text(PurePath(state.path).name)
    title = PROGRAM if state.phase == "empty" else f"{cut_text(name, 120)} - {PROGRAM}"
    document = state.document if state.phase == "ready" else None
    if document is None:
        return _frame(state, title)
    target = target_of(state)
    going = going_of(state, document)
    findings = _findings(document, target)
    colours = _colours(document, going, target)
    return replace(
        _frame(state, title),
        banner=banner(document, target, going, findings),
        safety=safety_chip(document.safety),
        tree=document.tree,
        matches=_matches(document, state.query),
        device_map=device_rows(document, target, going, plan_of(document, going), colours),
        charts=_charts(document, going, target),
        tensor=node_facts(document, state.selected),
        findings=_finding_rows(document, findings),
        code=_code(document, state, target, going),
        file=_file(document),
        status=_status(document),
        can_export=True,
    )


def target_of(state: State) -> Profile:
    """Give the chosen machine."""
    return next((preset for preset in PRESETS if preset.id == state.target), state.machine)


def going_of(state: State, document: Document) -> Destinations:
    """Give where each device goes."""
    return destinations(document, target_of(state), dict(state.chosen))


def targets_of(state: State) -> tuple[Choice, ...]:
    """Give the machines to choose from."""
    label = state.machine.label
    this = Choice(id=state.machine.id, label=label[:1].upper() + label[1:])
    return (this, *(Choice(id=preset.id, label=preset.label) for preset in PRESETS))


def _frame(state: State, title: str) -> Screen:
    """Give the screen of a state without a document; `compose` fills in the rest."""
    return Screen(
        phase=state.phase,
        title=title,
        path=state.path,
        progress=state.progress,
        failure=state.failure,
        banner=None,
        safety=None,
        targets=targets_of(state),
        target=state.target,
        tree=None,
        query=state.query,
        matches=None,
        selected=state.selected,
        device_map=(),
        charts=(),
        tensor=(),
        findings=(),
        code=None,
        file=(),
        status=(),
        recent=state.recent,
        can_export=False,
    )


# Documents compare by identity, so each of these remembers its last few answers for the open file only.


@lru_cache(maxsize=8)
def plan_of(document: Document, going: Destinations) -> Plan:
    """Give the plan of a device map."""
    return plan_for(document, going)


@lru_cache(maxsize=8)
def _findings(document: Document, target: Profile) -> tuple[Finding, ...]:
    return diagnose(document.checkpoint, document.safety, target)


@lru_cache(maxsize=8)
def _charts(document: Document, going: Destinations, target: Profile) -> tuple[Chart, ...]:
    moved = plan_of(document, going).storages
    colours = _colours(document, going, target)
    chart = device_chart(document.checkpoint, moved, colours)
    return (chart, role_chart(document.checkpoint), dtype_chart(document.checkpoint))


@lru_cache(maxsize=8)
def _colours(document: Document, going: Destinations, target: Profile) -> dict[str, int]:
    """Colour the file's devices as its tree does, and new destinations after them."""
    colours = dict(document.tree.colours)
    free = max(colours.values(), default=-1) + 1
    for device in sorted({to for _, to in going} | set(target.devices)):
        if device not in colours:
            colours[device] = free if device_colours([device])[device] >= 0 else -1
            free += colours[device] >= 0
    return colours


@lru_cache(maxsize=8)
def _matches(document: Document, text: str) -> tuple[int, ...] | None:
    return matching_nodes(parse_query(text), document.checkpoint, document.tree)


@lru_cache(maxsize=8)
def _file(document: Document) -> tuple[FactGroup, ...]:
    return file_facts(document.checkpoint, document.safety)


def node_facts(document: Document, id_: int | None) -> tuple[FactGroup, ...]:
    """Give the facts of a tree node."""
    if id_ is None or not 0 < id_ < len(document.tree.nodes):
        return ()
    node = document.tree.nodes[id_]
    if node.kind == "tensor":
        return tensor_facts(document.checkpoint, node.index)
    if node.kind == "value":
        return value_facts(document.checkpoint.values[node.index])
    return _group_facts(node)


def _group_facts(node: Node) -> tuple[FactGroup, ...]:
    facts = [("Name", node.name), ("Tensors", f"{node.tensors:,}"), ("Size", format_nbytes(node.nbytes))]
    below = tuple((device, format_nbytes(nbytes)) for device, nbytes in node.devices)
    groups = [FactGroup(title="Group", facts=tuple(facts))]
    return (*groups, FactGroup(title="On devices", facts=below)) if below else tuple(groups)


def _finding_rows(document: Document, findings: tuple[Finding, ...]) -> tuple[FindingRow, ...]:
    return tuple(
        FindingRow(
            id=finding.id,
            tone=_TONES[finding.severity],
            title=finding.title,
            detail=finding.detail,
            nodes=tuple(_nodes_of(document, finding.paths)),
        )
        for finding in findings
    )


@lru_cache(maxsize=2)
def _nodes_by_path(document: Document) -> dict[str, int]:
    paths = (tensor.path for tensor in document.checkpoint.tensors)
    return dict(zip(paths, document.tree.tensor_nodes, strict=True))


def _nodes_of(document: Document, paths: tuple[str, ...]) -> list[int]:
    nodes = _nodes_by_path(document)
    return [nodes[path] for path in paths[:_MOST_NODES] if nodes.get(path, -1) >= 0]


def _code(document: Document, state: State, target: Profile, going: Destinations) -> CodePage:
    offered = styles(document.checkpoint)
    ids = [style.id for style in offered]
    style = state.style if state.style in ids else ids[0]
    try:
        text = render(
            document.checkpoint,
            style=style,
            target=target,
            mapping=moves_of(going),
            path=document.checkpoint.path,
        )
    except PlanError as error:
        text = f"# {error.what}"
    return CodePage(
        styles=tuple(Choice(id=style.id, label=style.label) for style in offered), style=style, text=text
    )


def _status(document: Document) -> tuple[str, ...]:
    checkpoint = document.checkpoint
    written = written_by(checkpoint)
    return (
        escape_text(checkpoint.path),
        f"{checkpoint.format}, {written}" if written else checkpoint.format,
        format_count(len(checkpoint.tensors), "tensor"),
        format_nbytes(checkpoint.file_nbytes),
        f"opened in {document.open_seconds:.2f} s",
    )
