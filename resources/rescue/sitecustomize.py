"""Starts with every Python below `checkpoint-inspector run`, and waits until that Python imports torch.

A folder with a copy of this file stands first on PYTHONPATH while the command runs and is removed
afterwards; nothing else is in there that a program could import. Python imports this file by itself. It hands
over to a `sitecustomize` of the user's own, so that one still runs; where there is none it leaves as if it
had not been there. No failure in here may reach the program.
"""

# It runs in Pythons of any age, on every start: plain words, no f-strings, few imports.

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = os.path.dirname(HERE)
NAME = "_checkpoint_inspector_%s_" % os.path.basename(HOME).replace("-", "_")
OLDEST = (3, 7)
WATCHED = {
    "torch.serialization": "on_serialization",
    "torch._utils": "on_utils",
    "torch.jit._serialization": "on_jit",
}


def note(line):
    """Append a line to the journal of this process; writing at once survives any end of it."""
    try:
        place = os.open(
            os.path.join(HOME, "journal", "%d" % os.getpid()), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
        )
        try:
            os.write(place, line.encode("ascii", "backslashreplace") + b"\n")
        finally:
            os.close(place)
    except Exception:
        pass  # the folder is gone, or the disk is full: the program goes on


def attempt(do, *arguments):
    """Do something of ours; a failure is noted, and the program goes on without it."""
    try:
        return do(*arguments)
    except Exception as error:
        note("! %s: %.200s" % (type(error).__name__, ascii(str(error))))
        return None


def part(name):
    """Import another module of the hook, under a name that nobody else uses."""
    import importlib.util

    full = NAME + name
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, os.path.join(HOME, "parts", name + ".py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[full]
            raise
    return sys.modules[full]


def patch(module):
    """Tell one of torch's modules, once it is there, to ask us."""
    getattr(part("rescue"), WATCHED[module.__name__])(module)


class Finder:
    """Finds the watched modules where they are, and has them patched when they have been run."""

    def __init__(self):
        self.asked = set()

    def find_spec(self, name, path=None, target=None):
        if name not in WATCHED or name in self.asked:
            return None  # asked again by a finder that asks the others as well, as this one does
        self.asked.add(name)
        try:
            return self.find(name, path, target)
        finally:
            self.asked.discard(name)

    def find(self, name, path, target):
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = Loader(spec.loader)
                return spec
        return None


class Loader:
    """Stands in for a loader until it has run its module."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        attempt(patch, module)


def install():
    """Wait for torch."""
    note("S")
    sys.meta_path.insert(0, Finder())
    for name in WATCHED:  # a .pth file may have imported it already
        if name in sys.modules:
            patch(sys.modules[name])


def leave_path():
    """Take this folder off the path of this process; PYTHONPATH keeps it for those that it starts."""
    sys.path[:] = [place for place in sys.path if place != HERE]


if __name__ == "sitecustomize":
    sys.modules[NAME + "start"] = sys.modules.pop(__name__)
    if sys.version_info >= OLDEST:
        attempt(install)
    attempt(leave_path)
    # The user's own one; without it the ImportError is what Python meets in every environment.
    import sitecustomize  # noqa: F401 - see above
