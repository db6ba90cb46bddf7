"""For each finding, checkpoints that have it and, as like them as can be, checkpoints that have not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from inspector.containers.notes import Note, NoteKind
from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.model.findings import Finding, Fix
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.target.profile import Gpu, Profile
from inspector.target.wish import parse_target
from tests.builders.pickles import list_, name, new, number, op, text
from tests.corpus import CORPUS
from tests.unit.model.making import built, by_hand, call, numbers, pairs, storage, view

MEGABYTE = 1 << 18  # elements of float32


def at(device: str, key: str = "0", numel: int = 4) -> bytes:
    return view(storage(key, numel, device=device))


def hidden_in_code(*devices: str) -> Checkpoint:
    """A TorchScript program with these devices in a line of its code."""
    places = (HiddenDevice(path="code/__torch__.py:6", device=one, what=HiddenPlace.CODE) for one in devices)
    return replace(PLAIN, format="torchscript", hidden_devices=tuple(places))


def optimizer(step: str, exp_avg: str, **options: bytes) -> bytes:
    """One slot of one parameter."""
    slots = pairs(
        step=view(storage("s", 1, device=step), size=numbers(), stride=numbers()), exp_avg=at(exp_avg, "e")
    )
    state = op("EMPTY_DICT") + op("MARK") + number(0) + slots + op("SETITEMS")
    groups = list_(pairs(params=list_(number(0)), param_names=list_(text("w")), **options))
    return pairs(state=state, param_groups=groups)


def trained(step: str, exp_avg: str, model: str = "cuda:0", **options: bytes) -> Checkpoint:
    return by_hand(pairs(model=pairs(w=at(model, "p")), optimizer=optimizer(step, exp_avg, **options)))


def named(*names: str) -> Checkpoint:
    return by_hand(pairs(**{name_: at("cpu", str(place)) for place, name_ in enumerate(names)}))


def with_loss(model: str, loss: str, name_: str) -> Checkpoint:
    """A model of several weights, and one tensor beside them."""
    return by_hand(pairs(**{"a": at(model, "0", 9), "b": at(model, "1", 9), name_: at(loss, "2")}))


def generator_state(device: str) -> Checkpoint:
    data = view(storage("r", 5056, kind="ByteStorage", device=device), size=numbers(5056))
    return by_hand(pairs(rng_state=data, epoch=number(1), step=number(2)))


def unnamed(*shapes: tuple[int, ...]) -> Checkpoint:
    """A model of two parameters (4) and (2, 2), and an optimizer whose slots have these shapes."""
    slots = [
        number(place)
        + pairs(exp_avg=view(storage(f"e{place}"), size=numbers(*shape), stride=numbers(*[1] * len(shape))))
        for place, shape in enumerate(shapes)
    ]
    state = op("EMPTY_DICT") + op("MARK") + b"".join(slots) + op("SETITEMS")
    groups = list_(pairs(params=list_(*(number(place) for place in range(len(shapes))))))
    model = pairs(w=at("cpu", "a"), v=view(storage("b"), size=numbers(2, 2), stride=numbers(2, 1)))
    return by_hand(pairs(model=model, optimizer=pairs(state=state, param_groups=groups)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One finding.

    Attributes:
        has: Checkpoints that have it.
        lacks: Checkpoints that have not.
        target: The machine asked about.
        paths: What the first of `has` points at.
        fix: What it offers.
    """

    has: tuple[Checkpoint, ...]
    lacks: tuple[Checkpoint, ...]
    target: str | Profile | None = None
    paths: tuple[str, ...] = ()
    fix: Fix | None = None


def counter(device: str) -> bytes:
    """A tensor without dimensions."""
    return view(storage("n", 1, device=device), size=numbers(), stride=numbers())


def module(**parameters: bytes) -> bytes:
    """A whole module."""
    return built(call("net.Net"), pairs(_parameters=pairs(**parameters), _modules=pairs(), _buffers=pairs()))


def whole(**parameters: bytes) -> Checkpoint:
    return by_hand(module(**parameters))


