"""Screens built by hand, and a session that shows them: what the window is tried with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from inspector.model.findings import Fix
from inspector.records import replace
from inspector.report.charts.bars import Bar, Chart, Segment
from inspector.report.details import FactGroup
from inspector.report.outline.strip import Strip
from inspector.report.overview import Overview, OverviewGroup, OverviewLine
from inspector.report.tree import Node, Tree
from inspector.session.export.page import Destination, ExportDraft, ExportPage, ExportWish
from inspector.session.screen import (
    Banner,
    Chip,
    Choice,
    CodePage,
    DeviceRow,
    FailurePage,
    FindingRow,
    ForecastPage,
    Loading,
    Screen,
)
from inspector.session.view import View
from inspector.units import format_count, format_nbytes, format_shape

CUDA_ERROR = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)
CODE = """import torch

checkpoint = torch.load(
    "best.pth",
    map_location={"cuda:0": "cpu", "cuda:1": "cpu"},  # saved on two GPUs
    weights_only=True,
)
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
start_epoch = checkpoint["epoch"] + 1
"""


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A tensor or a value at a path of names."""

    names: tuple[str, ...]
    device: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    text: str = ""

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * (2 if self.dtype == "bfloat16" else 4) if self.device else 0


def make_node(**fields: object) -> Node:
    blank = {
        "parent": -1,
        "row": 0,
        "kind": "group",
        "name": "",
        "children": [],
        "index": -1,
        "devices": (),
        "device_text": "",
        "shape_text": "",
        "type_text": "",
        "nbytes": 0,
        "tensors": 0,
        "text": "",
    }
    return Node(**{**blank, **fields})


def make_tree(leaves: list[Leaf], colors: dict[str, int]) -> Tree:
    """Build the tree of some leaves, with the sums of every folder."""
    nodes = [make_node()]
    known: dict[tuple[str, ...], int] = {(): 0}
    tensors: list[int] = []
    for leaf in leaves:
        for depth in range(1, len(leaf.names) + 1):
            path = leaf.names[:depth]
            if path in known:
                continue
            above = known[path[:-1]]
            known[path] = len(nodes)
            nodes[above].children.append(len(nodes))
            row = len(nodes[above].children) - 1
            nodes.append(make_node(parent=above, row=row, name=path[-1], path=".".join((*path, ""))))
        node_id = known[leaf.names]
        _fill(nodes, node_id, leaf)
        if leaf.device:
            tensors.append(node_id)
    for node in nodes:
        if node.kind == "group":
            node.device_text = ", ".join(device for device, _ in node.devices)
            node.type_text = format_count(node.tensors, "tensor") if node.tensors else ""
    values = tuple(place for place, node in enumerate(nodes) if node.kind == "value")
    return Tree(nodes=tuple(nodes), tensor_nodes=tuple(tensors), value_nodes=values, colors=colors)


def _fill(nodes: list[Node], node_id: int, leaf: Leaf) -> None:
    node = nodes[node_id]
    node.kind = "tensor" if leaf.device else "value"
    node.path = ".".join(leaf.names)
    node.type_text = leaf.dtype
    node.text = leaf.text
    if not leaf.device:
        return
    node.shape_text = format_shape(leaf.shape)
    node.device_text = leaf.device
    while node_id >= 0:
        node = nodes[node_id]
        node.nbytes += leaf.nbytes
        node.tensors += 1
        sums = dict(node.devices)
        sums[leaf.device] = sums.get(leaf.device, 0) + leaf.nbytes
        node.devices = tuple(sorted(sums.items(), key=lambda item: -item[1]))
        node_id = node.parent


