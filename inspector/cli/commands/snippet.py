"""The command `snippet`: Python code that loads a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.common import DONE, remark, remark_runs, say_json
from inspector.cli.mapping import add_map_options, parse_map
from inspector.cli.several import MANY
from inspector.errors import ContainerError, PlanError
from inspector.units import cut_text, escape_text, meant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.target.profile import Profile

SUMMARY = "Print Python code that loads the file."
EXAMPLES = (
    "snippet best.pth",
    "snippet best.pth --target cuda --style resume",
    "snippet best.pth -o load.py",
)
NOTES = MANY
_STYLES = (
    "plain, resume, module, lightning, transformers, peft, data, distributed, fsdp, accelerate, "
    "deepspeed, ...; the one that fits the file best if none is named"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="the checkpoint, or several")
    parser.add_argument("-o", "--output", metavar="OUT.py", help="write the code to a file; - prints it")
    parser.add_argument("--force", action="store_true", help="replace OUT.py if it exists")
    parser.add_argument("--json", action="store_true", help="one JSON document for each FILE, one a line")
    add_map_options(parser.add_argument_group("where it is to be loaded"))
    style = parser.add_argument_group("what is written").add_mutually_exclusive_group()
    style.add_argument("--style", metavar="NAME", help=_STYLES)
    saves = "print code that saves the next checkpoint, so that it loads anywhere"
    style.add_argument("--save", dest="style", action="store_const", const="save", help=saves)


def run(options: argparse.Namespace) -> int:
    from inspector.cli.several import answer_each, expand
    from inspector.cli.streams import is_stream, refuse_stdin
    from inspector.remap.plan import refuse_other_than_devices

    refuse_stdin("the code loads the file by its name", *options.files)
    files = expand(options.files)
    if options.output is None or is_stream(options.output):
        options.output = None
    elif len(files) > 1:
        raise PlanError("-o is for the code of one file", remedy="run snippet for each of them")
    _refuse_style(options.style)
    refuse_other_than_devices(parse_map(options)[0])
    return answer_each(files, lambda path: _snippet(path, options), options, "snippet", to_stderr=True)


def _refuse_style(style: str | None) -> None:
    from inspector.snippet.styles.table import STYLES

    known = [row.id for row in STYLES]
    if style is not None and style not in known:
        remedy = f"{meant(style, known)}styles are {', '.join(known)}"
        raise PlanError(f"there is no style {cut_text(style, 100)!r}", remedy=remedy)


def _snippet(path: str, options: argparse.Namespace) -> int:
    from inspector.model.build import open_checkpoint
    from inspector.remap.plan import device_map
    from inspector.snippet.styles.table import offered_styles, render
    from inspector.target.profile import CPU_ONLY, Profile

    rules, wish = parse_map(options)
    target = wish.profile(lambda: Profile(id="this", label="this machine"))
    try:
        checkpoint = open_checkpoint(path, progress=options.display.progress())
    except ContainerError as error:
        to_cpu = bool(rules) and all(rule.to == "cpu" for rule in rules)
        return _unopened(path, options, CPU_ONLY if to_cpu else target, error)
    mapping = device_map(checkpoint, rules)
    code = render(
        checkpoint,
        style=options.style,
        target=target,
        mapping=mapping,
        path=path,
        is_exact=bool(mapping),
    )
    offered = [style.id for style in offered_styles(checkpoint, options.style)]
    used = options.style or next(iter(offered), None)
    _give(options, path, code, style=used, styles=offered)
    return DONE


def _unopened(path: str, options: argparse.Namespace, target: Profile, error: ContainerError) -> int:
    """Print the code for a file that is not read, if its format is all that it takes."""
    from inspector.snippet.unopened import code_for_refused

    code = code_for_refused(path, error, target, style=options.style or "plain")
    if not code:
        raise error
    used = options.style or "plain"
    _give(options, path, code, style=used, styles=[used], unread=error.what)
    remark(f"the file itself was not read: {error.what}")
    remark_runs(error)
    return DONE


def _give(
    options: argparse.Namespace,
    path: str,
    code: str,
    *,
    style: str | None,
    styles: Sequence[str],
    unread: str | None = None,
) -> None:
    if options.output is not None:
        _write(code, path, options)
    if options.json:
        from inspector.report.documents import snippet_document

        say_json(snippet_document(path, code, style=style, styles=styles, unread=unread))
    elif options.output is None:
        from inspector.report.page import code_page

        name = f"# {escape_text(path)}"
        options.display.show(code_page(f"{name}\n{code}\n" if len(options.files) > 1 else code))


def _write(code: str, path: str, options: argparse.Namespace) -> None:
    """Write code to a file, whole or not at all."""
    from inspector.containers.copying import write_bytes
    from inspector.remap.files import refuse_destination, writing
    from inspector.remap.forms import SAFETENSORS_SUFFIX, TORCH_SUFFIXES

    output = Path(options.output)
    if output.suffix.lower() in TORCH_SUFFIXES | {SAFETENSORS_SUFFIX}:
        raise PlanError(
            "the file name is one for a checkpoint, but the file would hold Python code",
            where=options.output,
            remedy="choose another suffix, such as .py",
        )
    refuse_destination(path, output, overwrite=options.force)
    with writing(output, like=None, overwrite=options.force, what="the code cannot be written") as out:
        write_bytes(out.fd, code.encode("utf-8", "backslashreplace"))
