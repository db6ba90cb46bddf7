"""From state to screen. Pure, and remembered part by part so that a click costs only what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.containers.collector import collector_paused
from inspector.containers.notes import NoteKind
from inspector.diagnose.findings.files import PART_OF_CHECKPOINT
from inspector.diagnose.run import diagnose
from inspector.model.findings import Finding
from inspector.records import replace
from inspector.remap.rules import Rule
from inspector.report.charts.bars import Chart, device_chart, dtype_chart, flows_of, role_chart, waste_chart
from inspector.report.charts.rooms import room_chart
from inspector.report.colors import more_colors
from inspector.report.details import FactGroup, file_facts, written_by
from inspector.report.outline.sums import parameters_text
from inspector.report.words.formats import format_label, names_devices, nothing_to_map
from inspector.session.cache import remembered
from inspector.session.device_map import DeviceMap, Pairs, choices_for_all, device_rows, map_devices
from inspector.session.document import Document, load_of
from inspector.session.export.kinds import RECOVER, offers
from inspector.session.frame import frame_of
from inspector.session.history import edit_texts
from inspector.session.jobs.check import check_of
from inspector.session.jobs.pythons import pythons_page
from inspector.session.pasted import may_be_script
from inspector.session.present.banner import banner, safety_chip
from inspector.session.present.cards import (
    ailments,
    doctor_cards,
    explanation_card,
    finding_card,
)
from inspector.session.present.check import check_page
from inspector.session.present.code import code_page
from inspector.session.present.export import export_page
from inspector.session.present.fitting import fitted_findings
from inspector.session.present.forecast import forecast_page
from inspector.session.present.marks import marks_of
from inspector.session.present.module_map import module_map_of
from inspector.session.present.rows import (
    can_go,
    flat_of,
    matches_of,
    node_facts,
    odd_of,
    parameters_fact,
    search_page,
    strip,
    with_value,
)
from inspector.session.screen import (
    Banner,
    BranchRow,
    DeviceRow,
    FindingRow,
    ForecastPage,
    Loading,
    Screen,
)
from inspector.session.state import State
from inspector.session.targets import devices_of, target_of, targets_of
from inspector.session.values.kinds import scalars_of, scan_of, taken_page
from inspector.session.values.showing import scan_findings, sparks_of, values_page
from inspector.target.profile import Profile
from inspector.target.simulate import Judged
from inspector.units import cut_text, escape_text, format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.remap.integrity import FileCheck
    from inspector.values.statistics import Scan

_MOST_BRANCH = 80
_EXPORT, _SAVE_INTACT = "Export\u2026", "Save what is intact\u2026"
Branches = tuple[Rule, ...]


@collector_paused()
def compose(state: State) -> Screen:
    """Return the screen that shows a state."""
    document = state.ready
    if document is None:
        return frame_of(state)
    asked = document, target_of(state), state.chosen, state.branches
    odd = odd_of(state)
    return replace(
        frame_of(state),
        stamp=document.checkpoint.stamp,
        on_disk=state.on_disk,
        parts=tuple(part.path for part in document.checkpoint.parts),
        banner=_banner(*asked, state.loading),
        safety=safety_chip(load_of(document, target_of(state)).safety),
        tree=document.tree,
        matches=matches_of(document, state.query, odd),
        search=search_page(document, state.query, odd),
        flat=flat_of(document, state.query, odd, state.flat),
        device_map=_device_rows(*asked),
        no_map=_no_map(document),
        branches=_branch_rows(state.branches),
        charts=_charts(*asked),
        forecast=_forecast(*asked, state.loading),
        strip=with_value(strip(document, state.picked or (state.selected,)), state),
        scalars=scalars_of(state),
        can_go=can_go(state.visited),
        tensor=node_facts(document, state.selected),
        findings=_finding_rows(
            *asked[:2], _fitted(*asked, state.loading), check_of(state), scan_of(state), state.beside[1]
        ),
        explanation=_explanation(
            document, target_of(state), state.error_text, state.script_name, state.beside[1]
        ),
        doctor=doctor_cards(target_of(state)),
        code=code_page(
            document, device_map_of(*asked), target_of(state), state.style, is_exact=bool(state.chosen)
        ),
        file=_file(document),
        check=check_page(state),
        status=_status(document),
        can_export=device_map_of(*asked).refusal is None,
        can_undo=document.can_undo,
        values=values_page(state),
        sparks=sparks_of(document, scan_of(state)),
        map_choices=choices_for_all(_device_rows(*asked)),
        module_map=module_map_of(document, state.map_by, state.map_root),
        marks=marks_of(document, state.selected, _charts(*asked)),
    )


def brought_up_to_date(screen: Screen, state: State) -> Screen:
    """Return the screen of another state of the same file with all that is known at once of this one."""
    return replace(
        screen,
        targets=targets_of(state),
        target=state.target,
        devices=devices_of(state),
        wanted=target_of(state).wanted or "",
        query=state.query,
        error_text=state.error_text,
        on_disk=state.on_disk,
        jobs=state.jobs,
        check=check_page(state),
        export=export_page(state),
        recent=state.recent,
        values=values_page(state),
        taken=taken_page(state),
        edits=edit_texts(state),
        log=state.log,
        profiles=state.profiles,
        python=state.python,
        pythons=pythons_page(state),
    )


# --- what depends on the target and the map -----------------------------------------------------------------


@remembered
def device_map_of(document: Document, target: Profile, chosen: Pairs, branches: Branches = ()) -> DeviceMap:
    """Return where each device goes, and what that changes."""
    return map_devices(document, target, chosen, branches)


@remembered
def _banner(
    document: Document, target: Profile, chosen: Pairs, branches: Branches, loading: Loading
) -> Banner:
    device_map = device_map_of(document, target, chosen, branches)
    ailment = ailments(target).partition("\n")[0]
    findings = _fitted(document, target, chosen, branches, loading)
    found = banner(document, target, device_map, findings, ailment)
    if offers(RECOVER, document.checkpoint):
        return replace(found, action=_SAVE_INTACT)
    return replace(found, action=_EXPORT) if _no_map(document) else found


@remembered
def _device_rows(
    document: Document, target: Profile, chosen: Pairs, branches: Branches = ()
) -> tuple[DeviceRow, ...]:
    if _no_map(document):
        return ()
    device_map = device_map_of(document, target, chosen, branches)
    return device_rows(document, target, device_map, _colors(document, target, device_map))


@remembered
def _charts(document: Document, target: Profile, chosen: Pairs, branches: Branches = ()) -> tuple[Chart, ...]:
    if not any(row.nbytes for row in document.checkpoint.storages):
        return ()
    if not names_devices(document.checkpoint):
        return _fixed_charts(document)
    device_map = device_map_of(document, target, chosen, branches)
    colors = _colors(document, target, device_map)
    moved = None if _no_map(document) else device_map.plan.storages
    room = room_chart(flows_of(document.checkpoint, device_map.plan.storages), target, colors)
    first = device_chart(document.checkpoint, moved, colors)
    return (first, *([room] if room else []), *_fixed_charts(document))


@remembered
def _forecast(
    document: Document, target: Profile, chosen: Pairs, branches: Branches, loading: Loading
) -> ForecastPage | None:
    device_map = device_map_of(document, target, chosen, branches)
    return forecast_page(document, target, device_map, loading)


@remembered
def _fixed_charts(document: Document) -> tuple[Chart, ...]:
    checkpoint = document.checkpoint
    waste = waste_chart(checkpoint)
    return (role_chart(checkpoint), dtype_chart(checkpoint), *([waste] if waste else []))


def _branch_rows(branches: Branches) -> tuple[BranchRow, ...]:
    return tuple(
        BranchRow(pattern=rule.path, label=escape_text(cut_text(rule.path, _MOST_BRANCH)), to=rule.to)
        for rule in branches
        if rule.path is not None
    )


def _colors(document: Document, target: Profile, device_map: DeviceMap) -> dict[str, int]:
    """Color the file's devices as its tree does, and new destinations after them."""
    return more_colors(document.tree.colors, {*target.devices, *(to for _, to in device_map.going)})


