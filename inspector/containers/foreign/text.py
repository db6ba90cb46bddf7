"""Text under the name of a checkpoint: web pages, error messages, pointers to the real file.

Their first line often says what went wrong, so it is quoted; it comes from a stranger and is escaped and cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from inspector.units import cut_text, escape_text, format_nbytes

_MOST_QUOTED = 120
_MOST_DIGITS = 18
_MOST_LINES = 20
_MOST_ERROR_NBYTES = 1 << 16


class Look(NamedTuple):
    """What is known of a file before anybody reads it.

    Attributes:
        head: Its first bytes, a few thousand at most.
        nbytes: Its size.
        name: Its name.
    """

    head: bytes
    nbytes: int
    name: str


class Text(NamedTuple):
    """What a text turned out to be.

    Attributes:
        form: A stable word for it.
        what: What it is, with its article.
        remedy: The next step.
        finding: The id of the finding.
    """

    form: str
    what: str
    remedy: str
    finding: str = "not-a-checkpoint"


Reading = Callable[[Look], Text | None]

_GET_FILE = "download the file itself, by its download link or the site's own command"
_LFS = re.compile(
    rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v1\s"
    rb"(?=.*?oid sha256:(?P<oid>[0-9a-f]{64}))?(?=.*?size (?P<size>\d+))?",
    re.DOTALL,
)
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title", re.DOTALL | re.IGNORECASE)
_MESSAGE = re.compile(rb'"(?:message|error|detail|error_description|reason)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_XML_MESSAGE = re.compile(rb"<(?:Message|Code)>(.*?)</", re.DOTALL)
_YAML_LINE = re.compile(rb"---|%YAML|#|\s*- |\s*[\w./-]+:(\s|$)")
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f]")
_SOURCE = re.compile(rb"#!|import \w|from \w[\w.]* import |def \w|class \w|\"\"\"|# -\*- coding")


def _git_lfs(look: Look) -> Text | None:
    """Name the pointer that Git keeps in place of a large file: git-lfs/docs/spec.md."""
    found = _LFS.match(look.head)
    if found is None:
        return None
    size, oid = found["size"], found["oid"]
    parts = []
    if size is not None and len(size) <= _MOST_DIGITS:
        parts.append(f"the real file has {format_nbytes(int(size))}")
    if oid is not None:
        parts.append(f"its SHA-256 is {oid.decode()}")
    told = f": {', '.join(parts)}" if parts else ""
    return Text(
        "git-lfs",
        f"a Git LFS pointer of {format_nbytes(look.nbytes)} in place of the file{told}",
        "in the repository run git lfs install, then git lfs pull; or download the file from the site",
        "lfs-pointer",
    )


def _other_pointer(look: Look) -> Text | None:
    """Name the pointers of other tools that keep large files apart: git-annex, DVC, Hugging Face's Xet."""
    head = look.head
    if look.nbytes < 1 << 12 and b"annex/objects/" in head[:256]:
        remedy = "in the repository run git annex get with its name"
        return Text("git-annex", "a git-annex pointer in place of the file", remedy, "lfs-pointer")
    if head.startswith((b"outs:\n- md5:", b"outs:\n- hash:", b"md5: ")):
        remedy = "in the repository run dvc pull"
        return Text("dvc", "a DVC pointer in place of the file", remedy, "lfs-pointer")
    if head.startswith((b"# xet version", b"hash = ")):
        remedy = "download the file with hf download"
        return Text("xet", "a Xet pointer in place of the file", remedy, "lfs-pointer")
    return None


def _html(look: Look) -> Text | None:
    start = look.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:256].lower()
    is_html = start.startswith((b"<!doctype html", b"<html", b"<head", b"<script", b"<body"))
    if not is_html and not (start.startswith((b"<?xml", b"<!--")) and b"<html" in look.head.lower()):
        return None
    title = _TITLE.search(look.head)
    titled = f" titled {_quoted(title[1])}" if title is not None and title[1].strip() else ""
    return Text(
        "html",
        f"a web page (HTML){titled}, not the file itself",
        "the site gave a page instead, often a login, a confirmation or an error: open the link in a browser "
        "and see, then download the file itself",
        "html-page",
    )


def _xml(look: Look) -> Text | None:
    start = look.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith((b"<?xml", b"<Error>")):
        return None
    messages = [_quoted(found[1]) for found in _XML_MESSAGE.finditer(look.head[:_MOST_ERROR_NBYTES])][:2]
    if b"<Error>" in look.head:
        said = f" that says {', '.join(messages)}" if messages else ""
        return Text("xml-error", f"an error message of a storage service{said}", _GET_FILE)
    return Text("xml", "an XML document", _GET_FILE)


def _json(look: Look) -> Text | None:
    start = look.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not re.match(rb'\{\s*["}]|\[\s*[\[{"\d\]-]', start) or not _is_text(look.head):
        return None
    if b'"weight_map"' in start:
        remedy = "open the files that it lists, which lie beside it"
        return Text("shard-index", "the index of a model in several files", remedy)
    message = _MESSAGE.search(start) if look.nbytes <= _MOST_ERROR_NBYTES else None
    if message is not None:
        what = f"an error message (JSON) that says {_quoted(message[1])}"
        return Text("json-error", what, f"the site refused or did not find the file: {_GET_FILE}")
    return Text("json", "a JSON document", "look for the .pth, .pt or .bin file beside it")


def read_plain_text(look: Look) -> Text | None:
    """Name a text that has no mark of its own: code, a table, a configuration, or its first line."""
    head = look.head
    if not head or not _is_text(head):
        return None
    if _SOURCE.match(head.lstrip()):
        return Text("source", "program code, a text file", _GET_FILE)
    lines = [line for line in head.splitlines()[:_MOST_LINES] if line.strip()]
    if _is_table(lines):
        return Text("csv", "a table in a text file (CSV)", "read it with pandas.read_csv")
    if len(lines) > 1 and all(map(_YAML_LINE.match, lines[:-1])):
        return Text("yaml", "a YAML text, such as a configuration", "look for the checkpoint beside it")
    first = f" that begins with {_quoted(lines[0])}" if lines else ""
    return Text("text", f"a text file{first}", _GET_FILE)


def _is_table(lines: list[bytes]) -> bool:
    """Return whether the first two lines have as many commas, semicolons or tabs, and at least one."""
    if len(lines) < 2:
        return False
    return any(lines[0].count(mark) == lines[1].count(mark) > 0 for mark in (b",", b";", b"\t"))


def _is_text(head: bytes) -> bool:
    """Return whether bytes are UTF-8 that can be read; the last character may be cut in two."""
    for cut in range(4):
        try:
            text = head[: len(head) - cut].decode()
        except UnicodeDecodeError:
            continue
        return not _CONTROL.search(text) and bool(text.strip())
    return False


def _quoted(raw: bytes) -> str:
    text = " ".join(raw.decode("utf-8", "replace").split())
    return f"'{cut_text(escape_text(text), _MOST_QUOTED)}'"


MARKED_TEXTS: tuple[Reading, ...] = (_git_lfs, _other_pointer, _html, _xml, _json)
"""Texts that are told by what they begin with."""