def training_leaves() -> list[Leaf]:
    """A ResNet-like model over two GPUs, with Adam's state, a scheduler and some values."""
    parameters: list[tuple[tuple[str, ...], str, tuple[int, ...]]] = [
        (("conv1", "weight"), "cuda:0", (64, 3, 7, 7)),
        (("bn1", "weight"), "cuda:0", (64,)),
        (("bn1", "bias"), "cuda:0", (64,)),
    ]
    for stage, width in ((1, 64), (2, 128), (3, 256), (4, 512)):
        device = "cuda:0" if stage < 4 else "cuda:1"
        for block in range(2):
            at = (f"layer{stage}", str(block))
            parameters.append(((*at, "conv1", "weight"), device, (width * 2, width, 3, 3)))
            parameters.append(((*at, "conv2", "weight"), device, (width * 2, width * 2, 3, 3)))
            parameters.append(((*at, "bn1", "weight"), device, (width * 2,)))
    parameters.append((("fc", "weight"), "cuda:1", (1000, 1024)))
    parameters.append((("fc", "bias"), "cuda:1", (1000,)))
    leaves = [
        Leaf(names=("epoch",), dtype="int", text="41"),
        Leaf(names=("best_accuracy",), dtype="float", text="0.7643"),
    ]
    leaves += [
        Leaf(names=("model", *names), device=device, shape=shape) for names, device, shape in parameters
    ]
    for names, device, shape in parameters:
        at = ("optimizer", "state", ".".join(names))
        leaves.append(Leaf(names=(*at, "step"), device="cpu", shape=()))
        leaves.append(Leaf(names=(*at, "exp_avg"), device=device, shape=shape))
        leaves.append(Leaf(names=(*at, "exp_avg_sq"), device=device, shape=shape))
    leaves.append(Leaf(names=("optimizer", "param_groups", "0", "lr"), dtype="float", text="0.0003"))
    leaves.append(Leaf(names=("optimizer", "param_groups", "0", "betas"), dtype="tuple", text="(0.9, 0.999)"))
    leaves.append(Leaf(names=("scheduler", "last_epoch"), dtype="int", text="41"))
    leaves.append(Leaf(names=("rng_state",), device="cpu", shape=(5056,), dtype="uint8"))
    leaves.append(
        Leaf(names=("config", "experiment"), dtype="str", text="'resnet34-imagenet-two-gpus-cosine-warmup'")
    )
    return leaves


COLOURS = {"cpu": -1, "cuda:0": 0, "cuda:1": 1, "cuda:2": 2, "cuda:3": 3}


def _charts(tree: Tree, mapping: dict[str, str]) -> tuple[Chart, ...]:
    root = tree.nodes[0]
    before = tuple(
        Segment(label=device, color=COLOURS.get(device, 5), nbytes=size) for device, size in root.devices
    )
    sums: dict[str, int] = {}
    for device, size in root.devices:
        to = mapping.get(device, device)
        sums[to] = sums.get(to, 0) + size
    after = tuple(
        Segment(label=device, color=COLOURS.get(device, 5), nbytes=size) for device, size in sums.items()
    )
    total = format_nbytes(root.nbytes)
    shares = {"optimizer state": 0.664, "parameters": 0.332, "buffers": 0.0035, "random state": 0.0005}
    roles = tuple(
        Bar(label=name, segments=(Segment(label=name, color=-1, nbytes=size),), text=format_nbytes(size))
        for name, size in ((name, round(root.nbytes * share)) for name, share in shares.items())
    )
    return (
        Chart(
            title="Memory by device",
            bars=(
                Bar(label="As saved", segments=before, text=total),
                Bar(label="After the map", segments=after, text=f"{total} of 16 GB"),
            ),
        ),
        Chart(title="What the bytes are for", bars=roles),
    )


def empty_screen(recent: tuple[str, ...] = ()) -> Screen:
    return Screen(phase="empty", title="Checkpoint Inspector", path="", recent=recent)


TARGETS = (
    Choice(id="this", label="This machine - CPU only"),
    Choice(id="cuda", label="A machine with 1 CUDA GPU"),
    Choice(id="2xcuda", label="A machine with 2 CUDA GPUs"),
    Choice(id="mps", label="Apple silicon"),
)


def device_rows(tree: Tree, mapping: dict[str, str]) -> tuple[DeviceRow, ...]:
    rows = []
    for device, size in tree.nodes[0].devices:
        count = sum(1 for node in tree.tensor_nodes if tree.nodes[node].device_text == device)
        rows.append(
            DeviceRow(
                device=device,
                color=COLOURS.get(device, 5),
                summary=f"{format_count(count, 'tensor')}, {format_nbytes(size)}",
                to=mapping.get(device, device),
                choices=("cpu", "cuda:0", "cuda:1", "mps"),
                note="kept: Adam's step and RNG state" if device == "cpu" else "",
            )
        )
    return tuple(rows)