@remembered
def _findings(document: Document, target: Profile) -> tuple[Finding, ...]:
    return diagnose(document.checkpoint, load_of(document, target).safety, target)


@remembered
def _fitted(
    document: Document, target: Profile, chosen: Pairs, branches: Branches, loading: Loading
) -> tuple[Finding, ...]:
    """Return the findings, those about memory for the map that was chosen."""
    device_map = device_map_of(document, target, chosen, branches)
    page = _forecast(document, target, chosen, branches, loading)
    return fitted_findings(
        document, target, device_map, loading, found=_findings(document, target), page=page
    )


@remembered
def _finding_rows(
    document: Document,
    target: Profile,
    found: tuple[Finding, ...],
    check: FileCheck | None,
    scan: Scan | None,
    _beside: int,
) -> tuple[FindingRow, ...]:
    """Return the cards, those of a check of all bytes in place of what was known before it.

    They name free paths, so they are made again when something changed beside the file.
    """
    nodes = _nodes_by_path(document)
    checked = (*(check.findings if check is not None else ()), *scan_findings(document, scan))
    known = {finding.id for finding in checked}
    others = (finding for finding in found if finding.id not in known)
    judged = _judged(document, target)
    whole = next((note.values[0] for note in document.checkpoint.notes if note.kind is NoteKind.PART_OF), "")
    cards = (finding_card(finding, nodes, judged) for finding in (*checked, *others))
    return tuple(replace(card, opens=whole) if card.id == PART_OF_CHECKPOINT else card for card in cards)


