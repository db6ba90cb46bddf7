"""Runs every command and option of docs/cli.md in the bundle and in this checkout, and compares what both do.

    PYTHONPATH=. .venv/bin/python packaging/bundle/compare.py [PROGRAM]

PROGRAM is that of the bundle in `build/bundle`, or another, such as what a package installed. All lines run
in a folder of samples, first where the Python that counts is this one, which needs torch, then where it is a
bare one. Output, exit code and all files afterwards are to be the same. Prints what is not, and what the
lines say that end with 4; exits with 1 where something differs. Takes some minutes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtGui import QImage

from inspector.records import dataclass
from tests.docs.pages import DOCS, README, blocks
from tests.docs.running import PROGRAM, commands
from tests.docs.samples import write_samples

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "build" / "bundle" / PROGRAM / PROGRAM
PAGE = DOCS / "cli.md"
WINDOW = re.compile(rf"{PROGRAM}( --demo| \S+\.pth)*")
"""A line that opens the window, and would wait for somebody to close it."""
ELSEWHERE = ("ssh HOST", "~/venv", "torchrun", "--epochs", "--in-place", "--undo")
"""What the pages name and no machine has, and what changes a sample: that stands below, in its order."""
MORE = """
show best.pth last.ckpt whole.pt bert model.gguf model.safetensors quantized.pt download.pth --color always
show best.pth --no-pager -q
check best.pth --target this
check best.pth --target this --json
check whole.pt quantized.pt last.ckpt bert model.gguf unknown.pth
check runs --target cpu --format concise
check best.pth --target cpu --filter role:optimizer
check best.pth --python ENV
check best.pth --python BARE
check best.pth --full --error-text "Attempting to deserialize object on CUDA device 1"
check best.pth --script - < train.py
export best.pth -o half.safetensors --cast float16
remap best.pth -o brain.pth --only weights --cast bfloat16 --verify torch
export best.pth -o named.pth --cast float16 --python ENV
export best.pth -o bare.pth --cast float16 --python BARE
export best.pth -o whole.pth --format same --cast float16
remap best.pth -o loaded.pth --verify torch --receipt receipt.json --json
remap best.pth -o full.pth --verify full --keep-times --map "cuda:*=cpu" --map "cpu=cuda:0" --move-all
remap best.pth -o hidden.pth --hidden-devices --dry-run --json
remap best.pth -o this.pth --target this
remap best.pth -o this.pth --target this --python ENV --force
export best.pth -o less.pth --exclude optimizer --exclude "model/head.*" --strip-prefix model --format same
export best.pth -o ema.safetensors --ema --compact --strict
export best.pth -o one.safetensors --only model
export best.pth -o old.pth --container legacy --format same --verify none
export whole.pt -o dict.pth --format state-dict
export best.pth -o dict.pth --format state-dict --force --keep-times
export best.pth --dry-run --json --map "cuda:1=cpu" --target cpu --move-all --hidden-devices --format same
remap best.pth last.pth --into copies --target cuda:0 --json
remap - -o - < best.pth > piped.pth
export bert -o one.safetensors
remap best.pth --in-place --map 'cuda:1=cuda:0'
remap best.pth --undo
remap best.pth --in-place
remap best.pth --in-place --target cuda
remap best.pth --undo
remap best.pth --undo
verify old.pth --against best.pth --json
verify best.pth --against epoch-1.pth --target cpu --python ENV --move-all --hidden-devices
diff best.pth epoch-2.pth --compare numbers --rtol 1e-3 --atol 1e-3 --each --json
diff best.pth epoch-2.pth --compare facts --all
diff best.pth epoch-2.pth --compare equal
diff bert model.safetensors --compare numbers
stats best.pth --scan --json
stats best.pth "model/**.weight" --rank
stats last.ckpt --scan
stats best.pth runs/last.pth "model/**.bias"
stats model.gguf "**"
stats quantized.pt "**"
recover half.pth -o json.pth --json --force
snippet best.pth last.ckpt whole.pt bert --target cpu --json
snippet best.pth --save --map "*=cpu" -o save.py --force
snippet best.pth --python ENV
screenshot best.pth memory.png
screenshot best.pth map.png --page map --theme dark --size 1000x700 --target cuda@24gb
screenshot best.pth values.png --page values --theme contrast-dark --python ENV
screenshot best.pth file.png --page file --theme contrast-light --force
screenshot best.pth small.png --thumbnail 128
run -- python loads.py
run --map "cuda:1=cpu" --target cpu -- python loads.py
run -- python3 loads.py
desktop install
desktop install
desktop remove
target --json
target --target cpu
target --python ENV
target --python BARE
target --python nowhere
schema check
completion bash
completion zsh
completion fish
explain
help nothing
shwo best.pth
--version
verify cpu.pth --against best.pth --map "*=cpu"
check download.pth --target cpu
remap best.pth -o epoch-1.pth
recover half.pth -o none.safetensors
diff best.pth download.pth
stats best.pth nothing
screenshot best.pth none.jpg
schema desktop
--help
"""
"""What the pages do not show: each option, casts, kinds of files; ENV has torch if any has, BARE has not."""
CANNOT = 4
"""The exit code of what needs torch, where there is none."""
STARTS = ("launch.sh", "checkpoint-inspector.thumbnailer")
"""Files that start the program: a bundle itself, a checkout through its Python."""
STATUS_HEIGHT = 24
SMALL = 256
LOADS = "import torch\n\nprint(sorted(torch.load('best.pth', weights_only=False)))\n"


@dataclass(frozen=True, slots=True)
class Done:
    """What one line did."""

    code: int
    out: str
    err: str
    files: dict[str, str]


def lines() -> list[str]:
    """Return every line that is tried, in an order in which each finds what it needs."""
    pages = [
        command.line.split(" # ")[0].strip()
        for page in (PAGE, README)
        for block in blocks(page)
        if block.language == "console"
        for command in commands(block)
    ]
    more = [f"{PROGRAM} {line}" for line in MORE.strip().splitlines()]
    tried = [line for line in pages if line.startswith(PROGRAM) and not WINDOW.fullmatch(line)]
    tried = [line for line in dict.fromkeys(tried) if not any(word in line for word in ELSEWHERE)]
    return [*tried, *more]


def unused_options(tried: list[str]) -> list[str]:
    """Return the options of the reference that no line has."""
    found, command = [], ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            command = line.removeprefix("## ")
        elif line.startswith("| `-") and " " not in command:
            options = re.findall(r"-{1,2}[\w-]+", line.split("|")[1])
            having = [each for each in tried if each.startswith(f"{PROGRAM} {command} ")]
            if options != ["--"] and not any({*each.split()} & {*options} for each in having):
                found.append(f"{command} {options[-1]}")
    return found


def prepare(program: list[str], place: Path, environment: Path) -> dict[str, str]:
    """Lay out the samples, and return an environment in which the program is found by its name."""
    for name in ("runs", "home", "bin"):
        shutil.rmtree(place / name, ignore_errors=True)
        (place / name).mkdir()
    shutil.copytree(place / "samples", place / "runs", symlinks=True, dirs_exist_ok=True)
    link = place / "bin" / PROGRAM
    link.write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n', encoding="utf-8")
    link.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG_"))}
    return inherited | {
        "HOME": str(place / "home"),
        "PATH": os.pathsep.join([str(place / "bin"), str(environment / "bin"), "/usr/bin", "/bin"]),
        "VIRTUAL_ENV": str(environment),
        "QT_QPA_PLATFORM": "offscreen",
    }


def run_all(program: list[str], place: Path, environment: Path) -> Iterator[Done]:
    """Run all lines with one program."""
    variables = prepare(program, place, environment)
    folder = place / "runs"
    for line in lines():
        words = line.replace(" ENV", f" {sys.prefix}").replace(" BARE", f" {folder / 'bare'}")
        result = subprocess.run(  # noqa: S603 - lines of the pages, and of this script
            ["/bin/bash", "-c", words],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        texts = [plain(text, program) for text in (result.stdout, result.stderr)]
        yield Done(result.returncode, *texts, contents((folder, place / "home"), program))


def plain(text: str, program: list[str]) -> str:
    """Return a text without what may differ: where the program lies, and how long something took."""
    for word in (" ".join(program), *program[:1]):
        text = re.sub(rf"{re.escape(word)}(?![\w.])", "PROGRAM", text)
    return re.sub(r'"(\w+_seconds|made)": [^,}\n]+', r'"\1": ...', text)


def contents(folders: tuple[Path, ...], program: list[str]) -> dict[str, str]:
    """Return a digest of every file that a line may have written."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not {"bare", "__pycache__", ".cache"} & {*path.parts}:
                found[str(path.relative_to(folder.parent))] = hashlib.sha256(told(path, program)).hexdigest()
    return found


