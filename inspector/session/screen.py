"""What the window shows, as one frozen value: widgets never decide, they copy a `Screen`.

`Session` computes a new screen after each intention; the window compares it with the last one and changes
only what differs. A screen can be built and compared in a test without any widget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inspector.records import dataclass
from inspector.report.damage import NO_MARKS, Marks
from inspector.session.values.page import TakenPage, ValuesPage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspector.containers.source import Stamp
    from inspector.model.findings import Fix
    from inspector.progress import Progress
    from inspector.report.charts.bars import Chart
    from inspector.report.charts.modules import ModuleMap
    from inspector.report.details import FactGroup
    from inspector.report.outline.flat import FlatRows
    from inspector.report.outline.strip import Strip
    from inspector.report.overview import Overview
    from inspector.report.query import Query
    from inspector.report.tree import Tree
    from inspector.session.device_map import Landing
    from inspector.session.export.page import ExportPage
    from inspector.session.folder import FolderPage
    from inspector.session.jobs.pythons import PythonsPage
    from inspector.session.log import LogLine

Phase = Literal["empty", "opening", "checkpoints", "ready", "failed"]
Tone = Literal["good", "bad", "warning", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One entry of a drop-down list.

    Attributes:
        why: Why it cannot be chosen; empty where it can.
        tooltip: More about it; empty where there is no more.
    """

    id: str
    label: str
    why: str = ""
    tooltip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A short colored remark, with the longer text to show on request."""

    text: str
    tone: Tone
    tooltip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Banner:
    """The verdict, first thing to be read.

    Attributes:
        tone: `good` when the file simply loads on the target.
        verdict: What becomes of a load on the target, in one short sentence.
        aside: What to read behind it where there is room: the error, the advice, or where it was saved.
        headline: Where the tensors were saved, and what `torch.load` does there, in full.
        advice: What to do about it, or what is already settled; may be empty.
        error_text: The exact error that `torch.load(path)` raises on the target, or None.
        is_way_out: Whether the action makes a file that loads there, where this one does not.
        is_elsewhere: Whether it is about another machine than this one.
    """

    tone: Tone
    verdict: str
    aside: str
    headline: str
    advice: str
    error_text: str | None
    speaker: str = "torch.load"
    action: str = "Export fixed copy\u2026"
    is_way_out: bool = False
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """One row of the device map: an original device and where it goes.

    Attributes:
        color: Index of its color, see `Segment.color`.
        summary: `312 tensors, 1.2 GB`.
        choices: What the drop-down offers; `to` is among them.
        note: What stays behind and why (`3 step tensors stay on cpu`), or empty.
        is_missing: Whether the target has no such device as `to`.
    """

    device: str
    color: int
    summary: str
    to: str
    choices: tuple[str, ...]
    note: str
    is_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """One card of the findings page.

    Attributes:
        nodes: The tree nodes it speaks of, a few at most.
        query: A search that finds all of them; empty where none does.
        opens: A file for a button that opens it and says `opening`; or empty.
        fix: What the button of the card does, or None; `exports` where it goes on to a copy.
        button: What that button says.
        copies: What it copies instead, or empty.
        lines: Lines to be copied one by one, as (caption, line), the shortest that helps first.
        patch: A patch to be copied, as a unified diff; or empty.
    """

    id: str
    tone: Tone
    title: str
    detail: str
    nodes: tuple[int, ...] = ()
    count: int = 0
    query: str = ""
    opens: str = ""
    opening: str = ""
    fix: Fix | None = None
    exports: bool = False
    button: str = ""
    copies: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    steps: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    patch: str = ""

    @property
    def is_note(self) -> bool:
        """Whether nothing has to be done about it."""
        return self.tone in {"neutral", "good"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRow:
    """A part of the tree with a destination of its own: its pattern, as it is shown, and where it goes."""

    pattern: str
    label: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePage:
    """The loading snippet and the styles that this file offers."""

    styles: tuple[Choice, ...]
    style: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """How the file is loaded: by how many processes at once, and mapped or read."""

    ranks: int = 1
    mmap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPage:
    """What loading the file takes of the target's memory.

    Attributes:
        chart: A bar for each device, or None where loading fails.
        notes: What the bars do not say, a sentence each.
        is_tight: Whether it does not fit, or fails.
    """

    loading: Loading
    most_ranks: int
    can_map: bool
    chart: Chart | None
    notes: tuple[str, ...]
    is_tight: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPage:
    """What is known of the bytes of the file: nothing, or what reading all of them showed.

    Attributes:
        progress: The running check, or None.
    """

    progress: Progress | None = None
    tone: Tone = "neutral"
    lines: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePage:
    """Why a file could not be opened, and what to do: shown in place of the tree and pages.

    Attributes:
        where: Where, or empty.
        remedy: What to do, or empty.
        runs: What loading the file would run all the same, or empty.
        code: Code that loads the file all the same, or empty.
    """

    title: str
    what: str
    where: str
    remedy: str
    runs: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """What a search found in all.

    Attributes:
        size: The bytes of all that was found, or empty.
        query: The query, which tells what to highlight in a path.
        why: Why nothing was found, or empty.
        instead: The query that was meant most likely, or empty.
    """

    size: str
    query: Query
    why: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """All that the main window shows.

    `progress` is the running work of opening a file; poll its `label`, `fraction` every 100 ms. `stamp` is
    what the file looked like when it was read and `on_disk` what it looked like since, None when it was
    gone; `parts` are the files that it is read from, where there are several; `export` is None without an
    export.
    `folder` has the checkpoints of a folder that is none itself.
    `module_map` is None until the map was looked at; `marks` are the searches of the charts' parts that
    the selected row belongs to.
    `selected` is the tree node whose facts are shown, or None; `strip` has those in short, or the sum of
    several selected rows, and `can_go` is whether one was selected before it, and one after. `matches` is
    None without a search, else the ids of the matching tree nodes in order of display, `search` has what
    they are in all, and `flat` the rows as one list where that is shown in place of the tree.
    `devices` are those of the target of which one can be wanted, none where it has no two of a kind; `wanted`
    is the id of one.
    `python` names the Python whose torch stands for this machine, and `pythons` are those to choose from,
    None where nobody chooses.
    `device_map` is empty where nothing is mapped and there is the CPU alone; `no_map` is why nothing can be,
    `map_choices` are the devices that all tensors can be sent to, and `landing` is where the rows of the
    tree go, None where all stay. `error_text` is the pasted error
    message, `explanation` the answer to it, and `doctor` what is to be said about the target's GPUs.
    `sparks` is a small histogram for each tensor row, as heights from 0 to 8; empty before a scan.
    `scalars` are the values of tensors of one element, by row; None before they were read.
    `row_marks` are the rows that something is wrong with.
    `taken` is how far the files of rows that are dragged out are.
    `page` is the page that was turned to for this file, and `opens_on` the one that suits its verdict; each
    is empty as long as there is none.
    `is_checking` is whether only the tree is known yet: nothing else may be taken from such a screen.
    """

    phase: Phase
    title: str
    path: str
    stamp: Stamp | None = None
    on_disk: Stamp | None = None
    parts: tuple[str, ...] = ()
    progress: Progress | None = None
    failure: FailurePage | None = None
    folder: FolderPage | None = None
    banner: Banner | None = None
    safety: Chip | None = None
    targets: tuple[Choice, ...] = ()
    target: str = ""
    devices: tuple[Choice, ...] = ()
    wanted: str = ""
    tree: Tree | None = None
    query: str = ""
    matches: tuple[int, ...] | None = None
    selected: int | None = None
    device_map: tuple[DeviceRow, ...] = ()
    no_map: str = ""
    landing: Landing | None = None
    branches: tuple[BranchRow, ...] = ()
    charts: tuple[Chart, ...] = ()
    forecast: ForecastPage | None = None
    overview: Overview | None = None
    tensor: tuple[FactGroup, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    error_text: str = ""
    explanation: FindingRow | None = None
    doctor: tuple[FindingRow, ...] = ()
    code: CodePage | None = None
    file: tuple[FactGroup, ...] = ()
    check: CheckPage = CheckPage()
    export: ExportPage | None = None
    status: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    can_export: bool = False
    can_undo: bool = False
    strip: Strip | None = None
    can_go: tuple[bool, bool] = (False, False)
    search: SearchPage | None = None
    flat: FlatRows | None = None
    values: ValuesPage = ValuesPage()
    sparks: tuple[tuple[int, ...], ...] = ()
    map_choices: tuple[str, ...] = ()
    module_map: ModuleMap | None = None
    marks: tuple[str, ...] = ()
    edits: tuple[str, str] = ("", "")
    log: tuple[LogLine, ...] = ()
    profiles: tuple[str, ...] = ()
    python: str = ""
    pythons: PythonsPage | None = None
    page: str = ""
    opens_on: str = ""
    is_checking: bool = False
    taken: TakenPage | None = None
    scalars: Mapping[int, str] | None = None
    row_marks: Marks = NO_MARKS

    @property
    def is_on_its_way(self) -> bool:
        """Whether a file is being opened, or the checkpoints of a folder are read."""
        return self.phase == "opening" or (self.folder is not None and bool(self.folder.reading))

    @property
    def awaits_map(self) -> bool:
        """Whether there will be a device map: its room is kept."""
        saved = () if self.tree is None or self.no_map else self.tree.colors
        return self.is_checking and not {"cpu"}.issuperset(saved)

    @property
    def shown_page(self) -> str:
        """The page to show; empty where nobody knows yet."""
        return self.page or self.opens_on

    @property
    def searched(self) -> Query | None:
        """What is searched for, as it was understood."""
        return None if self.search is None else self.search.query
