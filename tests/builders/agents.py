"""Zips of Stable-Baselines3 made by hand."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.builders.exports import saved
from tests.builders.pickles import dict_, number, op, proto, storage, stream, tensor, text
from tests.builders.scripts import WEIGHTS
from tests.builders.zips import Record, build_zip

POLICY = "stable_baselines3.common.policies.ActorCriticPolicy"


def pickled(body: bytes) -> dict[str, str]:
    """A value that JSON cannot hold."""
    return {":type:": "<class 'x'>", ":serialized:": base64.b64encode(stream(proto(), body)).decode()}


def attributes(**values: Any) -> bytes:
    return json.dumps({"gamma": 0.9, "net_arch": [8, {"pi": 4}], **values}, indent=4).encode()


def parameters(location: str = "cpu") -> bytes:
    body = dict_(
        (text("pi.weight"), tensor(storage("0", location=location, numel=4), 2, 2)),
        (text("pi.bias"), tensor(storage("1", location=location, numel=4), 4)),
    )
    return saved(body, "0", "1")


def optimizer(location: str = "cpu") -> bytes:
    """That of an optimizer of both."""
    state = dict_(
        (number(0), dict_((text("exp_avg"), tensor(storage("0", location=location, numel=4), 2, 2)))),
        (number(1), dict_((text("exp_avg"), tensor(storage("1", location=location, numel=4), 4)))),
    )
    ids = op("EMPTY_LIST") + op("MARK") + number(0) + number(1) + op("APPENDS")
    groups = op("EMPTY_LIST") + dict_((text("params"), ids)) + op("APPEND")
    return saved(dict_((text("state"), state), (text("param_groups"), groups)), "0", "1")


def agent(*more: Record, method: int = 0, **records: bytes | None) -> bytes:
    """A zip; two underscores in the name of a record are a dot, and None leaves one out."""
    content: dict[str, bytes | None] = {
        "data": attributes(),
        "pytorch_variables__pth": saved(op("NONE")),
        "policy__pth": parameters(),
        "policy__optimizer__pth": optimizer(),
        **records,
    }
    return build_zip(
        *(
            Record(name=name.replace("__", "."), data=data, method=method)
            for name, data in content.items()
            if data is not None
        ),
        *more,
        Record(name="_stable_baselines3_version", data=b"2.3.2"),
        Record(name="system_info.txt", data=b"- OS: Linux\n- Python: 3.11.2\n- PyTorch: 2.3.0+cu121\n"),
    )


__all__ = ["POLICY", "WEIGHTS", "agent", "attributes", "optimizer", "parameters", "pickled"]
