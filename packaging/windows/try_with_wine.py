"""Builds the installer with a stand-in for the program, runs it with Wine, and tells what it did.

    python packaging/windows/try_with_wine.py

Needs makensis, wine64 and xvfb-run. Says `ok`, or stops at the first thing that is wrong.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).with_name("installer.nsi")
UNINSTALL = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\CheckpointInspector"
STAND_IN = r"""
Unicode true
Target amd64-unicode
SilentInstall silent
RequestExecutionLevel user
OutFile "${OUT}"
Section
  FileOpen $0 "C:\said.txt" a
  FileSeek $0 0 END
  FileWrite $0 "$CMDLINE$\r$\n"
  FileClose $0
SectionEnd
"""


def compile_nsis(script: Path, out: Path, **defines: str | Path) -> None:
    """Build a program of NSIS; a warning is an error."""
    given = [f"-D{name}={value}" for name, value in {"OUT": out, **defines}.items()]
    command = [_find("makensis"), "-V1", "-WX", *given, str(script)]
    subprocess.run(command, check=True)  # noqa: S603 - a tool of whoever runs this


def wine(folder: Path, *command: str | Path, check: bool = True) -> str:
    """Run a program of Windows to its end, and give what it said."""
    environment = os.environ | {
        "WINEPREFIX": str(folder / "wine"),
        "HOME": str(folder),
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml=",
    }
    done = subprocess.run(  # noqa: S603 - as above
        [_find("xvfb-run"), "-a", _find("wine64", "wine", "/usr/lib/wine/wine64"), *map(str, command)],
        check=check,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout


def _find(*names: str) -> str:
    """Return the first of these programs that there is."""
    found = next(filter(None, map(shutil.which, names)), None)
    return found or sys.exit(f"{names[0]} is not installed")


def expect(*, it_is: bool, what: str) -> None:
    """Stop where something is wrong."""
    if not it_is:
        sys.exit(f"wrong: {what}")


def main(folder: Path) -> None:
    """Install, install again, and remove."""
    bundle = folder / "bundle"
    (bundle / "_internal").mkdir(parents=True)
    (bundle / "_internal" / "new.dll").write_text("new", encoding="utf-8")
    (bundle / "NOTICES.txt").write_text("notices", encoding="utf-8")
    stand_in, setup = folder / "stand_in.nsi", folder / "checkpoint-inspector-1.0.0-windows.exe"
    stand_in.write_text(STAND_IN, encoding="utf-8")
    for name in ("checkpoint-inspector", "checkpoint-inspector-window"):
        compile_nsis(stand_in, bundle / f"{name}.exe")
    compile_nsis(SCRIPT, setup, VERSION="1.0.0", BUNDLE=bundle)
    wine(folder, "wineboot", "-i", check=False)
    drive = folder / "wine" / "drive_c"

    wine(folder, setup, "/S")
    (program,) = drive.glob("users/*/AppData/Local/Programs/Checkpoint Inspector")
    expect(it_is=(program / "_internal" / "new.dll").is_file(), what="no files")
    expect(it_is="1.0.0" in wine(folder, "reg", "query", UNINSTALL, "/s"), what="no entry for Windows")
    expect(it_is=len([*drive.rglob("Checkpoint Inspector.lnk")]) == 1, what="no entry in the Start menu")

    (program / "_internal" / "old.dll").write_text("old", encoding="utf-8")
    (program / "mine.txt").write_text("mine", encoding="utf-8")
    wine(folder, setup, "/S")
    expect(it_is=not (program / "_internal" / "old.dll").exists(), what="a file of the older version stays")

    wine(folder, program / "uninstall.exe", "/S", f"_?={wine(folder, 'winepath', '-w', program).strip()}")
    (program / "uninstall.exe").unlink(missing_ok=True)  # which stays where it is told not to run from a copy
    left = [path.name for path in program.rglob("*")]
    expect(it_is=left == ["mine.txt"], what=f"left behind: {left}")
    expect(it_is="1.0.0" not in wine(folder, "reg", "query", UNINSTALL, check=False), what="the entry stays")
    said = [
        line.rpartition('" ')[2] for line in (drive / "said.txt").read_text(encoding="utf-8").splitlines()
    ]
    expect(it_is=said == ["desktop install"] * 2 + ["desktop remove"], what=f"called with {said}")
    sys.stdout.write("ok\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        main(Path(place))
