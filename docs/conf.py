"""The site of these pages: `make docs` builds it into build/site, for reading from the disk as well.

The pages are plain Markdown, so that a forge shows them as they are. What only a site has is made here:
the navigation, a dark picture beside each light one, and the change log from the top of the repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from pygments.lexer import RegexLexer, bygroups
from pygments.token import Generic

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_DOCS = Path(__file__).parent
_ROOT = _DOCS.parent

NAVIGATION = {
    "Start": ("install", "gallery/README"),
    "Guide": (
        "guide/inside",
        "guide/loading",
        "guide/export",
        "guide/optimizer",
        "guide/values",
        "guide/compare",
        "guide/traceback",
        "guide/script",
        "guide/myths",
        "guide/damaged",
        "guide/many-files",
        "guide/ssh",
        "guide/unknown-files",
        "guide/big-files",
    ),
    "Reference": ("cli", "json", "library", "formats", "forms", "recovery", "rescue", "troubleshooting"),
    "About": ("comparison", "security-policy", "contributing", "changelog"),
    "For developers": (
        "architecture",
        "extending/finding",
        "extending/error",
        "extending/command",
        "extending/page",
        "extending/format",
        "decisions",
        "security",
        "simulation",
        "benchmarks",
    ),
}
"""Every page but the first, in the order of the sidebar; a test finds a page that is missing."""

project = "Checkpoint Inspector"
author = "the developers of Checkpoint Inspector"
project_copyright = author
release = re.search(r'__version__ = "(.*)"', (_ROOT / "inspector" / "__init__.py").read_text("utf-8"))[1]
version = release
extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "index"
nitpicky = True
smartquotes = False  # what is pasted must be as it is typed
exclude_patterns = ["conf.py"]

# Markdown as forges read it. Links to headings are checked with the anchors that both make.
myst_heading_anchors = 4
myst_url_schemes = ["http", "https", "mailto"]

# Nothing is fetched from other hosts: furo brings its own fonts and scripts.
html_theme = "furo"
html_title = f"{project} {release}"
html_logo = html_favicon = "../resources/icons/app.svg"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
html_show_search_summary = False  # it is fetched, which browsers refuse to pages from the disk
html_theme_options = {"navigation_with_keys": False}
pygments_style, pygments_dark_style = "tango", "native"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

_LIGHT, _DARK = "gallery/light/", "gallery/dark/"


class _Console(RegexLexer):
    """Commands after their prompt, and what they print, which is no shell."""

    name = "Console"
    tokens = {"root": [(r"(\$ )(.*\n)", bygroups(Generic.Prompt, Generic.Strong)), (r".*\n", Generic.Output)]}  # noqa: RUF012


def setup(app: Sphinx) -> None:
    """Connect what is made here."""
    app.add_lexer("console", _Console)
    app.connect("source-read", _add_to_source)
    app.connect("doctree-read", _add_dark_pictures, priority=100)  # before pictures are gathered


def _add_to_source(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to the first page, and take the change log from where it stands."""
    if page == "changelog":
        source[0] = (_ROOT / "CHANGELOG.md").read_text("utf-8").replace("](docs/", "](")
    if page == root_doc:
        for caption, entries in NAVIGATION.items():
            listed = "\n".join(entry for entry in entries if (_DOCS / f"{entry}.md").exists())
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"


def _add_dark_pictures(_app: Sphinx, document: nodes.document) -> None:
    """Put the same picture in dark beside each light one of the gallery, and show one of the two."""
    if document["source"].endswith("gallery/README.md"):
        return
    for picture in list(document.findall(nodes.image)):
        if _LIGHT in picture["uri"]:
            dark = picture.copy()
            dark["uri"] = picture["uri"].replace(_LIGHT, _DARK)
            picture["classes"] = [*picture["classes"], "only-light"]
            dark["classes"] = [*dark["classes"], "only-dark"]
            picture.parent.insert(picture.parent.index(picture) + 1, dark)
