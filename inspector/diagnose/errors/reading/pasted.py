"""A pasted error as people paste it: a traceback with its noise, or a few words out of one.

Terminals add colors and break lines, notebooks add arrows and line numbers, loggers and launchers put a time
or a rank before each line, word processors turn quotes, web pages turn them into entities. All that goes; the
words stay. The text is not trusted: it is cut first, and no pattern here can be slow on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from inspector.diagnose.errors.reading.frames import Frame, Head, finish, is_cut_head, read_head
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
        "\uff0e": ".",
        "\uff01": "!",
        "\uff1b": ";",
        "\uff1d": "=",
        "\uff3f": "_",
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
# What loggers, debuggers, web interfaces and C++ put before the name of an error.
_LEAD = re.compile(
    r"(?:(?:ERROR|CRITICAL|FATAL|Error|Exception has occurred|Exception occurred|Uncaught exception|"
    r"!{3} ?Exception during processing ?!{3})(?:: ?(?:root: ?)?| - | )|what\(\): )(?=\S)"
)
_ERROR_LINE = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}(?:[A-Za-z_]\w{0,60})?(?:Error|Exception|Interrupt|BadZipFile|SystemExit|"
    r"StopIteration)(?: ?:|\Z| in \S)"
)
_OTHER_LINE = re.compile(
    r"(?:Original )?Traceback|During handling of the above|The above exception was|File \"|\[?File |-{3,}> "
    r"?\d|"
    r"^\d+ |frame #\d"
)
# Paths of Windows; in a `repr` their backslashes are doubled, and what follows a single one is an escape.
_WINDOWS = re.compile(
    r'(?:\b[A-Za-z]:|~|(?<![.\w])\.{1,2})(?:\\[^"\\\n:*?<>|]{1,100}){1,40}|(?<=File ")[^"\n\\]{0,100}'
    r'(?:\\[^"\\\n]{1,100}){1,40}(?=")'
)
_LINKED = re.compile(r"\[(?P<shown>(?:line )?\d{1,7})\]\((?:https?|vscode)[^)\s]{1,600}\)")
_INSIDE_A_LINE = re.compile(r'(?<=\S) +(?=File "[^"\n]{1,400}", line \d)')
_WARNING = "Warning: "
_MOST_PREFIXES = 4
_MOST_FRAMES = 300
_MOST_BELOW = 14
_MOST_WARNINGS = 50
_MOST_JOINED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """One error of a text.

    Attributes:
        text: What it says: its line, and those below it up to the next traceback.
        frames: The frames above it, the innermost last; none where the text has none.
    """

    text: str
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pasted:
    """A text without its noise.

    Attributes:
        lines: Its lines, without what stood before and behind them; none is empty.
        raised: Each error in it, the last first: that is the one that ended the program.
        frames: All its frames, as they stand in the text.
        warnings: What Python's warnings in it say.
    """

    lines: tuple[str, ...]
    raised: tuple[Raised, ...] = ()
    frames: tuple[Frame, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """What each error says, the last first."""
        return tuple(one.text for one in self.raised)

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
    """Clean a pasted text and take it apart."""
    lines = _rejoined([line for raw in _clean(text).split("\n") if (line := _bare(raw))])
    heads = {place: head for place, line in enumerate(lines) if (head := read_head(line)) is not None}
    frames = _frames(lines, heads)
    warnings = [line.partition(_WARNING)[2] for line in lines if _WARNING in line]
    return Pasted(
        lines=tuple(lines),
        raised=tuple(_raised(lines, frames))[::-1],
        frames=tuple(frames.values()),
        warnings=tuple(warnings[-_MOST_WARNINGS:]),
    )


_CALLED = re.compile(r"\b(\w{1,40}Error)\(('[^'\n]{0,400}'),?\)")  # how `repr` writes an error


def _clean(text: str) -> str:
    if len(text) > MOST_CHARS:
        text = f"{text[:_HEAD_CHARS]}\n{text[_HEAD_CHARS - MOST_CHARS :]}"
    text = _INVISIBLE.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n"))).translate(_PLAIN)
    text = _WINDOWS.sub(lambda match: match[0].replace("\\", "/"), text)
    # A message in a `repr` or in JSON has its line breaks spelled out.
    text = text.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", " ")
    text = text.replace("\\'", "'").replace('\\"', '"')
    text = _CALLED.sub(r"\1: \2", text)
    for entity, char in _ENTITIES:
        text = text.replace(entity, char)
    return _INSIDE_A_LINE.sub("\n", _LINKED.sub(r"\g<shown>", text))


def _bare(line: str) -> str:
    """Return a line without frames and prefixes, its white space as single spaces."""
    for _ in range(_MOST_PREFIXES):
        match = _BEFORE.match(line) or _TIME.match(line)
        if match is None:
            break
        line = line[match.end() :]
    return " ".join(line.rstrip(" |\u2502\u2503").split())


def _rejoined(lines: list[str]) -> list[str]:
    """Put first lines of frames together again that a terminal broke, also within words."""
    whole: list[str] = []
    place = 0
    while place < len(lines):
        line, taken = lines[place], 1
        if is_cut_head(line) and read_head(line) is None:
            line, taken = _joined(lines[place : place + _MOST_JOINED + 1])
        whole.append(line)
        place += taken
    return whole


def _joined(lines: list[str]) -> tuple[str, int]:
    """Return the first line with as many of the next as make it a frame, and how many it took."""
    for taken in range(2, len(lines) + 1):
        for between in ("", " "):
            line = between.join(lines[:taken])
            if read_head(line) is not None:
                return line, taken
    return lines[0], 1


def _frames(lines: list[str], heads: Mapping[int, Head]) -> dict[int, Frame]:
    """Read the frames, by the place of their first line; of too many those at either end."""
    places = list(heads)
    if len(places) > _MOST_FRAMES:
        places = places[: _MOST_FRAMES // 3] + places[-(_MOST_FRAMES - _MOST_FRAMES // 3) :]
    return {place: finish(heads[place], _below(lines, heads, place)) for place in places}


def _below(lines: list[str], heads: Mapping[int, Head], place: int) -> list[str]:
    """Return the few lines below the first line of a frame, up to what cannot be its code."""
    found = []
    for at in range(place + 1, min(place + 1 + _MOST_BELOW, len(lines))):
        if at in heads or _ERROR_LINE.match(lines[at]) or lines[at].startswith("Traceback"):
            break
        found.append(lines[at])
    return found


def _raised(lines: list[str], frames: Mapping[int, Frame]) -> list[Raised]:
    """Read each error: its line, those below it up to the next traceback, and the frames above it."""
    errors: list[Raised] = []
    message: list[str] = []
    above: list[Frame] = []

    def close() -> None:
        nonlocal above
        if message:
            errors.append(Raised(text=" ".join(message), frames=tuple(above)))
            above = []
        message.clear()

    for place, line in enumerate(lines):
        said = _LEAD.sub("", line, count=1) if _LEAD.match(line) else line
        if _ERROR_LINE.match(said) or (said is not line and line.startswith("what()")):
            close()
            message.append(said)
        elif place in frames or _OTHER_LINE.match(line) or _WARNING in line:
            close()
        elif message:
            message.append(line)
        if place in frames:
            above.append(frames[place])
    close()
    return errors
