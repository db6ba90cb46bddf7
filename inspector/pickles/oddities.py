"""Oddities: what a stream does that no honest writer does, or that readers understand differently."""

from __future__ import annotations

from enum import StrEnum

from inspector.overriding import override
from inspector.records import dataclass


class OddityKind(StrEnum):
    """What is odd. Verdicts compare kinds; sentences are for people."""

    APPEND_ON_OTHER = "append-on-other"
    BUILD_ON_NAME = "build-on-name"
    BUILD_ON_OTHER = "build-on-other"
    BUILD_ON_SET = "build-on-set"
    BUILD_ON_STORAGE = "build-on-storage"
    BUILD_TWICE = "build-twice"
    CHANGED_LATER = "changed-later"
    EXTENSION_CODE = "extension-code"
    FRAME_IN_FRAME = "frame-in-frame"
    FRAME_STRADDLE = "frame-straddle"
    HUGE_MEMO_SLOT = "huge-memo-slot"
    ODD_ITEMS = "odd-items"
    OUT_OF_BAND_BUFFER = "out-of-band-buffer"
    SETITEM_ON_OTHER = "setitem-on-other"
    STACK_GLOBAL_OPERANDS = "stack-global-operands"
    TEXT_FLOAT = "text-float"
    TEXT_INT = "text-int"
    # Those that only the reader of the file can see.
    COMPUTED_HEADER = "computed-header"
    RIVAL_RECORD = "rival-record"
    TWO_FORMATS = "two-formats"
    UNREAD_RIVAL = "unread-rival"
    UNREAD_RIVALS = "unread-rivals"


class StreamFault(StrEnum):
    """What stops real unpicklers and is no oddity: honest writers write it."""

    ARGUMENTS = "arguments"
    """Arguments of a call are no tuple: torch's restricted unpickler takes any collection."""
    BUILD_OF_NONE = "build-of-none"
    NO_NUMBER = "no-number"
    """A number in digits is none."""
    LONG_FRAME = "long-frame"
    """A frame goes on behind the end: Python reads it whole."""
    UNDECODABLE_NAME = "undecodable-name"
    UNDECODABLE_TEXT = "undecodable-text"
    UNKNOWN_PROTOCOL = "unknown-protocol"
    """Python stops at it; the restricted unpickler of torch does not mind."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """One oddity."""

    kind: OddityKind
    offset: int  # the byte of the instruction, within its stream
    values: tuple[str, ...] = ()

    @override
    def __str__(self) -> str:
        """Return the sentence with its place."""
        return f"{_SENTENCES[self.kind].format(*self.values)} (byte {self.offset:,})"


_SENTENCES = {
    OddityKind.APPEND_ON_OTHER: "something is appended to {}",
    OddityKind.BUILD_ON_NAME: "the state of {} is set",
    OddityKind.BUILD_ON_OTHER: "the state of {} is set",
    OddityKind.BUILD_ON_SET: "the state of {} is set",
    OddityKind.BUILD_ON_STORAGE: "the state of {} is set",
    OddityKind.BUILD_TWICE: "the state of one object is set twice",
    OddityKind.CHANGED_LATER: "something is put into {} after its contents were copied",
    OddityKind.EXTENSION_CODE: "extension code {} names whatever the loading program registered",
    OddityKind.FRAME_IN_FRAME: "a frame begins before the last one ends",
    OddityKind.FRAME_STRADDLE: "an instruction crosses the end of its frame",
    OddityKind.HUGE_MEMO_SLOT: "a memo slot is too large for a real unpickler",
    OddityKind.ODD_ITEMS: "a dictionary gets a key without a value",
    OddityKind.OUT_OF_BAND_BUFFER: "the pickle needs a buffer that is not in it",
    OddityKind.SETITEM_ON_OTHER: "an item is set on {}",
    OddityKind.STACK_GLOBAL_OPERANDS: "a name to import is computed while loading",
    OddityKind.TEXT_FLOAT: "a number is written in a way that readers understand differently",
    OddityKind.TEXT_INT: "an integer is written in a way that readers understand differently",
    OddityKind.COMPUTED_HEADER: "the magic number or the protocol version is computed while loading",
    OddityKind.RIVAL_RECORD: "several records could be data.pkl, and programs differ in which one they read",
    OddityKind.TWO_FORMATS: (
        "the file is valid in two formats at once, and programs differ in which one they read"
    ),
    OddityKind.UNREAD_RIVAL: "one of them cannot be read: {}",
    OddityKind.UNREAD_RIVALS: "only {} of {} others were read",
}