def told(path: Path, program: list[str]) -> bytes:
    """Return what a file holds, without what may differ."""
    if path.suffix == ".png":
        return pixels(path)
    if path.name in STARTS:
        return b""
    data = path.read_bytes()
    return data if path.suffix == ".pth" else plain(data.decode("latin-1"), program).encode("latin-1")


def pixels(path: Path) -> bytes:
    """Return a picture without its status line, which tells how long opening took; all of a small one."""
    image = QImage(str(path)).convertToFormat(QImage.Format.Format_RGB888)
    height = image.height() - (STATUS_HEIGHT if image.height() > SMALL else 0)
    return bytes(image.copy(0, 0, image.width(), height).constBits())


def compare(line: str, bundle: Done, checkout: Done) -> list[str]:
    """Return what differs, in words."""
    found = []
    if bundle.code != checkout.code:
        found.append(f"exit code {bundle.code}, not {checkout.code}")
    for name in ("out", "err"):
        ours, theirs = getattr(bundle, name), getattr(checkout, name)
        if ours != theirs:
            found.append(f"std{name}:\n--- bundle\n{ours[-1500:]}\n--- checkout\n{theirs[-1500:]}")
    names = {*bundle.files, *checkout.files}
    files = [name for name in sorted(names) if bundle.files.get(name) != checkout.files.get(name)]
    if files:
        found.append(f"files: {', '.join(files)}")
    if "Traceback (most recent call last)" in bundle.err and " run " not in line:
        found.append(f"a traceback:\n{bundle.err[-1500:]}")
    return found


