"""Throws bytes at the targets: `python -m tests.fuzz.fuzzing TARGET SECONDS FOLDER`, and `make fuzz`.

With atheris the bytes are led by the coverage of the reader; without it they are seeds changed at random.
What a target objects to is written to FOLDER; a person gives it a name and keeps it in tests/data/fuzz. The
process may take 3 GB, and one input 20 seconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

_MOST_NBYTES = 3 << 30
_MOST_SEED_NBYTES = 20_000
_WORDS = (
    b"PK\1\2",
    b"PK\5\6",
    b"PK\6\6",
    b"PK\6\7",
    b"\xff" * 8,
    bytes(8),
    b"cposix\nsystem\n",
    b"(",
    b"R",
    b"\x95",
    b".",
)


def seeds(target: str) -> list[bytes]:
    """Small honest and hostile inputs."""
    from tests.corpus import cases
    from tests.hostile.cases import CASES
    from tests.hostile.constructed import SPOILED

    if target == "pickle":
        return [b"\x80\x02" + part + b"." for part in SPOILED.values()]
    paths = [case.path for case in cases() if case.path.is_file()]
    files = [path.read_bytes() for path in paths if path.stat().st_size < _MOST_SEED_NBYTES]
    files += [
        data
        for case in CASES
        if case.group in {0, 18, 19, 22, 24} and len(data := case.build()) < _MOST_SEED_NBYTES
    ]
    return files if target == "file" else [data for data in files if b"PK\5\6" in data]


def main(arguments: list[str]) -> int:
    """Fuzz one target for some seconds; say how many inputs were tried."""
    target, seconds, folder = arguments[0], float(arguments[1]), Path(arguments[2])
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_NBYTES, _MOST_NBYTES))
    folder.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("atheris"):
        _with_atheris(target, seconds, folder)
        return 0
    tried = _at_random(target, seconds, folder)
    sys.stdout.write(f"{target}: {tried:,} inputs in {seconds:.0f} s, without atheris\n")
    return 0


def _watched(target: str, folder: Path) -> Callable[[bytes], None]:
    from tests.fuzz.targets import TARGETS

    check = TARGETS[target]
    known: set[str] = set()

    def watched(data: bytes) -> None:
        try:
            check(data)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            code = None if place is None else place.tb_frame.f_code.co_name
            kind = f"{type(error).__name__} in {code}, line {place and place.tb_lineno}"
            if kind in known:
                return
            known.add(kind)
            path = folder / f"{target}-{hashlib.sha256(data).hexdigest()[:12]}"
            path.write_bytes(data)
            sys.stdout.write(f"FINDING {path}: {kind}: {str(error)[:300]}\n")
            sys.stdout.flush()

    return watched


def _with_atheris(target: str, seconds: float, folder: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["inspector.containers", "inspector.pickles", "inspector.model"]):
        watched = _watched(target, folder)
    corpus = folder / f"corpus-{target}"
    corpus.mkdir(exist_ok=True)
    for data in seeds(target):
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    options = [
        f"-max_total_time={seconds:.0f}",
        "-timeout=20",
        "-max_len=30000",
        "-rss_limit_mb=3000",
        str(corpus),
    ]
    atheris.Setup([sys.argv[0], *options], watched)
    atheris.Fuzz()


def _at_random(target: str, seconds: float, folder: Path) -> int:
    watched, sources = _watched(target, folder), seeds(target)
    chance, tried, end = random.Random(time.time_ns()), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = bytearray(chance.choice(sources))
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(data) + 1)
            nbytes = chance.choice((0, 0, 1, 1, 2, 8))
            data[at : at + nbytes] = chance.choice(
                (chance.randbytes(1), chance.randbytes(4), chance.choice(_WORDS))
            )
        with contextlib.suppress(MemoryError):
            watched(bytes(data))
        tried += 1
    return tried


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
