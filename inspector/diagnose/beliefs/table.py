"""All beliefs, in the order in which they are answered. A new one goes into the table of its kind."""

from __future__ import annotations

from inspector.diagnose.beliefs.belief import Belief
from inspector.diagnose.beliefs.devices import DEVICE_BELIEFS
from inspector.diagnose.beliefs.facts import gather_facts
from inspector.diagnose.beliefs.loading import LOADING_BELIEFS
from inspector.diagnose.beliefs.saving import SAVING_BELIEFS
from inspector.model.checkpoint import Checkpoint
from inspector.target.default_load import DefaultLoad
from inspector.target.machine.profile import Profile

BELIEFS = (*DEVICE_BELIEFS, *LOADING_BELIEFS, *SAVING_BELIEFS)


def answer_beliefs(checkpoint: Checkpoint, load: DefaultLoad, target: Profile) -> tuple[Belief, ...]:
    """Return what becomes of each belief for a file.

    Args:
        checkpoint: The file.
        load: What `torch.load(path)` does on the target.
        target: The machine where it is to be loaded.
    """
    facts = gather_facts(checkpoint, load, target)
    answers = ((row, row.answer(facts)) for row in BELIEFS)
    return tuple(
        Belief(
            id=row.id,
            claim=row.claim,
            truth=answer.truth,
            here=answer.here,
            why=answer.why,
            code=answer.code,
        )
        for row, answer in answers
    )
