"""What the export dialog shows, as frozen values: a part of the `Screen`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from inspector.records import dataclass

if TYPE_CHECKING:
    from inspector.progress import Progress
    from inspector.report.tree import Tree
    from inspector.session.screen import Choice, FailurePage

ExportStage = Literal["looking", "draft", "running", "done", "failed"]
OUT, PARTLY, WRITTEN, NO_CHOICE = 0, 1, 2, 3
"""What a box shows; `NO_CHOICE` of what the form does not hold at all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boxes:
    """The rows of a file with a box each, by the id of the node.

    Attributes:
        bound: The rows whose boxes cannot be clicked, being items of a tuple.
    """

    tree: Tree
    states: bytes
    bound: frozenset[int] = frozenset()

    def state_of(self, nodes: Iterable[int]) -> int:
        """Return what a box shows that stands for several rows."""
        states = {self.states[node] for node in nodes} - {NO_CHOICE}
        if not states:
            return NO_CHOICE
        return states.pop() if len(states) == 1 else PARTLY


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportWish:
    """What to write.

    Attributes:
        kind: The id of the kind of export, see `session.export.kinds`.
        cast: The type that float32 weights become, or empty to leave them.
        exclude: Patterns of paths that are left out, with spaces between them.
        verify: How the copy is checked: `quick`, `full` or `torch`.
    """

    kind: str = "copy"
    cast: str = ""
    ema: bool = False
    exclude: str = ""
    verify: str = "quick"
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportDraft:
    """What the export dialog asks about.

    Attributes:
        destination: The proposed path, absolute; empty where the file itself is changed.
        omissions: What will not be written: how much, then what, one sentence a line.
        refusal: Why it cannot be written as asked, or empty.
        nbytes: The same in bytes; 0 where that is not known.
        boxes: The rows of the file, with what becomes of them; None where nothing can be left out.
        is_way_out: Whether it changes anything, and nothing is known that keeps the result from loading.
    """

    wish: ExportWish
    kinds: tuple[Choice, ...]
    destination: str
    summary: tuple[str, ...]
    omissions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: str = ""
    size: str = ""
    nbytes: int = 0
    boxes: Boxes | None = None
    unused: tuple[str, ...] = ()
    can_cast: bool = False
    can_average: bool = False
    can_exclude: bool = False
    can_verify: bool = False
    can_change_hidden: bool = False
    makes_folder: bool = False
    is_way_out: bool = True

    @property
    def in_place(self) -> bool:
        """Whether the file itself is changed."""
        return not self.destination


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What was written.

    Attributes:
        lines: What was done and how it was checked, one sentence a line.
        omissions: What is not in it, as was asked for: how much, then what.
        warnings: What is lost, or what torch found wrong with it.
        is_copy: Whether it is another file than the one in the window.
        can_undo: Whether the file itself was changed, and can be given back.
        done: What was done, where it is not a copy with other devices or in another form.
        loads: Whether what was written simply loads on the machine that it is judged for.
    """

    destination: str
    lines: tuple[str, ...]
    done: str = ""
    loads: bool = False
    omissions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_copy: bool = True
    can_undo: bool = False
    has_receipt: bool = False

    @property
    def title(self) -> str:
        """What was done, in a few words."""
        return self.done or ("The copy is ready" if self.loads else "The copy is written")


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """What exists at the path to write to.

    Attributes:
        found: A `file` that could be replaced, nothing yet (`free`), or what cannot be written to (`bad`).
        note: What is to be said about it, or empty.
    """

    path: str
    found: Literal["free", "file", "bad"]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPage:
    """How far an export is: asked about, carried out, or ended. An undo and a receipt pass through it too.

    Attributes:
        stage: `looking` while a draft is worked out, `draft` when it can be carried out, `running`, and at
            the end `done` or `failed`.
        draft: What is asked about; None before the first draft is there, and for an undo.
        matches: The ids of the rows that were found; None without a search.
        title: What is being done, in a few words, while it runs.
        progress: The running work, or None.
        result: What was done, or None.
        failure: Why nothing was done, or None.
    """

    stage: ExportStage
    draft: ExportDraft | None = None
    query: str = ""
    matches: tuple[int, ...] | None = None
    destination: Destination | None = None
    title: str = ""
    progress: Progress | None = None
    stopping: bool = False
    result: ExportResult | None = None
    failure: FailurePage | None = None
    cancelled: bool = False
