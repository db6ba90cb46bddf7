"""When each command ends with which exit code, with a command line that does; a test runs each."""

from __future__ import annotations

from typing import NamedTuple


class Exit(NamedTuple):
    """One row: the code, when, and a line that shows it in the folder of samples; without a package."""

    code: int
    when: str
    line: str
    without: str = ""


EXITS = {
    "show": (
        Exit(0, "all files were read", "best.pth"),
        Exit(2, "a word of the filter can find nothing in any file", "best.pth --filter 'size>nothing'"),
        Exit(3, "one of them cannot be read; the others are shown all the same", "best.pth pointer.pth"),
    ),
    "check": (
        Exit(0, "it loads there and is safe", "best.pth --target 2xcuda"),
        Exit(1, "it does not load there", "best.pth --target cpu"),
        Exit(1, "it is not safe", "unknown.pth --target cpu"),
        Exit(1, "the script fails with it", "best.pth --target cpu --script train.py"),
        Exit(2, "there is no such target", "best.pth --target nothing"),
        Exit(3, "it cannot be read", "download.pth --target cpu"),
    ),
    "remap": (
        Exit(0, "the copy was written, and is as planned", "best.pth -o exits.pth"),
        Exit(
            1,
            "with `--strict`: the form cannot hold a tensor of the model",
            "quantized.pt -o exits.safetensors --strict",
        ),
        Exit(
            2,
            "a rule matches nothing, or options contradict each other",
            "best.pth -o x.pth --map cuda:7=cpu",
        ),
        Exit(3, "FILE cannot be read", "download.pth -o x.pth"),
        Exit(4, "OUT exists and `--force` is not given, or cannot be written", "best.pth -o epoch-1.pth"),
        Exit(4, "the undo record is missing, or one is there already", "best.pth --undo"),
        Exit(
            4,
            "what needs torch was asked for, and the Python that counts has none",
            "best.pth -o exits-torch.pth --verify torch --python bare/bin/python3",
        ),
    ),
    "verify": (
        Exit(0, "it is the same", "exits.pth --against best.pth"),
        Exit(1, "it differs", "epoch-2.pth --against epoch-1.pth"),
        Exit(2, "a rule matches nothing", "epoch-1.pth --against best.pth --map cuda:7=cpu"),
        Exit(3, "one of them cannot be read", "best.pth --against pointer.pth"),
    ),
    "diff": (
        Exit(0, "they are equal", "best.pth epoch-1.pth"),
        Exit(1, "they differ", "epoch-1.pth epoch-2.pth"),
        Exit(2, "the filter finds nothing to compare", "epoch-1.pth epoch-2.pth --filter nowhere"),
        Exit(3, "one of them cannot be read", "best.pth pointer.pth"),
        Exit(
            4,
            "numbers are to be compared, and the Python of this program has no NumPy",
            "epoch-1.pth epoch-2.pth --values",
            without="numpy",
        ),
    ),
    "stats": (
        Exit(0, "the statistics were computed, or the scan found nothing odd", "best.pth model/head.bias"),
        Exit(1, "`--scan` found NaN or infinities, or a tensor cannot be read", "half.pth --scan"),
        Exit(2, "no tensor has such a path", "best.pth nowhere"),
        Exit(3, "FILE cannot be read, or a tensor that was named", "pointer.pth --scan"),
        Exit(4, "the Python of this program has no NumPy", "best.pth --scan", without="numpy"),
    ),
    "recover": (
        Exit(0, "what is intact was written", "half.pth -o exits-rest.pth"),
        Exit(2, "OUT is named as a file of another format", "half.pth -o exits.safetensors"),
        Exit(3, "FILE cannot be read", "download.pth -o x.pth"),
        Exit(4, "OUT exists and `--force` is not given, or cannot be written", "half.pth -o best.pth"),
    ),
    "snippet": (
        Exit(0, "the code was printed", "best.pth --target cpu"),
        Exit(2, "the style does not fit the file", "model.gguf --style lightning"),
        Exit(3, "FILE cannot be read", "pointer.pth"),
        Exit(4, "OUT.py exists and `--force` is not given, or cannot be written", "best.pth -o train.py"),
    ),
    "run": (
        Exit(2, "there is no such command, or a rule is about more than devices", "-- nowhere.py"),
        Exit(4, "the Python of the command has no torch", "-- bare/bin/python3 train.py"),
    ),
    "target": (
        Exit(0, "the machine was described, whatever torch makes of it", "--target cpu"),
        Exit(2, "there is no such target, or no such Python", "--target nothing"),
    ),
    "desktop": (Exit(2, "what to do is missing", ""),),
    "screenshot": (
        Exit(0, "the picture was written", "best.pth exits.png --thumbnail 64"),
        Exit(2, "OUT is named as a file of another kind", "best.pth exits.jpg"),
        Exit(3, "FILE cannot be read", "pointer.pth exits-none.png"),
        Exit(4, "OUT exists and is no picture, or cannot be written", "best.pth train.py"),
    ),
    "schema": (
        Exit(0, "the schema was printed, or the list of them", "show"),
        Exit(2, "no schema describes what COMMAND writes", "desktop"),
    ),
}
