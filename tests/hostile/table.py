"""Opens every hostile file, also the largest, asks torch about 600 files, and writes down the answers.

`make hostile` prints the tables and writes them into docs/security.md, between the marks of the same name.
`python -m tests.hostile.table crowds fuzz=FOLDER` makes just these; FOLDER holds the logs of `make fuzz`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.hostile.agreement import rows, table
from tests.hostile.cases import CASES
from tests.hostile.crowds import CROWDS
from tests.hostile.running import MOST_NBYTES, MOST_SECONDS, Answer, Runner, delays, shortcomings

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
_DONE = re.compile(r"Done ([0-9]+) runs in ([0-9]+) second")
_LONGEST = 70
_MOST_LISTED = 6


def hostile() -> str:
    return _summary(_open_all({str(case): (case.build, case.says) for case in CASES}))


def crowds() -> str:
    """Open the files that hold too much of something; the longest and the largest are listed."""
    answers = _open_all({name: (build, None) for name, build in CROWDS.items()})
    lines = ["| file | ends in | time | memory |", "| --- | --- | ---: | ---: |"]
    worst = {
        name: None
        for field in ("seconds", "memory_nbytes")
        for name in sorted(answers, key=lambda name: -answers[name][field])[:_MOST_LISTED]
    }
    for name in worst:
        error = answers[name].get("error", "a document")
        ends = error.partition(": record")[0].partition(" (at most")[0][:_LONGEST]
        lines.append(f"| {name} | {ends} | {_most([answers[name]])} |")
    return "\n".join([_summary(answers), "", *lines])


def agreement() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return table(rows(Path(folder)))


def fuzz(folder: str = "build/fuzz") -> str:
    lines = ["| target | inputs | minutes |", "| --- | ---: | ---: |"]
    for log in sorted(Path(folder).glob("*.log")):
        for tried, seconds in _DONE.findall(log.read_text(encoding="utf-8", errors="replace")):
            lines.append(f"| {log.stem} | {int(tried):,} | {int(seconds) / 60:.1f} |")
    return "\n".join(lines)


PARTS: dict[str, Callable[..., str]] = {
    "hostile": hostile,
    "crowds": crowds,
    "agreement": agreement,
    "fuzz": fuzz,
}


def _open_all(files: dict[str, tuple[Callable[[], bytes], dict | None]]) -> dict[str, Answer]:
    runner, answers = Runner(), {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.pt"
        for name, (build, says) in files.items():
            path.write_bytes(build())
            answer = answers[name] = runner.open(path)
            wanted = {"error": ""} if says is None and "error" in answer else says or {}
            wrong = [*shortcomings(answer, wanted), *delays(answer)]
            answer["wrong"] = wrong
            sys.stderr.write(
                f"{name}: {answer['seconds']} s, {answer['memory_nbytes'] / 1e6:.0f} MB {wrong}\n"
            )
    runner.close()
    return answers


def _summary(answers: dict[str, Answer]) -> str:
    wrong = sum(bool(answer["wrong"]) for answer in answers.values())
    slowest = max(answers.items(), key=lambda item: item[1]["seconds"])
    largest = max(answers.items(), key=lambda item: item[1]["memory_nbytes"])
    cancelled = max(answer.get("cancelled_after") or 0 for answer in answers.values())
    return (
        f"{len(answers)} files, {wrong} of them not as they should; allowed are {MOST_SECONDS:.0f} s and "
        f"{MOST_NBYTES / 1e6:,.0f} MB.\nLongest: {slowest[1]['seconds']:.1f} s ({slowest[0]}). Most memory: "
        f"{largest[1]['memory_nbytes'] / 1e6:.0f} MB ({largest[0]}).\nA cancellation took at most "
        f"{1000 * cancelled:.0f} ms to be noticed."
    )


def _most(answers: list[Answer]) -> str:
    seconds = max(answer["seconds"] for answer in answers)
    return f"{seconds:.2f} s | {max(answer['memory_nbytes'] for answer in answers) / 1e6:.0f} MB"


def write(part: str, text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- begin {part} -->\n", f"<!-- end {part} -->"
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    PAGE.write_text(f"{head}{begin}{text}\n{end}{tail}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    for argument in arguments or ["hostile", "crowds", "agreement"]:
        part, _, given = argument.partition("=")
        text = PARTS[part](*([given] if given else []))
        sys.stdout.write(f"{text}\n\n")
        write(part, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
