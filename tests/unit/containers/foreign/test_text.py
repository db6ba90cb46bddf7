from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from inspector.containers.lookalikes import MARKED_TEXTS, Look, name_lookalike, read_plain_text
from inspector.containers.opening import read_container
from inspector.errors import NotACheckpointError
from tests.sweep import table

Write = Callable[..., str]
OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 1234567890\n"
PAGE = "<!DOCTYPE html>\n<html><head><title>Google Drive - Virus scan\n warning</title></head><body>"

NONE, LFS_ID, PAGE_ID = "not-a-checkpoint", "lfs-pointer", "html-page"

# (text, form, words of what it is, words of the remedy, finding)
TEXTS = [
    (
        LFS,
        "git-lfs",
        f"Git LFS pointer of 135 B in place of the file: the real file has 1.2 GB, its SHA-256 is {OID}",
        "git lfs pull",
        LFS_ID,
    ),
    (
        LFS.replace("git-lfs.github.com", "hawser.github.com"),
        "git-lfs",
        "the real file has 1.2 GB",
        "",
        LFS_ID,
    ),
    (
        "version https://git-lfs.github.com/spec/v1\n",
        "git-lfs",
        "pointer of 43 B in place of the file",
        "",
        LFS_ID,
    ),
    (
        f"version https://git-lfs.github.com/spec/v1\nsize {'9' * 30}\n",
        "git-lfs",
        "in place of the file",
        "",
        LFS_ID,
    ),
    ("/annex/objects/SHA256E-s1048576--abc.pth\n", "git-annex", "git-annex pointer", "git annex get", LFS_ID),
    (
        "outs:\n- md5: a304afb96060aad90176268345e10355\n  path: best.pth\n",
        "dvc",
        "DVC pointer",
        "dvc pull",
        LFS_ID,
    ),
    ("# xet version 0\nfilesize = 5\nhash = 'ab'\n", "xet", "Xet pointer", "hf download", LFS_ID),
    (
        PAGE,
        "html",
        "a web page (HTML) titled 'Google Drive - Virus scan warning', not the file itself",
        "link",
        PAGE_ID,
    ),
    ("\ufeff\n  <html lang=en><body>404", "html", "a web page (HTML), not the file itself", "", PAGE_ID),
    ("<!-- cached --><HTML><title> </title>", "html", "a web page (HTML), not", "", PAGE_ID),
    ('<?xml version="1.0"?><!DOCTYPE html><html xmlns="x">', "html", "a web page", "", PAGE_ID),
    (
        '<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>',
        "xml-error",
        "an error message of a storage service that says 'AccessDenied', 'Access Denied'",
        "download",
        NONE,
    ),
    ("<Error></Error>", "xml-error", "an error message of a storage service", "", NONE),
    ("<?xml version='1.0'?><net name='ir_v11'>", "xml", "an XML document", "", NONE),
    (
        '{"error": "Repository not found"}',
        "json-error",
        "an error message (JSON) that says 'Repository not found'",
        "refused",
        NONE,
    ),
    (
        json.dumps({"metadata": {}, "weight_map": {"a": "b.safetensors"}}),
        "shard-index",
        "the index of a model",
        "beside",
        NONE,
    ),
    ('{"architectures": ["Bert"]}', "json", "a JSON document", "beside", NONE),
    ("[[1, 2], [3, 4]]", "json", "a JSON document", "", NONE),
    ("import torch\nprint(1)\n", "source", "program code", "download", NONE),
    ("#!/bin/sh\necho\n", "source", "program code", "", NONE),
    ("epoch,loss,acc\n1,0.5,0.9\n2,0.4,0.95\n", "csv", "a table in a text file (CSV)", "read_csv", NONE),
    ("a\tb\n1\t2\n", "csv", "a table", "", NONE),
    ("# config\nmodel: resnet\nlayers:\n  - 64\n  - 128\nlr: 0.1\n", "yaml", "a YAML text", "beside", NONE),
    ("---\nname: x\n", "yaml", "a YAML text", "", NONE),
    ("Not Found", "text", "a text file that begins with 'Not Found'", "download", NONE),
    ("one\ntwo\n", "text", "a text file that begins with 'one'", "", NONE),
    ("Entry not found \u202e\n", "text", "begins with 'Entry not found \\u202e'", "", NONE),
]


@table(("text", "form", "what", "remedy", "finding"), TEXTS, ids=lambda value: str(value)[:20])
def test_text_is_named_with_the_next_step(
    write: Write, text: str, form: str, what: str, remedy: str, finding: str
) -> None:
    path = write(text.encode())
    with pytest.raises(NotACheckpointError) as caught:
        read_container(path)
    error = caught.value
    assert (error.form, error.finding, error.where) == (form, finding, path)
    assert what in error.what
    assert error.remedy is not None
    assert remedy in error.remedy


def test_every_kind_of_text_is_among_the_samples() -> None:
    readings = [read for text, *_ in TEXTS for read in MARKED_TEXTS if read(Look(text.encode(), 99, "x"))]
    assert set(readings) == set(MARKED_TEXTS)


def test_what_a_page_says_is_escaped_and_cut() -> None:
    page = b"<html><title>\x1b[31m" + b"a" * 3000 + b"</title>"
    error = name_lookalike(Look(page, len(page), "x"), "x")
    assert error is not None
    assert "'\\u001b[31maaa" in error.what
    assert len(error.what) < 220


def test_json_in_a_large_file_is_no_error_message() -> None:
    head = b'{"message": "hello", "data": ['
    error = name_lookalike(Look(head, 1 << 20, "x"), "x")
    assert isinstance(error, NotACheckpointError)
    assert error.form == "json"


@table(
    "data",
    [
        b"",
        b"\x00\x01\x02",
        b"\xff\xfe\xfd",
        b"plain\x00zero",
        b"   \n ",
        b'{"a": \xff\xff\xff\xff\xff}',
        "\x85".encode(),
    ],
)
def test_what_is_no_text(data: bytes) -> None:
    assert read_plain_text(Look(data, len(data), "x")) is None
    assert [read(Look(data, len(data), "x")) for read in MARKED_TEXTS] == [None] * len(MARKED_TEXTS)


def test_character_that_the_end_of_the_head_cuts_in_two_is_no_matter() -> None:
    for cut in (1, 2, 3):
        data = ("notes: " + "\U0001f600" * 9).encode()[:-cut]
        assert read_plain_text(Look(data, 999, "x")) is not None


@table(
    "head", [b"\n" * 4096, b" \n" * 2048, b"a: \n" * 1024, b"<title>" * 600, b'"error":"' * 450, b"- " * 2048]
)
def test_no_text_makes_the_search_run_away(head: bytes) -> None:
    """A pattern that tries each way to split such a text would not end within the time limit of a test."""
    for start in (b"", b"<html>", b'{"', b"<?xml", b"version https://git-lfs.github.com/spec/v1\n"):
        found = name_lookalike(Look(start + head, 1 << 30, "x"), "x")
        assert found is None or found.what
