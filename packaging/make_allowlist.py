"""Write the lists of `inspector/safety/`: what `weights_only=True` imports, and which opcodes it knows.

`python packaging/make_allowlist.py` writes `allowlist.json` from the installed torch.

`python packaging/make_allowlist.py FOLDER...` writes `allowlists.json`, what other releases have more or less
than that. A folder is named as its release (`2.4.1`) and holds Python files of an unpacked wheel of any
platform: `torch/_weights_only_unpickler.py`, `torch/storage.py`, `torch/__init__.py`. Their code is read, and
of it only the functions that name the list are carried out, with stand-ins for torch: no old torch is run.
The tensor classes come from C++, the storages of CUDA from `torch/cuda`; both are taken from the installed
torch and have been the same since 1.13.
"""

import ast
import collections
import functools
import json
import pathlib
import pickle  # noqa: TID251 - for the names of its opcodes
import sys
from collections.abc import Iterator

import torch
from torch import _weights_only_unpickler as unpickler

SAFETY = pathlib.Path(__file__).parent.parent / "inspector" / "safety"
NAMING = ("_get_allowed_globals", "_tensor_rebuild_functions", "_new_dtypes", "_dtype_to_storage_type_map")


class Named:
    """Stands for anything in torch that has a name, and for what is in it."""

    def __init__(self, dotted: str) -> None:
        self._dotted = dotted
        self.__module__, _, self.__name__ = dotted.rpartition(".")

    def __getattr__(self, name: str) -> object:
        """Return what is in it."""
        if name == "_tensor_classes":
            return torch._tensor_classes  # noqa: SLF001 - see above
        return Named(f"{self._dotted}.{name}")

    def __call__(self, *_given: object) -> object:
        """Stand for what a call of it gives as well."""
        return self

    def __str__(self) -> str:
        """The name under which torch lists it."""
        found = getattr(torch, self.__name__, None)  # `torch.half` is called `torch.float16`
        return str(found) if isinstance(found, torch.dtype) else self._dotted


def definitions(path: pathlib.Path, names: tuple[str, ...]) -> Iterator[ast.FunctionDef]:
    """Return the functions of these names, without decorators and imports."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            node.decorator_list, node.returns = [], None
            node.body = [line for line in node.body if not isinstance(line, ast.ImportFrom | ast.Import)]
            yield node


def storage_names(path: pathlib.Path) -> list[str]:
    """Return the names in `_storage_classes` of torch's `__init__`."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        is_it = isinstance(target, ast.Name) and target.id == "_storage_classes"
        if is_it and isinstance(node.value, ast.Set):
            return [name.id for name in node.value.elts]
    raise SystemExit(f"{path}: no _storage_classes")


def globals_in(folder: pathlib.Path) -> set[str]:
    """Return the default list of the torch whose sources stand in a folder."""
    root = Named("torch")
    torch_storages = {"TypedStorage", "UntypedStorage"}
    root._storage_classes = {  # noqa: SLF001 - its name in torch
        Named(f"torch.{'storage.' if name in torch_storages else ''}{name}")
        for name in storage_names(folder / "torch" / "__init__.py")
    } | {cls for cls in torch._storage_classes if cls.__module__ == "torch.cuda"}  # noqa: SLF001 - the same
    scope = {
        "torch": root,
        "OrderedDict": collections.OrderedDict,
        "Counter": collections.Counter,
        "encode": str.encode,
        "Dict": dict,
        "Any": object,
    }
    root.storage = Named("torch.storage")
    for name in ("_weights_only_unpickler.py", "storage.py"):
        for node in definitions(folder / "torch" / name, NAMING):
            exec(compile(ast.Module([node], []), name, "exec"), scope)  # noqa: S102 - four functions of torch
    for name in ("_new_dtypes", "_dtype_to_storage_type_map"):
        if name in scope:
            setattr(root.storage, name, scope[name])
    return set(scope["_get_allowed_globals"]())


def opcodes_in(path: pathlib.Path) -> set[str]:
    """Return the names of the opcodes that an unpickler compares with: `key[0] == NAME[0]`."""
    (load,) = (
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name == "load" and node.args.args[0].arg == "self"
    )
    used = {
        node.value.id
        for node in ast.walk(load)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
    }
    return {name for name in used if isinstance(getattr(pickle, name, None), bytes)}


def allowed_on_import() -> set[str]:
    """Return what torch's own modules put on the users' list while `import torch` runs."""
    return {f"{one.__module__}.{one.__qualname__}" for one in torch.serialization.get_safe_globals()}


def installed() -> tuple[str, set[str], set[str]]:
    """Return (release, names, opcodes) of the installed torch, by asking it."""
    names = set(unpickler._get_allowed_globals())  # noqa: SLF001 - torch publishes only what users added
    return torch.__version__.partition("+")[0], names, opcodes_in(pathlib.Path(unpickler.__file__))


@functools.cache
def checked() -> tuple[str, set[str], set[str]]:
    """Return `installed()`, having made sure that reading its sources finds the same as asking it."""
    release, names, opcodes = installed()
    found = globals_in(pathlib.Path(torch.__file__).parent.parent)
    if found != names:
        raise SystemExit(f"the sources of torch {release} are read wrongly: {sorted(found ^ names)}")
    return release, names, opcodes


def differences(folder: pathlib.Path) -> dict[str, object]:
    """Return what one release has more and less than the installed one."""
    _, names, opcodes = checked()
    theirs = globals_in(folder)
    known = opcodes_in(folder / "torch" / "_weights_only_unpickler.py")
    return {
        "torch": folder.name,
        # What another release allows on import is not read: to be asked for it once more does no harm.
        "without": sorted((names | allowed_on_import()) - theirs),
        "with": sorted(theirs - names),
        "without_opcodes": sorted(opcodes - known),
        "with_opcodes": sorted(known - opcodes),
    }


def write(name: str, document: object) -> None:
    """Write one file of JSON."""
    (SAFETY / name).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{SAFETY / name}")


def main(folders: list[str]) -> int:
    """Write the list of the installed torch, or the differences of others."""
    release, names, opcodes = checked()
    if not folders:
        listed = sorted(names | allowed_on_import())
        write("allowlist.json", {"torch": release, "globals": listed, "opcodes": sorted(opcodes)})
        return 0
    rows = sorted(map(pathlib.Path, folders), key=lambda row: [int(part) for part in row.name.split(".")])
    write("allowlists.json", {"base": release, "others": [differences(folder) for folder in rows]})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
