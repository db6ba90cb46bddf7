"""What `remap` and `export` do with a file: a copy, another form, the file itself changed, that taken back.

Several files may go into a folder: all names are settled before the first is written.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from inspector import __version__
from inspector.cli.common import (
    DONE,
    NEGATIVE,
    complain_of,
    ended_by_signals,
    exit_code,
    hint,
    reader_may_leave,
    remark,
    say_json,
    tell,
)
from inspector.cli.mapping import parse_map, plan_of, profile_of
from inspector.cli.streams import is_stream
from inspector.containers.formats import refuse_step
from inspector.containers.opening import stands_for_folder
from inspector.diagnose.fitting import overflow_of, overflow_text
from inspector.errors import CheckpointError, ExportError, PlanError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.quoting import command, file_word, shell_word
from inspector.records import dataclass, replace
from inspector.remap.describe import describe_plan, format_hidden, format_plan
from inspector.remap.export import (
    Export,
    Verify,
    export_copy,
    export_folder,
    make_receipt,
    refuse_receipt,
    write_receipt,
)
from inspector.remap.files import copy_times, explained, refuse_destination
from inspector.remap.forms import (
    SAFETENSORS_SUFFIX,
    TORCH_SUFFIXES,
    Form,
    FormPreview,
    LeftOut,
    check_form,
    choose_shape,
    refuse_suffix,
)
from inspector.remap.plan import Plan
from inspector.report.charts.bars import flows_of
from inspector.report.charts.forecast import landed
from inspector.report.documents import (
    copy_document,
    form_document,
    patch_document,
    plan_document,
    undo_document,
)
from inspector.report.page import Line, Page, page_of, plain_text, prose
from inspector.report.remedies import weights_remedies
from inspector.report.words.formats import BEFORE
from inspector.report.words.results import (
    converted,
    copied,
    form_contents,
    left_out,
    overflowed,
    patched,
    result_page,
    still_refused,
    unchecked_by_torch,
    undone,
)
from inspector.safety.verdict import judge
from inspector.safety.words import shouted, words_of
from inspector.units import escape_text

_MOST_LEFT_OUT = 20
_MOST_FILES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, for people and as JSON.

    Attributes:
        failure: What could not be done although the file was written; it decides the exit code.
    """

    page: Page
    document: dict[str, Any]
    code: int = DONE
    failure: CheckpointError | None = None


def file_name(options: argparse.Namespace) -> str:
    """Return what the file is called in the answer, wherever it is read."""
    name: str = getattr(options, "file_name", options.file)
    return name


def output_name(options: argparse.Namespace) -> str:
    stream: str | None = getattr(options, "output_name", None)
    name: str = options.output if stream is None else "standard output"
    return name


def give(answer: Answer, options: argparse.Namespace) -> int:
    """Write an answer, to stderr where stdout takes the file itself; return the exit code."""
    with reader_may_leave():
        if options.json:
            say_json(answer.document)
        elif options.dry_run:
            options.display.show(answer.page, apart=True)
        elif not is_stream(getattr(options, "output_name", None)):
            options.display.report(answer.page)
        elif not options.display.is_quiet:
            tell(plain_text(answer.page))
    if answer.failure is None:
        return answer.code
    complain_of(answer.failure)
    return exit_code(answer.failure)


def open_planned(options: argparse.Namespace) -> tuple[Checkpoint, Plan]:
    said, target = parse_map(options)
    checkpoint = open_checkpoint(options.file, progress=options.display.progress())
    if options.output is not None and not options.dry_run:
        refuse_destination(options.file, Path(options.output), overwrite=options.force)
        if options.receipt is not None:
            refuse_receipt(Path(options.receipt), options.file, Path(options.output))
            refuse_destination(options.file, Path(options.receipt), overwrite=options.force)
    return checkpoint, plan_of(checkpoint, options, said, target)


