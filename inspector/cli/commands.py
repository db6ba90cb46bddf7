"""What those commands do that have no module of their own."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.messages import DONE, say
from inspector.cli.remapping import parse_map
from inspector.errors import ContainerError, ExportError, PlanError

if TYPE_CHECKING:
    from inspector.target.machine.profile import Profile

_PNG = b"\x89PNG\r\n\x1a\n"


def snippet(options: argparse.Namespace) -> int:
    """Print Python code that loads a file."""
    from inspector.model.build import open_checkpoint
    from inspector.model.totals import device_totals
    from inspector.remap.rules import Rules
    from inspector.remap.unmatched import refuse_unmatched
    from inspector.snippet.styles.table import render
    from inspector.target.machine.profile import CPU_ONLY, Profile

    rules, target = parse_map(options)
    if any(rule.device is None for rule in rules):
        raise PlanError("code can map devices only, no path", remedy="use remap for path:GLOB@TO")
    target = target or Profile(id="this", label="this machine")
    try:
        checkpoint = open_checkpoint(options.file)
    except ContainerError as error:
        to_cpu = bool(rules) and all(rule.to == "cpu" for rule in rules)
        return _snippet_unopened(options, CPU_ONLY if to_cpu else target, error)
    refuse_unmatched(rules, checkpoint)
    ordered = Rules(rules)
    mapping = tuple(
        (total.device, to)
        for total in device_totals(checkpoint)
        if (to := ordered.by_device(total.device)) is not None
    )
    say(render(checkpoint, style=options.style, target=target, mapping=mapping, path=options.file))
    return DONE


def _snippet_unopened(options: argparse.Namespace, target: Profile, error: ContainerError) -> int:
    """Print the code for a file that is not read, if its format is all that it takes."""
    from inspector.cli.messages import remark, remark_runs
    from inspector.snippet.unopened import code_for_refused

    code = code_for_refused(options.file, error, target, style=options.style)
    if not code:
        raise error
    say(code)
    remark(f"the file itself was not read: {error.what}")
    remark_runs(error)
    return DONE


def screenshot(options: argparse.Namespace) -> int:
    """Render the window on a file to a picture, which appears whole or not at all."""
    from inspector.model.build import open_checkpoint
    from inspector.remap.relabel.export import refuse_destination

    open_checkpoint(options.file)  # what cannot be read is told in words, not in a picture of them
    output = Path(options.output)
    refuse_destination(options.file, output, overwrite=options.force or _is_picture(output))
    part = output.with_name(f".{os.urandom(6).hex()}.part")
    try:
        with _window_libraries():
            from inspector.gui.app import screenshot

            screenshot(
                options.file, os.fspath(part), size=options.size, theme=options.theme, page=options.page
            )
        part.replace(output)
    except TimeoutError as error:
        raise ContainerError(str(error), where=options.file) from error
    except OSError as error:
        reason = error.strerror or "the folder takes no file"
        raise ExportError(f"the picture cannot be written: {reason}", where=options.output) from error
    finally:
        part.unlink(missing_ok=True)
    return DONE


def _is_picture(path: Path) -> bool:
    """Return whether nothing but a picture would be replaced, or an empty file."""
    from inspector.containers.source import Source

    if not path.is_file():
        return not os.path.lexists(path)
    with Source(os.fspath(path)) as source:
        return source.read_upto(0, len(_PNG)) in {_PNG, b""}


def desktop(options: argparse.Namespace) -> int:
    """Register the program for this user, or take that back."""
    from inspector.desktop.registration import install, remove
    from inspector.units import escape_text

    paths = install() if options.action == "install" else remove()
    say("".join(f"{escape_text(os.fspath(path))}\n" for path in paths))
    return DONE


def open_window(options: argparse.Namespace) -> int:
    """Hand the files to the running program, or open a window on them."""
    from inspector.cli.display import require_display
    from inspector.desktop.handover import hand_over

    if not options.demo and hand_over(options.files):
        return DONE
    require_display()
    # PySide6 reads the source of every module that is imported after it: so the controller comes before.
    import inspector.session.controller  # noqa: F401

    with _window_libraries():
        from inspector.gui.app import main as run_window

        return run_window(options.files, demo=options.demo, fresh=options.fresh)


@contextmanager
def _window_libraries() -> Iterator[None]:
    """Say which package is missing when Qt's own libraries are."""
    from inspector.cli.display import LIBRARIES_REMEDY

    try:
        yield
    except ImportError as error:
        what = f"the window's libraries cannot be loaded: {error}"
        raise PlanError(what, remedy=LIBRARIES_REMEDY if sys.platform == "linux" else None) from error
