from __future__ import annotations

from inspector.containers.numpy_types import contiguous_stride, element_type


def test_types_and_their_byte_order() -> None:
    assert element_type("f4", "<") == ("float32", 4, 1)
    assert element_type("f4", ">") == ("float32", 4, 4)
    assert element_type("c16", ">") == ("complex128", 16, 8)
    assert element_type("b1", "|") == ("bool", 1, 1)
    assert element_type("U3", "<") is None


def test_steps_of_an_array_of_fortran() -> None:
    assert contiguous_stride((2, 3, 4), is_fortran=True) == (1, 2, 6)
    assert contiguous_stride((2, 0, 4), is_fortran=True) == (1, 2, 2)
    assert contiguous_stride((2, 3, 4), is_fortran=False) is None
    assert contiguous_stride((5,), is_fortran=True) is None
