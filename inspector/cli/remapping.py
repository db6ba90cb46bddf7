"""The command `remap`: a copy with other devices, the file itself changed, or that change taken back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.forms import form_lines, preview_lines, read_form
from inspector.cli.messages import DONE, say
from inspector.errors import ExportError, PlanError

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.progress import Progress
    from inspector.remap.compare.torch_check import TorchCheck
    from inspector.remap.convert.forms import Form, LeftOut
    from inspector.remap.plan import Plan
    from inspector.remap.relabel.export import Export
    from inspector.remap.rules import Rule
    from inspector.target.machine.profile import Profile


def remap(options: argparse.Namespace) -> int:
    """Do what of the three was asked for."""
    form = read_form(options)
    if options.dry_run:
        return _describe(options, form)
    if not (options.output or options.in_place or options.undo):
        raise PlanError("remap was not told where to write", remedy="add -o OUT, --in-place or --dry-run")
    if form is not None:
        return _copy_in_form(options, form)
    if options.undo:
        return _undo(options)
    return _change(options) if options.in_place else _copy(options)


def _describe(options: argparse.Namespace, form: Form | None) -> int:
    """Say what a form holds, what a plan changes, what stays, and why."""
    from inspector.model.build import open_checkpoint
    from inspector.remap.describe import describe_plan, format_plan

    if options.undo:
        raise PlanError("--undo restores the file as it was: there is no plan to describe")
    said, target = parse_map(options)
    checkpoint = open_checkpoint(options.file)
    plan = _plan(checkpoint, options, said, target)
    if form is not None:
        say(preview_lines(checkpoint, form, _left_out(options.file, plan, form)))
    say(format_plan(describe_plan(checkpoint, plan)))
    return DONE


def _left_out(path: str, plan: Plan, form: Form) -> tuple[LeftOut, ...] | None:
    """Return what is left out by path, for which the objects themselves are asked: rows do not tell twins."""
    if not form.exclude:
        return None
    from inspector.remap.convert.export import list_left_out

    return list_left_out(path, plan, form)


def _copy(options: argparse.Namespace) -> int:
    """Write a copy of a file with other devices."""
    from inspector.model.build import open_checkpoint
    from inspector.progress import Progress
    from inspector.remap.relabel.export import copy_times, export_copy, refuse_destination

    said, target = parse_map(options)
    checkpoint = open_checkpoint(options.file)
    destination = Path(options.output)
    refuse_destination(options.file, destination, overwrite=options.force)
    if options.receipt is not None:
        from inspector.remap.compare.receipt import refuse_receipt

        refuse_receipt(Path(options.receipt), destination)
        refuse_destination(options.file, Path(options.receipt), overwrite=options.force)
    plan = _plan(checkpoint, options, said, target)
    progress = Progress()
    with ended_by_signals(progress):
        done = export_copy(
            options.file,
            destination,
            plan,
            overwrite=options.force,
            verify="none" if options.no_verify else options.verify,
            progress=progress,
        )
        if options.keep_times:
            copy_times(options.file, destination)
        if options.receipt is not None:
            _write_receipt(options, checkpoint, plan, done, progress)
    say(_done_line(options.output, done))
    if done.torch is not None and done.torch.verdict == "unchecked":
        raise ExportError(
            f"torch did not load the copy: {done.torch.detail}",
            where=options.output,
            remedy="the copy stands there; this program alone has compared it",
        )
    return DONE


def _copy_in_form(options: argparse.Namespace, form: Form) -> int:
    """Write the checkpoint in another form."""
    from inspector.model.build import open_checkpoint
    from inspector.progress import Progress
    from inspector.remap.convert.export import export_form
    from inspector.remap.relabel.export import copy_times, refuse_destination

    said, target = parse_map(options)
    checkpoint = open_checkpoint(options.file)
    destination = Path(options.output)
    refuse_destination(options.file, destination, overwrite=options.force)
    plan = _plan(checkpoint, options, said, target)
    progress = Progress()
    with ended_by_signals(progress):
        done = export_form(
            options.file,
            destination,
            plan,
            form,
            progress,
            overwrite=options.force,
            verify=not options.no_verify,
        )
        if options.keep_times:
            copy_times(options.file, destination)
    say(form_lines(options.output, done))
    return DONE


def _write_receipt(
    options: argparse.Namespace, checkpoint: Checkpoint, plan: Plan, done: Export, progress: Progress
) -> None:
    from inspector import __version__
    from inspector.remap.compare.receipt import make_receipt, write_receipt

    receipt = make_receipt(checkpoint, plan, done, __version__, progress)
    write_receipt(receipt, Path(options.receipt), overwrite=options.force)


def _change(options: argparse.Namespace) -> int:
    """Change the file itself."""
    from inspector.model.build import open_checkpoint
    from inspector.progress import Progress
    from inspector.remap.relabel.in_place import patch_in_place
    from inspector.units import escape_text, format_count, format_nbytes

    if options.receipt is not None or options.keep_times:
        raise PlanError("--receipt and --keep-times go with a copy", remedy="use -o OUT")
    said, target = parse_map(options)
    plan = _plan(open_checkpoint(options.file), options, said, target)
    progress = Progress()
    with ended_by_signals(progress):
        done = patch_in_place(
            options.file, plan, force=options.force, verify=not options.no_verify, progress=progress
        )
    name = escape_text(options.file)
    if done.record is None:
        say(f"{name}: nothing to change\n")
        return DONE
    parts = [
        f"{format_count(done.moved_tensors, 'tensor')} relabelled in the file itself",
        f"{format_nbytes(done.written_nbytes)} written",
        *(["opened again and compared"] if done.verified else []),
        f"--undo takes it back as long as {escape_text(str(done.record))} is there",
    ]
    say(f"{name}: {', '.join(parts)}\n")
    return DONE


def _undo(options: argparse.Namespace) -> int:
    """Take a change of the file itself back."""
    from inspector.remap.relabel.in_place import undo_patch
    from inspector.units import escape_text, format_nbytes

    if options.map or options.target:
        raise PlanError("--undo restores the file as it was, whatever the map", remedy="leave the map out")
    nbytes = undo_patch(options.file, force=options.force)
    say(f"{escape_text(options.file)}: as it was before, {format_nbytes(nbytes)}\n")
    if options.force:
        _remark_on_safety(options.file)
    return DONE


def _remark_on_safety(path: str) -> None:
    """Write to stderr what loading a file would run whose record was believed by force."""
    from inspector.cli.messages import remark
    from inspector.errors import CheckpointError
    from inspector.model.build import open_checkpoint
    from inspector.report.words.verdicts import SAFETY
    from inspector.safety.verdict import judge

    try:
        verdict = judge(open_checkpoint(path)).verdict
    except CheckpointError as error:
        remark(f"{path}: it cannot be read: {error.what}")
    else:
        if verdict != "weights-only":
            remark(f"{path}: {SAFETY[verdict]}")


def parse_map(options: argparse.Namespace) -> tuple[tuple[Rule, ...], Profile | None]:
    """Read --map and --target before any file, so that wrong usage is told at once; None is this machine."""
    from inspector.remap.rules import parse_rule
    from inspector.target.machine.profile import parse_target

    rules = tuple(parse_rule(text) for text in options.map)
    return rules, None if options.target in {None, "this"} else parse_target(options.target)


def _plan(
    checkpoint: Checkpoint, options: argparse.Namespace, said: tuple[Rule, ...], target: Profile | None
) -> Plan:
    from inspector.remap.plan import plan_remap

    return plan_remap(checkpoint, rules_of(checkpoint, options, said, target), move_all=options.move_all)


def rules_of(
    checkpoint: Checkpoint, options: argparse.Namespace, said: tuple[Rule, ...], target: Profile | None
) -> tuple[Rule, ...]:
    """Return the rules of --map, then what --target still needs; without either all goes to the CPU.

    Raises:
        PlanError: One of --map matches nothing in the file.
    """
    from inspector.progress import Progress
    from inspector.remap.plan import rules_for_target
    from inspector.remap.rules import parse_rule
    from inspector.remap.unmatched import refuse_unmatched
    from inspector.target.machine.this_machine import probe_this_machine

    refuse_unmatched(said, checkpoint)
    if options.target is None:
        return said or (parse_rule("*=cpu"),)
    return said + rules_for_target(checkpoint, target or probe_this_machine(Progress()))


def _done_line(output: str, done: Export) -> str:
    from inspector.units import escape_text, format_count, format_nbytes

    parts = [format_nbytes(done.nbytes), f"{format_count(done.moved_tensors, 'tensor')} relabelled"]
    if done.kept_tensors:
        parts.append(f"{format_count(done.kept_tensors, 'tensor')} kept on the CPU by design")
    if done.verified:
        parts.append("opened again and compared")
    if done.compared_nbytes == done.copied_nbytes and done.verified:
        parts[-1] += " byte by byte"
    if done.torch is not None:
        parts.append(_torch_words(done.torch))
    return f"{escape_text(output)}: {', '.join(parts)}\n"


def _torch_words(found: TorchCheck) -> str:
    if found.verdict != "equal":
        return "not checked by torch"
    words = f"loaded by torch {found.torch} with equal tensors"
    return f"{words} (on the CPU: this machine has no {', '.join(found.missing)})" if found.missing else words


@contextmanager
def ended_by_signals(progress: Progress) -> Iterator[None]:
    """Let Ctrl+C and SIGTERM end the work at its next step, so that nothing half-written is left.

    The second Ctrl+C ends it at once.
    """
    import signal

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, _frame: object) -> None:
        progress.cancel()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
