from __future__ import annotations

import pytest

from tests.torches import run_with_torch

pytest.importorskip("torch")


def test_a_fork_ends_as_a_program_does(tmp_path):
    """Else what fails in one would pass for an answer."""
    code = "import os, sys; print(sys.argv[1:], input(), os.getcwd(), *os.environ, 'torch' in sys.modules)"
    answer = run_with_torch("-c", code, "a", given="b\n", cwd=tmp_path, environment={"ONLY": "1"})
    assert (answer.returncode, answer.stdout) == (0, f"['a'] b {tmp_path} ONLY True\n")
    failed = run_with_torch("-c", "1 / 0")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert run_with_torch("-c", "raise SystemExit(3)").returncode == 3
    assert run_with_torch("-c", "import os; os.abort()").returncode == -6
    assert run_with_torch("-m", "tests.torch.zip_reader", tmp_path).returncode == 0
