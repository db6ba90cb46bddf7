from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.diff.compare import Wish, compare_paths
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.report.comparing.text import branches_of, format_diff
from tests.builders import pickles as p
from tests.builders.scripts import CODE, script
from tests.builders.states import Pairs, Raw, T, save_zip
from tests.unit.diff.test_compare import NUMBERS, V, W, compared


def text(tmp_path: Path, a: Any, b: Any, wish: Wish | None = None, **how: bool) -> str:
    return format_diff(compared(tmp_path, a, b, wish), **how).replace(f"{tmp_path}/", "")


def test_equal_files_are_said_to_be_so_as_far_as_they_were_compared(tmp_path: Path) -> None:
    one = {"w": T(W), "z": T([0.0])}
    assert text(tmp_path, one, one).splitlines()[2:] == ["Equal: 2 tensors, 20 B compared byte by byte."]
    assert text(tmp_path, one, {"w": T(W), "z": T([-0.0])}).splitlines()[2] == (
        "Equal: 2 tensors, 20 B compared byte by byte; 1 tensor with the same numbers in other bits."
    )
    assert text(tmp_path, one, {"w": T(V), "z": T([0.0])}, Wish(mode="none")).splitlines()[2:] == [
        "The same names and facts: 2 tensors. The bytes of tensors were not compared."
    ]
    assert "  = w" in text(tmp_path, one, one, equal=True)


def test_danger_comes_before_the_verdict(tmp_path: Path) -> None:
    evil = Raw(p.call("os.system", p.text("id")))
    lines = text(tmp_path, {"w": T(W)}, {"w": T(W), "x": evil, "y": Raw(p.call("my.own"))}).splitlines()
    assert lines[2] == "DANGEROUS: loading b.pt imports os.system; loading a.pt does not."
    assert lines[3] == "Code: loading b.pt imports my.own; loading a.pt does not."
    assert lines[4] == "Different: 2 values added, loading runs other code."
    many = {str(number): Raw(p.call(f"my.own{number}")) for number in range(9)}
    assert "my.own7, \u2026; loading" in text(tmp_path, many, {"w": T(W)})


def test_what_happened_to_many_is_said_once(tmp_path: Path) -> None:
    names = [f"l{number}.w" for number in range(5)]
    a = {name: T([*W, float(number)], device="cuda:0") for number, name in enumerate(names)}
    b = {f"module.{name}": T([*W, float(number)]) for number, name in enumerate(names)}
    b["module.l0.w"] = T(W * 2, (5,))
    found = text(tmp_path, a, b)
    assert "Names\n  > (nothing) \u2192 module.   5 tensors\n" in found
    assert "Changes that many tensors share\n  ~ device cuda:0 \u2192 cpu   4 tensors\n" in found
    assert "Tensors (1)\n  ~ l0.w   device cuda:0 \u2192 cpu; values differ; now module.l0.w" in found
    assert "Tensors (5)\n" in text(tmp_path, a, b, every=True)


def test_renamed_rows_are_listed_where_no_rule_says_it(tmp_path: Path) -> None:
    found = text(tmp_path, {"module.w": T(W), "a.x": T(V)}, {"w": T(W), "q.y": T(V)})
    assert "module.w   now" not in found
    assert "  > a.x   now q.y (equal bytes)" in found
    assert "  > module.w   now w" in text(tmp_path, {"module.w": T(W)}, {"w": T(W)}, every=True)


def test_a_branch_that_one_file_lacks_is_one_line(tmp_path: Path) -> None:
    branch = {str(number): {"w": T([float(number), 1.0, 2.0])} for number in range(3)} | {"a": 1, "b": 2}
    a, b = {"w": T(W), "in": {"x": 1, "deep": branch}}, {"w": T(W), "in": {"x": 1}}
    assert "  - in/deep/   all of it: 3 tensors, 36 B\n" not in text(tmp_path, a, b)
    branch["3"] = {"w": T([7.0, 8.0])}
    found = text(tmp_path, a, b)
    assert "  - in/deep/   all of it: 4 tensors, 44 B\n" in found
    assert "  - in/deep/a   int 1\n" in found
    values = {"cfg": dict.fromkeys("abcd", 1)}
    assert "  + cfg/   all of it: 4 values\n" in text(tmp_path, {"w": T(W)}, {"w": T(W), **values})
    assert "  - in/deep/0/w   float32" in text(tmp_path, a, b, every=True)


def test_branches_are_all_places_with_something_below(tmp_path: Path) -> None:
    path = save_zip(tmp_path / "a.pt", {"a": {"b": {"c": 1, "d": T(W)}}, "e": {"f": T(W)}, "g": 1})
    assert branches_of(open_checkpoint(path)) == {"a/", "a/b/", "e/"}


def test_what_could_not_be_compared_is_said(tmp_path: Path) -> None:
    repeated = [{"w": T(W[:2], (1 << 40, 2), stride=(0, step))} for step in (0, 1)]
    assert "1 tensor could not be compared: see the reasons below.\n" in text(tmp_path, *repeated)
    deep: Any = 1
    for _ in range(260):
        deep = (deep,)
    assert "nested too deeply to be listed" in text(tmp_path, deep, deep)


def test_a_reason_that_many_tensors_share_is_said_once(tmp_path: Path) -> None:
    a, b = (save_zip(tmp_path / f"{name}.pt", {f"w{n}": T(W, key=str(n)) for n in range(6)}) for name in "ab")
    whole = Path(b).read_bytes()
    Path(b).write_bytes(whole[: whole.index(b"data/1")])
    diff = compare_paths(a, b, Wish(), Progress())
    found = format_diff(diff)
    assert found.count("could not be compared") == 2  # the verdict, and why
    assert "Not known to be equal: 5 tensors could not be compared, and nothing else differs.\n" in found
    assert "  ~ 5 tensors   could not be compared: a storage is " in found
    assert ", such as w1, w2\n" in found
    assert format_diff(diff, every=True).count("could not be compared") == 6


def test_keys_that_nobody_would_see_are_in_quotes(tmp_path: Path) -> None:
    found = text(tmp_path, {"": T(W), " ": T(W), "a": {"": 1}}, {"": T(V), " ": T(V), "a": {"": 2}})
    assert '  ~ ""   values differ\n  ~ " "   values differ\n' in found
    assert '  ~ a/""   1 \u2192 2\n' in found


def test_keys_of_other_types_that_read_alike_are_told(tmp_path: Path) -> None:
    a, b = Pairs(((None, T(W)), (1, T(W)))), {"None": T(W), "1": T(W)}
    found = text(tmp_path, a, b)
    assert "  ~ None   key None \u2192 'None'\n" in found
    assert "  ~ 1   key 1 \u2192 '1'\n" in found


def test_code_and_whole_files(tmp_path: Path) -> None:
    for name, code in (("a", CODE), ("b", CODE + "# more\n")):
        (tmp_path / f"{name}.pt").write_bytes(script(code=code))
    found = text(tmp_path, str(tmp_path / "a.pt"), str(tmp_path / "b.pt"))
    assert "1 record different" in found
    assert "Records and other storages (1)\n  ~ code/__torch__.py   changed\n" in found
    assert "  ~ (root)   values differ" in text(tmp_path, T(W), T(V))
    assert "cosine" in text(tmp_path, T(W), T(V), NUMBERS)
