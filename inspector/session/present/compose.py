"""From state to screen. Pure, and remembered part by part so that a click costs only what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from inspector.containers.collector import collector_paused
from inspector.containers.formats import format_of
from inspector.containers.notes import NoteKind
from inspector.diagnose.findings.files import PART_OF_CHECKPOINT
from inspector.diagnose.fitting import MAP_DOES_NOT_FIT, Overflow, overflow_finding, overflow_of
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError, PlanError
from inspector.model.agents import loader_of
from inspector.model.findings import SEVERITIES, Finding, Fix
from inspector.model.roles.devices import is_accelerator
from inspector.model.totals import storage_nbytes_by
from inspector.records import replace
from inspector.remap.rules import Rule
from inspector.report.charts.areas import Areas, Coloring, Property, color_by, measure
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
from inspector.report.words.formats import (
    before,
    format_label,
    is_about_machine,
    names_devices,
    nothing_to_map,
)
from inspector.report.words.results import as_lines, checked
from inspector.session.cache import remembered
from inspector.session.device_map import DeviceMap, Pairs, choices_for_all, device_rows, map_devices
from inspector.session.document import Document, load_of
from inspector.session.export.kinds import RECOVER, offers
from inspector.session.frame import frame_of
from inspector.session.history import edit_texts
from inspector.session.jobs.check import CHECK, check_of
from inspector.session.jobs.pythons import pythons_page
from inspector.session.pasted import may_be_script
from inspector.session.present.banner import after_reading, banner, safety_chip
from inspector.session.present.export import export_page
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
from inspector.session.state import State
from inspector.session.targets import devices_of, target_of, targets_of
from inspector.session.values.kinds import scalars_of, scan_of, taken_page
from inspector.session.values.showing import row_marks, scan_findings, sparks_of, values_page
from inspector.snippet.script import comment_lines
from inspector.snippet.styles.table import offered_styles, render
from inspector.target.call import TagMap
from inspector.target.memory import Routine, forecast
from inspector.target.opening import can_map
from inspector.target.profile import Profile
from inspector.target.simulate import Judged
from inspector.target.versions import release_of
from inspector.units import cut_text, escape_text, format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.diagnose.errors.explanation import Explanation
    from inspector.doctor.diagnosis import Diagnosis
    from inspector.remap.recover import FileCheck
    from inspector.values.statistics import Scan


# The cards of the findings page: findings, the answer to a pasted error, trouble with the machine's GPUs.

_MOST_NODES = 20
_TONES: dict[str, Tone] = {"error": "bad", "warning": "warning", "note": "neutral"}
_FITS: dict[str, Tone] = {"yes": "bad", "no": "neutral", "unknown": "warning"}


def finding_card(finding: Finding, nodes: Mapping[str, int], judged: Judged | None = None) -> FindingRow:
    """Return the card of a finding; `nodes` are the tree's, by path."""
    return FindingRow(
        id=finding.id,
        tone=_TONES[finding.severity],
        title=escape_text(finding.title),
        detail=escape_text(finding.detail),
        nodes=_nodes(finding.paths, nodes),
        count=finding.count,
        fix=finding.fix,
        lines=_lines(finding.fix, judged),
    )


def explanation_card(
    explanation: Explanation, nodes: Mapping[str, int], judged: Judged | None = None
) -> FindingRow:
    """Return the card that answers a pasted error; one about the machine names what ails it."""
    is_about = is_about_machine(explanation)
    facts = [
        ("Your line", explanation.where),
        ("Why", explanation.cause),
        ("On the target", ailments(judged.target) if judged is not None and is_about else ""),
        ("In this file", explanation.here),
        ("What to do", explanation.advice),
    ]
    if explanation.also:
        facts.append(("Also in the text", "; ".join(explanation.also)))
    return FindingRow(
        id=explanation.finding or explanation.id,
        tone=_FITS[explanation.fits],
        title=explanation.title,
        detail=explanation.quoted,
        nodes=_nodes(explanation.paths, nodes),
        fix=explanation.fix,
        lines=_lines(explanation.fix, judged),
        facts=tuple((caption, text) for caption, text in facts if text),
    )


@lru_cache(maxsize=8)
def doctor_cards(machine: Profile) -> tuple[FindingRow, ...]:
    """Return the cards about a machine's GPUs; none for a machine that was not probed."""
    if machine.evidence is None:
        return ()
    from inspector.doctor.examine import examine  # noqa: PLC0415 - seldom needed

    return tuple(map(_diagnosis_card, examine(machine)))


def ailments(machine: Profile) -> str:
    """Return what the GPU doctor says of a machine, in a line each; its cards below say more."""
    return "\n".join(card.title for card in doctor_cards(machine) if card.tone != "neutral")


