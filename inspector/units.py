"""Numbers and foreign text as people read them: byte sizes, counts, shapes, escaped names, mistyped words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_SUFFIXES = ("KB", "MB", "GB", "TB", "PB", "EB")
_QUANTITIES = ("K", "M", "B", "T")
_EXACT = 10_000
_NEXT = 999.5
_MOST_BITS = 100
_MOST_KEPT = 1 << 12
_DIGITS = 6
_NUMBERS = frozenset({"float", "complex", "list", "tuple", "set"})
_LONG_NUMBER = re.compile(r"([0-9]+\.?[0-9]*)(?:e[+-]?[0-9]+)?(?![0-9.\u2026])")
_ODD_STEP = re.compile(r'(?:^|/)(?:$|["/\s])|\s(?:/|$)')


def format_nbytes(nbytes: int) -> str:
    """Return a size in decimal units, as file managers and disks do: `37.6 KB`, `1.2 GB`.

    A file can claim a product of sizes that has no end of digits, and that no float can hold.
    """
    if abs(nbytes) < 1000:
        return f"{nbytes} B"
    if nbytes.bit_length() > _MOST_BITS:
        return "over 10^30 B"
    value = float(nbytes)
    for suffix in _SUFFIXES:
        value /= 1000
        if abs(value) < 999.95:
            return f"{value:.1f} {suffix}" if abs(value) < 99.95 else f"{value:.0f} {suffix}"
    return f"{value:.0f} {_SUFFIXES[-1]}"


def format_quantity(count: int) -> str:
    """Return a large count as papers write it, in three digits: `9,984`, `437K`, `11.7M`, `7.24B`."""
    if abs(count) < _EXACT:
        return f"{count:,}"
    if count.bit_length() > _MOST_BITS:
        return "over 10^30"
    value, suffixes = count / 1000, iter(_QUANTITIES)
    suffix = next(suffixes)
    while abs(value) >= _NEXT and suffix != _QUANTITIES[-1]:
        value, suffix = value / 1000, next(suffixes)
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{digits}f}{suffix}"


def format_exact(count: int) -> str:
    """Return a count with all its digits, as long as somebody can read them."""
    return f"{count:,}" if count.bit_length() <= _MOST_BITS else "over 10^30"


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, in the plural where it must be: `1 tensor`, `1,204 tensors`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def short_value(kind: str, text: str) -> str:
    """Return a value with its numbers in six significant digits; `kind` is its type, as it is shown.

    A text in it is left alone, and so is a whole number: what an epoch or a seed is, is exact.
    """
    if kind.startswith(("numpy.float", "numpy.complex")) or (kind in _NUMBERS and '"' not in text):
        return _LONG_NUMBER.sub(_six_digits, text)
    return text


def _six_digits(found: re.Match[str]) -> str:
    is_whole = found[0].isdigit() or found[1].endswith(".0")
    is_short = len(found[1].replace(".", "").strip("0")) <= _DIGITS
    return found[0] if is_whole or is_short else f"{float(found[0]):.{_DIGITS}g}"


def format_shape(shape: tuple[int, ...]) -> str:
    """Return a shape as `64 x 3 x 7 x 7`; a tensor without dimensions is a `scalar`."""
    return " \u00d7 ".join(str(size) for size in shape) if shape else "scalar"


def escape_text(text: str) -> str:
    r"""Make control, bidi, surrogate and other invisible characters visible as `\uXXXX`.

    Names come from files nobody vouches for: an escape sequence could repaint a terminal, a bidi override
    could disguise a name, and a lone surrogate cannot be encoded at all.
    """
    return text if text.isprintable() else text.translate(_ESCAPES)


def unescaped_path(path: str) -> str:
    """Return a path with its names as they are in the file: for eyes alone, since it can mean two rows."""
    return path.replace("~1", "/").replace("~0", "~") if "~" in path else path


def shown_step(step: str) -> str:
    """Return a step of a path as it is shown: in quotes where nobody would see where it begins and ends."""
    return f'"{step}"' if not step or step[0] == '"' or step != step.strip() else step


def shown_path(path: str) -> str:
    """Return a path as it is shown, see `shown_step`; that of the root itself has no step and stays empty."""
    if not path or _ODD_STEP.search(path) is None:
        return path
    return "/".join(map(shown_step, path.split("/")))


def cut_text(text: str, most: int) -> str:
    """Cut a text to at most `most` characters, ending in an ellipsis when something was cut."""
    return text if len(text) <= most else text[: most - 1] + "\u2026"


class _Escapes(dict[int, str]):
    """What stands for each character, looked up once: a long text has few different ones."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if unicodedata.category(char) in _INVISIBLE:
            char = f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
        if len(self) < _MOST_KEPT:
            self[code] = char
        return char


_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_ESCAPES = _Escapes()


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return which of the known words was meant, as far as a slip of the finger tells."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    return next(iter(get_close_matches(word, tuple(known), 1)), None)


def meant(word: str, known: Iterable[str], form: str = "{}") -> str:
    """Return the question for the word that was meant, to stand before a remedy; empty where none is near."""
    near = nearest(word, known)
    return "" if near is None else f"did you mean {form.format(near)}? "
