"""The command `remap`: a copy with other devices, the file itself changed, or that change taken back."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING

from inspector.cli.common import hint
from inspector.cli.mapping import add_map_options, add_plan_options, parse_map
from inspector.cli.several import MANY, answer_each, expand
from inspector.errors import PlanError

if TYPE_CHECKING:
    from inspector.cli.remapping import Answer
    from inspector.cli.streams import Given

SUMMARY = "Write a copy with other devices; weights stay the same."
EXAMPLES = (
    "remap best.pth -o cpu.pth --map 'cuda:*=cpu'",
    "remap runs/*.pth --into cpu/",
    "remap best.pth --in-place --map 'cuda:1=cuda:0'",
    "remap best.pth --undo",
    "remap - -o - < best.pth | ssh HOST 'cat > best.pth'",
)
INTO = (
    f"{MANY} --into keeps the names of the files, and refuses to write anything if two copies would have one "
    "name or a copy exists; each copy appears whole or not at all."
)
"""The note of the commands that write copies."""
NOTES = f"Without --map and --target, everything goes to the CPU, as with --map '*=cpu'. {INTO}"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_places(parser, in_place=True)
    group = parser.add_argument_group("which devices change")
    add_map_options(group)
    add_plan_options(group)
    group = parser.add_argument_group("how it is checked and said")
    check = group.add_mutually_exclusive_group()
    check.add_argument(
        "--verify",
        choices=("quick", "full", "torch", "none"),
        default="quick",
        help="quick compares samples (the default), full every byte, torch also has torch load the copy",
    )
    group.add_argument("--receipt", metavar="FILE", help="write a JSON record of what was done and checked")
    group.add_argument("--json", action="store_true", help="one JSON document for each FILE, one a line")
    parser.set_defaults(is_export=False)

    before = len(parser._actions)  # noqa: SLF001 - there is no other table of them
    check.add_argument("--no-verify", action="store_const", const="none", dest="verify")
    parser.add_argument("--only", choices=("weights",))
    add_form_options(parser)
    for old in parser._actions[before:]:  # noqa: SLF001 - the same
        old.help = argparse.SUPPRESS


def add_places(parser: argparse.ArgumentParser, *, in_place: bool = False) -> None:
    """Declare the files, and where copies of them go, or `in_place` that they can be changed themselves."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="the checkpoint, or several; - is standard input"
    )
    group = parser.add_argument_group("where the result goes")
    where = group.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", metavar="OUT", help="the new file; - writes it to standard output")
    where.add_argument("--into", metavar="FOLDER", help="the folder for the copies, made if it is missing")
    if in_place:
        where.add_argument("--in-place", action="store_true", help="change FILE itself; keeps an undo record")
        where.add_argument("--undo", action="store_true", help="undo --in-place, bit for bit")
    group.add_argument("--dry-run", action="store_true", help="print what would be done; write nothing")
    group.add_argument(
        "--force",
        action="store_true",
        help="replace OUT; change a protected FILE" if in_place else "replace OUT if it exists",
    )
    group.add_argument("--keep-times", action="store_true", help="copy the timestamps of FILE to OUT")


def add_form_options(parser: argparse._ActionsContainer) -> None:
    """Declare what `export` makes of a file."""
    parser.add_argument(
        "--format",
        choices=("same", "state-dict", "safetensors"),
        help="same: the whole file; state-dict: the weights with their names as they are; safetensors: the "
        "weights in that format; default: the weights, in the format that OUT ends with",
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave out this path, as show prints it: 'optimizer', 'model/head.*'; repeatable",
    )
    parser.add_argument(
        "--strip-prefix",
        metavar="P",
        help="remove P from the front of every name, '' for nothing, instead of what wrappers put there "
        "(module., _orig_mod.); of several models, the path of the one to take",
    )
    parser.add_argument("--ema", action="store_true", help="of the weights, those that were averaged")
    parser.add_argument(
        "--cast", choices=("float16", "bfloat16"), help="store float32 weights with fewer digits; needs torch"
    )
    parser.add_argument(
        "--container",
        choices=("zip", "legacy"),
        help="zip: for torch 1.6 and later; legacy: for older ones as well; default: as FILE is",
    )
    parser.add_argument("--compact", action="store_true", help="leave out bytes that no tensor views")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 when the form cannot hold all tensors of the model"
    )


