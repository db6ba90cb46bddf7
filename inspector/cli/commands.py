"""What each command does."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.messages import DONE, PROGRAM, UNREADABLE, complain
from inspector.errors import CheckpointError, PlanError

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.progress import Progress
    from inspector.remap.rules import Rule
    from inspector.target.profile import Profile


def show(options: argparse.Namespace) -> int:
    """Print what files hold, as text or JSON; files that cannot be read do not stop the others."""
    code = DONE
    for number, path in enumerate(options.files):
        try:
            sys.stdout.write(_show_json(path, options) if options.json else _show_text(path, options, number))
        except CheckpointError as error:
            code = UNREADABLE
            if options.json:
                sys.stdout.write(_error_json(path, error))
            else:
                complain(str(error) if error.where == path else f"{error} [{path}]")
    sys.stdout.flush()
    return code


def _show_json(path: str, options: argparse.Namespace) -> str:
    import json

    from inspector.diagnose.rules import diagnose
    from inspector.model.build import open_checkpoint
    from inspector.report.jsonable import show_document
    from inspector.report.query import parse_query
    from inspector.safety.verdict import judge

    started = time.perf_counter()
    checkpoint = open_checkpoint(path)
    seconds = time.perf_counter() - started
    safety = judge(checkpoint)
    findings = diagnose(checkpoint, safety)
    query = parse_query(options.filter)
    if query.terms:
        checkpoint = query.narrow(checkpoint)
    return json.dumps(show_document(checkpoint, safety, findings, open_seconds=seconds)) + "\n"


def _error_json(path: str, error: CheckpointError) -> str:
    import json

    from inspector.report.jsonable import error_document

    return json.dumps(error_document(path, error)) + "\n"


def _show_text(path: str, options: argparse.Namespace, number: int) -> str:
    from inspector.diagnose.rules import diagnose
    from inspector.model.build import open_checkpoint
    from inspector.report.query import matching_nodes, parse_query
    from inspector.report.text import format_report
    from inspector.report.tree import build_tree
    from inspector.safety.verdict import judge

    checkpoint = open_checkpoint(path)
    safety = judge(checkpoint)
    tree = build_tree(checkpoint, {})
    only = matching_nodes(parse_query(options.filter), checkpoint, tree)
    findings = diagnose(checkpoint, safety)
    report = format_report(checkpoint, safety, findings, tree, depth=options.depth, only=only)
    return report if number == 0 else f"\n{report}"


def remap(options: argparse.Namespace) -> int:
    """Write a copy of a file with other devices."""
    from inspector.model.build import open_checkpoint
    from inspector.progress import Progress
    from inspector.remap.export import export_copy, refuse_destination
    from inspector.remap.plan import plan_remap
    from inspector.units import format_count, format_nbytes

    destination = Path(options.output)
    checkpoint = open_checkpoint(options.file)
    refuse_destination(options.file, destination, overwrite=options.force)
    plan = plan_remap(checkpoint, _rules(checkpoint, options), move_all=options.move_all)
    progress = Progress()
    with _ended_by_signals(progress):
        done = export_copy(
            options.file,
            destination,
            plan,
            overwrite=options.force,
            verify=not options.no_verify,
            progress=progress,
        )
    kept = (
        f", {format_count(done.kept_tensors, 'tensor')} kept on the CPU by design"
        if done.kept_tensors
        else ""
    )
    checked = ", opened again and compared" if done.verified else ""
    moved = format_count(done.moved_tensors, "tensor")
    sys.stdout.write(f"{options.output}: {format_nbytes(done.nbytes)}, {moved} relabelled{kept}{checked}\n")
    return DONE


def _rules(checkpoint: Checkpoint, options: argparse.Namespace) -> tuple[Rule, ...]:
    """Give the rules of --map, then what --target still needs; by default all goes to the CPU."""
    from inspector.remap.plan import rules_for_target
    from inspector.remap.rules import parse_rule

    rules = tuple(parse_rule(text) for text in options.map)
    if options.target is not None:
        return rules + rules_for_target(checkpoint, _target(options.target))
    return rules or (parse_rule("*=cpu"),)


def _target(text: str) -> Profile:
    from inspector.target.profile import parse_target
    from inspector.target.this_machine import probe_this_machine

    if text != "this":
        return parse_target(text)
    from inspector.progress import Progress

    return probe_this_machine(Progress())


@contextmanager
def _ended_by_signals(progress: Progress) -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl+C does, so that nothing half-written is left."""
    import signal

    def stop(_number: int, _frame: object) -> None:
        progress.cancel()

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def snippet(options: argparse.Namespace) -> int:
    """Print Python code that loads a file."""
    from inspector.model.build import open_checkpoint
    from inspector.model.totals import device_totals
    from inspector.remap.rules import parse_rule
    from inspector.snippet.styles import render
    from inspector.target.profile import Profile, parse_target

    checkpoint = open_checkpoint(options.file)
    rules = [parse_rule(text) for text in options.map]
    mapping = tuple(
        (total.device, rule.to)
        for total in device_totals(checkpoint)
        if (rule := next((rule for rule in rules if rule.matches(total.device, ())), None)) is not None
    )
    this = Profile(id="this", label="this machine")
    target = this if options.target in {None, "this"} else parse_target(options.target)
    code = render(checkpoint, style=options.style, target=target, mapping=mapping, path=options.file)
    sys.stdout.write(code if code.endswith("\n") else f"{code}\n")
    return DONE


def screenshot(options: argparse.Namespace) -> int:
    """Render the window on a file to a picture."""
    with _window_libraries():
        from inspector.gui.app import screenshot

        screenshot(options.file, options.output, size=options.size, theme=options.theme, page=options.page)
    return DONE


def desktop(options: argparse.Namespace) -> int:
    """Register the program for this user, or take that back."""
    from inspector.desktop.registration import install, remove

    paths = install() if options.action == "install" else remove()
    for path in paths:
        sys.stdout.write(f"{path}\n")
    return DONE


def open_window(options: argparse.Namespace) -> int:
    """Hand the files to the running program, or open a window on them."""
    from inspector.desktop.handover import hand_over

    if not options.demo and hand_over(options.files):
        return DONE
    if sys.platform == "linux" and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    ):
        raise PlanError("there is no screen to open a window on", remedy=f"use {PROGRAM} show FILE")
    with _window_libraries():
        from inspector.gui.app import main as run_window

        return run_window(options.files, demo=options.demo, fresh=options.fresh)


@contextmanager
def _window_libraries() -> Iterator[None]:
    """Say which package is missing when Qt's own libraries are."""
    try:
        yield
    except ImportError as error:
        remedy = (
            "on Debian: apt install libegl1 libgl1 libdbus-1-3 libfontconfig1 libxkbcommon0 libxcb-cursor0"
        )
        raise PlanError(f"the window's libraries cannot be loaded: {error}", remedy=remedy) from error
