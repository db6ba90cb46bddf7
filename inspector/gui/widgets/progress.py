"""How far work is, how fast it goes and how long it will take, from what `Progress` shows now and then."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QProgressBar

from inspector.gui.theme.motion import is_still
from inspector.progress import Progress
from inspector.units import format_nbytes

POLL_MS = 100
_STEPS = 1000
_WINDOW_S = 3.0
_FIRST_GUESS_S = 0.4


def show_fraction(bar: QProgressBar, fraction: float | None) -> None:
    """Show a fraction from 0 to 1; while it is unknown a running bar, or an empty one if nothing may move."""
    if fraction is None and not is_still():
        bar.setRange(0, 0)
    else:
        bar.setRange(0, _STEPS)
        bar.setValue(round((fraction or 0.0) * _STEPS))


class ProgressBar(QProgressBar):
    """A bar that follows some work ten times a second, and says each time that it looked."""

    looked = Signal(object)  # at a `Progress`

    def __init__(self, spoken: str) -> None:
        super().__init__()
        self.setAccessibleName(spoken)
        self.setTextVisible(False)
        self._followed: Progress | None = None
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self.look)

    def follow(self, progress: Progress | None, *, soon: bool = False) -> None:
        """Follow other work, or none; the first look is at once, or as all others are."""
        self._followed = progress
        if progress is None:
            self._timer.stop()
            return
        if not soon:
            self.look()
        self._timer.start()

    def look(self) -> None:
        if self._followed is not None:
            self.looked.emit(self._followed)
            show_fraction(self, self._followed.fraction)


def format_seconds(seconds: float) -> str:
    """Return a duration as people say it: `8 s`, `2 min 5 s`, `1 h 4 min`."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


class Rate:
    """Measures the speed of one `Progress`; a new stage of the work starts the measurement again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._label = ""
        self._seen: deque[tuple[float, int]] = deque()

    def describe(self, progress: Progress) -> str:
        """Return how far the work is: `1.2 GB of 2.0 GB, 850 MB/s, 1 s left`, or `300 of 400, 1 s left`."""
        now, done, total = self._clock(), progress.done, progress.total
        if progress.label != self._label or (self._seen and done < self._seen[-1][1]):
            self._label = progress.label
            self._seen.clear()
        self._seen.append((now, done))
        while self._seen[0][0] < now - _WINDOW_S:
            self._seen.popleft()
        if total <= 0:
            return ""
        speed = self._speed()
        if progress.is_counted:
            parts = [f"{done:,} of {total:,}"]
        else:
            parts = [f"{format_nbytes(done)} of {format_nbytes(total)}"]
            parts += [f"{format_nbytes(round(speed))}/s"] if speed > 0 else []
        if speed > 0 and done < total:
            parts.append(f"{format_seconds((total - done) / speed)} left")
        return "  \u00b7  ".join(parts)

    def _speed(self) -> float:
        (first_at, first), (last_at, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_at - first_at) if last_at - first_at >= _FIRST_GUESS_S else 0.0
