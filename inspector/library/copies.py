"""`inspector.remap`, `undo`, `verify` and `recover`: what is written, and whether it is as planned."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from inspector.containers.formats import refuse_step
from inspector.errors import ExportError, PlanError
from inspector.library import answers
from inspector.library.sources import (
    CheckpointLike,
    Map,
    Opened,
    Path,
    changed_path_of,
    machine_of,
    opened_of,
    path_of,
    rules_of,
    telling_what_runs,
    texts_of,
)
from inspector.library.telling import Told, told
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap import recover as saving
from inspector.remap.describe import PlanRow, describe_plan, format_hidden, format_plan
from inspector.remap.export import Verify, export_copy, export_folder
from inspector.remap.export_form import export_form, list_left_out
from inspector.remap.files import refuse_destination
from inspector.remap.forms import Cast, ContainerName, Form, LeftOut, Shape, check_form, choose_shape
from inspector.remap.in_place import patch_in_place, undo_patch
from inspector.remap.plan import Plan, plan_for, rules_for
from inspector.remap.preview import preview_form
from inspector.remap.verify import compare_files
from inspector.report.documents import (
    copy_document,
    form_document,
    patch_document,
    plan_document,
    recover_document,
    undo_document,
    verify_document,
)
from inspector.report.words.results import (
    as_lines,
    compared,
    converted,
    copied,
    form_contents,
    lost,
    lost_row,
    patched,
    recovered,
    recovered_safety,
    unchecked_by_torch,
    undone,
)
from inspector.safety.verdict import FileVerdict
from inspector.target.wish import parse_wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Remapped:
    """A copy that was written, or with `dry_run` would be.

    Attributes:
        output: The new file; None where nothing was written.
        format: Its format, in the words of `show --json`.
        nbytes: Its size; nearly that, where nothing was written.
        moves: What becomes of every tensor of the source, in groups: `what` is `moves`, `kept` or `stays`.
            Of another form that would be written, of what it holds; empty where one was written.
        left_out: What another form does not hold, and why.
        verified: Whether it was opened again and compared.
        record: The undo record of a file that was changed in place; None where none was written.
    """

    output: pathlib.Path | None
    format: str
    nbytes: int
    moves: tuple[PlanRow, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    verified: bool = False
    record: pathlib.Path | None = None
    _document: dict[str, Any]
    _text: str

    to_dict = answers.to_dict
    __str__ = answers.text_of
    __repr__ = answers.repr_of
    _repr_pretty_ = answers.show_in_notebook


class _How(NamedTuple):
    force: bool
    verify: Verify
    python: str | None
    progress: Progress


def remap(  # noqa: PLR0913 - the command line's options
    source: CheckpointLike,
    output: Path | None = None,
    *,
    map: Map = (),  # noqa: A002 - the command line's word
    target: str | None = None,
    python: Path | None = None,
    only: Literal["weights"] | None = None,
    exclude: str | Sequence[str] = (),
    strip_prefix: str | None = None,
    format: Shape | None = None,  # noqa: A002 - the same
    container: Literal["zip", "legacy"] | None = None,
    compact: bool = False,
    cast: Cast | None = None,
    ema: bool = False,
    move_all: bool = False,
    hidden_devices: bool = False,
    force: bool = False,
    verify: Verify = "quick",
    dry_run: bool = False,
    in_place: bool = False,
    progress: Told = None,
) -> Remapped:
    """Write a copy with other devices; the source is only read. Without a map and a target: all to the CPU.

    Nothing is executed, and a copy appears once it is complete, compared and on the disk, or not at all.
    With `in_place`, the file itself is changed, and `inspector.undo` takes that back.

    Args:
        source: A path, or an open checkpoint; the file is read as it is now.
        output: The new file; its suffix may ask for safetensors.
        map: Where saved devices go: `"cuda:*=cpu"`, several of them in a list, or `{"cuda:*": "cpu"}`; the
            first match counts. `path:GLOB@TO`, `role:ROLE@TO` and `dtype:DTYPE@TO` are rules, too.
        target: The machine that the copy is for, as `--target` takes it; what exists there stays.
        python: The Python whose torch `this` means, and that loads the copy with `verify="torch"`.
        only: `weights`: the model's weights alone, without training state.
        exclude: Paths that are left out: `"optimizer"`, `"model/head.*"`.
        strip_prefix: What is removed from the front of every name, or the path of the model that is meant.
        format: `same`, `state-dict` or `safetensors`; None for what the name of the output tells.
        container: What `torch.load` reads it as: `zip`, or `legacy` for torch before 1.6.
        compact: Whether bytes that no tensor views are left out.
        cast: `float16` or `bfloat16`: what float32 weights become. It takes a torch.
        ema: Whether the averaged weights are meant where there are others, too.
        move_all: Whether state that torch keeps on the CPU moves as well.
        hidden_devices: Whether devices outside of tensors change as well.
        force: Whether a file that stands there may be replaced.
        verify: `quick` opens the copy again and compares samples of its bytes, `full` all of them, `torch`
            has torch load it, too; `none` trusts.
        dry_run: Whether to say what would be done, and write nothing.
        in_place: Whether to change the devices in the file itself, behind an undo record. `force` then means
            a file that is write-protected or has other names (hard links).
        progress: Called with each `Step` of the work. What it raises ends it, and nothing is left behind.

    Raises:
        PlanError: What is asked for is wrong, or cannot be had of this file.
        ExportError: The copy cannot be written, or is not as planned. Nothing is left behind.
        CheckpointError: The source cannot be read.
    """
    said = rules_of(map)
    wish = None if target is None else parse_wish(target)
    named = None if output is None else os.fsdecode(output)
    if in_place and named is not None:
        raise PlanError("in_place changes the file itself", remedy="leave the output out, or in_place")
    if named is None and not dry_run and not in_place:
        raise PlanError(
            "remap was not told where to write",
            remedy="name a new file, or say dry_run=True or in_place=True",
        )
    asked = None if python is None else os.fsdecode(python)
    path = changed_path_of(source) if in_place else path_of(source)
    with told(progress) as steps, telling_what_runs():
        how = _How(force=force, verify=verify, python=asked, progress=steps)
        shape, kind = choose_shape(path, named, format, in_place=in_place)
        form = Form(
            only_weights=only == "weights",
            shape=shape,
            exclude=texts_of(exclude),
            strip_prefix=strip_prefix,
            compact=compact,
            container=kind if container is None else container,
            cast=cast,
            ema=ema,
        )
        _refuse_wrong(form, only, verify, in_place=in_place)
        opened = Opened(path, steps)
        if named is not None and not dry_run:
            refuse_destination(path, pathlib.Path(named), overwrite=force)
        machine = None if wish is None else lambda: machine_of(wish, python)
        plan = plan_for(opened.facts, said, machine, move_all=move_all, hidden=hidden_devices)
        if form.shape == "safetensors" and (said or wish is not None):
            refuse_step(opened.facts.format, "remap", path)
        if dry_run:
            return _planned(opened, named, plan, form)
        if named is None:
            return _changed(opened, plan, how)
        write = _copied if form.is_plain else _converted
        return write(opened, pathlib.Path(named), plan, form, how)


def _refuse_wrong(form: Form, only: str | None, verify: str, *, in_place: bool) -> None:
    """Refuse words that nobody knows, and forms that cannot be.

    Raises:
        PlanError: There is one.
    """
    for name, word, words in (
        ("only", only, (None, "weights")),
        ("format", form.shape, get_args(Shape)),
        ("container", form.container, get_args(ContainerName)),
        ("cast", form.cast, (None, *get_args(Cast))),
        ("verify", verify, get_args(Verify)),
    ):
        if word not in words:
            known = " or ".join(map(repr, words))
            raise PlanError(f"{name}={word!r} is not understood", remedy=f"use {known}")
    if in_place and (not form.is_plain or verify in {"full", "torch"}):
        raise PlanError("in_place changes the devices of a file and nothing else", remedy="write a copy")
    if form.is_plain:
        return
    check_form(form)
    if form.ema and not form.takes_model:
        remedy = "add only='weights', or a format"
        raise PlanError("ema chooses which of the weights are written, and all are copied", remedy=remedy)
    if verify in {"full", "torch"}:
        raise PlanError(f"verify={verify!r} compares a copy with its source, and another form is no copy")


def _planned(opened: Opened, named: str | None, plan: Plan, form: Form) -> Remapped:
    facts = opened.facts
    if form.is_plain:
        rows = describe_plan(facts, plan)
        return Remapped(
            output=None,
            format=facts.format,
            nbytes=facts.file_nbytes,
            moves=rows,
            _document=plan_document(facts, named, plan, rows),
            _text=(format_plan(rows) + format_hidden(facts, plan)).rstrip("\n"),
        )
    found = preview_form(facts, form)
    if found.refusals:
        raise ExportError(found.refusals[0], remedy="leave it out with exclude, or choose another format")
    made = form.format_from(facts.format)
    rows = () if form.shape == "safetensors" else describe_plan(facts, plan, found.fates)
    left_out = list_left_out(opened.file, plan, form) if form.exclude else found.left_out
    return Remapped(
        output=None,
        format=made,
        nbytes=found.nbytes,
        moves=rows,
        left_out=left_out,
        _document=plan_document(facts, named, plan, rows, (form, found, left_out)),
        _text="\n".join(as_lines(form_contents(found, made))),
    )


def _converted(opened: Opened, out: pathlib.Path, plan: Plan, form: Form, how: _How) -> Remapped:
    done = export_form(
        opened.file,
        out,
        plan,
        form,
        overwrite=how.force,
        verify=how.verify != "none",
        python=how.python,
        progress=how.progress,
    )
    return Remapped(
        output=out,
        format=done.format,
        nbytes=done.nbytes,
        left_out=done.left_out,
        verified=done.verified,
        _document=form_document(opened.facts.path, str(out), done),
        _text="\n".join(as_lines(converted(done))),
    )


def _copied(opened: Opened, out: pathlib.Path, plan: Plan, _form: Form, how: _How) -> Remapped:
    facts = opened.located
    if facts.parts:
        if how.verify == "torch":
            raise PlanError("verify='torch' is for single files", remedy="say 'full': every byte is compared")
        done = export_folder(facts, out, plan, verify=how.verify, progress=how.progress)
    else:
        done = export_copy(
            opened.file,
            out,
            plan,
            overwrite=how.force,
            verify=how.verify,
            python=how.python,
            progress=how.progress,
        )
    unchecked = unchecked_by_torch(done)
    if unchecked:
        remedy = "the copy was written, and compared by this program only"
        raise ExportError(unchecked, where=str(out), remedy=remedy)
    return Remapped(
        output=out,
        format=facts.format,
        nbytes=done.nbytes,
        moves=describe_plan(facts, plan),
        verified=done.verified,
        _document=copy_document(opened.facts.path, str(out), done),
        _text="\n".join(as_lines(copied(done))),
    )


def _changed(opened: Opened, plan: Plan, how: _How) -> Remapped:
    done = patch_in_place(
        opened.file, plan, force=how.force, verify=how.verify != "none", progress=how.progress
    )
    return Remapped(
        output=done.path,
        format=opened.facts.format,
        nbytes=done.nbytes,
        moves=describe_plan(opened.facts, plan),
        verified=done.verified,
        record=done.record,
        _document=patch_document(opened.facts.path, done),
        _text="\n".join(as_lines(patched(done, str(done.record)))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """A file that is again as it was before it was changed in place.

    Attributes:
        output: The file.
        nbytes: Its size.
    """

    output: pathlib.Path
    nbytes: int
    _document: dict[str, Any]
    _text: str

    to_dict = answers.to_dict
    __str__ = answers.text_of
    __repr__ = answers.repr_of
    _repr_pretty_ = answers.show_in_notebook


def undo(source: CheckpointLike, *, force: bool = False, progress: Told = None) -> Undone:
    """Restore a file that `remap(in_place=True)` changed, bit for bit, and remove its undo record.

    Args:
        source: A path, or an open checkpoint.
        force: Whether to restore a file that is write-protected or has other names, and whatever the record
            makes of it.
        progress: Called with each `Step` of the work. What it raises ends it, and the file is as it was.

    Raises:
        ExportError: There is no record of it, or it was changed since. It is as it was.
        CheckpointError: The file cannot be read.
    """
    path = changed_path_of(source)
    with told(progress) as steps, telling_what_runs():
        nbytes = undo_patch(path, force=force, progress=steps)
    return Undone(
        output=pathlib.Path(path),
        nbytes=nbytes,
        _document=undo_document(path, nbytes),
        _text="\n".join(as_lines([undone(nbytes)])),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What comparing a copy with its original found. It is true where nothing is wrong.

    Attributes:
        same: Whether both hold the same tensors, values and bytes, on the devices that were planned.
        differences: What is not as it should be, a sentence each, at most twenty.
        tensors: How many tensors the original has.
        compared_nbytes: How many bytes were compared one by one.
    """

    same: bool
    differences: tuple[str, ...]
    tensors: int
    compared_nbytes: int
    _document: dict[str, Any]
    _text: str

    def __bool__(self) -> bool:
        """Return whether nothing is wrong."""
        return self.same

    to_dict = answers.to_dict
    __str__ = answers.text_of
    __repr__ = answers.repr_of
    _repr_pretty_ = answers.show_in_notebook