def report(title: str, bundle: list[Done], checkout: list[Done]) -> int:
    """Print what differs and what ended with 4; return how many lines differ."""
    wrong, before = 0, set[str]()
    for line, one, two in zip(lines(), bundle, checkout, strict=True):
        # A file that differs does so after every line that follows the one which wrote it.
        new = [text for text in compare(line, one, two) if text not in before]
        before.update(text for text in new if text.startswith("files:"))
        wrong += bool(new)
        for text in new:
            print(f"\nDIFFERS {title}: {line}\n{text}")
        if one.code == CANNOT:
            print(f"\n{CANNOT} {title}: {line}\n{one.err.strip()}")
    codes = Counter(done.code for done in bundle)
    print(f"\n{title}: lines by exit code: {dict(sorted(codes.items()))}; {wrong} differ", flush=True)
    return wrong


def main() -> int:
    """Run everything, and print what differs."""
    program = Path(sys.argv[1] if sys.argv[1:] else BUNDLE).absolute()
    unused = unused_options(lines())
    print(f"{len(lines())} lines; options that none of them has: {', '.join(unused) or 'none'}", flush=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        venv.create(place / "empty", symlinks=True)
        venv.create(place / "samples/bare", symlinks=True)
        write_samples(place / "samples")
        (place / "samples/loads.py").write_text(LOADS, encoding="utf-8")
        for title, environment in (("with torch", Path(sys.prefix)), ("without torch", place / "empty")):
            bundle = list(run_all([str(program)], place, environment))
            checkout = list(run_all([sys.executable, "-P", "-m", "inspector"], place, environment))
            wrong += report(title, bundle, checkout)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
