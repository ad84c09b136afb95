"""What every engine's lock does within one process."""

import threading
from collections.abc import Callable

import pytest

from agent_bus.errors import BusError
from agent_bus.store.port import Store


def in_thread(act: Callable[[], object]) -> list[BaseException]:
    """Runs a call in a thread of its own; what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BusError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=20)
    assert not thread.is_alive()
    return raised


def test_a_lock_is_reentrant_and_covers_the_writes_of_its_document(store: Store) -> None:
    with store.lock("t-1"), store.lock("t-1"):
        doc = store.create("inbox/x/t-1", {"n": 1})
        with store.lock("t-1"):
            store.delete(store.replace(doc, {"n": 2}))
    assert in_thread(lambda: store.delete(store.create("inbox/x/t-1.1", {}))) == []


def test_somebody_elses_lock_is_waited_for_a_bounded_time_and_then_busy(store: Store) -> None:
    def take() -> None:
        with store.lock("t-1", wait_s=0.05):
            raise AssertionError("taken twice")

    with store.lock("t-1"):
        (error,) = in_thread(take)
    assert isinstance(error, BusError)
    assert error.code == "busy"


def test_names_share_a_lock_up_to_their_first_dot(store: Store) -> None:
    def take() -> None:
        with store.lock("t-1.3", wait_s=0.05):
            raise AssertionError("taken twice")

    with store.lock("t-1"):
        (error,) = in_thread(take)
    assert isinstance(error, BusError)


def test_a_lock_is_free_again_after_an_error(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.lock("t-1"):
        raise ZeroDivisionError
    assert in_thread(lambda: store.delete(store.create("inbox/x/t-1", {}))) == []
