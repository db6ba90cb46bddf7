"""What the export dialog shows, as frozen values: what is asked for, and what comes of it."""

from __future__ import annotations

from inspector.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One entry of a drop-down list: a stable id and the text to show."""

    id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportWish:
    """What shall be written.

    Attributes:
        kind: The id of the kind of export, see `session.export.kinds`.
        cast: The type that float32 weights become, or empty to leave them.
        ema: Whether the averaged weights are meant.
        exclude: Patterns of paths that are left out, with spaces between them.
        verify: How the copy is checked: `quick`, `full` or `torch`.
    """

    kind: str = "copy"
    cast: str = ""
    ema: bool = False
    exclude: str = ""
    verify: str = "quick"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportDraft:
    """What the export dialog asks about.

    Attributes:
        wish: What is asked for at present.
        kinds: The kinds that this file offers.
        destination: The proposed path, absolute; empty where the file itself is changed.
        summary: What will be changed, one sentence a line.
        warnings: What will be lost, or what to think of, one sentence a line.
        refusal: Why it cannot be written as asked, or empty.
        size: How large the copy will be, as text.
        can_cast: Whether weights can be cast.
        can_average: Whether there are averaged weights to choose.
        can_exclude: Whether something can be left out.
        can_verify: Whether there are several ways to check the copy.
    """

    wish: ExportWish
    kinds: tuple[Choice, ...]
    destination: str
    summary: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    refusal: str = ""
    size: str = ""
    can_cast: bool = False
    can_average: bool = False
    can_exclude: bool = False
    can_verify: bool = False

    @property
    def in_place(self) -> bool:
        """Whether the file itself is changed."""
        return not self.destination


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What was written.

    Attributes:
        title: What became of it, in a few words.
        destination: Where it stands.
        lines: What was done and how it was checked, one sentence a line.
        warnings: What is not in it, or what torch found wrong with it.
        is_copy: Whether it is another file than the one in the window.
        can_undo: Whether the file itself was changed, and can be given back.
        has_receipt: Whether there is a receipt to save.
    """

    destination: str
    lines: tuple[str, ...]
    title: str = "The copy is ready"
    warnings: tuple[str, ...] = ()
    is_copy: bool = True
    can_undo: bool = False
    has_receipt: bool = False
