"""Write `inspector/safety/torch_classes.json`: the classes of torch that a file may merely make objects of.

`python packaging/make_classes.py` reads the installed torch: modules, optimizers, schedulers, distributions,
datasets, samplers and loaders, observers and fake quantizers. Making one is `object.__new__`, and its state
becomes attributes; the `__setstate__` that some of them have were read, and set attributes too. Left out is
what runs code of the file (`torch.fx`), needs other processes, or reads files.
"""

import importlib
import inspect
import json
import pathlib
import pkgutil
import warnings

import torch

SAFETY = pathlib.Path(__file__).parent.parent / "inspector" / "safety"
PACKAGES = (
    "torch.amp",
    "torch.ao.nn",
    "torch.ao.quantization",
    "torch.distributions",
    "torch.nn.modules",
    "torch.nn.parallel",
    "torch.nn.utils",
    "torch.optim",
    "torch.utils.data",
)
# A subclass of these is taken: their `__setstate__` and that of each class below them was read.
BASES = (
    torch.nn.Module,
    torch.optim.Optimizer,
    torch.optim.lr_scheduler.LRScheduler,
    torch.optim.lr_scheduler.ReduceLROnPlateau,
    torch.distributions.Distribution,
    torch.distributions.transforms.Transform,
    torch.distributions.constraints.Constraint,
    torch.utils.data.Dataset,
    torch.utils.data.Sampler,
    torch.utils.data.DataLoader,
    torch.amp.GradScaler,
    torch.ao.quantization.QConfig,
)
OTHERS = ("torch.nn.utils.rnn.PackedSequence",)
# As older releases called them; torch 2.13 has neither.
OLDER = ("torch.nn.modules.linear._LinearWithBias", "torch.optim.lr_scheduler._LRScheduler")
# They join other processes, compile what the file brings, or open files while their state is set.
NEVER = ("torch.fx", "torch.utils.data.datapipes", "torch.nn.parallel.distributed", "torch.jit")


def modules(package: str) -> list[str]:
    """Return the modules of a package that can be imported."""
    root = importlib.import_module(package)
    names = [package]
    names += [found.name for found in pkgutil.walk_packages(root.__path__, f"{package}.", lambda _: None)]
    return names


def classes(name: str) -> list[str]:
    """Return the dotted names of the classes that a module defines and that are taken."""
    try:
        module = importlib.import_module(name)
    except Exception:  # noqa: BLE001 - a module for hardware that is not here
        return []
    return [
        f"{name}.{cls.__qualname__}"
        for cls in vars(module).values()
        if inspect.isclass(cls)
        and (cls.__module__, cls.__qualname__) == (name, cls.__name__)
        and issubclass(cls, BASES)
        and not any(base.__module__.startswith(NEVER) for base in cls.__mro__)
    ]


def main() -> None:
    """Write the table."""
    warnings.simplefilter("ignore")
    found = {cls for package in PACKAGES for name in modules(package) for cls in classes(name)}
    document = {"torch": torch.__version__.partition("+")[0], "names": sorted({*found, *OTHERS, *OLDER})}
    (SAFETY / "torch_classes.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
