"""Changes for the time of a compilation are undone, whatever happens in it."""

import types

import pytest
from torch_spyre._inductor import replaced


def test_an_attribute_is_back_after_an_error():
    owner = types.SimpleNamespace(name="own")
    with pytest.raises(KeyError), replaced.attribute(owner, "name", "other"):
        assert owner.name == "other"
        raise KeyError
    assert owner.name == "own"


def test_entries_are_back_and_what_others_added_stays():
    table = {"a": 1, "b": 2}
    with replaced.entries(table, {"b": 3, "c": 4}):
        assert table == {"a": 1, "b": 3, "c": 4}
        table["d"] = 5
    assert table == {"a": 1, "b": 2, "d": 5}