def run(options: argparse.Namespace) -> int:
    """Write what is asked for, also for `export`."""
    from inspector.cli.streams import is_stream, refuse_twice

    refuse_twice(*options.files)
    parse_map(options)  # a wrong rule is told before any file is read
    files = expand(options.files)
    _refuse(files, options)
    options.told = []
    if options.into is not None:
        return _into(files, options)
    if is_stream(options.output) and not options.dry_run:
        return _to_stdout(files[0], options)
    return answer_each(files, partial(_remap_path, options), options, _words(options), apart=options.dry_run)


def _refuse(files: list[str], options: argparse.Namespace) -> None:
    changes = options.in_place or options.undo
    if not (options.output or options.into or options.dry_run or changes):
        command, places = "remap", "--into and a folder, --in-place or --dry-run"
        if options.is_export:
            command, places = "export", "--into and a folder, or --dry-run"
        remedy = f"add -o and the name of a new file, {places}"
        raise PlanError(f"{command} was not told where to write", remedy=remedy)
    if len(files) > 1 and options.output:
        raise PlanError(f"-o is for one file, and {len(files)} are given", remedy="use --into and a folder")
    if options.receipt is not None and (len(files) > 1 or options.into or options.output == "-"):
        raise PlanError("a receipt is for one copy that has a name", remedy="use -o for each file")
    if options.keep_times and options.output == "-":
        raise PlanError("standard output has no times to keep", remedy="leave --keep-times out")
    _refuse_stdin(files, options)


def _refuse_stdin(files: list[str], options: argparse.Namespace) -> None:
    from inspector.cli.streams import refuse_stdin

    for is_asked, what in (
        (options.in_place, "--in-place changes the file itself"),
        (options.undo, "--undo finds its record by the file's name"),
        (options.into is not None, "--into gives a copy the name of its file"),
        (options.receipt is not None, "a receipt names the file that was copied"),
        (options.keep_times, "--keep-times takes the times of a file"),
    ):
        if is_asked:
            refuse_stdin(what, *files)


def _words(options: argparse.Namespace) -> str:
    return "dry-run" if options.dry_run else "undo" if options.undo else "remap"


def _remap_path(options: argparse.Namespace, path: str) -> int:
    from inspector.cli.streams import named

    with named(path, options) as file:
        return _remap(argparse.Namespace(**{**vars(options), "file": file.path, "file_name": file.name}))


def _remap(options: argparse.Namespace) -> int:
    from inspector.cli.remapping import give

    return give(_answer(options), options)


def _answer(options: argparse.Namespace) -> Answer:
    from inspector.cli.remapping import change, convert, copy, describe, new_spelling, read_form, undo

    form = read_form(options)
    if form is not None and not (options.is_export or options.told):
        options.told.append("export")  # once for all files of the line
        hint(options, f"another form of a file is written by export now: {new_spelling(options, form)}")
    if options.dry_run:
        return describe(options, form)
    if form is not None:
        return convert(options, form)
    if options.undo:
        return undo(options)
    return change(options) if options.in_place else copy(options)


def _into(files: list[str], options: argparse.Namespace) -> int:
    from inspector.cli.remapping import remove_empty, write_into

    was_there = os.path.lexists(options.into)
    answer = write_into(files, options, _remap)
    try:
        return answer_each(files, answer, options, _words(options), apart=options.dry_run)
    finally:
        if not was_there:
            remove_empty(options.into)


def _to_stdout(path: str, options: argparse.Namespace) -> int:
    from inspector.cli.remapping import copy_name, give, is_folder_copy
    from inspector.cli.streams import STREAM, named, refuse_stdout, streamed

    refuse_stdout(options)
    if is_folder_copy(path, options):
        remedy = "name a new folder with -o, or write one file, with export"
        raise PlanError("a folder cannot go to standard output", where=path, remedy=remedy)
    with named(path, options) as file, streamed(copy_name(_with_suffix(file), options)) as output:
        changes = {"file": file.path, "output": os.fspath(output), "output_name": STREAM}
        asked = argparse.Namespace(**{**vars(options), "file_name": file.name, **changes})
        answer = _answer(asked)
    return give(answer, asked)  # not before all of it is there


def _with_suffix(file: Given) -> str:
    """Return a name whose suffix says what a file is: of standard input only its contents do."""
    if file.name == file.path:
        return file.path
    from inspector.containers.formats import find_format
    from inspector.containers.opening import open_path

    with open_path(file.path) as source:
        return f"stdin{find_format(source).suffix}"