def _diagnosis_card(diagnosis: Diagnosis) -> FindingRow:
    seen = (("Seen", "\n".join(map(escape_text, diagnosis.evidence))),) if diagnosis.evidence else ()
    sure = () if diagnosis.certainty == "certain" else (("Certainty", f"{diagnosis.certainty}"),)
    return FindingRow(
        id=diagnosis.id,
        tone=_TONES[diagnosis.severity],
        title=escape_text(diagnosis.title),
        detail=escape_text(diagnosis.explanation),
        facts=(*seen, *sure),
        steps=tuple(map(escape_text, diagnosis.steps)),
    )


def _lines(fix: Fix | None, judged: Judged | None) -> tuple[tuple[str, str], ...]:
    if fix is None or judged is None:
        return ()
    from inspector.report.remedies import remedies_for  # noqa: PLC0415 - many files need none

    remedies = enumerate(remedies_for(fix, judged))
    return tuple((before(one.kind, is_first=not number), one.text) for number, one in remedies)


def _nodes(paths: tuple[str, ...], nodes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([nodes[path] for path in paths[:_MOST_NODES] if path in nodes])


# What the chosen map puts on devices that are too small: a finding in place of that for the advised map.

_MODEL_DOES_NOT_FIT = "model-does-not-fit"


def fitted_findings(
    document: Document,
    target: Profile,
    device_map: DeviceMap,
    loading: Loading,
    *,
    found: tuple[Finding, ...],
    page: ForecastPage | None,
) -> tuple[Finding, ...]:
    """Return the findings with what does not fit of the map that was chosen, worst first.

    Args:
        page: The forecast of what a script does with the file.
    """
    others = tuple(one for one in found if one.id != MAP_DOES_NOT_FIT)
    checkpoint, moves = document.checkpoint, device_map.moves
    overflow = _overflow(document, target, device_map, loading)
    if overflow is not None:
        card = overflow_finding(checkpoint, moves, overflow)
        return _in_order((*others, card))
    is_said = any(one.id == "does-not-fit" for one in others)
    if page is None or page.chart is None or not page.is_tight or is_said:
        return others
    tight = Finding(
        id=_MODEL_DOES_NOT_FIT,
        severity="warning",
        title="Filling a model takes more memory than there is",
        detail=" ".join(page.notes),
        paths=(),
        count=0,
        fix=None,
    )
    return _in_order((*others, tight))


def _overflow(
    document: Document, target: Profile, device_map: DeviceMap, loading: Loading
) -> Overflow | None:
    """Ask only about what differs from a plain load, of which the findings of the file speak."""
    if not device_map.plan.storages and loading.ranks == 1:
        return None
    stored: tuple[tuple[str, int], ...] = ()
    if device_map.branches:
        flows = flows_of(document.checkpoint, device_map.plan.storages)
        stored = tuple((device, sum(tags.values())) for device, tags in landed(flows).items())
    return overflow_of(
        document.checkpoint,
        target,
        device_map.moves,
        ranks=loading.ranks,
        mmap=loading.mmap,
        stored=stored,
    )


def _in_order(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda one: SEVERITIES.index(one.severity)))


# The forecast of the memory page: loading as the device map says, and filling a model.

_MOST_RANKS = 8


def forecast_page(
    document: Document, target: Profile, device_map: DeviceMap, loading: Loading
) -> ForecastPage | None:
    """Forecast what loading the file takes; None where there is nothing to load."""
    checkpoint = document.checkpoint
    if not checkpoint.storages:
        return None
    maps = can_map(checkpoint, release_of(target.torch_version))
    mmap = loading.mmap and maps
    map_location = TagMap(pairs=device_map.moves) if device_map.moves else None
    code = load_of(document, target).code
    call = replace(code, map_location=map_location, mmap=mmap, refusal=None)
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
        notes=(*report.notes, *_optimizer_note(document, device_map, routine)),
        is_tight=report.is_tight,
    )


def _optimizer_note(document: Document, device_map: DeviceMap, routine: Routine) -> tuple[str, ...]:
    """Return what is not counted: `Optimizer.load_state_dict` moves state to the device of its parameters.

    See `_process_value_according_to_param_policy` in `torch/optim/optimizer.py`.
    """
    if routine.to is None:
        return ()
    checkpoint, moved = document.checkpoint, device_map.plan.storages
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


def code_page(
    document: Document, device_map: DeviceMap, target: Profile, wanted: str, *, is_exact: bool
) -> CodePage:
    """Return the code page.

    Args:
        wanted: The id of the style that was chosen; where the file does not offer it, it gets its best one.
    """
    offered = _styles(document, wanted)
    ids = [style.id for style in offered]
    style = wanted if wanted in ids else next(iter(ids), "")
    mapping = device_map.going if is_exact else device_map.moves
    text = _code(document, target, style, mapping, is_exact)
    return CodePage(styles=offered, style=style, text=_not_in_code(device_map) + text)


