"""From state to screen, by tables of parts: a click costs only what it changes, the rest is remembered.

A new field of `Screen` is a function and a row of `AT_ONCE` or `REMEMBERED`, see `parts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from inspector.containers.collector import collector_paused
from inspector.containers.formats import format_of
from inspector.containers.notes import NoteKind
from inspector.diagnose.findings.files import PART_OF_CHECKPOINT
from inspector.diagnose.fitting import MAP_DOES_NOT_FIT, Overflow, overflow_finding, overflow_of
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError, PlanError
from inspector.model.agents import loader_of
from inspector.model.findings import SEVERITIES, Finding
from inspector.model.roles.devices import is_accelerator
from inspector.model.totals import storage_nbytes_by
from inspector.records import replace
from inspector.remap.rules import Rule
from inspector.report.charts.areas import Areas, Coloring, Property, color_by, measure, telling_property
from inspector.report.charts.bars import (
    Chart,
    device_chart,
    dtype_chart,
    filter_for,
    flows_of,
    role_chart,
    waste_chart,
)
from inspector.report.charts.forecast import forecast_report, landed, room_chart
from inspector.report.charts.modules import ModuleMap, module_map
from inspector.report.colors import more_colors
from inspector.report.details import FactGroup, file_facts, written_by
from inspector.report.outline.nodes import parameters_text
from inspector.report.overview import Overview, overview_of, with_memory, with_scores
from inspector.report.query import parse_query
from inspector.report.words.formats import (
    format_label,
    names_devices,
    nothing_to_map,
)
from inspector.report.words.results import as_lines, checked
from inspector.safety.verdict import SafetyVerdict, judge
from inspector.session.device_map import (
    DeviceMap,
    Pairs,
    choices_for_all,
    device_rows,
    is_mappable,
    landing,
    map_devices,
)
from inspector.session.document import Document
from inspector.session.export.kinds import RECOVER, offers
from inspector.session.export.outlook import planned
from inspector.session.frame import around, frame_of
from inspector.session.jobs.check import CHECK, check_of
from inspector.session.pasted import may_be_script
from inspector.session.present.banner import after_reading, banner, safety_chip
from inspector.session.present.findings import (
    ailments,
    doctor_cards,
    explanation_card,
    finding_card,
    script_card,
)
from inspector.session.present.parts import Answers, Parts, Table
from inspector.session.present.rows import (
    can_go,
    flat_list,
    lookup_of,
    many_picked,
    matching_rows,
    node_facts,
    odd_rows,
    parameters_fact,
    scan_sought,
    search_page,
    searched_rows,
    strip,
    strip_of_many,
)
from inspector.session.screen import (
    Banner,
    BranchRow,
    CheckPage,
    Choice,
    CodePage,
    DeviceRow,
    FindingRow,
    ForecastPage,
    Loading,
    Screen,
    Tone,
)
from inspector.session.state import THIS, State
from inspector.session.targets import target_of
from inspector.session.values.kinds import scalars_of, scan_of
from inspector.session.values.showing import (
    finished_scan,
    requests_of,
    row_marks,
    scan_findings,
    sparks_of,
    values_page,
)
from inspector.snippet.script import comment_lines
from inspector.snippet.styles.table import Style, offered_styles, render
from inspector.target.call import TagMap
from inspector.target.memory import Routine, forecast
from inspector.target.opening import can_map
from inspector.target.profile import Profile
from inspector.target.simulate import DefaultLoad, Judged, judge_load
from inspector.target.versions import release_of
from inspector.units import cut_text, escape_text, format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.recover import FileCheck
    from inspector.values.statistics import Scan


# What the chosen map puts on devices that are too small: a finding in place of that for the advised map.

_MODEL_DOES_NOT_FIT = "model-does-not-fit"


def fitted_findings(
    *,
    document: Document,
    target: Profile,
    routes: DeviceMap,
    loading: Loading,
    found: tuple[Finding, ...],
    forecast: ForecastPage | None,
) -> tuple[Finding, ...]:
    """Return the findings with what does not fit of the map that was chosen, worst first."""
    others = tuple(one for one in found if one.id != MAP_DOES_NOT_FIT)
    checkpoint, moves = document.checkpoint, routes.moves
    overflow = _overflow(document, target, routes, loading)
    if overflow is not None:
        card = overflow_finding(checkpoint, moves, overflow)
        return _in_order((*others, card))
    is_said = any(one.id == "does-not-fit" for one in others)
    if forecast is None or forecast.chart is None or not forecast.is_tight or is_said:
        return others
    tight = Finding(
        id=_MODEL_DOES_NOT_FIT,
        severity="warning",
        title="Filling a model takes more memory than there is",
        detail=" ".join(forecast.notes),
        paths=(),
        count=0,
        fix=None,
    )
    return _in_order((*others, tight))


def _overflow(document: Document, target: Profile, routes: DeviceMap, loading: Loading) -> Overflow | None:
    """Ask only about what differs from a plain load, of which the findings of the file speak."""
    if not routes.plan.storages and loading.ranks == 1:
        return None
    stored: tuple[tuple[str, int], ...] = ()
    if routes.branches:
        flows = flows_of(document.checkpoint, routes.plan.storages)
        stored = tuple((device, sum(tags.values())) for device, tags in landed(flows).items())
    return overflow_of(
        document.checkpoint,
        target,
        routes.moves,
        ranks=loading.ranks,
        mmap=loading.mmap,
        stored=stored,
    )


def _in_order(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda one: SEVERITIES.index(one.severity)))


# The forecast of the memory page: loading as the device map says, and filling a model.

_MOST_RANKS = 8


def forecast_page(
    document: Document, target: Profile, load: DefaultLoad, routes: DeviceMap, loading: Loading
) -> ForecastPage | None:
    """Forecast what loading the file takes; None where there is nothing to load."""
    checkpoint = document.checkpoint
    if not checkpoint.storages:
        return None
    maps = can_map(checkpoint, release_of(target.torch_version))
    mmap = loading.mmap and maps
    map_location = TagMap(pairs=routes.moves) if routes.moves else None
    call = replace(load.code, map_location=map_location, mmap=mmap, refusal=None)
    best = target.destination
    fills = any(tensor.role == "parameter" for tensor in checkpoint.tensors)
    is_shared = loading.ranks > 1 or target.wanted is None
    own = best.partition(":")[0] if best.startswith("cuda") and is_shared else best  # each rank's own GPU
    routine = Routine(fills_model=fills, to=own if fills and is_accelerator(best) else None)
    loader = loader_of(checkpoint)
    report = forecast_report(forecast(checkpoint, target, call, routine, ranks=loading.ranks), target, loader)
    return ForecastPage(
        loading=Loading(ranks=loading.ranks, mmap=mmap),
        most_ranks=max(_MOST_RANKS, target.count("cuda")),
        can_map=maps,
        chart=report.chart,
        notes=(*report.notes, *_optimizer_note(document, routes, routine)),
        is_tight=report.is_tight,
    )


def _overview_here(
    about: Overview, document: Document, target: Profile, forecast: ForecastPage | None
) -> Overview:
    loading: tuple[tuple[str, str], ...] = ()
    if forecast is not None:
        bars = () if forecast.chart is None else forecast.chart.bars
        loading = tuple((bar.label, bar.text) for bar in bars) or tuple(
            ("", note) for note in forecast.notes[:1]
        )
    return with_memory(about, document.checkpoint, target, loading)


def _overview(overview_here: Overview, scalars: Mapping[int, str] | None) -> Overview:
    """Return the overview, with the scores that are tensors once they were read."""
    known = scalars or {}
    found = [(name, known[index]) for index, name in overview_here.scores if index in known]
    return with_scores(overview_here, found) if found else overview_here


def _optimizer_note(document: Document, routes: DeviceMap, routine: Routine) -> tuple[str, ...]:
    """Return what is not counted: `Optimizer.load_state_dict` moves state to the device of its parameters.

    See `_process_value_according_to_param_policy` in `torch/optim/optimizer.py`.
    """
    if routine.to is None:
        return ()
    checkpoint, moved = document.checkpoint, routes.plan.storages
    places = {row.key: moved.get(row.key, row.device) for row in checkpoint.storages}
    waiting = storage_nbytes_by(
        checkpoint,
        lambda row: (
            places.get(row.storage or "", "") if row.role == "optimizer" and not row.on_cpu_by_design else ""
        ),
    )
    nbytes = waiting.get("cpu", 0)
    if not nbytes:
        return ()
    return (f"Not counted: optimizer.load_state_dict puts {format_nbytes(nbytes)} on {routine.to} as well.",)


# The loading code of a file, which says what the device map says.

_MOST_BRANCHES = 3
_MOST_PATTERN = 60
_NO_NAMES = "map_location knows no names: only an exported copy has that."
_NO_TELLING = "map_location cannot tell them apart and leaves all of it: an exported copy has it."


def code_page(document: Document, routes: DeviceMap, target: Profile, style: str, chosen: Pairs) -> CodePage:
    """Return the code page, in another style where the file does not offer the one that was chosen."""
    offered = offered_styles(document.checkpoint, style)
    ids = [one.id for one in offered]
    shown, is_exact = style if style in ids else next(iter(ids), ""), bool(chosen)
    mapping = routes.going if is_exact else routes.moves
    try:
        text = render(
            document.checkpoint,
            style=shown,
            target=target,
            mapping=mapping,
            path=_pasted_path(document.checkpoint, offered[ids.index(shown)] if ids else None),
            is_exact=is_exact,
        )
    except PlanError as error:
        text = "".join(f"{line}\n" for line in comment_lines(escape_text(error.what)))
    choices = tuple(Choice(id=one.id, label=one.label) for one in offered)
    return CodePage(styles=choices, style=shown, text=_not_in_code(routes) + text)


def _pasted_path(checkpoint: Checkpoint, style: Style | None) -> str:
    """Return the name of a file, as people paste its path; loaders that are given a folder need all of it."""
    is_folder = bool(checkpoint.parts) or (style is not None and style.takes_folder)
    return checkpoint.path if is_folder else PurePath(checkpoint.path).name


def _not_in_code(routes: DeviceMap) -> str:
    """Return comments on what of the map no `map_location` can say, and only a copy has."""
    said = []
    rules = [(rule.path, rule.to) for rule in routes.branches if rule.path]
    if rules:
        shown = [f"{cut_text(path, _MOST_PATTERN)} to {to}" for path, to in rules[:_MOST_BRANCHES]]
        more = f" and {len(rules) - _MOST_BRANCHES:,} more" if len(rules) > _MOST_BRANCHES else ""
        said.append(f"The map also sends {escape_text(', '.join(shown))}{more}. {_NO_NAMES}")
    to, kept = dict(routes.going).get("cpu", "cpu"), len(routes.plan.kept)
    if to != "cpu" and kept:
        said.append(
            f"The map sends what is on the CPU to {to}, but for {format_count(kept, 'tensor')} that belong "
            f"there (step, RNG state). {_NO_TELLING}"
        )
    lines = [line for text in said for line in comment_lines(text)]
    return "".join(f"{line}\n" for line in lines) + ("\n" if lines else "")


# The check of all bytes in words: how far it is, and what it found.

_MOST_NAMED = 4
_NOT_COMPARED = "torch.load does not compare checksums."


def check_page(state: State, document: Document) -> CheckPage:
    """Return what the file page shows of the check."""
    job, found = state.job(CHECK), check_of(state)
    if job is None or job.status == "cancelled":
        return CheckPage(hint=_hint(document.checkpoint))
    if found is not None:
        lines = as_lines(checked(found, _MOST_NAMED))
        return CheckPage(tone="good" if found.is_intact else "bad", lines=tuple(lines))
    if job.error is None:
        return CheckPage(progress=job.progress)
    # What was not foreseen is a mistake of this program, and is reported as such.
    what = "" if isinstance(job.error, CheckpointError) else f"unexpected {type(job.error).__name__}: "
    return CheckPage(tone="bad", lines=(escape_text(f"{what}{job.error}"),))


def _hint(checkpoint: Checkpoint) -> str:
    """Return what a check is for; what torch.load leaves undone is said of files that it loads."""
    reading = f"Reading {'all of its files' if checkpoint.parts else 'the whole file'} shows whether"
    if not format_of(checkpoint.format).torch_loads:
        return f"{reading} nothing is missing, and whether it matches its checksums if the format has any."
    return f"{_NOT_COMPARED} {reading} it is as it was saved."


# The map of modules: what is measured once for a file, and what of it is shown; nothing until somebody looks.


def measured_areas(document: Document, looks_at_map: bool) -> Areas | None:  # noqa: FBT001 - an input
    """Return how large the modules are."""
    return measure(document.checkpoint, document.tree) if looks_at_map else None


def coloring(areas: Areas | None, map_by: Property | None) -> Coloring | None:
    """Return the colors of the modules."""
    return None if areas is None else color_by(areas, map_by or telling_property(areas))


def modules(areas: Areas | None, coloring: Coloring | None, map_place: int) -> ModuleMap | None:
    """Return the map of the modules below a row of the tree."""
    return None if areas is None or coloring is None else module_map(areas, coloring, map_place)


# Which parts of the charts the selected row belongs to.


def marks_of(document: Document, selected: int | None, charts: tuple[Chart, ...]) -> tuple[str, ...]:
    """Return the searches of all parts that a row belongs to, by its device, its role and its dtype.

    A group belongs to the parts of all devices below it.
    """
    nodes = document.tree.nodes
    if selected is None or not 0 < selected < len(nodes):
        return ()
    row = nodes[selected]
    about: set[tuple[str, str]] = {("device", device) for device, _ in row.devices}
    if row.kind == "tensor":
        tensor = document.checkpoint.tensors[row.index]
        about |= {("device", tensor.device), ("role", tensor.role), ("dtype", tensor.dtype)}
    known = {part.query for chart in charts for bar in chart.bars for part in bar.segments if part.query}
    plain = {filter_for(field, value) for field, value in about}
    exact = {f'{field}:"{value}"' for field, value in about}
    return tuple(sorted(known & (plain | exact)))


# What depends on the target and the map.

_MOST_BRANCH = 80
_OPEN_WHOLE = "Open the whole checkpoint"
_EXPORT, _SAVE_INTACT = "Export\u2026", "Save what is intact\u2026"
Rules = tuple[Rule, ...]


def _load(document: Document, target: Profile, verdict: SafetyVerdict) -> DefaultLoad:
    return judge_load(document.checkpoint, target, verdict)


def _judged(document: Document, target: Profile, load: DefaultLoad) -> Judged:
    return Judged(checkpoint=document.checkpoint, target=target, load=load)


def _found(document: Document, target: Profile, verdict: SafetyVerdict) -> tuple[Finding, ...]:
    return diagnose(document.checkpoint, verdict, target)


def _routes(document: Document, target: Profile, chosen: Pairs, rules: Rules) -> DeviceMap:
    return map_devices(document, target, chosen, rules)


def _banner(
    *,
    document: Document,
    judged: Judged,
    routes: DeviceMap,
    fitted: tuple[Finding, ...],
    ailments: tuple[str, ...],
    planned_load: DefaultLoad,
) -> Banner:
    found = banner(document, judged, routes, planned_load, fitted, next(iter(ailments), ""))
    if judged.target.id != THIS:
        tone: Tone = "warning" if found.tone == "good" else found.tone
        found = replace(found, is_elsewhere=True, tone=tone)
    fails = found.error_text is not None
    if offers(RECOVER, document.checkpoint):
        return replace(found, action=_SAVE_INTACT, is_way_out=fails)
    if routes.plan.is_empty:
        return replace(found, action=_EXPORT)
    return replace(found, is_way_out=fails and planned_load.last_error is None)


def _planned_load(
    document: Document, target: Profile, verdict: SafetyVerdict, load: DefaultLoad, routes: DeviceMap
) -> DefaultLoad:
    """Judge what an export by this map writes."""
    if routes.plan.is_empty:
        return load
    return judge_load(planned(document.checkpoint, routes.plan), target, verdict)


def _colors(document: Document, target: Profile, routes: DeviceMap) -> dict[str, int]:
    """Color the file's devices as its tree does, and new destinations after them."""
    return more_colors(document.tree.colors, {*target.devices, *(to for _, to in routes.going)})


