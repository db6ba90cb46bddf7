"""Which of some texts a few typed letters mean, the likeliest first; and how a query goes on."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.report.charts.bars import Chart
from inspector.report.damage import ANY_DAMAGE, Damage
from inspector.report.terms import COMPARED, ODDITIES, WORD_FIELDS

_LEAST_CHARS = 2
"""Shorter words begin nearly everything."""
_ALWAYS = (
    *(f"{field}:" for field in WORD_FIELDS if field != "path"),
    *(f"{field}>" for field in COMPARED),
    *(f"is:{word}" for word in (ANY_DAMAGE, *Damage)),
    *(f"{field}:" for field in ODDITIES),
)


def matching(typed: str, texts: Sequence[str]) -> list[int]:
    """Return the places of the texts that have each typed word: at the start of one of theirs before inside.

    Among equals the order stays.
    """
    words = typed.casefold().split()
    ranked = []
    for place, text in enumerate(texts):
        folded = f" {text.casefold()}"
        if all(word in folded for word in words):
            ranked.append((sum(f" {word}" not in folded for word in words), place))
    return [place for _, place in sorted(ranked)]


def query_words(charts: Sequence[Chart]) -> tuple[str, ...]:
    """Return the words of a query that find something in a file whose charts these are, then the fields."""
    found = dict.fromkeys(part.query for chart in charts for bar in chart.bars for part in bar.segments)
    return tuple(word for word in dict.fromkeys((*found, *_ALWAYS)) if word)


def completions(before: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words that the last one of a query may become, of which nothing else is left to type.

    A word without a field is the name of a row: only the beginning of a field is completed.
    """
    begun = begun_word(before)
    bare = begun.removeprefix("-")
    if len(bare) < _LEAST_CHARS:
        return ()
    folded = bare.lower()
    minus = begun[: len(begun) - len(bare)]
    return tuple(minus + word for word in words if word.lower().startswith(folded) and word.lower() != folded)


def begun_word(before: str) -> str:
    """Return what of a query stands behind its last blank outside of quotes."""
    quotes, begin = False, 0
    for place, char in enumerate(before):
        if char == '"':
            quotes = not quotes
        elif char == " " and not quotes:
            begin = place + 1
    return before[begin:]
