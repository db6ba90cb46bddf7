"""The values of tensors in words: figures with their captions, and what is odd about them."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.units import format_count
from inspector.values.statistics import (
    HUGE,
    HUGE_WEIGHT,
    Index,
    Number,
    Oddity,
    Ranks,
    Scan,
    Scanned,
    Statistics,
)

Line = tuple[str, str]

_BARS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"

ODDITIES: dict[Oddity, str] = {
    Oddity.NAN: "holds NaN",
    Oddity.INF: "holds infinities",
    Oddity.HUGE: "holds huge numbers",
    Oddity.ZERO: "is all zeros",
    Oddity.CONSTANT: "is one number throughout",
    Oddity.DEAD_ROWS: "has rows of zeros",
}
DEQUANTIZED = "computed from its quantized elements"
ONLY_STORED = "of the stored elements alone: some of their places are named twice, or lie outside"
COMPLEX = "of the magnitudes"


def format_number(value: Number | None) -> str:
    """Return a number with six digits, an integer in full."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def format_share(part: int, whole: int) -> str:
    """Return a share, which is neither 0 % nor 100 % unless it is exactly that."""
    if not part or part == whole:
        return "0 %" if not part else "100 %"
    share = 100 * part / whole
    if share < 0.01:
        return "under 0.01 %"
    return f"{share:.3g} %" if share < 99.9 else f"{min(share, 99.99):.2f} %"


def format_index(index: Index) -> str:
    """Return an index as people write it: `[0, 3]`."""
    return f"[{', '.join(map(str, index))}]"


def statistics_lines(found: Statistics) -> list[Line]:
    """Return the figures of a tensor, each with its caption."""
    of = f" ({COMPLEX})" if found.is_complex else ""
    lines = [("Values", f"{found.numel:,}")]
    lines += [("Of", found.part)] if found.part else []
    lines += [("Note", text) for text in _remarks(found)]
    lines += [
        _odd("NaN", found.nan, found.first_nan),
        _odd("Infinite" if found.is_complex else "+Inf", found.posinf, found.first_posinf),
    ]
    lines += [] if found.is_complex else [_odd("-Inf", found.neginf, found.first_neginf)]
    lines += [
        ("Zeros", f"{found.zeros:,} ({format_share(found.zeros, found.numel)})" if found.numel else "0"),
        (f"Min{of}", format_number(found.low)),
        (f"Max{of}", format_number(found.high)),
        ("Mean", _mean(found)),
        ("Standard deviation", format_number(found.std)),
        ("Norm", format_number(found.norm)),
    ]
    lines += [] if found.unique is None else [("Different values", f"{found.unique:,}")]
    lines += [("Rows of zeros", f"{found.dead_rows:,}")] if found.dead_rows else []
    return lines + _stored(found.stored)


def rank_lines(found: Ranks) -> list[Line]:
    """Return the ranks of a matrix, each with its caption."""
    return [
        ("Effective rank", f"{found.effective:.4g} of {found.most:,}"),
        ("Stable rank", f"{found.stable:.4g}"),
        ("Largest singular value", format_number(found.largest)),
    ]


def _remarks(found: Statistics) -> list[str]:
    texts = [DEQUANTIZED] if found.is_dequantized else []
    return texts + ([ONLY_STORED] if found.only_stored else [])


def _odd(caption: str, count: int, first: Index | None) -> Line:
    place = "" if first is None else f", first at {format_index(first)}"
    return caption, f"{count:,}{place if count else ''}"


def _mean(found: Statistics) -> str:
    if found.complex_mean is None or None in found.complex_mean:
        return format_number(found.mean)
    real, imag = found.complex_mean
    sign = "-" if str(imag).startswith("-") else "+"
    return f"{format_number(real)} {sign} {format_number(abs(imag or 0))}i"


def _stored(stored: Statistics | None) -> list[Line]:
    if stored is None:
        return []
    return [
        ("Stored elements", f"{stored.numel:,}"),
        ("Mean of those", format_number(stored.mean)),
        ("Deviation of those", format_number(stored.std)),
    ]


def sparkline(counts: Sequence[int], width: int = 32) -> str:
    """Return a histogram as one line of bars; what is not empty shows."""
    size = -(-len(counts) // width) or 1
    sums = [sum(counts[start : start + size]) for start in range(0, len(counts), size)]
    most = max(sums, default=0)
    return "".join(_BARS[-(-8 * count // most) if count else 0] for count in sums)


def chart_summary(found: Statistics) -> str:
    """Describe the histogram in one sentence, for those who do not see it."""
    if not found.counts:
        return "There are no finite values."
    fullest = max(range(len(found.counts)), key=lambda number: found.counts[number])
    low, high = found.edges[fullest], found.edges[fullest + 1]
    kind = "magnitudes" if found.is_complex else "values"
    if found.low == found.high and not found.is_complex:
        return f"Every finite value is {format_number(found.low)}."
    bins = format_count(len(found.counts), "bin")
    ends = f"{format_number(found.low)} to {format_number(found.high)}"
    most = f"{found.counts[fullest]:,} of {found.finite:,} {kind}"
    return (
        f"{bins} from {ends}; the fullest, from {format_number(low)} to below {format_number(high)}, "
        f"holds {most}."
    )


# --- scans --------------------------------------------------------------------------------------------------


def scan_sentence(scan: Scan) -> str:
    """Return what a scan found, in one sentence."""
    counts = [(oddity, len(scan.with_oddity(oddity))) for oddity in Oddity]
    parts = [f"{count:,} {_SHORT[oddity]}" for oddity, count in counts if count]
    read = format_count(len(scan.tensors) - len(scan.unread), "tensor")
    rest = f"; {len(scan.unread):,} could not be read" if scan.unread else ""
    return f"{read} read: {', '.join(parts) or 'nothing odd'}{rest}."


def scanned_words(one: Scanned) -> str:
    """Return what is odd about a tensor of a scan, with how much of it and where it begins."""
    found = one.statistics
    if found is None:
        return f"not read: {one.why}"
    detail = {
        Oddity.NAN: f"NaN: {_odd('', found.nan, found.first_nan)[1]}",
        Oddity.INF: f"infinite: {_odd('', found.posinf + found.neginf, _first_infinite(found))[1]}",
        Oddity.HUGE: f"from {format_number(found.low)} to {format_number(found.high)}",
        Oddity.ZERO: ODDITIES[Oddity.ZERO],
        Oddity.CONSTANT: f"{format_number(found.low)} throughout",
        Oddity.DEAD_ROWS: f"{format_count(found.dead_rows or 0, 'row')} of zeros",
    }
    return "; ".join(detail[oddity] for oddity in one.oddities)


def _first_infinite(found: Statistics) -> Index | None:
    return min(
        (index for index in (found.first_posinf, found.first_neginf) if index is not None), default=None
    )


_SHORT: dict[Oddity, str] = {
    Oddity.NAN: "with NaN",
    Oddity.INF: "with infinities",
    Oddity.HUGE: "with huge numbers",
    Oddity.ZERO: "all zeros",
    Oddity.CONSTANT: "constant",
    Oddity.DEAD_ROWS: "with rows of zeros",
}

THRESHOLDS = (
    f"Huge is above {HUGE_WEIGHT:,.0f} in a weight and above {HUGE:.0e} elsewhere. Zeros, constants and rows "
    "of zeros are looked for in weights alone."
)
"""What a scan takes as odd."""
