"""One name: what importing it means."""

from __future__ import annotations

import pytest

from inspector.safety.names import is_dangerous, judge_global, known_dangers
from tests.sweep import table


@table(
    ("name", "verdict"),
    [
        ("torch._utils._rebuild_tensor_v2", "tensor"),
        ("torch.FloatStorage", "tensor"),
        ("torch.cuda.HalfStorage", "tensor"),
        ("collections.OrderedDict", "allowed"),
        ("_codecs.encode", "allowed"),
        ("__builtin__.set", "allowed"),
        ("builtins.complex", "allowed"),
        ("argparse.Namespace", "unknown"),
        ("__main__.Net", "unknown"),
        ("torch.nn.modules.linear.Linear", "unknown"),
        ("numpy._core.multiarray._reconstruct", "unknown"),
        ("copyreg._reconstructor", "unknown"),
        ("copyreg.__newobj__", "unknown"),
        ("copy_reg.__newobj_ex__", "unknown"),
        ("functools.partial", "unknown"),
        ("pathlib.PosixPath", "unknown"),
        ("torch.storage._load_from_bytes", "dangerous"),
        ("posix.system", "dangerous"),
        ("os.path", "dangerous"),
        ("nt.system", "dangerous"),
        ("sys.modules", "dangerous"),
        ("builtins.__import__", "dangerous"),
        ("subprocess.Popen", "dangerous"),
        ("__builtin__.eval", "dangerous"),
        ("builtins.exec", "dangerous"),
        ("__builtin__.getattr", "dangerous"),
        ("__builtin__.execfile", "dangerous"),
        ("commands.getoutput", "dangerous"),
        ("cPickle.loads", "dangerous"),
        ("urllib2.urlopen", "dangerous"),
        ("__builtin__.intern", "dangerous"),
        ("torch.serialization.os.system", "dangerous"),
        ("torch.os", "dangerous"),
        ("numpy.f2py.subprocess.Popen", "dangerous"),
        ("my.module.__builtins__", "dangerous"),
        ("torch.Tensor.__init__.__globals__", "dangerous"),
        ("torch.hub.load", "dangerous"),
        ("os", "dangerous"),
        ("", "unknown"),
    ],
)
def test_verdicts(name: str, verdict: str) -> None:
    assert judge_global(name) == verdict


def test_lists_are_read_once_and_hold_no_allowed_name() -> None:
    dangers = known_dangers()
    assert known_dangers() is dangers
    from inspector.safety.names import default_allow_list

    assert not [name for name in default_allow_list().names if is_dangerous(name)]


@pytest.mark.torch
def test_what_torch_never_imports_is_dangerous() -> None:
    unpickler = pytest.importorskip("torch._weights_only_unpickler")
    assert set(unpickler._blocklisted_modules) <= known_dangers().modules