def _map_rows(
    document: Document, target: Profile, routes: DeviceMap, colors: dict[str, int], no_map: str
) -> tuple[DeviceRow, ...]:
    return () if no_map else device_rows(document, target, routes, colors)


def _charts(
    *,
    document: Document,
    target: Profile,
    routes: DeviceMap,
    colors: dict[str, int],
    fixed_charts: tuple[Chart, ...],
    no_map: str,
) -> tuple[Chart, ...]:
    checkpoint, moved = document.checkpoint, routes.plan.storages
    if not fixed_charts or not names_devices(checkpoint):
        return fixed_charts
    room = room_chart(flows_of(checkpoint, moved), target, colors)
    first = device_chart(checkpoint, {} if no_map else moved, colors)
    return (first, *([room] if room else []), *fixed_charts)


def _fixed_charts(document: Document) -> tuple[Chart, ...]:
    checkpoint = document.checkpoint
    if not any(row.nbytes or row.expected_nbytes for row in checkpoint.storages):
        return ()
    waste = waste_chart(checkpoint)
    return (role_chart(checkpoint), dtype_chart(checkpoint), *([waste] if waste else []))


def _branch_rows(rules: Rules) -> tuple[BranchRow, ...]:
    return tuple(
        BranchRow(pattern=rule.path, label=escape_text(cut_text(rule.path, _MOST_BRANCH)), to=rule.to)
        for rule in rules
        if rule.path is not None
    )


