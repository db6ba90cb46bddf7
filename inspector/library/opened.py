"""What is known of an open checkpoint, for all objects of the library that are about it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from inspector.containers.collector import collector_paused
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, Storage
from inspector.model.findings import Finding
from inspector.progress import Progress
from inspector.records import replace
from inspector.safety.unread import advice, judge_unread
from inspector.safety.verdict import SafetyVerdict, judge
from inspector.safety.words import LEVELS


class Opened:
    """A file as it was when it was opened, and what follows from that, computed when it is asked for.

    Attributes:
        facts: Everything known of the file, under the name that it was opened by.
        seconds: How long that took.
        file: Its absolute path: the working directory may change before it is read again.
    """

    def __init__(self, path: str, progress: Progress | None = None) -> None:
        """Open a file.

        Raises:
            CheckpointError: It cannot be read.
        """
        self.file = os.path.abspath(path)  # noqa: PTH100 - a text that may be no UTF-8
        self._folder = os.getcwd()  # noqa: PTH109 - the same
        started = time.perf_counter()
        with telling_what_runs(), collector_paused():
            self.facts = open_checkpoint(path, progress=progress, beside=True)
        self.seconds = time.perf_counter() - started

    @cached_property
    def located(self) -> Checkpoint:
        """The same facts under the absolute path, of a folder and the files with its storages."""
        facts = replace(self.facts, path=self.file)
        if not facts.parts:
            return facts
        return replace(facts, storages=tuple(map(self._located_storage, facts.storages)))

    def _located_storage(self, storage: Storage) -> Storage:
        part = os.path.join(self._folder, storage.part) if storage.part else ""  # noqa: PTH118 - as above
        return storage._replace(part=part)

    @cached_property
    def safety(self) -> SafetyVerdict:
        """The verdict on what loading it runs."""
        return judge(self.facts)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What its owner should know, worst first."""
        return diagnose(self.facts, self.safety)


@contextmanager
def telling_what_runs() -> Iterator[None]:
    """Add to an error what loading the file would run all the same, where any of it was seen.

    An advice that would have somebody load such a file is taken back.
    """
    try:
        yield
    except CheckpointError as error:
        seen = judge_unread(error) if error.programs else None
        if seen is not None:
            error.remedy = advice(error, seen) or None
            if seen.sentence:
                error.add_note(f"{LEVELS[seen.verdict].upper()}: {seen.sentence}")
        raise