def verify(  # noqa: PLR0913 - the command line's options
    output: CheckpointLike,
    against: CheckpointLike,
    *,
    map: Map = (),  # noqa: A002 - the command line's word
    target: str | None = None,
    python: Path | None = None,
    move_all: bool = False,
    hidden_devices: bool = False,
    progress: Told = None,
) -> Verified:
    """Compare a copy with the file that it was made from: tensors, values, devices and bytes.

    Args:
        output: The copy.
        against: The file that it was made from.
        map: The map that it was made by; without one and without a target, any devices are accepted.
        target: The machine that it was made for.
        python: The Python whose torch `this` means.
        move_all: Whether state that torch keeps on the CPU was to move as well.
        hidden_devices: Whether devices outside of tensors were to change as well.
        progress: Called with each `Step` of the work; what it raises ends the work.

    Raises:
        PlanError: A rule or the target is wrong.
        CheckpointError: One of the files cannot be read.
    """
    said = rules_of(map)
    wish = None if target is None else parse_wish(target)
    with told(progress) as steps, telling_what_runs():
        rules = None
        if said or wish is not None:
            machine = None if wish is None else lambda: machine_of(wish, python)
            rules = rules_for(opened_of(path_of(against), steps).facts, said, machine, hidden=hidden_devices)
        found = compare_files(
            path_of(output), path_of(against), rules, move_all=move_all, hidden=hidden_devices, progress=steps
        )
    return Verified(
        same=found.is_same,
        differences=found.differences,
        tensors=found.tensors,
        compared_nbytes=found.compared_nbytes,
        _document=verify_document(path_of(output), path_of(against), found),
        _text="\n".join(as_lines(compared(found, planned=rules is not None))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was saved of a damaged file.

    Attributes:
        output: The new file.
        tensors: How many tensors were saved; one that stands in two places counts twice.
        lost: The paths of those that are not whole, in the order of the file.
        verdict: What loading the new file runs, as `Checkpoint.verdict`.
    """

    output: pathlib.Path
    tensors: int
    lost: tuple[str, ...]
    verdict: FileVerdict
    _document: dict[str, Any]
    _text: str

    to_dict = answers.to_dict
    __str__ = answers.text_of
    __repr__ = answers.repr_of
    _repr_pretty_ = answers.show_in_notebook


def recover(source: CheckpointLike, output: Path, *, force: bool = False, progress: Told = None) -> Recovered:
    """Save what is intact in a damaged file as a new one; the file itself is only read.

    Args:
        source: The damaged file, or an open checkpoint, whose file is read again.
        output: The new file.
        force: Whether a file that stands there may be replaced.
        progress: Called with each `Step` of the work. What it raises ends it, and nothing is left behind.

    Raises:
        PlanError: The new file is named as one of another format.
        ExportError: It cannot be written. Nothing is left behind.
        CheckpointError: Nothing in the file can be saved.
    """
    path = path_of(source)
    with told(progress) as steps, telling_what_runs():
        done = saving.recover(path, pathlib.Path(os.fsdecode(output)), overwrite=force, progress=steps)
    safety = recovered_safety(done)
    words = [*recovered(done), *([f"the new file: {safety}"] if safety else []), lost(done)]
    return Recovered(
        output=done.destination,
        tensors=done.tensors,
        lost=tuple(row.path for row in done.lost),
        verdict=done.verdict,
        _document=recover_document(path, str(done.destination), done),
        _text="\n".join([*as_lines(words), *(f"  {lost_row(row)}" for row in done.lost)]),
    )