def remark_on_room(options: argparse.Namespace, checkpoint: Checkpoint, plan: Plan) -> None:
    """Write to stderr what of the copy does not fit on the machine of --target, as far as that is known."""
    if options.target is None:
        return

    flows = flows_of(checkpoint, plan.storages)
    going: dict[str, set[str]] = {}
    for device, to in flows:
        going.setdefault(device, set()).add(to)
    whole = ((device, *tos) for device, tos in going.items() if len(tos) == 1)
    moves = tuple((device, to) for device, to in whole if device != to)
    stored = tuple((device, sum(tags.values())) for device, tags in landed(flows).items())
    target = profile_of(parse_map(options)[1], options)
    overflow = overflow_of(checkpoint, target, moves, stored=stored)
    if overflow is not None:
        hint(options, f"{file_name(options)}: {overflow_text(overflow)}")


# --- a copy with other devices, and the file itself changed -------------------------------------------------


def copy(options: argparse.Namespace) -> Answer:
    checkpoint, plan = open_planned(options)
    remark_on_room(options, checkpoint, plan)
    progress = options.display.progress()
    output, verify = Path(options.output), cast("Verify", options.verify)
    if checkpoint.parts:
        if options.receipt is not None or options.keep_times or verify == "torch":
            raise PlanError(
                "--receipt, --keep-times and --verify torch are for single files",
                remedy="leave them out; the files of the folder are compared one by one",
            )
        with ended_by_signals(progress):
            done = export_folder(checkpoint, output, plan, verify=verify, progress=progress)
        return _copied(options, checkpoint, done)
    with ended_by_signals(progress):
        done = export_copy(
            options.file,
            output,
            plan,
            overwrite=options.force,
            verify=verify,
            python=options.python,
            progress=progress,
        )
        if options.keep_times:
            copy_times(options.file, output)
        if options.receipt is not None:
            receipt = make_receipt(checkpoint, plan, done, __version__, progress)
            write_receipt(receipt, Path(options.receipt), overwrite=options.force)
    return _copied(options, checkpoint, done)


def _copied(options: argparse.Namespace, checkpoint: Checkpoint, done: Export) -> Answer:
    name, unchecked = output_name(options), unchecked_by_torch(done)
    remedy = "the copy was written, and compared by this program only"
    return Answer(
        page=result_page(name, copied(done), _still_refused(options, checkpoint)),
        document=copy_document(file_name(options), name, done),
        failure=ExportError(unchecked, where=name, remedy=remedy) if unchecked else None,
    )


def _still_refused(options: argparse.Namespace, checkpoint: Checkpoint) -> Iterator[Line]:
    why = still_refused(checkpoint)
    if not why:
        return
    yield from prose(f"{why}.", "  ")
    for one in weights_remedies(checkpoint) if file_name(options) == options.file else ():
        yield Line(f"{BEFORE[one.kind]}:", indent="     ")
        yield Line(one.text, "code", "       ")


def change(options: argparse.Namespace) -> Answer:
    from inspector.remap.in_place import patch_in_place

    if options.receipt is not None or options.keep_times:
        raise PlanError("--receipt and --keep-times go with a copy", remedy="write a copy, with -o")
    checkpoint, plan = open_planned(options)
    remark_on_room(options, checkpoint, plan)
    progress = options.display.progress()
    with ended_by_signals(progress):
        done = patch_in_place(
            options.file, plan, force=options.force, verify=options.verify != "none", progress=progress
        )
    parts = patched(done, str(done.record))
    return Answer(
        page=result_page(options.file, parts, _still_refused(options, checkpoint)),
        document=patch_document(options.file, done),
    )


def undo(options: argparse.Namespace) -> Answer:
    from inspector.remap.in_place import undo_patch

    if options.map or options.target:
        raise PlanError("--undo restores the file as it was, whatever the map", remedy="leave the map out")
    nbytes = undo_patch(options.file, force=options.force)
    if options.force:
        _remark_on_safety(options.file)
    page = result_page(options.file, [undone(nbytes)])
    return Answer(page=page, document=undo_document(options.file, nbytes))


def _remark_on_safety(path: str) -> None:
    try:
        verdict = judge(open_checkpoint(path)).verdict
    except CheckpointError as error:
        remark(f"{path}: it cannot be read: {error.what}")
    else:
        if verdict != "weights-only":
            remark(f"{path}: {shouted(words_of(verdict))}")