def _read(document: Document, checked: FileCheck | None, sampled: Scan | None) -> tuple[Finding, ...]:
    """Return what a check of all bytes and the values that were read showed."""
    return (*(checked.findings if checked is not None else ()), *scan_findings(document, sampled))


def _finding_rows(
    *,
    document: Document,
    judged: Judged,
    fitted: tuple[Finding, ...],
    read: tuple[Finding, ...],
    nodes: dict[str, int],
    changes_beside: int,  # noqa: ARG001 - the cards name free paths
) -> tuple[FindingRow, ...]:
    """Return the cards, those of what was read in place of what was known before it."""
    known = {finding.id for finding in read}
    others = (finding for finding in fitted if finding.id not in known)
    whole = next((note.values[0] for note in document.checkpoint.notes if note.kind is NoteKind.PART_OF), "")
    cards = (finding_card(finding, nodes, judged) for finding in (*read, *others))
    return tuple(
        replace(card, opens=whole, opening=_OPEN_WHOLE) if card.id == PART_OF_CHECKPOINT else card
        for card in cards
    )


def _explanation(
    *,
    judged: Judged,
    nodes: dict[str, int],
    ailments: tuple[str, ...],
    error_text: str,
    script_name: str,
    changes_beside: int,  # noqa: ARG001 - the answer names free paths
) -> FindingRow | None:
    """Return the answer to what was pasted, an error message or a script."""
    checkpoint, target = judged.checkpoint, judged.target
    if not error_text.strip():
        return None
    if script_name or may_be_script(error_text):
        return script_card(error_text, script_name, checkpoint, target)
    from inspector.diagnose.errors.explain import explain_error  # noqa: PLC0415 - most windows are never asked

    return explanation_card(explain_error(error_text, checkpoint, target), nodes, judged, ailments)


