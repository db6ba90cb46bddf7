"""What the export dialog proposes: where to, what changes, and what to think of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from inspector.containers.formats import format_of
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.quoting import command, file_word, shell_word
from inspector.records import replace
from inspector.remap.files import device_word, free_folder, free_path
from inspector.remap.forms import Form, FormPreview, LeftOut
from inspector.remap.plan import Plan
from inspector.remap.preview import known_by, preview_form
from inspector.remap.rules import Rule, format_rule
from inspector.report.colors import device_name
from inspector.report.tree import Tree
from inspector.report.words.formats import nothing_to_map
from inspector.report.words.results import as_lines, form_changes, left_out, left_out_total, sizes
from inspector.session.device_map import DeviceMap, Pairs
from inspector.session.document import Document
from inspector.session.export.choosing import (
    KnownBy,
    bound_rows,
    boxes_of,
    choose,
    join_patterns,
    split_patterns,
)
from inspector.session.export.kinds import (
    COPY,
    IN_PLACE,
    KINDS,
    RECOVER,
    Kind,
    form_of,
    kind_of,
    offered_kinds,
)
from inspector.session.export.outlook import outlook_of, planned
from inspector.session.export.page import ExportDraft, ExportWish
from inspector.session.state import Picks
from inspector.target.profile import Profile
from inspector.units import cut_text, escape_text, format_count, format_nbytes

_PLAIN = ExportWish()
_IN_PLACE = (
    "This changes the file itself: a few kilobytes of it, whatever its size. The old bytes are kept in a "
    "small file next to it, so the change can be undone."
)
_NO_TENSORS = "The file holds no tensors: there is nothing to export."
_MOST_MOVES = 16
_MOST_LISTED = 6
_MOST_LEFT_OUT = 4
_MOST_PATTERN = 60


def draft_of(
    device_map: DeviceMap,
    wish: ExportWish = _PLAIN,
    tree: Tree | None = None,
    progress: Progress | None = None,
) -> ExportDraft:
    """Return what the export dialog shows of a wish; the rows of the file get boxes in its tree."""
    progress = progress or Progress()
    checkpoint, kind, form = device_map.checkpoint, kind_of(wish), form_of(wish)
    source = _named_by(checkpoint).absolute()
    why = next((choice.why for choice in offered_kinds(checkpoint) if choice.id == kind.id), "")
    in_place, plan = kind.id == IN_PLACE, device_map.plan_for(wish)
    draft = ExportDraft(
        wish=wish,
        kinds=offered_kinds(checkpoint),
        destination="" if in_place else str(_proposed(checkpoint, source, device_map.moves, kind)),
        summary=tuple(_summary(device_map, plan, in_place=in_place)),
        size=format_nbytes(checkpoint.file_nbytes),
        nbytes=checkpoint.file_nbytes,
        makes_folder=bool(checkpoint.parts) and kind.id == COPY and form is None,
        can_exclude=not in_place,
        can_verify=form is None and not in_place,
        refusal=why,
        can_change_hidden=bool(device_map.with_hidden.hidden) and (form is None or not form.takes_model),
        is_way_out=not (_relabels(wish) and plan.is_empty),
    )
    if not checkpoint.tensors and not checkpoint.hidden_devices:
        return replace(draft, refusal=why or _NO_TENSORS, can_exclude=False)
    if in_place:
        return replace(draft, warnings=(_IN_PLACE,), size="")
    if kind.id == RECOVER:
        intact = tuple(_intact(checkpoint))
        return replace(
            draft,
            summary=intact,
            size="",
            nbytes=0,
            can_exclude=False,
            can_verify=False,
            can_change_hidden=False,
        )
    if form is not None:
        return with_preview(draft, checkpoint, form, tree, progress)
    kept = bytes(len(checkpoint.tensors)), bytes(len(checkpoint.values))
    if tree is None:
        return draft
    return replace(draft, boxes=boxes_of(tree, *kept, progress, bound_rows(checkpoint, tree)))


def _relabels(wish: ExportWish) -> bool:
    """Return whether nothing but devices is changed."""
    return kind_of(wish).id in {COPY, IN_PLACE} and form_of(wish) is None


def with_outlook(draft: ExportDraft, device_map: DeviceMap, target: Profile) -> ExportDraft:
    """Return a draft that says what keeps a copy by this plan from loading; another form says so later."""
    if draft.refusal or not _relabels(draft.wish):
        return draft
    outlook = outlook_of(planned(device_map.checkpoint, device_map.plan_for(draft.wish)), target)
    if outlook.loads:
        return draft
    warnings = (f"With this plan it {outlook.sentence}", *draft.warnings)
    return replace(draft, warnings=warnings, is_way_out=False)


def picked(document: Document, wish: ExportWish, picks: Picks) -> ExportWish:
    """Return a wish after boxes of the tree were clicked."""
    if not picks:
        return wish
    known_by = _known_by(document.checkpoint, form_of(wish))
    patterns, form = split_patterns(wish.exclude), form_of(wish)
    tuples = () if form is not None and form.takes_model else frozenset(document.checkpoint.tuples)
    for nodes, written in picks:
        patterns = choose(document, known_by, patterns, nodes, written=written, tuples=tuples)
    return replace(wish, exclude=join_patterns(patterns))


def _known_by(checkpoint: Checkpoint, form: Form | None) -> KnownBy:
    try:
        return known_by(checkpoint, form or Form())
    except PlanError:  # the draft says so
        return known_by(checkpoint, Form())


def _proposed(checkpoint: Checkpoint, source: Path, moves: Pairs, kind: Kind) -> Path:
    """Return a free path for an export: a folder for a folder, and a file for torch where there was none."""
    if checkpoint.parts and kind.id == COPY:
        return Path(free_folder(str(source), device_word({to for _, to in moves})))
    if not kind.suffix and not format_of(checkpoint.format).torch_loads:
        kind = replace(kind, suffix="pth")
    return propose_destination(source, moves, kind)


def map_command(device_map: DeviceMap) -> str:
    """Return the command that writes a copy by a device map; empty where nothing moves."""
    if device_map.plan.is_empty:
        return ""
    checkpoint = device_map.checkpoint
    moves = (Rule(device=device, to=to) for device, to in device_map.moves)
    rules = [format_rule(rule) for rule in (*device_map.branches, *moves)]
    out = _proposed(checkpoint, _named_by(checkpoint), device_map.moves, KINDS[0])
    mapped = (f"--map {shell_word(rule)}" for rule in rules)
    return command("remap", file_word(checkpoint.path), "-o", file_word(str(out)), *mapped)


def propose_destination(source: Path, moves: Pairs, kind: Kind = KINDS[0]) -> Path:
    """Return a free path next to the source: `best.cpu.pth`, then `best.cpu-2.pth`, ..."""
    word = kind.word or device_word({to for _, to in moves})
    return Path(free_path(str(source), word, kind.suffix))


def _named_by(checkpoint: Checkpoint) -> Path:
    """Return the path that a copy is named after: the folder, where a file that stands for it was opened."""
    path = Path(checkpoint.path)
    return path.parent if checkpoint.parts and path.is_file() else path


def _summary(device_map: DeviceMap, plan: Plan, *, in_place: bool) -> list[str]:
    tensors = device_map.checkpoint.tensors
    counts = Counter(tensors[index].device for index in plan.tensors)
    kept = {tensors[index].device for index in plan.kept}
    moves = [(device, to) for device, to in device_map.moves if counts[device] or device not in kept]
    lines = [
        f"{format_count(counts[device], 'tensor')} from {device_name(device)} to {to}"
        for device, to in moves[:_MOST_MOVES]
    ]
    goals = {to for _, to in moves}
    if len(moves) > _MOST_LISTED and len(goals) == 1:
        every = format_count(sum(counts[device] for device, _ in moves), "tensor")
        lines = [f"{every} from {len(moves):,} devices to {goals.pop()}"]
    elif len(moves) > _MOST_MOVES:
        lines.append(f"and those of {len(moves) - _MOST_MOVES:,} more devices")
    if plan.kept:
        lines.append(f"{format_count(len(plan.kept), 'tensor')} kept on the CPU by design (step, RNG state)")
    branches = device_map.branches[:_MOST_MOVES]
    lines += [f"{escape_text(rule.path)} to {rule.to}" for rule in branches if rule.path]
    rows = device_map.checkpoint.hidden_devices
    hidden = Counter((rows[index].device, to) for index, to in plan.hidden.items())
    lines += [
        f"{format_count(count, 'device')} outside of tensors from {device_name(device)} to {to}"
        for (device, to), count in hidden.most_common(_MOST_MOVES)
    ]
    if not lines and in_place:
        lines.append("Nothing changes. Choose destinations in the device map.")
    elif not lines and not nothing_to_map(device_map.checkpoint):
        lines.append("Nothing changes: the copy equals the original. Choose destinations in the device map.")
    lines.append("Weights, names and all other values stay the same, byte for byte.")
    return lines


def _intact(checkpoint: Checkpoint) -> list[str]:
    gone = {storage.key for storage in checkpoint.storages if storage.missing}
    lost = sum(tensor.storage in gone for tensor in checkpoint.tensors)
    return [
        f"{format_count(len(checkpoint.tensors) - lost, 'tensor')} seem to be intact; each is checked",
        f"{format_count(lost, 'tensor')} cannot be saved, and their entries are left out",
        "Devices, names and all other values stay the same",
    ]


# --- in another form ----------------------------------------------------------------------------------------


def with_preview(
    draft: ExportDraft,
    checkpoint: Checkpoint,
    form: Form,
    tree: Tree | None = None,
    progress: Progress | None = None,
) -> ExportDraft:
    """Complete a draft by what the form makes of the file."""
    try:
        preview = preview_form(checkpoint, form, progress)
    except PlanError as error:
        return replace(draft, summary=(), refusal=escape_text(str(error)), size="", nbytes=0)
    lines = [f"{format_count(preview.tensors, 'tensor')} of {len(checkpoint.tensors):,} are written"]
    lines += form_changes(preview)
    if form.cast:
        lines.append(f"float32 becomes {form.cast}, with fewer digits")
    if not form.takes_model:
        lines += draft.summary[:-1]
    refusal = _refusal_of(preview)
    return replace(
        draft,
        summary=() if refusal else tuple(line[:1].upper() + line[1:] for line in lines),
        omissions=_announced(tuple(row for row in preview.left_out if not row.is_lost)),
        warnings=tuple(left_out_lines(tuple(row for row in preview.left_out if row.is_lost))),
        refusal=refusal,
        size=f"about {sizes(preview)}",
        nbytes=preview.nbytes,
        boxes=None
        if tree is None
        else boxes_of(
            tree,
            preview.fates,
            preview.value_fates,
            progress,
            frozenset() if form.takes_model else bound_rows(checkpoint, tree),
        ),
        unused=preview.unused,
        can_cast=form.takes_model,
        can_average=form.takes_model and any(tensor.role == "ema" for tensor in checkpoint.tensors),
        can_exclude=True,
    )


def _refusal_of(preview: FormPreview) -> str:
    """Return why an export cannot be written: the first reason as a sentence."""
    if preview.unused:
        shown = ", ".join(escape_text(cut_text(pattern, _MOST_PATTERN)) for pattern in preview.unused[:3])
        return f"Nothing in the file matches {shown}."
    return " ".join(as_lines(map(escape_text, preview.refusals[:1])))


def _announced(rows: tuple[LeftOut, ...]) -> tuple[str, ...]:
    """Return what would be left out; what the patterns name is seen in the tree."""
    total = left_out_total(rows)
    by_form = tuple(row for row in rows if not row.is_asked)
    return (*as_lines([total]), *left_out_lines(by_form)) if total else ()


def omission_lines(rows: tuple[LeftOut, ...]) -> tuple[str, ...]:
    """Return what an export leaves out as was asked for: how much, then what, the largest first."""
    total = left_out_total(rows)
    return (*as_lines([total]), *left_out_lines(rows)) if total else ()


def left_out_lines(rows: tuple[LeftOut, ...]) -> list[str]:
    """Return what an export does not hold, the largest first."""
    return as_lines(left_out(sorted(rows, key=lambda row: -row.nbytes), _MOST_LEFT_OUT))