# --- another form, and what would be done -------------------------------------------------------------------


def read_form(options: argparse.Namespace) -> Form | None:
    asked, only_weights, prefix = options.format, options.only is not None, options.strip_prefix
    if options.is_export and prefix is None:
        prefix = options.only  # the path of a model
    is_whole, keeps_names = options.is_export and asked == "same", options.is_export and prefix == ""
    if is_whole:
        asked = None  # the kind of file that is usual for it
        refuse_suffix(Path(options.output or ""), "same")
    shape, container = choose_shape(options.file, options.output, asked, in_place=options.in_place)
    if options.is_export:
        only_weights, prefix = not (keeps_names or is_whole or asked == "state-dict"), prefix or None
        shape = "state-dict" if keeps_names and shape == "same" and not is_whole else shape
    form = Form(
        only_weights=only_weights,
        shape=shape,
        exclude=tuple(options.exclude),
        strip_prefix=prefix,
        compact=options.compact,
        container=options.container or container,
        cast=options.cast,
        ema=options.ema,
    )
    if form.is_plain:
        return None
    check_form(form)
    if form.ema and not form.takes_model:
        remedy = "leave out --format same" if options.is_export else "export the weights only"
        raise PlanError("--ema chooses which of the weights are written, and all are copied", remedy=remedy)
    if options.output is None and not options.dry_run:
        raise PlanError("another form is a new file", remedy="name it with -o")
    if options.receipt is not None or options.verify not in {"quick", "none"}:
        raise PlanError(
            "--receipt and --verify compare a copy with its file byte by byte, and another form is no copy",
            remedy="leave them out: the names, types and shapes are compared anyway",
        )
    return form


def new_spelling(options: argparse.Namespace, form: Form) -> str:
    """Return the line of `export` that writes the form which options of `remap` ask for."""
    from inspector.cli.parser import parser_of

    asked = argparse.Namespace(**vars(options))
    asked.output = None if options.into else getattr(options, "output_name", options.output)
    asked.only = None
    if form.only_weights:
        asked.format = options.format if form.shape == "safetensors" else None
        asked.strip_prefix = options.strip_prefix or None
    elif form.shape == "safetensors":
        asked.strip_prefix = options.strip_prefix or ""  # names stayed as they were
    else:
        asked.format = form.shape
    return command("export", *_words_of(parser_of("export"), asked))


def _words_of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Iterator[str]:
    """Yield the words that a parser reads as these options, but for many files."""
    yield from map(file_word, options.files[:_MOST_FILES])
    yield from ["..."] * (len(options.files) > _MOST_FILES)
    for action in parser._actions:  # noqa: SLF001 - there is no other table of them
        value = getattr(options, action.dest, None)
        if not action.option_strings or value in (None, action.default):
            continue
        for one in value if isinstance(value, list) else [value]:
            yield "-o" if action.dest == "output" else action.option_strings[-1]
            if action.nargs != 0:
                yield shell_word(one)


def convert(options: argparse.Namespace, form: Form) -> Answer:
    from inspector.remap.export_form import export_form

    checkpoint, plan = open_planned(options)
    if form.shape == "safetensors" and (options.map or options.target):
        refuse_step(checkpoint.format, "remap", options.file)
    progress = options.display.progress()
    with ended_by_signals(progress):
        done = export_form(
            options.file,
            Path(options.output),
            plan,
            form,
            progress,
            overwrite=options.force,
            verify=options.verify != "none",
            python=options.python,
        )
        if options.keep_times:
            copy_times(options.file, Path(options.output))
    infinite = overflowed(done)
    if infinite and options.display.is_quiet:
        remark(f"{output_name(options)}: {infinite}")  # not all numbers are what they were
    parts = [*converted(done), *([infinite] if infinite else [])]
    more = [Line(line, indent="  ", hang="    ") for line in left_out(done.left_out, _MOST_LEFT_OUT)]
    is_short = options.strict and any(row.is_lost for row in done.left_out)

    return Answer(
        page=result_page(output_name(options), parts, more),
        document=form_document(file_name(options), output_name(options), done),
        code=NEGATIVE if is_short else DONE,
    )


