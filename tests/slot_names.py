"""Measure how optimizer slots are named in the files of real frameworks: `python -m tests.slot_names`."""

from __future__ import annotations

import sys

from tests.frameworks.cases import every, measure_names


def main() -> int:
    measured = measure_names(every())
    for name, counts in measured.counts.items():
        sys.stdout.write(f"{counts['right']:5} {counts['unnamed']:5} {counts['wrong']:5}  {name}\n")
    for name, way, truth, said in measured.wrong:
        sys.stdout.write(f"wrong: {name}: {way} is of {truth}, not {said}\n")
    total = measured.total
    share = total["right"] / max(1, total.total())
    sys.stdout.write(
        f"{total['right']} right, {total['unnamed']} unnamed, {total['wrong']} wrong: {share:.1%} of "
        f"{total.total()} slots in {len(measured.counts)} files are named rightly\n"
    )
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
