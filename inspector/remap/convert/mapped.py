"""A container as it will be with the devices of a plan, for forms that write its objects anew."""

from __future__ import annotations

from inspector.containers.container import Container, first_storage_ids
from inspector.containers.tar.archive import relocate
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.machine import read_pickle
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.plan import Plan, with_viewed
from inspector.remap.relabel.rewrite import rewrite_pickle
from inspector.remap.relabel.tar import tar_locations


def mapped_container(container: Container, plan: Plan | None, progress: Progress) -> Container:
    """Give a container with the devices of a plan; the one given must not be used again.

    Raises:
        PlanError: A device is written in a way that cannot be changed.
        CancelledError: The work was cancelled.
    """
    if plan is None:
        return container
    plan = with_viewed(plan, container.storage_ids.values())
    if container.format == "tar":
        return relocate(container, tar_locations(container, plan))
    pickle = rewrite_pickle(container.stream, plan, progress=progress)
    stream = read_pickle(pickle, name="the new pickle", progress=progress)
    ids = first_storage_ids(stream.persistent_ids, DEFAULT_LIMITS)
    return replace(container, stream=stream, storage_ids=ids)
