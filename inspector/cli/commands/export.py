"""The command `export`: what a file holds as another file, such as its weights as safetensors."""

from __future__ import annotations

import argparse

from inspector.cli.commands.remap import INTO, add_form_options, add_places, run
from inspector.cli.mapping import add_map_options, add_plan_options

__all__ = ["EXAMPLES", "NOTES", "SUMMARY", "add_options", "run"]

SUMMARY = "Write the weights alone, or the whole file in another form."
EXAMPLES = (
    "export best.pth -o weights.safetensors",
    "export best.pth -o weights.pth --ema",
    "export best.pth -o slim.pth --format same --exclude optimizer",
    "export runs/*.pth --into weights/ --format safetensors",
)
NOTES = (
    "Everything goes to the CPU, unless --map or --target say otherwise. Without --format, the suffix of "
    "the new file decides: .safetensors is that format, .pt, .pth, .ckpt and .bin are for torch.load, and a "
    f"suffix that says another format than --format is refused. {INTO}"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_places(parser)
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "--only", metavar="MODEL", help="of several models, the path of the one to take, such as unet"
    )
    add_form_options(group)
    group = parser.add_argument_group("which devices it is for")
    add_map_options(group)
    add_plan_options(group)
    group = parser.add_argument_group("how it is checked and said")
    group.add_argument(
        "--verify",
        choices=("quick", "none"),
        default="quick",
        help="quick reads the new file again and compares names, types and shapes (the default)",
    )
    group.add_argument("--json", action="store_true", help="one JSON document for each FILE, one a line")
    parser.set_defaults(is_export=True, in_place=False, undo=False, receipt=None)