@remembered
def _styles(document: Document, wanted: str) -> tuple[Choice, ...]:
    offered = offered_styles(document.checkpoint, wanted)
    return tuple(Choice(id=style.id, label=style.label) for style in offered)


@remembered
def _code(document: Document, target: Profile, style: str, mapping: Pairs, is_exact: bool) -> str:  # noqa: FBT001 - remembered by position
    try:
        return render(document.checkpoint, style=style, target=target, mapping=mapping, is_exact=is_exact)
    except PlanError as error:
        return f"# {escape_text(error.what)}\n"


def _not_in_code(device_map: DeviceMap) -> str:
    """Return comments on what of the map no `map_location` can say, and only a copy has."""
    said = []
    rules = [(rule.path, rule.to) for rule in device_map.branches if rule.path]
    if rules:
        shown = [f"{cut_text(path, _MOST_PATTERN)} to {to}" for path, to in rules[:_MOST_BRANCHES]]
        more = f" and {len(rules) - _MOST_BRANCHES:,} more" if len(rules) > _MOST_BRANCHES else ""
        said.append(f"The map also sends {escape_text(', '.join(shown))}{more}. {_NO_NAMES}")
    to, kept = dict(device_map.going).get("cpu", "cpu"), len(device_map.plan.kept)
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


def check_page(state: State) -> CheckPage:
    """Return what the file page shows of the check."""
    job, found = state.job(CHECK), check_of(state)
    if job is None or job.status == "cancelled":
        return CheckPage(hint=_hint(state))
    if found is not None:
        lines = as_lines(checked(found, _MOST_NAMED))
        return CheckPage(tone="good" if found.is_intact else "bad", lines=tuple(lines))
    if job.error is None:
        return CheckPage(progress=job.progress)
    # What was not foreseen is a mistake of this program, and is reported as such.
    what = "" if isinstance(job.error, CheckpointError) else f"unexpected {type(job.error).__name__}: "
    return CheckPage(tone="bad", lines=(escape_text(f"{what}{job.error}"),))


def _hint(state: State) -> str:
    """Return what a check is for; what torch.load leaves undone is said of files that it loads."""
    document = state.ready
    if document is None:
        return ""
    checkpoint = document.checkpoint
    reading = f"Reading {'all of its files' if checkpoint.parts else 'the whole file'} shows whether"
    if not format_of(checkpoint.format).torch_loads:
        return f"{reading} nothing is missing, and whether it matches its checksums if the format has any."
    return f"{_NOT_COMPARED} {reading} it is as it was saved."


# The map page: what is measured once for a file, and what of it is shown.


def module_map_of(document: Document, by: Property | None, root: int) -> ModuleMap | None:
    """Return the map of modules; None as long as nobody looks at it, for it has to be measured."""
    return None if by is None else _shown(document, by, root)


@remembered
def _shown(document: Document, by: Property, root: int) -> ModuleMap:
    return module_map(_areas(document), _coloring(document, by), root)


@remembered
def _areas(document: Document) -> Areas:
    return measure(document.checkpoint, document.tree)


@remembered
def _coloring(document: Document, by: Property) -> Coloring:
    return color_by(_areas(document), by)


# Which parts of the charts the selected row belongs to.


def marks_of(document: Document, node: int | None, charts: tuple[Chart, ...]) -> tuple[str, ...]:
    """Return the searches of all parts that a row belongs to, by its device, its role and its dtype.

    A group belongs to the parts of all devices below it.
    """
    nodes = document.tree.nodes
    if node is None or not 0 < node < len(nodes):
        return ()
    row = nodes[node]
    about: set[tuple[str, str]] = {("device", device) for device, _ in row.devices}
    if row.kind == "tensor":
        tensor = document.checkpoint.tensors[row.index]
        about |= {("device", tensor.device), ("role", tensor.role), ("dtype", tensor.dtype)}
    known = {part.query for chart in charts for bar in chart.bars for part in bar.segments if part.query}
    plain = {filter_for(field, value) for field, value in about}
    exact = {f'{field}:"{value}"' for field, value in about}
    return tuple(sorted(known & (plain | exact)))


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
        banner=after_reading(
            _banner(*asked, state.loading), read_findings(document, check_of(state), scan_of(state))
        ),
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
        row_marks=row_marks(document, scan_of(state)),
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


def read_findings(document: Document, check: FileCheck | None, scan: Scan | None) -> tuple[Finding, ...]:
    """Return what reading the bytes of the file found, as far as somebody asked for it."""
    return (*(check.findings if check is not None else ()), *scan_findings(document, scan))


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
    checked = read_findings(document, check, scan)
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
