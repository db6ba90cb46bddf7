"""Archives of torch.export and torch.package made by hand."""

from __future__ import annotations

import json
from typing import Any

from tests.builders.pickles import dict_, proto, storage, stream, tensor, text
from tests.builders.scripts import WEIGHTS
from tests.builders.zips import Record, build_zip


def meta(*sizes: int, device: str = "cpu", index: int | None = None, **more: Any) -> dict[str, Any]:
    steps = [1]
    for size in reversed(sizes[1:]):
        steps.insert(0, steps[0] * size)
    return {
        "dtype": 7,
        "sizes": [{"as_int": size} for size in sizes],
        "requires_grad": False,
        "device": {"type": device, "index": index},
        "strides": [{"as_int": step} for step in steps[: len(sizes)]],
        "storage_offset": {"as_int": 0},
        "layout": 7,
        **more,
    }


def payload(
    record: str, *sizes: int, is_param: bool = True, pickled: bool = False, **more: Any
) -> dict[str, Any]:
    return {
        "path_name": record,
        "is_param": is_param,
        "use_pickle": pickled,
        "tensor_meta": meta(*sizes, **more),
    }


def config(**rows: Any) -> bytes:
    """The list of weights, or of constants."""
    return json.dumps({"config": rows}).encode()


def graph(*devices: str) -> bytes:
    nodes = [
        {
            "name": f"zeros_{number}",
            "target": "torch.ops.aten.zeros.default",
            "inputs": [{"arg": {"as_device": {"type": device, "index": 0}}}, {"arg": {"as_int": 1}}],
        }
        for number, device in enumerate(devices)
    ]
    return json.dumps({"graph_module": {"graph": {"nodes": nodes}}}).encode()


def saved(root: bytes | None = None, *keys: str) -> bytes:
    """A file of torch.save with a tensor, to stand within an archive."""
    body = root or dict_((text("x"), tensor(storage("0", numel=4), 4)))
    return build_zip(
        Record(name="a/data.pkl", data=stream(proto(), body)),
        *(Record(name=f"a/data/{key}", data=WEIGHTS) for key in keys or ("0",)),
        Record(name="a/version", data=b"3\n"),
    )


def exported(*more: Record, **records: bytes) -> bytes:
    """An archive of torch.export; two underscores in the name of a record are a slash."""
    return build_zip(
        *(Record(name=f"m/{name.replace('__', '/')}", data=data) for name, data in records.items()),
        *more,
        Record(name="m/archive_format", data=b"pt2"),
        Record(name="m/archive_version", data=b"0"),
        Record(name="m/.data/version", data=b"6\n"),
    )


def packaged(*more: Record, **pickles: bytes) -> bytes:
    """An archive of torch.package with these pickles; the storage 0 has four floats."""
    return build_zip(
        Record(name="p/.data/0.storage", data=WEIGHTS),
        *(Record(name=f"p/model/{name}.pkl", data=data) for name, data in pickles.items()),
        *more,
        Record(name="p/.data/extern_modules", data=b"torch\ncollections\n"),
        Record(name="p/.data/version", data=b"6\n"),
    )
