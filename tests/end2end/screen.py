"""A real X screen with a window manager: what a user's hand does, done by pointer and keys.

Needs the programs of `TOOLS`. Only processes that were started here are ever ended.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

TOOLS = ("Xvfb", "openbox", "pcmanfm", "xdotool", "xwininfo", "xprop", "dbus-daemon", "import", "convert")
POLL_S = 0.05
STILL_S = 0.4
PATIENCE_S = 20.0
"""How long to wait for what a user has done, before doing it again: a busy machine loses keys and drags."""
ATTEMPTS = 4
Something = TypeVar("Something")


def missing_tools() -> list[str]:
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def wait_until(look: Callable[[], Something], what: str, timeout_s: float = 120) -> Something:
    """Look again and again until there is something, and give it."""
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s} s for {what}")
        time.sleep(POLL_S)
    return found


def repeat_until(
    act: Callable[[], object], look: Callable[[], Something], what: str, patience_s: float = PATIENCE_S
) -> Something:
    """Do something again, as people do who see nothing of it, until there is something; return that."""

    def act_and_look() -> Something | None:
        act()
        with suppress(TimeoutError):
            return wait_until(look, what, patience_s)
        return None

    found = wait_until(act_and_look, what)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A rectangle of the screen, in pixels: a window without its frame."""

    x: int
    y: int
    width: int
    height: int

    @property
    def middle(self) -> tuple[int, int]:
        return self.x + self.width // 2, self.y + self.height // 2


