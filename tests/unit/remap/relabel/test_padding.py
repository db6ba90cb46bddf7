from __future__ import annotations

import pickle

import pytest

from inspector.remap.rewrite import fit_pickle, pad_pickle, unfit_pickle, unpad_pickle
from tests.sweep import table

VALUE = {"a": [1, 2, 300, "text"], "b": (1.5, None, True), "k": 7}


@table("protocol", [2, 3, 4, 5])
def test_every_greater_length_can_be_had_and_says_the_same(protocol: int) -> None:
    data = pickle.dumps(VALUE, protocol)
    for more in range(40):
        made = fit_pickle(data, len(data) + more)
        assert made is not None
        assert len(made) == len(data) + more
        assert pickle.loads(made) == VALUE
        assert pickle._loads(made) == VALUE  # the one in Python checks each FRAME


@pytest.mark.parametrize("protocol", [2, 4])
def test_filling_is_taken_out_again(protocol: int) -> None:
    data = pickle.dumps(VALUE, protocol)
    longer = fit_pickle(data, len(data) + 8)
    assert longer is not None
    assert fit_pickle(longer, len(data)) == data
    assert fit_pickle(longer, len(longer)) == longer


@table("protocol", [2, 3, 4, 5])
def test_a_number_that_was_made_wider_is_made_narrow_again(protocol: int) -> None:
    data = pickle.dumps(VALUE, protocol)
    for more in range(1, 9):
        longer = fit_pickle(data, len(data) + more)
        assert longer is not None
        assert fit_pickle(longer, len(data)) == data
        assert unfit_pickle(longer) == (longer if more == 1 else data)
    assert unfit_pickle(data) == data
    assert unfit_pickle(pickle.dumps(VALUE, 0)) == pickle.dumps(VALUE, 0)


def test_wide_numbers_of_another_writer_stay_as_they_are() -> None:
    for body in (b"M\1\0.", b"M\0\1.", b"(M\1\0K\1t.", b"(K\1M\1\0t."):
        data = b"\x80\2" + body
        assert fit_pickle(data, len(data)) == data
        longer = fit_pickle(data, len(data) + 2)
        assert longer is not None
        assert pickle.loads(longer) == pickle.loads(data)


def test_nothing_shorter_can_be_had() -> None:
    data = pickle.dumps(VALUE, 2)
    assert fit_pickle(data, len(data) - 1) is None
    assert fit_pickle(data, len(data) - 2) is None


def test_a_pickle_without_small_numbers_takes_an_even_filling_only() -> None:
    data = pickle.dumps("text", 2)
    assert fit_pickle(data, len(data) + 2) is not None
    assert fit_pickle(data, len(data) + 1) is None


def test_oldest_pickles_must_be_as_long_as_they_are() -> None:
    data = pickle.dumps(VALUE, 0)
    assert fit_pickle(data, len(data)) == data
    assert fit_pickle(data, len(data) + 2) is None


# --- for files that weights_only never reads ----------------------------------------------------------------


@table("protocol", [2, 3, 4, 5])
def test_padding_says_the_same_and_is_taken_out_again(protocol: int) -> None:
    data = pickle.dumps(VALUE, protocol)
    for more in (0, *range(2, 40)):
        made = pad_pickle(data, len(data) + more)
        assert made is not None
        assert len(made) == len(data) + more
        assert pickle.loads(made) == VALUE
        assert pickle._loads(made) == VALUE
        assert unpad_pickle(made) == data


def test_what_cannot_be_padded() -> None:
    data = pickle.dumps(VALUE, 2)
    assert pad_pickle(data, len(data) + 1) is None
    assert pad_pickle(data, len(data) - 1) is None
    old = pickle.dumps(VALUE, 0)
    assert pad_pickle(old, len(old)) == old
    assert pad_pickle(old, len(old) + 2) is None
    assert unpad_pickle(old) == old
