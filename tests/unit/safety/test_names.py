"""Single names: harmless, unknown, dangerous."""

from __future__ import annotations

import pytest

from inspector.safety.names import is_dangerous, judge_global


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("torch._utils._rebuild_tensor_v2", "tensor"),
        ("torch.FloatStorage", "tensor"),
        ("collections.OrderedDict", "allowed"),
        ("__builtin__.set", "allowed"),
        ("mymodels.net.Net", "unknown"),
        ("numpy.dtype", "unknown"),
        ("copyreg._reconstructor", "unknown"),
        ("copyreg.__newobj__", "unknown"),
        ("os.system", "dangerous"),
        ("posix.system", "dangerous"),
        ("nt.system", "dangerous"),
        ("subprocess.Popen", "dangerous"),
        ("builtins.eval", "dangerous"),
        ("__builtin__.eval", "dangerous"),
        ("builtins.__import__", "dangerous"),
        ("torch.serialization.os.system", "dangerous"),
        ("torch.Tensor.__init__.__globals__", "dangerous"),
        ("sys.modules", "dangerous"),
        ("torch.hub.load", "dangerous"),
    ],
)
def test_verdict(name: str, verdict: str) -> None:
    assert judge_global(name) == verdict


def test_a_name_without_a_dot() -> None:
    assert not is_dangerous("Net")
    assert is_dangerous("os")