def ready_screen(leaves: list[Leaf] | None = None, mapping: dict[str, str] | None = None) -> Screen:
    """A training checkpoint from two GPUs, looked at on a machine without any."""
    tree = make_tree(training_leaves() if leaves is None else leaves, COLOURS)
    mapping = {"cuda:0": "cpu", "cuda:1": "cpu"} if mapping is None else mapping
    return replace(
        empty_screen(("/home/ada/runs/best.pth", "/data/zoo/yolo-v9/weights/last.ckpt")),
        phase="ready",
        title="best.pth - Checkpoint Inspector",
        path="/home/ada/runs/2026-11-19/resnet34/best.pth",
        banner=Banner(
            tone="bad",
            verdict="torch.load stops on this machine.",
            aside=CUDA_ERROR,
            headline="Saved on cuda:0 (112 MB) and cuda:1 (352 MB). On this machine, torch.load stops:",
            advice="Map both to cpu: load with the code below, or export a copy that simply loads.",
            error_text=CUDA_ERROR,
        ),
        safety=Chip(
            text="Weights only",
            tone="good",
            tooltip="Loads with weights_only=True: nothing but tensors and plain values.",
        ),
        targets=TARGETS,
        target="this",
        devices=(),
        wanted="",
        tree=tree,
        device_map=device_rows(tree, mapping),
        charts=_charts(tree, mapping),
        forecast=forecast_page(),
        overview=overview(),
        findings=(
            FindingRow(
                id="cuda-unavailable",
                tone="bad",
                title="torch.load stops: no CUDA device here",
                detail="87 tensors were saved on cuda:0 and cuda:1. Without map_location, torch.load "
                "recreates them there, and this machine has no CUDA device.",
                nodes=(tree.tensor_nodes[0], tree.tensor_nodes[-2]),
                count=87,
                query="device:cuda",
                fix=Fix(rule="cuda:*=cpu"),
                exports=True,
                button="Export fixed copy\u2026",
                lines=(("Load it with:", 'torch.load("best.pth", map_location="cpu")'),),
            ),
            FindingRow(
                id="mixed-devices",
                tone="warning",
                title="The model is spread over two devices",
                detail="A plain model expects all parameters on one device. Map both to the same one "
                "unless the model is split on purpose.",
                nodes=(),
            ),
            FindingRow(
                id="rng-off-cpu",
                tone="neutral",
                title="Random state stays on the CPU",
                detail="torch.set_rng_state takes CPU tensors only; the map leaves this state where it is.",
                nodes=(tree.tensor_nodes[-1],),
            ),
        ),
        code=CodePage(
            styles=(
                Choice(id="plain", label="Plain torch.load"),
                Choice(id="resume", label="Resume training"),
            ),
            style="plain",
            text=CODE,
        ),
        file=(
            FactGroup(
                title="Container",
                facts=(
                    ("Format", "zip, written by torch 1.6 or later"),
                    ("Size", "126 MB (126,102,311 bytes)"),
                    ("Records", "85"),
                    ("Serialization id", "0563316907843915456914180366648129364854"),
                    ("Path", "/home/ada/runs/2026-11-19/resnet34/best.pth"),
                ),
            ),
            FactGroup(
                title="Safety",
                facts=(
                    ("Verdict", "weights only"),
                    (
                        "Globals",
                        "collections.OrderedDict\ntorch.FloatStorage\ntorch._utils._rebuild_tensor_v2",
                    ),
                ),
            ),
        ),
        status=(
            "/home/ada/runs/2026-11-19/resnet34/best.pth",
            "zip, torch 1.6 or later",
            f"{len(tree.tensor_nodes):,} tensors",
            format_nbytes(tree.nodes[0].nbytes),
            "opened in 0.04 s",
        ),
        can_export=True,
    )


def forecast_page() -> ForecastPage:
    """What two processes take that load the checkpoint for one GPU each."""
    stays, passes = (
        Segment(label="stays", color=0, nbytes=464_000_000),
        Segment(label="while loading", color=2, nbytes=9_400_000),
    )
    return ForecastPage(
        loading=Loading(ranks=2),
        most_ranks=8,
        can_map=True,
        chart=Chart(
            title="While loading: torch.load, load_state_dict",
            bars=(Bar(label="CPU memory", segments=(stays, passes), text="473 MB of 16.0 GB"),),
        ),
        notes=("cuda:0 does not have that much memory.",),
        is_tight=True,
    )


def explanation(tree: Tree) -> FindingRow:
    """The answer to the error that most people bring."""
    return FindingRow(
        id="cuda-unavailable",
        tone="bad",
        title="torch cannot put the tensors on the GPU they were saved on",
        detail="Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
        nodes=tree.tensor_nodes[:6],
        fix=Fix(rule="cuda:*=cpu"),
        exports=True,
        button="Export fixed copy\u2026",
        facts=(
            ("Why", "torch.load puts every tensor back on the device it was saved on."),
            ("In this file", "111 tensors were saved on cuda:0 and cuda:1."),
            ("What to do", "Map them to the CPU, with map_location or in a copy."),
        ),
    )


