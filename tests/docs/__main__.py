"""Write what is made in the pages: the reference of the command line, and what commands print."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.docs import reference, troubles
from tests.docs.pages import pages
from tests.docs.running import run_page

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
for made in (reference, troubles):
    made.PAGE.write_text(made.page(), encoding="utf-8", newline="\n")
wrong = []
for page in [path.resolve() for path in map(Path, sys.argv[1:])] or pages():
    with tempfile.TemporaryDirectory() as folder:
        wrong += run_page(page, Path(folder), update=True)
sys.exit("\n\n".join(wrong) or 0)
