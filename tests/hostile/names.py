"""Names that attack whoever shows them: group 25. They are plain text, escaped and cut, everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.builders import zips
from tests.builders.pickles import call, dict_, name, number, proto, storage, stream, tensor, text
from tests.builders.zips import Record

Rows = dict[int, dict[str, tuple[Callable[[], bytes], dict[str, Any]]]]


def named(key: str) -> Callable[[], bytes]:
    data = stream(proto(), dict_((text(key), tensor(storage(), 2)), (text("v"), text(key))))
    return lambda: zips.checkpoint(data, {"0": bytes(8)})


def _record(key: str | bytes) -> Callable[[], bytes]:
    data = stream(proto(), dict_((text("a"), number(1))))
    return lambda: zips.checkpoint(
        data, {}, Record(name=b"archive/" + (key if isinstance(key, bytes) else key.encode()))
    )


CASES: Rows = {
    25: {
        "markup": (named('<img src="//server/share/x.png">'), {"paths": "^<img src="}),
        "right to left": (
            named("a\u202egnp.exe"),
            {"paths": r"^a\\u202egnp.exe$", "values": r"a\\\\u202egnp"},
        ),
        "an escape sequence": (named("a\x1b]0;title\x07b"), {"paths": r"^a\\u001b]0;title\\u0007b$"}),
        "lines": (named("a\nb\r\nc"), {"paths": r"^a\\u000ab\\u000d\\u000ac$"}),
        "half a character": (named("a\ud800b"), {"paths": r"^a\\ud800b$"}),
        "a slash and a tilde": (named("a/b~c"), {"paths": "^a~1b~0c$"}),
        "ten megabytes": (named("x" * 10_000_000), {"paths": "^10.0 MB, not shown$"}),
        "a megabyte": (named("x" * 1_000_000), {"paths": "^x{238}…[^…]{30,40}…x{238}$"}),
        "a thousand accents on one letter": (
            named("a" + "\u0301" * 1000),
            {"verdict": "weights-only", "answer": "accepts"},
        ),
        "quotes and braces": (named("\"'{}[]();\\"), {"document_nbytes": "", "tensors": 1}),
        "an import of an escape sequence": (
            lambda: zips.checkpoint(stream(proto(), call("m.a\x1bb"))),
            {"globals": r"^m.a\\u001bb$", "calls": r"m.a\\\\u001bb"},
        ),
        "an import of 60 kilobytes": (
            lambda: zips.checkpoint(stream(proto(), name("m." + "x" * 60_000))),
            {"globals": r"^m\.x{236}…[^…]{30,40}…x{238}$"},
        ),
        "a location of a megabyte": (
            lambda: zips.checkpoint(
                stream(proto(), tensor(storage(location="c" * 1_000_000), 2)), {"0": bytes(8)}
            ),
            {"verdict": "weights-only", "answer": "accepts"},
        ),
        "a record with an escape sequence": (
            _record("a\x1bb"),
            {"verdict": "weights-only", "answer": "accepts"},
        ),
        "a record that is no text": (
            _record(b"\xff\xfe"),
            {"answer": "errors", "reason": "UnicodeDecodeError"},
        ),
    }
}