def _opens_on(banner: Banner) -> str:
    """Return the page that suits a verdict: what to do about a red one, else what the file is."""
    return "findings" if banner.tone == "bad" else "overview"


def _findings_sought(state: State) -> tuple[Finding, ...] | None:
    """Return the findings, if the search asks for what one speaks of: no other search waits for them."""
    if not parse_query(state.query).needs_findings:
        return None
    return (*ask(state, "read"), *ask(state, "fitted"))


def _nodes_by_path(document: Document) -> dict[str, int]:
    paths = (tensor.path for tensor in document.checkpoint.tensors)
    return dict(zip(paths, document.tree.tensor_nodes, strict=True))


def _file(document: Document, verdict: SafetyVerdict) -> tuple[FactGroup, ...]:
    return file_facts(document.checkpoint, verdict, parameters_fact(document.tree.nodes[0]))


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


# --- the tables ---------------------------------------------------------------------------------------------

INPUTS: Table = {
    "state": lambda state: state,
    "document": lambda state: state.ready,
    "target": target_of,
    "rules": lambda state: state.branches,
    "order": lambda state: state.flat,
    "checked": check_of,
    "scan": scan_of,
    "sampled": lambda state: scan_of(state) or state.sampled,
    "scan_sought": scan_sought,
    "findings_sought": _findings_sought,
    "many_picked": many_picked,
    "changes_beside": lambda state: state.beside[1],
    "map_place": lambda state: state.map_root if state.looks_at_map else 0,
}
"""What parts need of a state that is not one of its fields, or not under that name."""