def doctor_row() -> FindingRow:
    """What ails a machine on which torch was installed without CUDA."""
    return FindingRow(
        id="cpu-only-build",
        tone="bad",
        title="This torch was built without CUDA",
        detail="The GPU and its driver work, but this build of torch knows the CPU alone.",
        facts=(("Seen", "torch 2.13.0+cpu"), ("Seen", "nvidia-smi: RTX 4090, driver 550.54.14")),
        steps=(
            "pip uninstall -y torch",
            "pip install torch --index-url https://download.pytorch.org/whl/cu124",
        ),
    )


def tensor_facts(tree: Tree, node_id: int) -> tuple[FactGroup, ...]:
    node = tree.nodes[node_id]
    return (
        FactGroup(
            title=node.name,
            facts=(
                ("Path", "optimizer/state/layer4.1.conv2.weight/exp_avg_sq"),
                ("Kind", node.kind),
                ("Shape", node.shape_text or node.text),
                ("Type", node.type_text),
                ("Saved on", node.device_text),
                ("Size", f"{node.nbytes:,} bytes"),
            ),
        ),
        FactGroup(
            title="Storage",
            facts=(("Key", "17"), ("Offset in the file", "12,345,678"), ("Shared with", "nothing else")),
        ),
    )


def make_strip(tree: Tree, node_id: int) -> Strip:
    node = tree.nodes[node_id]
    facts = (node.device_text, node.type_text, node.shape_text, format_nbytes(node.nbytes))
    return Strip(title=node.path or node.name, facts=facts, pattern=node.path)


def export_draft() -> ExportDraft:
    """What the export dialog proposes: a copy for the CPU."""
    return ExportDraft(
        wish=ExportWish(),
        kinds=(
            Choice(id="copy", label="The whole file, with other devices"),
            Choice(id="in-place", label="Change the file itself"),
            Choice(id="weights", label="The weights alone, as a state dict"),
        ),
        destination="/tmp/best.cpu.pth",
        summary=(
            "81 tensors move from cuda:0 to cpu",
            "24 tensors move from cuda:1 to cpu",
            "41 tensors stay on cpu: Adam's step and the random state",
        ),
        size="464 MB",
        can_exclude=True,
        can_verify=True,
    )


def export_draft_page(draft: ExportDraft) -> ExportPage:
    """What the dialog shows of a draft whose destination is free."""
    found = Destination(path=draft.destination, found="free")
    return ExportPage(stage="draft", draft=draft, destination=found)


def overview() -> Overview:
    model = (
        OverviewLine("Family", "ResNet-50-like", "names as in torchvision models/resnet.py: conv1.weight"),
        OverviewLine("Layers", "3 + 4 + 6 + 3 blocks in layer1, layer2, layer3, layer4"),
        OverviewLine("Parameters", "25.6M (25,557,032) in float32, 102 MB", "", "role:parameter"),
    )
    training = (
        OverviewLine("Optimizer", "AdamW, learning rate 0.001", "", "optimizer/*"),
        OverviewLine("Reached", "epoch 12, best_acc 0.7613"),
    )
    memory = (OverviewLine("Inference", "102 MB in float32, 51.1 MB in bfloat16", "without activations"),)
    groups = (("Model", model), ("Training", training), ("Memory needed on cpu", memory))
    return Overview(
        title="ResNet-50-like, 25.6M parameters",
        groups=tuple(OverviewGroup(title, lines) for title, lines in groups),
    )


def failed_screen() -> Screen:
    return replace(
        empty_screen(),
        phase="failed",
        title="model.pth - Checkpoint Inspector",
        path="/home/ada/Downloads/model.pth",
        failure=FailurePage(
            title="This is a Git LFS pointer, not the file itself",
            what="The file has 134 bytes of text. It names the real file, which Git LFS keeps "
            "elsewhere: 1,243,102,932 bytes.",
            where="oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393",
            remedy="Run `git lfs pull` in the repository, then reload.",
        ),
        status=("/home/ada/Downloads/model.pth",),
    )


class FakeSession:
    """Does to screens what the real session does, as far as a picture needs it; ignores all else."""

    def __init__(self, view: View, screen: Screen) -> None:
        self.view = view
        self.screen = screen

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_arguments, **_options: None

    def show(self, **changes: object) -> None:
        self.screen = replace(self.screen, **changes)
        self.view.show_screen(self.screen)

    def select(self, node: int | None) -> None:
        facts = () if node is None else tensor_facts(self.screen.tree, node)
        self.show(
            selected=node, tensor=facts, strip=None if node is None else make_strip(self.screen.tree, node)
        )

    def search(self, query: str) -> None:
        nodes = self.screen.tree.nodes
        found = tuple(place for place, node in enumerate(nodes) if place and query in node.name)
        self.show(query=query, matches=found)

    def begin_export(self) -> None:
        self.show(export=export_draft_page(export_draft()))
