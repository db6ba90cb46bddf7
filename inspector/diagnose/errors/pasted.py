"""A pasted error as people paste it: a traceback with its noise, or a few words out of one.

Terminals add colors and break lines, notebooks add arrows and line numbers, loggers and launchers put a time
or a rank before each line, word processors turn quotes, web pages turn them into entities. All that goes; the
words stay. The text is not trusted: it is cut first, and no pattern here can be slow on it.
"""

from __future__ import annotations

import re

from inspector.records import dataclass

MOST_CHARS = 256 * 1024
"""What is looked at of a text; the middle of a longer one is left out, as errors stand at either end."""
_HEAD_CHARS = 64 * 1024

_ESCAPES = re.compile(r"\x1b\][^\x07\x1b]*\x07?|\x1b\[[0-9;:?]*[ -/]?[@-~]|\x1b.|\[[0-9;]{1,12}m")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02", '"'),
        **dict.fromkeys("\u00a0\u2007\u202f\u3000\t\f\v", " "),
        **dict.fromkeys("\u2028\u2029\x85\r", "\n"),
        "\uff1a": ":",
        "\uff0c": ",",
        "\uff08": "(",
        "\uff09": ")",
    }
)
_ENTITIES = (("&#39;", "'"), ("&apos;", "'"), ("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
# What stands before a line: frames of boxes, quotes of mails, ranks and process numbers, pytest's E, times.
_BEFORE = re.compile(
    r"(?:[\s|>\u2500-\u257f\u276f\u2771]+|\[(?:rank ?|default)?\d{1,6}\]:|\[[a-z]{1,20}\d{1,6}\]:|"
    r"\([A-Za-z_ ]{0,40}pid=\d{1,10}[^)]{0,60}\)|E(?=\s{2,}))"
)
_TIME = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]?(?:\s?[-:]{0,2}\s?"
    r"(?:[A-Za-z_.]{1,40}\s[-:]{1,2}\s)?(?:ERROR|CRITICAL|WARNING|INFO|DEBUG)\s?[-:]{0,2})?"
)
_ERROR_LINE = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}(?:[A-Za-z_]\w{0,60})?(?:Error|Exception|Interrupt)(?: ?:|\Z| in \S)"
)
_OTHER_LINE = re.compile(
    r"Traceback \(|During handling of the above|The above exception was|File \"|\[?File |-{3,}> ?\d|^\d+ "
)
_MOST_PREFIXES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Pasted:
    """A text without its noise.

    Attributes:
        lines: Its lines, without what stood before and behind them; none is empty.
        errors: What each error in it says, the last first: that is the one that ended the program.
    """

    lines: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def flat(self) -> str:
        """All of it in one line."""
        return " ".join(self.lines)

    @property
    def squeezed(self) -> str:
        """All of it without white space, which undoes line breaks in the middle of words."""
        return squeeze(self.flat)


def squeeze(text: str) -> str:
    """Take out all spaces."""
    return text.replace(" ", "")


def read_pasted(text: str) -> Pasted:
    """Clean a pasted text."""
    lines = [line for raw in _clean(text).split("\n") if (line := _bare(raw))]
    return Pasted(lines=tuple(lines), errors=tuple(_errors(lines))[::-1])


def _clean(text: str) -> str:
    if len(text) > MOST_CHARS:
        text = f"{text[:_HEAD_CHARS]}\n{text[_HEAD_CHARS - MOST_CHARS :]}"
    text = _INVISIBLE.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n"))).translate(_PLAIN)
    # A message in a `repr` or in JSON has its line breaks spelled out; so has a path such as C:\new.
    text = text.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", " ")
    for entity, char in _ENTITIES:
        text = text.replace(entity, char)
    return text


def _bare(line: str) -> str:
    """Return a line without frames and prefixes, its white space as single spaces."""
    for _ in range(_MOST_PREFIXES):
        match = _BEFORE.match(line) or _TIME.match(line)
        if match is None:
            break
        line = line[match.end() :]
    return " ".join(line.rstrip(" |\u2502\u2503").split())


def _errors(lines: list[str]) -> list[str]:
    """Return what each error says: its line, and those below it up to the next traceback."""
    errors: list[list[str]] = []
    is_message = False
    for line in lines:
        if _ERROR_LINE.match(line):
            errors.append([])
            is_message = True
        elif _OTHER_LINE.match(line):
            is_message = False
        if is_message:
            errors[-1].append(line)
    return [" ".join(error) for error in errors]
