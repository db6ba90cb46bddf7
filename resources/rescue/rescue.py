"""What torch is told where a file names a device that is not here: where else to put its storages.

torch asks a registry where each storage goes, whatever call began the load (`torch.load`, `torch.hub`, a
library, a pickle that holds tensors). The first entry of that registry is ours while the command runs. It
decides nothing but the device: which unpickler reads a file and what that accepts is not touched.
"""

import json
import os
import sys
import threading

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PREFIX = __name__[: -len("rescue")]
APPLE = ("mps", "mps:0")
FIRST = 100000  # before every priority that anybody gives, and a place of our own: torch sorts the registry
MOST_SCRIPT_NBYTES = 64 << 20

with open(os.path.join(HOME, "settings.json"), "rb") as _file:
    SETTINGS = json.loads(_file.read().decode("utf-8"))
_busy = threading.local()


def start():
    return sys.modules[PREFIX + "start"]


def note(line):
    start().note(line)


def attempt(do, *arguments):
    return start().attempt(do, *arguments)


CALLS = start().part("calls")  # now, while torch is imported: threads would meet it half imported later


def record(*arguments):
    attempt(CALLS.record, note, *arguments)


# --- what is here ------------------------------------------------------------------------------------------


def module_of(kind):
    torch = sys.modules["torch"]
    return (
        getattr(getattr(torch, "backends", None), kind, None) if kind == "mps" else getattr(torch, kind, None)
    )


def count_of(kind):
    """Return how many devices of a type torch finds on this machine."""
    module = module_of(kind)
    available = getattr(module, "is_available", None)
    if available is None or not available():
        return 0
    return 1 if kind == "mps" else getattr(module, "device_count", lambda: 1)()


def split(device):
    """Return the type and the number of a device; the number is None where none is written."""
    kind, colon, index = device.partition(":")
    return kind, int(index) if colon and index.isdigit() else None


def is_here(device):
    """Return whether a device exists on this machine; None for a type that only a plug-in can know."""
    kind, index = split(device)
    if kind in ("cpu", "meta"):
        return True
    if kind in SETTINGS["kinds"]:
        return count_of(kind) > (index or 0)
    return None


def is_bare():
    """Return whether this process should leave accelerators alone: a DataLoader's worker, or a bad fork."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    if getattr(worker, "_worker_info", None) is not None:
        return True
    forked = getattr(module_of("cuda"), "_is_in_bad_fork", None)
    return bool(forked is not None and forked())


def best_here(dtype):
    """Return the best device of this machine for a storage: the current one of the first type that it has."""
    for kind in () if is_bare() else SETTINGS["kinds"]:
        count = count_of(kind)
        if count and takes(kind, dtype):
            return kind if kind == "mps" else "%s:%d" % (kind, current(kind) % count)
    return "cpu"


def takes(kind, dtype):
    """Return whether a device has a type for such numbers; where theirs is not known it is not risked."""
    lacks = SETTINGS["lacks"].get(kind)
    return not lacks or (dtype is not None and dtype not in lacks)


def current(kind):
    """Return the number of the device that this process uses; one of several ranks has one of its own."""
    module = module_of(kind)
    if getattr(module, "is_initialized", lambda: False)():
        return module.current_device()
    rank = os.environ.get("LOCAL_RANK", "")
    return int(rank) if rank.isdigit() else 0


# --- where a device goes -----------------------------------------------------------------------------------


def matches(pattern, device):
    """Return whether the pattern of a rule covers a device, as `remap --map` has it."""
    if pattern == "*":
        return True
    if pattern.endswith(":*"):
        kind = pattern[:-2]
        return device == kind or device.startswith(kind + ":")
    return is_same(pattern, device)


def is_same(one, other):
    return one == other or (one in APPLE and other in APPLE)


def decide(device, dtype=None):
    """Return where a device goes and why, or None where it stays; what is on the CPU stays there.

    The destination is None where the device stays although it is missing, or although a rule moves it.
    """
    if device in ("cpu", "meta"):
        return None
    to = rule_for(device)
    if to is not None:
        if is_same(to, device):
            return None
        if is_here(to) is not False:
            return to, "rule"
    why = must_move(device)
    if why is None:
        return None if to is None else (None, "no-destination")
    if to is None and not SETTINGS["maps_missing"]:
        return None, "no-rule"
    return destination(dtype), why if to is None else "no-destination"


def rule_for(device):
    """Return where the first rule sends a device; None where no rule covers it."""
    for pattern, to in SETTINGS["rules"]:
        if matches(pattern, device):
            return to
    return None


def destination(dtype):
    """Return where storages go whose device is missing: the device asked for, or the best one here."""
    target = SETTINGS["target"]
    wanted = None if target is None else target["destination"]
    if wanted is None or is_bare() or not is_here(wanted):
        return best_here(dtype)
    return wanted if takes(split(wanted)[0], dtype) else "cpu"


def must_move(device):
    """Return why a device that no rule covers cannot stay; None where it can."""
    target = SETTINGS["target"]
    if target is not None:
        if target["takes_all"] and is_here(target["destination"]):
            return None if is_same(device, target["destination"]) else "target"
        kind, index = split(device)
        if target["counts"] is not None and target["counts"].get(kind, 0) <= (index or 0):
            return "missing"
    return None if is_here(device) is True else "missing"


# --- storages ----------------------------------------------------------------------------------------------


def dtype_of():
    """Return torch's name of the type of the storage that is being loaded; None where it is not known."""
    frame = sys._getframe(1)
    for _ in range(12):
        frame = frame.f_back
        if frame is None:
            return None
        if frame.f_code.co_name in ("load_tensor", "persistent_load"):
            dtype = frame.f_locals.get("dtype")
            if dtype is not None:
                return str(dtype).rpartition(".")[2]
    return None


