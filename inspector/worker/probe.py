"""`python -m inspector.worker.probe`: what is found on this machine, by the script that others run, too."""

from __future__ import annotations

import runpy

from inspector.resources import PROBE, resource_path

if __name__ == "__main__":
    runpy.run_path(str(resource_path(PROBE)), run_name="__main__")
