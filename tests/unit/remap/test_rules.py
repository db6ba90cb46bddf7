from __future__ import annotations

from itertools import permutations, product

import pytest

from inspector.errors import PlanError
from inspector.remap.rules import (
    Rule,
    Rules,
    as_meant,
    check_destination,
    format_rule,
    literal_pattern,
    matches_device,
    parse_rule,
    path_of,
    rules_as_meant,
)
from tests.sweep import table
from tests.unit.report.rows import checkpoint, tensor, value


@table("text", ["", "cpu", "=cpu", "cuda:0=", "path:", "path:a", "path:@cpu", "path:a@", "*=gpu"])
def test_malformed_rules_are_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(PlanError) as error:
        parse_rule(text)
    assert error.value.remedy


@table(
    "device",
    [
        *("cpu:0", "mps:0", "meta", "meta:0"),  # torch refuses them, or would lose the data
        *("cuda:01", "cuda:00", "cuda:128", "cuda:999"),  # no numbers of devices
        *("gpu", "cuda0", "cuda:", "cuda:-1", "cuda:x", "CUDA:0", "cuda:\u0663", "cuda:0 ", "", "npu:0\n"),
    ],
)
def test_destinations_that_torch_refuses_are_refused(device: str) -> None:
    with pytest.raises(PlanError):
        check_destination(device)


@table(
    ("pattern", "device", "matches"),
    [
        ("*", "anything", True),
        ("cuda:*", "cuda:3", True),
        ("cuda:*", "cuda", True),
        ("cuda:*", "cudax:3", False),
        ("cuda", "cuda:0", False),
        ("cuda:0", "cuda:0", True),
        ("cuda:0", "cuda:01", False),
        ("mps", "mps:0", True),
        ("mps:0", "mps", True),
        ("mps", "cpu", False),
    ],
)
def test_patterns_match_devices(pattern: str, device: str, matches: bool) -> None:
    assert matches_device(pattern, device) is matches


def test_the_first_rule_for_a_device_decides() -> None:
    rules = [parse_rule("path:a@cuda:9"), parse_rule("cuda:1=cpu"), parse_rule("*=cuda:0")]
    assert Rules(rules).by_device("cuda:1") == "cpu"
    assert Rules(rules).by_device("xpu") == "cuda:0"
    assert Rules(rules[:2]).by_device("xpu") is None


def test_the_lookup_finds_what_asking_each_rule_in_turn_finds() -> None:
    devices = ["*", "cuda:*", "cuda:1", "cuda", "mps", "mps:0", "mps:*", "a:b:*", "a:b", "a:b:c"]
    texts = ["path:a@cuda:9", "role:rng@cpu", "dtype:float64@cpu", *(f"{device}=cpu" for device in devices)]
    asked = [
        ("cuda:1", "a"),
        ("cuda", "b"),
        ("mps", "b"),
        ("mps:0", "b"),
        ("a:b:c", "b"),
        ("a:b", "a"),
        ("", "b"),
    ]
    for count in range(1, 4):
        for chosen in permutations(map(parse_rule, texts), count):
            for device, path in asked:
                row = {"role": "rng" if path == "b" else "other", "dtypes": ("float64",)}
                slow = next((rule for rule in chosen if rule.matches(device, [path], **row)), None)
                assert Rules(chosen).find_first(device, [path], **row) is slow, (chosen, device, path)


@table(
    ("pattern", "path", "matches"),
    [
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("**/step", "step", True),
        ("**/step", "a/b/step", True),
        ("**/step", "a/bstep", False),
        ("a?", "ab", True),
        ("a?", "a/", False),
        ("a.b", "axb", False),
        ("[ab]", "a", False),
        ("a", "b", False),
        ("**", "a/b\nc", True),
        ("a", "a\n", False),
    ],
)
def test_patterns_match_paths(pattern: str, path: str, matches: bool) -> None:
    assert Rule(path=pattern, to="cpu").matches("cuda:0", [path]) is matches


# --- roles and dtypes ---------------------------------------------------------------------------------------


@table(
    ("text", "rule"),
    [
        ("role:optimizer@cpu", Rule(role="optimizer", to="cpu")),
        ("dtype:float64@cpu", Rule(dtype="float64", to="cpu")),
        ("path:a/**@mps", Rule(path="a/**", to="mps")),
        ("path:a@b/c@cuda:0", Rule(path="a@b/c", to="cuda:0")),
        ("path:a=b@cpu", Rule(path="a=b", to="cpu")),
        ("*=cpu", Rule(device="*", to="cpu")),
        ("cuda:*=cuda:1", Rule(device="cuda:*", to="cuda:1")),
    ],
)
def test_rules_are_written_as_they_are_read(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule
    assert format_rule(rule) == text


@table(
    ("text", "what"),
    [
        ("role:x@cpu", "there is no role 'x'"),
        ("dtype:float@cpu", "there is no dtype 'float'"),
        ("role:optimizer", "names no destination"),
        ("dtype:@cpu", "names no destination"),
        ("role:optimizer@cpu:0", "torch refuses"),
    ],
)
def test_malformed_rules_by_role_and_dtype(text: str, what: str) -> None:
    with pytest.raises(PlanError, match=what):
        parse_rule(text)


def test_a_path_is_escaped_to_a_pattern_of_itself_alone() -> None:
    wrong = []
    for letters in product("a*?[]/", repeat=4):
        path = "".join(letters)
        pattern = literal_pattern(path)
        rule = Rule(path=pattern, to="cpu")
        others = [path.replace(wild, "x", 1) for wild in "*?" if wild in path]
        found = [other for other in (path, *others) if rule.matches("", (other,))]
        if found != [path] or path_of(pattern) != path:
            wrong.append((path, pattern, found))
    assert wrong == []


def test_a_pattern_with_wildcards_means_no_single_path() -> None:
    assert [path_of(text) for text in ("a/*", "**", "a?", "**/b", "a[*]b", "a[0]")] == [
        *[None] * 4,
        "a*b",
        "a[0]",
    ]


def test_a_path_that_is_in_the_file_means_itself_even_with_a_star_in_it() -> None:
    rows = checkpoint(tensor("a*"), tensor("ab"), tensor("b[*]"), tensor("b*"), value("c?"), value("[]"))
    asked = ("a*", "a?", "b[*]", "c?", "[]", "d*", "ab")
    assert as_meant(asked, rows) == {
        "a*": "a[*]",
        "a?": "a?",
        "b[*]": "b[*]",  # as the window copies the path of b*
        "c?": "c[?]",
        "[]": "[]",
        "d*": "d*",
        "ab": "ab",
    }
    rules = rules_as_meant([Rule(path="a*", to="cpu"), Rule(device="*", to="cpu")], rows)
    assert [(rule.path, rule.device) for rule in rules] == [("a[*]", None), (None, "*")]


def test_a_path_can_be_given_as_it_is_shown() -> None:
    rows = checkpoint(tensor(""), tensor(" "), tensor("a", "b "), tensor('"x"'), tensor("", "y"))
    asked = ('""', '" "', 'a/"b "', '"x"', '""/y', '"z"')
    assert list(as_meant(asked, rows).values()) == ["[]", " ", "a/b ", '"x"', "/y", '"z"']


def test_an_empty_path_has_a_pattern() -> None:
    assert (literal_pattern(""), literal_pattern("[]")) == ("[]", "[[]]")
    assert (path_of("[]"), path_of("[[]]")) == ("", "[]")
    rule = Rule(path="[]", to="cpu")
    assert [path for path in ("", "[]", "a") if rule.matches("", (path,))] == [""]