def text_of(device):
    return device.decode("ascii") if isinstance(device, bytes) else str(device)


def size_of(storage):
    return int(storage.nbytes()) if hasattr(storage, "nbytes") else 0


def tag(_storage):
    """Leave it to torch which device a storage is saved with."""


def restore(storage, location):
    """Put a storage elsewhere than the file says; None leaves it to torch."""
    if getattr(_busy, "now", False):
        return None
    _busy.now = True
    try:
        return attempt(_restore, storage, text_of(location))
    finally:
        _busy.now = False


def _restore(storage, location):
    found = decide(location, dtype_of())
    if found is None:
        return None
    usual = sys.modules["torch.serialization"].default_restore_location
    if is_here(location) is None and found[1] == "missing":
        try:
            return usual(storage, location)  # a plug-in may have it
        except Exception:
            pass
    to, why = found
    result = None if to is None else usual(storage, to)
    record(location, to, why, size_of(storage))
    return result


def on_serialization(module):
    """Have torch ask us first."""
    priorities = [row[0] for row in module._package_registry]
    note("T")
    module.register_package(min([*priorities, 0]) - FIRST, tag, restore)
    usual = getattr(module, "_get_restore_location", None)
    if usual is not None:

        def get_restore_location(map_location):
            found = usual(map_location)
            return guarded(found) if callable(map_location) else found

        module._get_restore_location = get_restore_location


def guarded(ask):
    """Stand by a function of the program's own that sends storages to a device which is not here."""

    def restore_location(storage, location):
        try:
            return ask(storage, location)
        except Exception as error:
            result = attempt(_restore_refused, error, storage, text_of(location))
            if result is None:
                raise
            return result

    return restore_location


def _restore_refused(error, storage, location):
    """Put a storage elsewhere if it was torch that refused, and not the program's own function."""
    end = error.__traceback__
    while end.tb_next is not None:
        end = end.tb_next
    if CALLS.kind_of(end.tb_frame.f_code.co_filename) != "loader":
        return None
    to, why = decide(location, dtype_of()) or (location, "")
    if to is None:
        return None
    _busy.now = True
    try:
        result = sys.modules["torch.serialization"].default_restore_location(storage, to)
    finally:
        _busy.now = False
    record(location, to, why or "function", size_of(storage))
    return result


def on_utils(module):
    """Tensors that are no storages (of subclasses, of XLA) name their device beside them."""
    usual = getattr(module, "_get_restore_location", None)
    if usual is None:  # before torch 2.0
        return

    def get_restore_location(device):
        place = usual(device)
        found = attempt(decide, text_of(place))
        if not found or found[0] is None:
            return place
        record(text_of(place), found[0], found[1], 0)
        return found[0]

    module._get_restore_location = get_restore_location


# --- TorchScript -------------------------------------------------------------------------------------------


def on_jit(module):
    """TorchScript is read by C++, which takes one device for the whole file."""
    core = sys.modules["torch"]._C
    usual = module.validate_map_location

    def validate_map_location(map_location=None):
        found = None if map_location is None else attempt(decide, text_of(map_location))
        if found and found[0] is not None:
            record(text_of(map_location), found[0], found[1], 0, "jit")
            return usual(found[0])
        return usual(map_location)

    module.validate_map_location = validate_map_location
    for name in ("import_ir_module", "import_ir_module_from_buffer"):
        if hasattr(core, name):
            setattr(core, name, jit_reader(getattr(core, name)))


def jit_reader(usual):
    def read(unit, source, map_location=None, *others):
        found = attempt(decide_script, source) if map_location is None else None
        if found:
            saved, to, why, count = found
            torch = sys.modules["torch"]
            try:
                result = usual(torch._C.CompilationUnit(), source, torch.device(to), *others)
            except Exception as error:
                note("! torch.jit: %.200s" % ascii(str(error)))
            else:
                for _ in range(count):
                    record(saved, to, why, 0, "jit")
                return result
        return usual(unit, source, map_location, *others)

    return read


def decide_script(source):
    """Return the first device of a TorchScript file that has to move, where it goes, why, and how often."""
    for device, count in sorted(devices_of(source).items()):
        found = decide(device)
        if found is not None and found[0] is not None:
            return (device, *found, count)
    return None


def devices_of(source):
    """Return how many storages of a TorchScript file each device has; its pickles are read, never run."""
    import io
    import zipfile

    counts = {}
    data = io.BytesIO(source) if isinstance(source, bytes) else source
    with zipfile.ZipFile(data) as archive:
        for info in archive.infolist():
            is_pickle = info.filename.endswith(("/data.pkl", "/constants.pkl"))
            if is_pickle and info.file_size <= MOST_SCRIPT_NBYTES:
                for device in devices_in(archive.read(info)):
                    counts[device] = counts.get(device, 0) + 1
    return counts


def devices_in(data):
    """Yield the device of each persistent id of a pickle: the last text before its number of elements."""
    import pickletools  # noqa: TID251 - it reads opcodes and runs none

    memo = {}
    last = None
    texts = []
    for opcode, value, _ in pickletools.genops(data):
        if isinstance(value, str) and "UNICODE" in opcode.name:
            last = value
            texts.append(value)
        elif opcode.name in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            memo[len(memo) if value is None else value] = last
        elif opcode.name in ("BINGET", "LONG_BINGET", "GET"):
            last = memo.get(value)
            texts.append(last)
        elif opcode.name == "BINPERSID":
            if texts and texts[-1]:
                yield texts[-1]
        else:
            last = None
        del texts[:-4]