def describe(options: argparse.Namespace, form: Form | None) -> Answer:
    """Return what another form holds, what the plan changes, what stays, and why; nothing is written."""
    if options.undo:
        raise PlanError("--undo restores the file as it was: there is no plan to describe")
    checkpoint, plan = open_planned(options)
    title = [Line(escape_text(file_name(options)), "file")] if len(options.files) > 1 else []
    made = None
    if form is None:
        remark_on_room(options, checkpoint, plan)
        rows = describe_plan(checkpoint, plan)
    else:
        made = _previewed(options.file, checkpoint, plan, form)
        # What is written as safetensors has no device to be on.
        rows = () if form.shape == "safetensors" else describe_plan(checkpoint, plan, made[1].fates)
        contents = "; ".join(form_contents(made[1], form.format_from(checkpoint.format)))
        title.append(Line(f"Would write about {contents}"))
        title += [Line(line, indent="  ", hang="    ") for line in left_out(made[2], _MOST_LEFT_OUT)]
        title += [Line(""), Line("Of what is written:", "heading")] * bool(rows)
    is_whole = form is None or not form.takes_model
    text = format_plan(rows) + format_hidden(checkpoint, plan) * is_whole
    plans = [Line(line, hang="  ") for line in text.split("\n")[:-1]]
    shown = replace(checkpoint, path=file_name(options))
    return Answer(
        page=page_of([*title, *plans]), document=plan_document(shown, options.output, plan, rows, made)
    )


def _previewed(
    path: str, checkpoint: Checkpoint, plan: Plan, form: Form
) -> tuple[Form, FormPreview, tuple[LeftOut, ...]]:
    from inspector.remap.export_form import list_left_out
    from inspector.remap.preview import preview_form

    found = preview_form(checkpoint, form)
    if found.refusals:
        raise ExportError(found.refusals[0], remedy="leave it out with --exclude, or choose another format")
    # What --exclude leaves out is asked of the objects: rows do not show two names of one object.
    return form, found, list_left_out(path, plan, form) if form.exclude else found.left_out


# --- copies of several files in a folder --------------------------------------------------------------------

_PACKED = (".gz", ".bz2", ".xz", ".lzma", ".lz4", ".zlib")
"""A copy is never compressed as a whole, so it does not keep these."""
_TAR = ".tar"


def name_of(path: str, shape: str | None, *, is_form: bool) -> str:
    """Return the name of a copy: the file's own, but for a suffix that would say another format.

    Args:
        shape: What --format asks for, or None.
        is_form: Whether something else than a plain copy is asked for, which is one file.
    """
    own = _own_name(path)
    if is_folder(path):
        if not is_form:
            return own
        return own + (SAFETENSORS_SUFFIX if shape == "safetensors" else ".pth")
    own = _unpacked(own)
    if shape == "safetensors":
        return own if own.lower().endswith(SAFETENSORS_SUFFIX) else _stem(own) + SAFETENSORS_SUFFIX
    if shape is not None and own.lower().endswith(SAFETENSORS_SUFFIX):
        return _stem(own) + ".pth"
    return own


def is_folder(path: str) -> bool:
    """Return whether a checkpoint is the files of a folder, whose plain copy is another folder."""
    return os.path.isdir(path) or stands_for_folder(*os.path.split(path))  # noqa: PTH112 - as it was given


def _own_name(path: str) -> str:
    """Return the last step of a path; of a file that stands for its folder, the folder's."""
    if stands_for_folder(*os.path.split(path)):
        path = os.path.dirname(path) or os.curdir  # noqa: PTH120 - a text
    name = os.path.basename(os.path.normpath(path))  # noqa: PTH119 - a text
    return os.path.basename(os.path.abspath(path)) if name in {"", os.curdir, os.pardir} else name  # noqa: PTH100, PTH119 - a text


