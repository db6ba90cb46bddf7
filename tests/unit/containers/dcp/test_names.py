from __future__ import annotations

from inspector.containers.dcp_metadata import OWN_NAMES
from inspector.containers.opening import read_container
from inspector.containers.programs import count_globals
from tests.corpus import cases


def test_genuine_metadata_names_nothing_else() -> None:
    for case in cases(container="dcp"):
        for program in read_container(str(case.path)).programs:
            if program.name == ".metadata":
                names = set(count_globals([program]))
                assert {name for name in names if name.startswith("torch.distributed")} <= OWN_NAMES