@remembered
def _explanation(
    document: Document, target: Profile, text: str, script: str, _beside: int
) -> FindingRow | None:
    """Return the answer to what was pasted, an error message or a script; it names a free path as well."""
    if not text.strip():
        return None
    if script or may_be_script(text):
        from inspector.session.present.scripts import script_card  # noqa: PLC0415 - few windows are asked

        return script_card(text, script, document.checkpoint, target)
    from inspector.diagnose.errors.explain import explain_error  # noqa: PLC0415 - most windows are never asked

    found = explain_error(text, document.checkpoint, target)
    return explanation_card(found, _nodes_by_path(document), _judged(document, target))


@remembered
def _judged(document: Document, target: Profile) -> Judged:
    return Judged(checkpoint=document.checkpoint, target=target, load=load_of(document, target))


@remembered
def _nodes_by_path(document: Document) -> dict[str, int]:
    paths = (tensor.path for tensor in document.checkpoint.tensors)
    return dict(zip(paths, document.tree.tensor_nodes, strict=True))


# --- what depends on the file alone -------------------------------------------------------------------------


@remembered
def _no_map(document: Document) -> str:
    return nothing_to_map(document.checkpoint)


@remembered
def _file(document: Document) -> tuple[FactGroup, ...]:
    return file_facts(document.checkpoint, document.safety, parameters_fact(document.tree.nodes[0]))


def _status(document: Document) -> tuple[str, ...]:
    checkpoint = document.checkpoint
    written, parameters = written_by(checkpoint), parameters_text(document.tree.nodes[0])
    return (
        escape_text(checkpoint.path),
        f"{format_label(checkpoint)}, {written}" if written else format_label(checkpoint),
        ", ".join(filter(None, (format_count(len(checkpoint.tensors), "tensor"), parameters))),
        format_nbytes(checkpoint.file_nbytes),
        f"opened in {document.open_seconds:.2f} s",
    )
