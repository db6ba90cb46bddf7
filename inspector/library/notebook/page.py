"""What a notebook shows of a checkpoint: verdict, devices, findings and the tree, as HTML without scripts.

All that comes from the file is text: cut, escaped, and with its invisible characters made visible. Without
the style sheet, which some places take out, it is a list that can be unfolded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from inspector.library.notebook.rows import text_of, tree_lines
from inspector.library.notebook.style import SCOPE, mark, style
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding
from inspector.model.totals import DeviceTotal, device_totals
from inspector.report.colors import device_colors, device_name
from inspector.report.tree import build_tree
from inspector.safety.verdict import SafetyVerdict
from inspector.safety.words import verdict_words
from inspector.units import format_count, format_nbytes

_MOST_DEVICES, _MOST_FINDINGS = 16, 4
_MOST_PATH, _MOST_TITLE = 200, 160
_WORSE = ("error", "warning")


def page_of(checkpoint: Checkpoint, safety: SafetyVerdict, findings: Collection[Finding]) -> str:
    """Return the page."""
    totals = device_totals(checkpoint)
    tree = build_tree(checkpoint, device_colors(total.device for total in totals))
    lines = (
        f"<style>{style()}</style>",
        *_head(checkpoint, safety),
        *_devices(totals, tree.colors),
        *_findings(findings),
        '<div class="tree">',
        *tree_lines(tree),
        "</div>",
    )
    return f'<div class="{SCOPE}">{"".join(lines)}</div>'


def _head(checkpoint: Checkpoint, safety: SafetyVerdict) -> Iterator[str]:
    tensors = format_count(len(checkpoint.tensors), "tensor")
    facts = f"{checkpoint.format}, {tensors}, {format_nbytes(checkpoint.file_nbytes)}"
    kind = "line bad" if safety.may_harm else "line"
    yield f'<div class="head">{text_of(checkpoint.path, _MOST_PATH)}</div>'
    yield f'<div class="line soft">{text_of(facts)}</div>'
    yield f'<div class="{kind}">{text_of(verdict_words(safety), _MOST_TITLE)}</div>'


def _devices(totals: tuple[DeviceTotal, ...], colors: dict[str, int]) -> Iterator[str]:
    whole = sum(total.nbytes for total in totals)
    marks = {total.device: mark(colors[total.device]) for total in totals}
    if whole:
        stored = [total for total in totals[:_MOST_DEVICES] if total.nbytes]
        shares = [(marks[total.device], 100 * total.nbytes / whole) for total in stored]
        parts = "".join(f'<span class="{name}" style="width:{share:.2f}%"></span>' for name, share in shares)
        yield f'<div class="bar" aria-hidden="true">{parts}</div>'
    yield '<div class="line">'
    for total in totals[:_MOST_DEVICES]:
        held = f"{format_count(total.tensors, 'tensor')}, {format_nbytes(total.nbytes)}"
        name = f'<i class="dot {marks[total.device]}"></i>{text_of(device_name(total.device))}'
        yield f'<span class="chip">{name} <span class="soft">{held}</span></span>'
    more = len(totals) - _MOST_DEVICES
    if more > 0:
        yield f'<span class="soft">{format_count(more, "more device")}</span>'
    yield "</div>"


def _findings(findings: Collection[Finding]) -> Iterator[str]:
    shown = [finding for finding in findings if finding.severity in _WORSE]
    for finding in shown[:_MOST_FINDINGS]:
        kind = "line bad" if finding.severity == "error" else "line"
        yield f'<div class="{kind}">{finding.severity}: {text_of(finding.title, _MOST_TITLE)}</div>'
    more = len(shown) - _MOST_FINDINGS
    if more > 0:
        yield f'<div class="line soft">{format_count(more, "finding")} more</div>'
