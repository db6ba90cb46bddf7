from __future__ import annotations

from inspector.limits import Limits
from inspector.model.checkpoint import Verb
from inspector.model.programs.facts import list_calls, note_calls
from inspector.pickles.values import Call, Global, Value


def made(name: str, *args: Value) -> Call:
    return Call(Global(*name.rsplit(".", 1)), args, "reduce")


def test_calls_are_described_with_their_rows() -> None:
    first, second = made("os.system", "rm -rf \x1b", [1, 2]), made("a.B", Global("os", "popen"), None)
    rows = list_calls([first, second], {id(second): "model/x"})
    assert rows == (
        ("os.system", 'os.system("rm -rf \\u001b", [\u2026])', (), None),
        ("a.B", "a.B(os.popen, None)", ("os.popen",), "model/x"),
    )


def test_of_each_name_the_first_few_are_described() -> None:
    same, own = Global("a", "B"), [made(f"m.C{number}") for number in range(3)]
    rows = list_calls([*(Call(same, (), "reduce") for _ in range(10)), *own], {})
    assert [row.name for row in rows] == ["a.B"] * 4 + ["m.C0", "m.C1", "m.C2"]


def test_number_of_names_is_bounded() -> None:
    calls = [made(f"m.C{number}") for number in range(10_010)]
    assert len(list_calls(calls, {})) == 10_000


def test_what_has_no_name_and_no_tuple_of_arguments() -> None:
    nameless = Call(made("a.B"), Global("os", "system"), "reduce")
    assert list_calls([nameless], {}) == (("", "<an object>(os.system)", ("os.system",), None),)


def test_long_calls_are_cut() -> None:
    (row,) = list_calls([made("m." + "x" * 500, "y" * 500)], {})
    assert len(row.text) == 200


def test_what_is_done_in_calls_is_noted_once_a_kind() -> None:
    func = Global("a", "B")
    plain, built = Call(func, (), "reduce"), Call(func, (), "newobj")
    built.state = {}  # type: ignore[assignment]  # anything will do
    uses: set[tuple[str, str]] = set()
    calls = [plain, plain, built, Call(None, (), "reduce"), made("torch._utils._rebuild_x")]
    note_calls(uses, calls, Limits().counted().look)
    assert uses == {("a.B", Verb.CALL), ("a.B", Verb.BUILD), ("", Verb.CALL)}


def test_every_call_of_a_listed_name_is_judged() -> None:
    device, size = Global("torch", "device"), Global("torch", "Size")
    calls: list[Call] = [Call(device, ("cpu",), "reduce"), Call(device, ("nope",), "reduce")]
    calls += [Call(size, ([2],), "reduce"), Call(size, ([2],), "reduce")]
    calls[-1].state = 5
    calls.append(made("torch._utils._rebuild_parameter", 1))
    uses: set[tuple[str, str]] = set()
    note_calls(uses, calls, Limits().counted().look)
    assert {use for use in uses if use[1].startswith("mis")} == {
        ("torch.device", Verb.MISCALL),
        ("torch.Size", Verb.MISBUILD),
        ("torch._utils._rebuild_parameter", Verb.MISCALL),
    }


def test_every_numpy_element_is_noted() -> None:
    scalar = Global("numpy.core.multiarray", "scalar")
    dtypes = [made("numpy.dtype", code, False, True) for code in ("f4", "i8")]
    uses: set[tuple[str, str]] = set()
    note_calls(
        uses,
        [Call(scalar, (dtype, b"12345678"), "reduce") for dtype in dtypes],
        Limits().counted().look,
    )
    assert {name for name, verb in uses if verb == "build"} == {
        "numpy.dtypes.Float32DType",
        "numpy.dtypes.Int64DType",
    }