AT_ONCE: Table = {
    "stamp": lambda document: document.checkpoint.stamp,
    "on_disk": lambda state: state.on_disk,
    "parts": lambda document: tuple(part.path for part in document.checkpoint.parts),
    "tree": lambda document: document.tree,
    "can_undo": lambda document: document.can_undo,
    "can_go": can_go,
    "tensor": node_facts,
    "strip": strip,
    "marks": marks_of,
    "scalars": scalars_of,
    "overview": _overview,
    "values": values_page,
    "check": check_page,
    "opens_on": _opens_on,
}
"""Parts that cost little, and are made anew for every screen."""

REMEMBERED: Table = {
    # of the file alone
    "no_map": lambda document: nothing_to_map(document.checkpoint),
    "verdict": lambda document: judge(document.checkpoint),
    "about": lambda document: overview_of(document.checkpoint),
    "file": _file,
    "status": _status,
    "nodes": _nodes_by_path,
    "lookup": lookup_of,
    "requests": requests_of,
    "fixed_charts": _fixed_charts,
    # of the machine
    "load": _load,
    "judged": _judged,
    "safety": safety_chip,
    "found": _found,
    "doctor": doctor_cards,
    "ailments": ailments,
    # of the device map
    "routes": _routes,
    "planned_load": _planned_load,
    "forecast": forecast_page,
    "overview_here": _overview_here,
    "fitted": fitted_findings,
    "foretold": _banner,
    "banner": after_reading,
    "colors": _colors,
    "is_mappable": is_mappable,
    "landing": landing,
    "map_rows": _map_rows,
    "device_map": lambda map_rows, is_mappable: map_rows if is_mappable else (),
    "map_choices": choices_for_all,
    "can_export": lambda routes: routes.refusal is None,
    "branches": _branch_rows,
    "charts": _charts,
    "code": code_page,
    # of what is asked
    "read": _read,
    "findings": _finding_rows,
    "explanation": _explanation,
    "odd": odd_rows,
    "searched": searched_rows,
    "matches": matching_rows,
    "search": search_page,
    "flat": flat_list,
    "strip_of_many": strip_of_many,
    "areas": measured_areas,
    "coloring": coloring,
    "module_map": modules,
    "finished_scan": finished_scan,
    "sparks": sparks_of,
    "row_marks": row_marks,
}
"""Parts that are made once for what they come from. Those that are no field of `Screen` serve others."""

PARTS = Parts(INPUTS, AT_ONCE, REMEMBERED)


@collector_paused()
def compose(state: State) -> Screen:
    """Return the screen that shows a state."""
    if state.ready is None:
        return frame_of(state)
    answers = Answers(PARTS, state)
    shown = {name: answers[name] for name in PARTS.make if name in Screen.__annotations__}
    return Screen(**around(state), **shown)


def ask(state: State, part: str) -> Any:  # noqa: ANN401 - whatever the part is
    """Return one part of a state with an open document."""
    return Answers(PARTS, state)[part]


def is_remembered(state: State) -> bool:
    """Return whether the screen of a state needs nothing that has to be worked out."""
    answers = Answers(PARTS, state)
    return all(map(answers.knows, REMEMBERED))


def brought_up_to_date(screen: Screen, state: State) -> Screen:
    """Return the screen of another state of the same file with all that is known at once of this one."""
    answers = Answers(PARTS, state)
    known = {name: answers[name] for name in AT_ONCE if answers.knows(name)}
    return replace(screen, **around(state), **known)
