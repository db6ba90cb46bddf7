"""`inspector.snippet`: Python code that loads a file."""

from __future__ import annotations

from inspector.library.sources import CheckpointLike, Map, opened_of, rules_of
from inspector.library.telling import Told, told
from inspector.remap.plan import device_map, refuse_other_than_devices
from inspector.snippet.styles.table import render
from inspector.target.profile import Profile
from inspector.target.wish import THIS, parse_wish


def snippet(
    source: CheckpointLike,
    *,
    target: str = THIS,
    map: Map = (),  # noqa: A002 - the command line's word
    style: str | None = None,
    progress: Told = None,
) -> str:
    """Return Python code that loads a file.

    Args:
        source: A path, or an open checkpoint.
        target: The machine that the code is for, as `--target` takes it. For `this` the code finds out where
            it runs.
        map: Where saved devices go: `"cuda:*=cpu"`, several of them in a list, or `{"cuda:*": "cpu"}`.
        style: `plain`, `resume`, `module`, `lightning`, ...; None for the one that fits the file best.
        progress: Called with each `Step` of the work; what it raises ends the work.

    Raises:
        PlanError: The file offers no such style, or a rule or the target is wrong.
        CheckpointError: The file cannot be read.
    """
    said, wish = rules_of(map), parse_wish(target)
    refuse_other_than_devices(said)
    machine = wish.profile(lambda: Profile(id=THIS, label="this machine"))
    with told(progress) as steps:
        facts = opened_of(source, steps).facts
    mapping = device_map(facts, said)
    return render(
        facts, style=style, target=machine, mapping=mapping, path=facts.path, is_exact=bool(mapping)
    )
