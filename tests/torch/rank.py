"""One rank of several: `rank.py CASES.json OUT.json SECONDS` runs the code of each case, and trains one step.

A case names its code, the port where its ranks meet, whether an optimizer is restored, and what to wrap: a
folder of DCP's is read by code that leaves both to its reader. What comes out are all parameters as numbers.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import fsdp

LOAD, SHARD = torch.load, fsdp.fully_shard
# What wraps a model waits, when it is let go, for a thread that waits for Python: now and then for ever.
KEPT: list[dict[str, Any]] = []


def fresh() -> Any:
    torch.manual_seed(int(os.environ["RANK"]))  # no two ranks begin alike
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 1))


def step(model: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    model(torch.arange(8.0).reshape(2, 4)).square().mean().backward()
    optimizer.step()


def load_no_file(source: Any, *options: Any, **more: Any) -> Any:
    if isinstance(source, str):
        sys.exit("only rank 0 reads the file")
    return LOAD(source, *options, **more)


def shard(names: dict[str, Any], model: Any) -> None:
    """Shard the parameters, and make the optimizer of the shards, as the code tells its reader to."""
    SHARD(model)
    names["optimizer"] = torch.optim.Adam(model.parameters(), lr=0.1)


def whole(parameter: Any) -> Any:
    return parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter


def run(case: dict[str, Any]) -> dict[str, Any]:
    os.environ["MASTER_PORT"] = str(case["port"])
    model = fresh()
    names: dict[str, Any] = dict.fromkeys(("model", "net"), model)
    names["optimizer"] = torch.optim.Adam(model.parameters(), lr=0.1)
    if case["group"]:
        dist.init_process_group("gloo")
    if case["only_first_reads"] and os.environ["RANK"] != "0":
        torch.load = load_no_file  # what is sent is loaded as well, out of memory
    KEPT.append(names)
    fsdp.fully_shard = partial(shard, names)
    exec(compile(case["code"], "snippet", "exec"), names)
    model = names["net"] if "net." in case["code"] or "(net)" in case["code"] else names["model"]
    loaded = [whole(parameter).tolist() for parameter in model.parameters()]
    if not case["optimizer"]:
        names["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, names["optimizer"])
    stepped = [whole(parameter).tolist() for parameter in model.parameters()]
    dist.barrier()
    dist.destroy_process_group()
    return {"wrapper": type(model).__name__, "loaded": loaded, "stepped": stepped}


if __name__ == "__main__":
    faulthandler.dump_traceback_later(float(sys.argv[3]))  # where it waits, for who has to find out why
    results = []
    for case in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        torch.load = LOAD
        results.append(run(case))
    Path(sys.argv[2]).write_text(json.dumps(results), encoding="utf-8")
    os._exit(0)  # with all that is kept
