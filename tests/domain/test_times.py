"""Times at the edges of the calendar are bad input or unreadable text, never a fault of ours."""

import pytest

from agent_bus.errors import BusError
from agent_bus.times import parse_stamp, read_stamp

EDGES = ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"]


@pytest.mark.parametrize("text", EDGES)
def test_a_time_that_utc_cannot_hold_is_unreadable_in_a_document_and_invalid_as_a_parameter(text: str) -> None:
    with pytest.raises(ValueError, match="outside"):
        parse_stamp(text)
    with pytest.raises(BusError) as refused:
        read_stamp(text, "not_before")
    assert refused.value.code == "invalid"