class RealScreen:
    """One X server with a session bus and a window manager, and folders of its own for everything.

    Attributes:
        folder: Where the home folder, the logs and pictures go.
        environment: What programs on this screen are started with.
    """

    def __init__(self, folder: Path, *, width: int = 1280, height: int = 900) -> None:
        self.folder = folder
        self.environment = dict(os.environ)
        for name in ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "QT_QPA_PLATFORMTHEME", "XDG_CURRENT_DESKTOP"):
            self.environment.pop(name, None)
        self._size = f"{width}x{height}x24"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self._make_folders()
        for attempt in range(ATTEMPTS):
            try:
                self._start_all()
            except TimeoutError:  # two servers that start at one moment may take one number
                self.__exit__()
                if attempt == ATTEMPTS - 1:
                    raise
            except BaseException:
                self.__exit__()
                raise
            else:
                break
        return self

    def _start_all(self) -> None:
        options = ("-screen", "0", self._size, "-nolisten", "tcp", "-displayfd", "{}")
        number = self._start_server("Xvfb", *options)
        self.environment["DISPLAY"] = f":{number}"
        address = self._start_server("dbus-daemon", "--session", "--nofork", "--print-address={}")
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = address
        self.start("openbox", "openbox")
        wait_until(self._has_window_manager, "the window manager", timeout_s=120)

    def __exit__(self, *_: object) -> None:
        while self._processes:
            self.stop(self._processes[-1])

    # ------------------------------------------------------------------ processes

    def start(self, name: str, *command: str | os.PathLike[str], **extra: str) -> subprocess.Popen[bytes]:
        """Start a program on this screen; what it says goes to `NAME.log`."""
        with self._log_file(name).open("ab") as log:
            process = subprocess.Popen(
                command, env=self.environment | extra, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._processes.append(process)
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End a program that was started here."""
        self._processes.remove(process)
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self, name: str) -> str:
        """Return what a program has printed so far."""
        return self._log_file(name).read_text(encoding="utf-8", errors="replace")

    def remove_log(self, name: str) -> None:
        self._log_file(name).unlink(missing_ok=True)

    def run(self, *command: str | os.PathLike[str]) -> str:
        """Run a program on this screen to its end, and give its output."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command} gave {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    # ------------------------------------------------------------------ windows

    def windows(self, title: str) -> list[int]:
        """Find the visible windows whose title matches this pattern as a whole."""
        return wait_until(lambda: self._search(title), "the list of windows")[0]

    def _search(self, title: str) -> tuple[list[int]] | None:
        """Search once; None when a window went away meanwhile, at which xdotool gives up."""
        try:
            found = self.do("search", "--onlyvisible", "--name", f"^{title}$")
        except RuntimeError as error:
            return None if "X Error" in str(error) else ([],)
        return ([int(line) for line in found.split()],)

    def all_windows(self) -> list[int]:
        """Return all windows that the window manager knows, dialogs among them."""
        said = self.run("xprop", "-root", "_NET_CLIENT_LIST")
        return [int(number, 16) for number in re.findall(r"0x[0-9a-f]+", said)]

    def wait_window(self, title: str, timeout_s: float = 60) -> int:
        """Wait for a window with exactly this title."""
        try:
            return wait_until(lambda: self.windows(re.escape(title)), f"a window {title!r}", timeout_s)[-1]
        except TimeoutError:
            self.screenshot(self.folder / "missing-window.png")
            raise

    def active_window(self) -> int:
        """Return the window that has the keyboard; 0 when none has."""
        with suppress(RuntimeError):
            return int(self.do("getactivewindow"))
        return 0

    def open_dialog(self, window: int, keys: str) -> int:
        """Open a dialog by keys: another window that takes the keyboard."""
        self.activate(window)
        return self.press_until(keys, lambda: (now := self.active_window()) != window and now, "a dialog")

    def wait_active(self, window: int) -> None:
        wait_until(lambda: self.active_window() == window, "the window to have the keyboard")

    def wait_gone(self, *windows: int) -> None:
        wait_until(lambda: not set(windows) & set(self.all_windows()), "the windows to close")

    def activate(self, window: int) -> None:
        self.do("windowactivate", window)
        self.wait_active(window)

    def close(self, window: int) -> None:
        """Close a window as its user does, through the window manager.

        Another one that comes to the front between the click and the keys is closed in its place.
        """

        def ask() -> None:
            if window in self.all_windows():
                self.activate(window)
                self.press("alt+F4")

        repeat_until(ask, lambda: window not in self.all_windows(), "the window to close", patience_s=5)

    def process_of(self, window: int) -> int:
        return int(self.do("getwindowpid", window))

    def wait_for_helpers(self, window: int) -> None:
        """Wait for the child processes of a window's program, such as the one that looks for GPUs."""
        tasks = Path(f"/proc/{self.process_of(window)}/task")

        def nobody_works() -> bool:
            with suppress(OSError):  # a thread that ended while we looked
                return not any(children.read_text() for children in tasks.glob("*/children"))
            return False

        wait_until(nobody_works, "the program's helpers to end", timeout_s=120)

    def place(self, window: int) -> Place:
        """Measure a window; xdotool would count the frame twice under openbox."""
        said = self.run("xwininfo", "-id", str(window))
        found = re.findall(r"^ *([\w -]+): +(-?\d+)$", said, re.MULTILINE)
        number = {label: int(value) for label, value in found}
        return Place(
            x=number["Absolute upper-left X"],
            y=number["Absolute upper-left Y"],
            width=number["Width"],
            height=number["Height"],
        )

    def put(self, window: int, x: int, y: int, width: int, height: int) -> None:
        """Put the corner of a window's frame there, and give what is within it this size."""
        self.do("windowmove", window, x, y)
        self.do("windowsize", window, width, height)
        wait_until(
            lambda: (now := self.place(window)).width == width and now.height == height, "the new size"
        )

    def screenshot(self, file: Path, window: int | str = "root", *options: str) -> Path:
        """Take a picture of the screen or of one window."""
        self.run("import", "-window", str(window), *options, str(file))
        return file

    def picture_at_rest(self, file: Path, window: int) -> tuple[int, int, float]:
        """Take the picture of a window once nothing moves in it; give its width, height and brightness."""
        snapshot = self.folder / "snapshot.ppm"  # PNG would be compressed each time, and hold the time of day

        def same_as_before() -> bool:
            before = snapshot.read_bytes() if snapshot.exists() else b""
            time.sleep(STILL_S)
            return self.screenshot(snapshot, window).read_bytes() == before

        snapshot.unlink(missing_ok=True)
        wait_until(same_as_before, f"the window to come to rest, see {snapshot}")
        file.parent.mkdir(exist_ok=True)
        told = self.run("convert", snapshot, "-format", "%w %h %[fx:mean]", "-write", "info:", file).split()
        return int(told[0]), int(told[1]), float(told[2])

    # ------------------------------------------------------------------ pointer and keys

    def do(self, *arguments: object) -> str:
        """Run a command of xdotool."""
        return self.run("xdotool", *map(str, arguments))

    def press(self, *keys: str) -> None:
        self.do("key", "--clearmodifiers", *keys)

    def press_until(self, keys: str, look: Callable[[], Something], what: str) -> Something:
        """Press keys until there is something: the window may still be busy with something else."""
        return repeat_until(partial(self.press, keys), look, what, patience_s=2)

    def type(self, text: str) -> None:
        self.do("type", "--clearmodifiers", "--delay", "5", text)

    def double_click(self, spot: tuple[int, int], look: Callable[[], Something], what: str) -> Something:
        """Double-click until there is something."""
        return repeat_until(partial(self._double_click, spot), look, what)

    def _double_click(self, spot: tuple[int, int]) -> None:
        self.do("mousemove", "--sync", *spot)
        time.sleep(0.3)  # a file manager highlights what is under the pointer first
        self.do("click", "--repeat", "2", "--delay", "90", "1")

    def drag(
        self,
        start: tuple[int, int],
        end: tuple[int, int],
        look: Callable[[], Something],
        what: str,
        key: str | None = None,
    ) -> Something:
        """Drag, with a key held if one is named, until there is something.

        The key is held until then: programs ask for keys when they get to an event, not as they were at it. A
        target that takes longer to agree than the drag lasts has lost it.
        """
        if key is not None:
            self.do("keydown", key)
        try:
            return repeat_until(partial(self._drag, start, end), look, what)
        finally:
            if key is not None:
                self.do("keyup", key)

    def _drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Drag with pointer events only: slowly past the threshold of GTK, then on to the end."""
        lifted = (start[0] + 20, start[1] + 15)
        self.do("mousemove", "--sync", *start)
        time.sleep(0.2)
        self.do("mousedown", "1")
        time.sleep(0.2)
        self._glide(start, lifted, 10)
        time.sleep(0.2)
        self._glide(lifted, end, 25)
        time.sleep(0.4)
        self.do("mouseup", "1")

    def _glide(self, start: tuple[int, int], end: tuple[int, int], steps: int) -> None:
        for step in range(1, steps + 1):
            self.do("mousemove", *(a + (b - a) * step // steps for a, b in zip(start, end, strict=True)))
            time.sleep(0.015)

    # ------------------------------------------------------------------ behind it

    def _start_server(self, *command: str) -> str:
        """Start a server that tells its address through the descriptor that takes the place of `{}`."""
        reader, writer = os.pipe()
        with os.fdopen(reader) as answers:
            with self._log_file(command[0]).open("ab") as log, os.fdopen(writer, "wb"):
                process = subprocess.Popen(
                    [word.format(writer) for word in command],
                    env=self.environment,
                    pass_fds=[writer],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            self._processes.append(process)
            address = answers.readline().strip()
        if not address:
            raise RuntimeError(f"{command[0]} did not start: {self.log(command[0])}")
        return address

    def _log_file(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _make_folders(self) -> None:
        for variable, name in (
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "home/.config"),
            ("XDG_DATA_HOME", "home/.local/share"),
            ("XDG_CACHE_HOME", "home/.cache"),
            ("XDG_STATE_HOME", "home/.local/state"),
            ("XDG_RUNTIME_DIR", "run"),
        ):
            (self.folder / name).mkdir(mode=0o700, parents=True)
            self.environment[variable] = str(self.folder / name)

    def _has_window_manager(self) -> bool:
        with suppress(RuntimeError):
            return "0x" in self.run("xprop", "-root", "_NET_SUPPORTING_WM_CHECK")
        return False