def whole_optimizer(step: str, exp_avg: str, parameter: str = "cuda:0", **options: bytes) -> Checkpoint:
    """An optimizer that was pickled itself: its state is kept by parameter, not by number."""
    slots = pairs(step=counter(step), exp_avg=at(exp_avg, "e"))
    state = op("EMPTY_DICT") + op("MARK") + at(parameter, "p") + slots + op("SETITEMS")
    groups = list_(pairs(params=list_(at(parameter, "p")), **options))
    return by_hand(built(call("torch.optim.adam.Adam"), pairs(state=state, param_groups=groups)))


def parallel(*ids: int, **parameters: bytes) -> Checkpoint:
    """A model within `nn.DataParallel`, pickled as a whole."""
    wrapped = pairs(module=module(**parameters))
    state = pairs(device_ids=list_(*map(number, ids)), _parameters=pairs(), _modules=wrapped)
    return by_hand(built(call("torch.nn.parallel.data_parallel.DataParallel"), state))


PLAIN = named("a.weight", "b.bias")
MODULE = module(w=at("cpu"))


def samples() -> dict[str, Sample]:
    """All findings by id."""
    return {
        "cuda-unavailable": Sample(
            has=(by_hand(pairs(w=at("cuda:1"), n=number(1))), by_hand(at("cuda"))),
            lacks=(PLAIN, by_hand(at("mps")), by_hand(at("cuda0"))),
            target="cpu",
            paths=("w",),
            fix=Fix(rule="cuda:1=cpu"),
        ),
        "cuda-index-out-of-range": Sample(
            has=(by_hand(pairs(w=at("cuda:2"), n=number(1))),),
            lacks=(by_hand(at("cuda:1")), by_hand(at("xpu:3"))),
            target="2xcuda",
            paths=("w",),
            fix=Fix(rule="cuda:2=cuda:0"),
        ),
        "mps-unavailable": Sample(
            has=(by_hand(pairs(w=at("mps"), n=number(1))),),
            lacks=(by_hand(at("cuda:0")), PLAIN),
            target="cuda",
            paths=("w",),
            fix=Fix(rule="mps=cuda:0"),
        ),
        "xpu-unavailable": Sample(
            has=(by_hand(pairs(w=at("xpu:1"), n=number(1))),),
            lacks=(by_hand(at("xpu:0")), PLAIN),
            target="xpu",
            paths=("w",),
            fix=Fix(rule="xpu:1=xpu:0"),
        ),
        "unknown-device": Sample(
            has=(by_hand(pairs(w=at("npu:0"), n=number(1))), by_hand(at("cuda0")), by_hand(at("cpu:0"))),
            lacks=(by_hand(at("cuda:5")), PLAIN),
            target="cpu",
            paths=("w",),
            fix=Fix(rule="npu:0=cpu"),
        ),
        "mixed-devices": Sample(
            has=(
                whole(a=at("cuda:0", "0", 100), b=at("cuda:1", "1"), c=at("cpu", "2")),
                whole(a=at("cuda:0", "0"), b=at("cpu", "1")),
            ),
            lacks=(
                by_hand(pairs(**{"a.weight": at("cuda:0", "0"), "a.bias": at("cuda:1", "1")})),
                whole(a=at("cuda:1", "0"), b=at("cuda:1", "1")),
                whole(a=at("cuda:1", "0"), b=at("meta", "1")),
                whole(a=at("cuda:1", "0"), n=counter("cpu")),
                by_hand(pairs(netG=pairs(weight=at("cuda:0", "0")), netD=pairs(weight=at("cuda:1", "1")))),
                by_hand(pairs(obs=at("cuda:0", "0"), reward=at("cpu", "1"))),
                by_hand(pairs(model=pairs(a=at("cuda:1", "0")), other=list_(at("cpu", "1")))),
                trained("cpu", "cuda:0"),
            ),
            paths=("._parameters/b", "._parameters/c"),
            fix=Fix(rule="*=cuda:0"),
        ),
        "optimizer-off-parameter-device": Sample(
            has=(
                trained("cpu", "cpu"),
                trained("cpu", "cuda:1"),
                whole_optimizer("cpu", "cpu"),
                whole_optimizer("cpu", "cuda:1"),
            ),
            lacks=(
                trained("cpu", "cuda:0"),
                trained("cuda:1", "cuda:0", capturable=op("NEWTRUE")),
                whole_optimizer("cpu", "cuda:0"),
            ),
            paths=("optimizer/state/0/exp_avg",),
            fix=Fix(style="resume"),
        ),
        "step-on-accelerator": Sample(
            has=(trained("cuda:0", "cuda:0"), trained("mps", "cuda:0")),
            lacks=(
                trained("cpu", "cuda:0"),
                trained("cuda:0", "cuda:0", capturable=op("NEWTRUE")),
                trained("cuda:0", "cuda:0", fused=op("NEWTRUE")),
                trained("cuda:0", "cuda:0", lambd=number(1), t0=number(1)),
                trained("meta", "cuda:0"),
            ),
            paths=("optimizer/state/0/step",),
            fix=Fix(rule="path:**/step@cpu"),
        ),
        "step-off-accelerator": Sample(
            has=(counted_apart := whole_optimizer("cpu", "cuda:0", capturable=op("NEWTRUE")),),
            lacks=(
                whole_optimizer("cpu", "cuda:0"),
                whole_optimizer("cuda:0", "cuda:0", capturable=op("NEWTRUE")),
                # load_state_dict moves them.
                trained("cpu", "cuda:0", capturable=op("NEWTRUE")),
                trained("cpu", "cuda:0", fused=op("NEWTRUE")),
                trained("cpu", "cuda:0", lambd=number(1), t0=number(1)),
            ),
            paths=tuple(row.path for row in counted_apart.tensors if row.path.endswith("/step")),
            fix=Fix(rule="*=cuda:0"),
        ),
        "data-parallel-device": Sample(
            has=(
                parallel(1, 0, w=at("cuda:0")),
                parallel(0, w=at("cuda:0", "0", 9), v=at("cuda:1", "1")),
                parallel(0, w=at("cpu")),
            ),
            lacks=(parallel(0, 1, w=at("cuda:0")), parallel(w=at("cuda:1")), whole(w=at("cuda:1"))),
            paths=("._modules/module/._parameters/w",),
            fix=Fix(rule="*=cuda:1"),
        ),
        "meta-tensors": Sample(
            has=(by_hand(pairs(w=at("meta"), v=at("cpu", "1"))), by_hand(pairs(w=at("meta")))),
            lacks=(by_hand(pairs(w=at("cpu"))), by_hand(pairs(meta=at("cuda:0")))),
            paths=("w",),
        ),
        "optimizer-capturable": Sample(
            has=(
                trained("cuda:0", "cuda:0", capturable=op("NEWTRUE")),
                trained("cpu", "cpu", "cpu", capturable=op("NEWTRUE")),
            ),
            lacks=(
                trained("cuda:0", "cuda:0", fused=op("NEWTRUE")),
                trained("cuda:0", "cuda:0", capturable=op("NEWFALSE")),
                trained("cuda:0", "cuda:0"),
            ),
            target="cpu",
            paths=("optimizer/param_groups/0",),
        ),
        "loss-buffer-left-behind": Sample(
            has=(
                by_hand(pairs(model=pairs(w=at("cuda:0", "0", 9)), class_weights=at("cpu", "1"))),
                by_hand(pairs(model=pairs(w=at("cuda:0", "0", 9)), criterion=pairs(weight=at("cpu", "1")))),
                by_hand(pairs(model=pairs(w=at("cpu", "0", 9)), loss_fn=pairs(pos_weight=at("mps", "1")))),
                by_hand(
                    pairs(model=pairs(w=at("cuda:0", "0", 9)), criterion=module(pos_weight=at("cpu", "1")))
                ),
                whole(a=at("cuda:0", "0", 9), pos_weight=at("cpu", "1")),
            ),
            lacks=(
                by_hand(pairs(model=pairs(w=at("cuda:0", "0", 9)), class_weights=at("cuda:0", "1"))),
                by_hand(pairs(model=pairs(w=at("cuda:0", "0", 9)), class_weights=at("meta", "1"))),
                by_hand(pairs(model=pairs(w=at("cuda:0", "0", 9)), loss=at("cpu", "1"))),
                by_hand(pairs(outputs=list_(at("cuda:0", "0", 9)), class_weights=at("cpu", "1"))),
                # One state dict of both: copied to where the code has both.
                with_loss("cuda:0", "cpu", "criterion.pos_weight"),
                with_loss("cuda:0", "cpu", "glossary.weight"),
            ),
            paths=("class_weights",),
            fix=Fix(rule="path:class_weights@cuda:0"),
        ),
        "not-on-wanted-device": Sample(
            has=(
                by_hand(pairs(w=at("cuda:0"), n=number(1))),
                by_hand(pairs(a=at("cuda:3", "0"), b=at("cpu", "1"))),
                by_hand(pairs(a=at("cuda:2", "0"), b=at("cuda:1", "1"))),
            ),
            lacks=(
                PLAIN,
                by_hand(at("cuda:1")),
                by_hand(at("cuda:4")),
                by_hand(at("mps")),
                by_hand(at("meta")),
            ),
            target="4xcuda:1",
            paths=("w",),
            fix=Fix(rule="cuda:0=cuda:1"),
        ),
        "all-ranks-on-one-device": Sample(
            has=(
                by_hand(pairs(model=pairs(w=at("cuda:0")), n=number(1))),
                by_hand(at("cuda:1")),
                by_hand(pairs(a=at("cuda", "0"), b=at("cpu", "1"))),
            ),
            lacks=(
                PLAIN,
                by_hand(pairs(a=at("cuda:0", "0"), b=at("cuda:1", "1"))),
                by_hand(at("cuda:4")),
                by_hand(at("xpu:0")),
                by_hand(at("odd!")),
            ),
            target="4xcuda",
            paths=("model/w",),
            fix=Fix(style="distributed"),
        ),
        "map-does-not-fit": Sample(
            has=(
                by_hand(pairs(w=at("cuda:3", "0", 300_000), n=number(1))),
                by_hand(at("cuda:1", "0", 300_000)),
            ),
            lacks=(
                by_hand(at("cuda:3", "0", 200_000)),
                by_hand(at("cuda:0", "0", 300_000)),
                by_hand(at("cpu", "0", 3_000_000)),
                PLAIN,
            ),
            target=Profile(
                id="this",
                label="this machine",
                accelerators=(("cuda", 1),),
                gpus=(Gpu(device="cuda:0", name="Small", memory_nbytes=1_000_000),),
                memory_nbytes=100_000_000,
            ),
            paths=("w",),
            fix=Fix(rule="cuda:3=cpu"),
        ),
        "does-not-fit": Sample(
            has=(
                by_hand(pairs(w=at("cuda:0", "0", 300_000), n=number(1))),
                by_hand(at("cuda", "0", 300_000)),
                by_hand(at("cpu", "0", 3_000_000)),
            ),
            lacks=(by_hand(at("cuda:0", "0", 200_000)), by_hand(at("cuda:1", "0", 300_000)), PLAIN),
            target=Profile(
                id="this",
                label="this machine",
                accelerators=(("cuda", 2),),
                gpus=(
                    Gpu(device="cuda:0", name="Small", memory_nbytes=1_000_000),
                    Gpu(device="cuda:1", name="Unknown"),
                ),
                memory_nbytes=10_000_000,
            ),
            paths=("w",),
            fix=Fix(rule="cuda:0=cpu"),
        ),
        "nested-pickle": Sample(
            has=(by_hand(name("torch.storage._load_from_bytes")),),
            lacks=(PLAIN, by_hand(name("torch.storage.UntypedStorage"))),
        ),
        "nested-checkpoint": Sample(
            has=(replace(PLAIN, embedded=("w",)),),
            lacks=(PLAIN,),
            paths=("w",),
        ),
        "rng-off-cpu": Sample(
            has=(generator_state("cuda:0"),),
            lacks=(generator_state("cpu"), PLAIN),
            paths=("rng_state",),
            fix=Fix(rule="path:rng_state@cpu"),
        ),
        "hidden-device": Sample(
            has=(
                by_hand(pairs(d=call("torch.device", text("cuda"), number(1)), n=number(1))),
                by_hand(pairs(g=call("torch._C.Generator", call("torch.device", text("cuda"))))),
            ),
            lacks=(by_hand(pairs(d=call("torch.device", text("cpu")))), PLAIN, by_hand(text("cuda:0"))),
            paths=("d",),
        ),
        "torch-refuses": Sample(
            has=(
                by_hand(at("cpu"), versions=(("version", "0"),)),
                by_hand(at("cpu"), notes=(Note(NoteKind.GZIP, ("gzip",)),)),
                by_hand(at("cpu"), refusal="RuntimeError: Expected hasRecord(...)"),
            ),
            lacks=(PLAIN, by_hand(at("cpu"), stored={}), by_hand(at("cpu"), versions=(("version", "99"),))),
        ),
        "traced-device": Sample(
            has=(hidden_in_code("cuda:0"),),
            lacks=(hidden_in_code(), PLAIN),
            paths=("code/__torch__.py:6",),
        ),
        "tied-names": Sample(has=(replace(PLAIN, tied=(("b", "w"),)),), lacks=(PLAIN,), paths=("w",)),
        "part-of-checkpoint": Sample(
            has=(replace(PLAIN, notes=(Note(NoteKind.PART_OF, ("run",)),)),), lacks=(PLAIN,)
        ),
        "shards-disagree": Sample(
            has=(replace(PLAIN, notes=(Note(NoteKind.PART_LACKS, ("1 tensor", "w"), "a.bin"),)),),
            lacks=(PLAIN,),
        ),
        "newer-format": Sample(
            has=(by_hand(at("cpu"), versions=(("version", "11"),)),),
            lacks=(by_hand(at("cpu"), versions=(("version", "10"),)), PLAIN),
        ),
        "truncated": Sample(
            has=(by_hand(pairs(w=at("cpu"), n=number(1)), stored={}),),
            lacks=(PLAIN, by_hand(at("cpu", "0", 0), stored={})),
            paths=("w",),
            fix=Fix(recovers=True),
        ),
        "invalid-tensor": Sample(
            has=(by_hand(pairs(w=view(size=numbers(9)), n=number(1))), by_hand(at("cpu"), stored={"0": 7})),
            lacks=(PLAIN, by_hand(at("cpu"), stored={})),
            paths=("w",),
        ),
        "bad-crc": Sample(
            has=(by_hand(at("cpu"), notes=(Note(NoteKind.WRONG_CHECKSUM),)),),
            lacks=(PLAIN,),
        ),
        "oversized-storage": Sample(
            has=(by_hand(pairs(w=view(storage(numel=MEGABYTE + 9)), n=number(1))),),
            lacks=(
                by_hand(view(storage(numel=MEGABYTE - 9))),
                by_hand(view(storage(numel=2 * MEGABYTE), size=numbers(MEGABYTE))),
                by_hand(call("a.B", storage(numel=0))),
            ),
            paths=("w",),
        ),
        "shared-storage": Sample(
            has=(by_hand(pairs(a=at("cpu"), b=at("cpu"), c=at("cpu", "1"))),),
            lacks=(PLAIN, by_hand(pairs(a=at("meta"), b=at("meta", "1")))),
            paths=("a", "b"),
        ),
        "process-shards": Sample(
            has=(open_checkpoint(str(CORPUS / "dist" / "sharded_tensor.pt")),),
            lacks=(PLAIN,),
            paths=("w",),
        ),
        "prefix-module": Sample(
            has=(
                named("module.a.weight", "module.b.bias"),
                named("module.a.weight", "n_averaged"),
                named("_orig_mod.module.a", "_orig_mod.module.b"),
            ),
            lacks=(
                named("module.a", "head.b"),
                PLAIN,
                named("module", "module.a"),
                named("net.module.a", "net.b"),
            ),
            paths=("module.a.weight", "module.b.bias"),
            fix=Fix(style="plain"),
        ),
        "prefix-compiled": Sample(
            has=(named("_orig_mod.a", "_orig_mod.b"), named("net._orig_mod.a", "head.b")),
            lacks=(PLAIN, named("a._orig_mod", "b")),
            paths=("_orig_mod.a", "_orig_mod.b"),
            fix=Fix(style="plain"),
        ),
        "whole-module": Sample(
            has=(by_hand(MODULE),), lacks=(PLAIN, by_hand(pairs(model=MODULE))), fix=Fix(style="module")
        ),
        "optimizer-mismatch": Sample(
            has=(unnamed((3,)), unnamed((4,), (4,)), unnamed((4,)), unnamed((4,), (2, 2), (4,))),
            lacks=(unnamed((4,), (2, 2)), unnamed(), PLAIN, by_hand(optimizer("cpu", "cpu"))),
            paths=("optimizer",),
        ),
        "dangerous-global": Sample(
            has=(by_hand(name("posix.system")),), lacks=(PLAIN, by_hand(name("mine.system")))
        ),
        "runs-code": Sample(
            has=(by_hand(op("SHORT_BINUNICODE", b"\1x")),),
            lacks=(PLAIN, by_hand(name("posix.system"))),
            fix=Fix(style="plain"),
        ),
        "needs-allow-list": Sample(
            has=(by_hand(new("mine.Net")),),
            lacks=(PLAIN, by_hand(name("posix.system")), by_hand(name("mine.Net"))),
            fix=Fix(style="plain"),
        ),
        "compiled-package": Sample(
            has=(by_hand(name("flash_attn.modules.mha.MHA")), by_hand(new("apex.optimizers.fused_adam.A"))),
            lacks=(
                PLAIN,
                by_hand(name("mine.flash_attn.MHA")),
                by_hand(name("torch.nn.modules.linear.Linear")),
            ),
            target="cpu",
        ),
        "dtype-unsupported": Sample(
            has=(by_hand(pairs(w=view(storage(kind="DoubleStorage")))),),
            lacks=(PLAIN, by_hand(pairs(w=view(storage(kind="HalfStorage"))))),
            target="mps",
            paths=("w",),
        ),
        "quantized-weights": Sample(
            has=(by_hand(pairs(**{"l.SCB": at("cpu"), "l.weight": view(storage("1", kind="CharStorage"))})),),
            lacks=(PLAIN, named("l.SCB", "l.weight")),
            paths=("l.SCB",),
        ),
        "byteorder": Sample(
            has=(by_hand(at("cpu"), versions=(("version", "3"), ("byteorder", "big"))),),
            lacks=(by_hand(at("cpu"), versions=(("version", "3"), ("byteorder", "little"))), PLAIN),
        ),
    }


def findings(checkpoint: Checkpoint, target: str | Profile | None = None) -> dict[str, Finding]:
    """What is found, by id; every id once."""
    machine = parse_target(target) if isinstance(target, str) else target
    found = diagnose(checkpoint, judge(checkpoint), machine)
    by_id = {finding.id: finding for finding in found}
    assert len(by_id) == len(found) or len({finding.title for finding in found}) > 1
    return by_id


def with_device(checkpoint: Checkpoint, device: str) -> Checkpoint:
    """The same on another device."""
    tensors = tuple(tensor._replace(device=device) for tensor in checkpoint.tensors)
    storages = tuple(row._replace(device=device) for row in checkpoint.storages)
    return replace(checkpoint, tensors=tensors, storages=storages)


Maker = Callable[[], Checkpoint]
