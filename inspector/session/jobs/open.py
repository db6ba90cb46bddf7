"""Opening files, and seeing whether the open one has changed on disk since it was read."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from inspector.containers.belonging import INDEX
from inspector.containers.opening import stamp_at
from inspector.containers.source import Stamp
from inspector.errors import CancelledError, CheckpointError
from inspector.overriding import override
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.resources import demo_path
from inspector.session.document import Document, open_document
from inspector.session.folder import FolderColumn, FolderRow, FolderState, judge_rows, list_folder
from inspector.session.jobs.machines import Machines
from inspector.session.pasted import WHICH_FILE, is_script_name
from inspector.session.present.failure import CANNOT_OPEN, failure_page, open_failure_page
from inspector.session.screen import FailurePage
from inspector.session.state import ASK, FOLDER, OPEN, PROBE, State
from inspector.session.targets import target_of
from inspector.target.profile import Profile
from inspector.units import cut_text, escape_text

_MOST_RECENT = 8
_NO_SCRIPT = "This script cannot be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unread:
    """Why a file could not be opened, and whether it is no longer there."""

    page: FailurePage
    gone: bool = False


class Files(Machines):
    """The intentions about the file."""

    def open(self, path: str) -> None:
        """Open a file in place of the current one; a profile becomes its target, a script is judged."""
        if is_script_name(path):
            self.open_script(path)
            return
        name = path.lower()
        if not name.endswith(".json") or name.endswith(INDEX):
            self._open_file(path)
            return

        def take(answer: object) -> None:  # True or False, or an error, which opening it will explain
            (self.use_machine if answer is True else self._open_file)(path)

        from inspector.target.profile_file import is_profile  # noqa: PLC0415 - few files end in .json

        self._run("sniff", "looking at a file", lambda _: is_profile(path), take, take)

    def open_script(self, path: str) -> None:
        """Read a script and judge it with the open file, or with the next one."""
        from inspector.diagnose.script.read import read_script  # noqa: PLC0415 - few windows are asked

        self._run(
            "script",
            "reading a script",
            lambda _: read_script(path),
            self._on_script,
            self._on_no_script,
            is_about_file=False,
        )

    def _on_script(self, script: tuple[str, str]) -> None:
        name, text = script
        if self._ready is not None:
            self._show(replace(self._state, error_text=text, script_name=name, waiting=None, page="findings"))
            return
        self._show(replace(self._state, waiting=script))
        if self._state.phase != "opening":
            what = f"{cut_text(escape_text(name), 80)} is a script, and no checkpoint is open"
            remedy = "open the file that it loads: the script is then judged with it"
            error = CheckpointError(what, remedy=remedy)
            self._desk.view.show_notice(failure_page(error, WHICH_FILE))

    def _on_no_script(self, error: Exception) -> None:
        self._show(self._state)
        self._desk.view.show_notice(failure_page(error, _NO_SCRIPT))

    def open_demo(self) -> None:
        """Open the demo checkpoint that ships with the program."""
        self.open(str(demo_path()))

    def reload(self) -> None:
        """Read the file again; the target, the map and the search stay."""
        if self._state.path:
            self._read(replace(self._state, export=None))

    def close(self) -> None:
        """Close the file and go back to the empty window."""
        self._show(self._state.without_file())

    def cancel_opening(self) -> None:
        """Stop reading the file; without it the window is empty."""
        if self._state.job(OPEN) is not None:
            self.close()

    def look_at_file(self) -> None:
        """Check whether the file on disk is still the one that was read, and what came beside it."""
        if self._ready is not None:
            path = self._state.path
            self._run("look", "looking at the file", partial(_look, path), self._on_looked)

    def _on_looked(self, found: tuple[Stamp | None, int]) -> None:
        (stamp, beside), (known, changes) = found, self._state.beside
        is_news = known not in {0, beside}
        self._show(replace(self._state, on_disk=stamp, beside=(beside, changes + is_news)))

    def _open_file(self, path: str) -> None:
        """Open a file; what was asked while there was none is answered with it."""
        asked = self._state.error_text if self._state.phase == "empty" else ""
        if asked.strip():
            self._show(replace(self._state.without_job(ASK), waiting=("", asked)))
        self._read(State(path=path))

    def _read(self, kept: State) -> None:
        """Read the file of a state again; what was chosen for it there stays."""
        asked = replace(
            self._state.without_file(),
            phase="opening",
            path=kept.path,
            page=kept.page,
            chosen=kept.chosen,
            branches=kept.branches,
            query=kept.query,
            export=kept.export,
        )
        self._run(
            OPEN,
            "opening",
            partial(_open, asked),
            self._on_opened,
            lambda error: self._on_unread(_Unread(page=failure_page(error, CANNOT_OPEN))),
            state=asked,
        )

    def _on_opened(self, found: Document | FolderState | _Unread) -> None:
        if isinstance(found, _Unread):
            self._on_unread(found)
            return
        path = str(Path(self._state.path).absolute())
        recent = (path, *(known for known in self._state.recent if known != path))[:_MOST_RECENT]
        if isinstance(found, FolderState):
            with self._desk.together():
                self._show(replace(self._state, recent=recent))
                self._show_folder(found)
            return
        self._show(replace(_opened(self._state, found), recent=recent))
        if self._state.waiting is not None:
            self._on_script(self._state.waiting)
        self._desk.when_judged(self._on_judged)

    def _on_judged(self) -> None:
        self._start_probe()
        self.look_at_file()  # it may have changed while it was read

    def _on_unread(self, unread: _Unread) -> None:
        known = self._state.recent
        recent = tuple(path for path in known if path != self._state.path) if unread.gone else known
        self._show(replace(self._state, phase="failed", failure=unread.page, recent=recent))

    # --- a folder of checkpoints --------------------------------------------------------------------------

    def sort_folder(self, column: FolderColumn, *, descending: bool) -> None:
        """Sort the checkpoints of a folder."""
        folder = self._state.folder
        if folder is not None:
            self._show(replace(self._state, folder=replace(folder, order=(column, descending))))

    def stop_folder(self) -> None:
        """Leave the checkpoints unread that are not read yet."""
        folder = self._state.folder
        if folder is not None:
            self._show(replace(self._state.without_job(FOLDER), folder=replace(folder, stopped=True)))

    def _show_folder(self, folder: FolderState) -> None:
        self._show(replace(self._state, phase="checkpoints", folder=folder))
        self._start_probe()
        if self._state.job(PROBE) is None:
            self._go_on()

    def _go_on(self) -> None:
        """Read the next checkpoints, as long as there are any."""
        folder = self._state.folder
        if folder is None or folder.stopped or self._state.job(FOLDER) is not None:
            return
        if folder.judged < len(folder.rows):
            left = folder.rows[folder.judged :]
            work = partial(judge_rows, left, self._state.machine)
            self._run(FOLDER, "reading", work, self._on_judged_rows, self._on_not_judged_rows)

    def _on_judged_rows(self, rows: tuple[FolderRow, ...]) -> None:
        folder = self._state.folder
        if folder is not None:
            start, end = folder.judged, folder.judged + len(rows)
            known = (*folder.rows[:start], *rows, *folder.rows[end:])
            with self._desk.together():
                self._show(replace(self._state, folder=replace(folder, rows=known, judged=end)))
                self._go_on()

    def _on_not_judged_rows(self, error: Exception) -> None:
        self._show(self._state)
        if not isinstance(error, CancelledError):
            self._desk.view.show_notice(failure_page(error, "The folder could not be read further"))

    @override
    def _on_probed(self, profile: Profile) -> None:
        super()._on_probed(profile)
        self._go_on()

    @override
    def _on_not_probed(self, error: Exception) -> None:
        super()._on_not_probed(error)
        self._go_on()


def _open(asked: State, progress: Progress) -> Document | FolderState | _Unread:
    """Open a file or list a folder, or explain why it cannot be opened, which needs a look at it."""
    try:
        return list_folder(asked.path, progress) or open_document(asked.path, progress)
    except CancelledError:
        raise
    except CheckpointError as error:
        page = open_failure_page(error, asked.path, target_of(asked))
        return _Unread(page=page, gone=not os.path.lexists(asked.path))


def _opened(state: State, document: Document) -> State:
    return replace(state, phase="ready", document=document, on_disk=document.checkpoint.stamp)


def _look(path: str, _progress: Progress) -> tuple[Stamp | None, int]:
    return stamp_at(path), _changed_beside(path)


def _changed_beside(path: str) -> int:
    """Return when a file was last added to or removed from the folder that a file or a folder is in."""
    try:
        return os.stat(os.path.dirname(os.path.abspath(path))).st_mtime_ns  # noqa: PTH100, PTH116, PTH120 - as above
    except (OSError, ValueError):
        return 0