def _unpacked(name: str) -> str:
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a text
    return stem if suffix.lower() in _PACKED and os.path.splitext(stem)[1] else name  # noqa: PTH122 - a text


def _stem(name: str) -> str:
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a text
    if suffix.lower() == _TAR:
        stem, suffix = os.path.splitext(stem)  # noqa: PTH122 - `best.pth.tar`
    return stem if suffix.lower() in TORCH_SUFFIXES | {SAFETENSORS_SUFFIX} else name


def refuse_collisions(pairs: Sequence[tuple[str, str]]) -> None:
    taken: dict[str, str] = {}
    for path, output in pairs:
        key = os.path.normcase(output)
        if key not in taken:
            taken[key] = path
        elif _is_same(path, taken[key]):
            raise PlanError(
                "this file is named twice", where=f"{taken[key]} and {path}", remedy="name it once"
            )
        else:
            raise PlanError(
                f"two files would have one copy, {output}",
                where=f"{taken[key]} and {path}",
                remedy="put one of them into another folder, or name its copy with -o",
            )


def refuse_sources(pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse copies that would take the place of another file that is still to be copied."""
    sources = {place: path for path, _ in pairs if (place := place_of(path)) is not None}
    for path, output in pairs:
        other = sources.get(place_of(output) or (-1, -1))
        if other not in {None, path}:
            raise PlanError(
                f"the copy of {path} would replace a file that is to be copied",
                where=other,
                remedy="choose another folder",
            )


def _is_same(one: str, other: str) -> bool:
    place = place_of(one)
    return one == other or (place is not None and place == place_of(other))


def place_of(path: str, *, follows: bool = True) -> tuple[int, int] | None:
    """Return what tells a file from any other of this machine; None where there is none."""
    try:
        status = os.stat(path, follow_symlinks=follows)  # noqa: PTH116 - a text
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def has_form(options: argparse.Namespace) -> bool:
    """Return whether something else than a plain copy is asked for, whatever the file."""
    asked = (options.only, options.exclude, options.strip_prefix, options.compact, options.format)
    return any((*asked, options.container, options.cast, options.ema))


def copy_name(path: str, options: argparse.Namespace) -> str:
    return name_of(path, options.format, is_form=has_form(options))


def is_folder_copy(path: str, options: argparse.Namespace) -> bool:
    """Return whether the copy of a path is a folder, not a file."""
    return is_folder(path) and not has_form(options)


def write_into(
    files: list[str], options: argparse.Namespace, write: Callable[[argparse.Namespace], int]
) -> Callable[[str], int]:
    """Settle where each copy goes, and return what writes the copy of one file."""
    folder = Path(options.into)
    outputs = {path: os.fspath(folder / copy_name(path, options)) for path in files}
    pairs = [(path, outputs[path]) for path in files]
    refuse_collisions(pairs)
    refuse_sources(pairs)
    if not options.dry_run:
        _prepare(folder, pairs, overwrite=options.force)

    written: set[tuple[int, int]] = set()

    def answer(path: str) -> int:
        output = outputs[path]
        if place_of(output, follows=False) in written:  # where `A.pth` and `a.pth` are one name
            raise ExportError(
                "the copy would replace that of another file", where=output, remedy="name it with -o"
            )
        code = write(argparse.Namespace(**{**vars(options), "file": path, "output": output}))
        place = place_of(output, follows=False)
        written.update(() if place is None else (place,))
        return code

    return answer


def _prepare(folder: Path, pairs: list[tuple[str, str]], *, overwrite: bool) -> None:
    """Refuse what must not be written over, and make the folder."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise ExportError("this is no folder", where=str(folder), remedy="name another with --into")
    if folder.is_dir():
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ExportError("nothing can be written into this folder", where=str(folder))
        for path, output in pairs:
            refuse_destination(path, Path(output), overwrite=overwrite)
        return
    with explained(folder, "the folder cannot be made"):
        folder.mkdir()


def remove_empty(folder: str) -> None:
    """Remove a folder that was made for copies of which none could be written."""
    with suppress(OSError):
        Path(folder).rmdir()
