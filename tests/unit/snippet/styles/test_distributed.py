"""The styles for several ranks, as text; `tests/torch/test_snippets_distributed.py` runs them."""

from __future__ import annotations

import ast

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.resources import demo_path
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.snippet.rows import THIS, checkpoint, optimizer, tensor

WEIGHTS = checkpoint(tensor("m", "w", device="cuda:0"), tensor("m", "v", device="cuda:1"))
CUDA, XPU, MPS = (parse_target(word) for word in ("2xcuda", "xpu", "mps"))
WITH_OWN_DEVICE = "torch._utils._rebuild_wrapper_subclass"


def write(rows: Checkpoint, target: Profile, style: str = "distributed") -> str:
    return render(rows, style=style, target=target, path="best.pth")


def test_weights_on_gpus() -> None:
    assert write(WEIGHTS, CUDA) == (
        "import os\n\n"
        "import torch\nimport torch.distributed as dist\n"
        "from torch.nn.parallel import DistributedDataParallel\n\n"
        "# Start one process per device: torchrun --nproc-per-node=COUNT script.py\n"
        'local_rank = int(os.environ["LOCAL_RANK"])\n'
        'device = f"cuda:{local_rank}"\n'
        "torch.cuda.set_device(device)\n"
        'dist.init_process_group("nccl")\n\n'
        "checkpoint = torch.load(\n"
        '    "best.pth",\n'
        '    map_location={"cuda:0": device, "cuda:1": device},\n'
        "    weights_only=True,\n"
        ")\n\n"
        "# The model is yours, built as it was when this file was saved.\n"
        "m.to(device)\n"
        'm.load_state_dict(checkpoint["m"])\n'
        "m = DistributedDataParallel(m)\n\n"
        "# No rank may overwrite the file while another is still reading it.\n"
        "dist.barrier()\n"
    )


@table(
    ("target", "backends"),
    [
        (CPU_ONLY, ["gloo"]),
        (MPS, ["gloo"]),
        (CUDA, ["nccl"]),
        (XPU, ["xccl"]),
        (THIS, ["nccl", "xccl", "gloo"]),
    ],
)
@table("style", ["distributed", "distributed-broadcast"])
def test_backend(target: Profile, backends: list[str], style: str) -> None:
    text = write(WEIGHTS, target, style)
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    starts = [node for node in calls if ast.unparse(node.func) == "dist.init_process_group"]
    assert [node.args[0].value for node in starts] == backends
    assert ("local_rank" in text) == (backends != ["gloo"])


@table(
    ("rows", "expected"),
    [
        (checkpoint(tensor("m", "w")), None),
        (WEIGHTS, "{"),
        (checkpoint(*WEIGHTS.tensors, optimizers=(optimizer("o"),)), '"cpu"'),
        (checkpoint(*WEIGHTS.tensors, names=(WITH_OWN_DEVICE,)), '"cpu"'),
        (checkpoint(tensor("m", "w", device="cpu:0")), '"cpu"'),
    ],
)
def test_map_location(rows: Checkpoint, expected: str | None) -> None:
    text = write(rows, CUDA)
    assert ("map_location" in text) == (expected is not None)
    assert expected is None or f"map_location={expected}" in text
    assert "{" not in write(rows, CPU_ONLY)


def test_demo_with_all_of_its_state() -> None:
    demo = open_checkpoint(str(demo_path()))
    text = write(demo, CUDA)
    order = ["torch.load(", "model.to(", "model.load_", "Parallel(model)", "optimizer.", "barrier"]
    assert sorted(order, key=text.index) == order
    text = write(demo, CUDA, "distributed-broadcast")
    assert "states = [None] * 3\nif dist.get_rank() == 0:\n    checkpoint = torch.load(" in text
    assert "dist.broadcast_object_list(states, src=0)\noptimizer.load_state_dict(states[0])\n" in text


def test_broadcast_of_weights_alone() -> None:
    text = write(checkpoint(tensor("module.w")), CPU_ONLY, "distributed-broadcast")
    assert "states" not in text
    assert text.endswith(
        "if dist.get_rank() == 0:\n"
        '    state_dict = torch.load("best.pth", weights_only=True)\n'
        '    consume_prefix_in_state_dict_if_present(state_dict, "module.")\n'
        "    model.load_state_dict(state_dict)\n\n"
        "# Wrapping a model sends the weights of rank 0 to all ranks.\n"
        "model = DistributedDataParallel(model)\n"
    )


def test_whole_module_is_loaded_and_then_moved() -> None:
    rows = checkpoint(tensor("._parameters", "w", device="cuda:0"), root="module")
    text = write(rows, CUDA)
    assert "Yours" not in text
    assert text.index("model = torch.load(") < text.index("model.to(device)\nmodel = Distributed")


def test_loss_is_no_model_to_wrap() -> None:
    rows = checkpoint(tensor("net", "l.weight"), tensor("criterion", "pos_weight", role="other"))
    text = write(rows, CUDA)
    assert 'criterion.to(device)\ncriterion.load_state_dict(checkpoint["criterion"])\n' in text
    assert "net = DistributedDataParallel(net)" in text
    assert "DistributedDataParallel(criterion)" not in text
