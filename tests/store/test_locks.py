"""Lock files: shared with portalocker, replaced when somebody cleans the folder, never freed by a fork."""

import os
import sys
import threading
from pathlib import Path

import portalocker
import pytest

from agent_bus.errors import BusError
from agent_bus.store import locks as module
from agent_bus.store.locks import OPEN_FILES, SLOTS, Locks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def is_free(folder: Path, name: str, pool: str = "doc") -> bool:
    """Whether another handle can take the lock at once."""
    other = Locks(str(folder))
    try:
        with other.hold(name, pool, 0.0):
            return True
    except BusError as error:
        if error.code != "busy":
            raise
        return False
    finally:
        other.close()


def test_a_lock_excludes_another_handle_until_the_outermost_hold_ends(folder: Path) -> None:
    locks = Locks(str(folder))
    with locks.hold("t-1"):
        with locks.hold("t-1"):
            assert not is_free(folder, "t-1")
        assert not is_free(folder, "t-1.2")
        assert is_free(folder, "t-1", "holder")
    assert is_free(folder, "t-1")
    locks.close()


def test_slots_are_few_and_files_stay(folder: Path) -> None:
    locks = Locks(str(folder))
    for n in range(2000):
        with locks.hold(f"t-{n}"):
            pass
    assert len(list(folder.iterdir())) <= SLOTS
    locks.close()


def test_any_text_has_a_lock(folder: Path) -> None:
    locks = Locks(str(folder))
    for name in ("", ".", "ナナ", "\ud800", "a/b", "x" * 10_000):
        with locks.hold(name):
            assert not is_free(folder, name)
    locks.close()


def test_a_lock_file_unlinked_while_nobody_holds_it_is_made_anew(folder: Path) -> None:
    locks = Locks(str(folder))
    with locks.hold("t-1"):
        pass
    for path in folder.iterdir():
        path.unlink()
    with locks.hold("t-1"):
        assert not is_free(folder, "t-1")
    locks.close()


def test_who_waits_on_a_lock_file_that_is_unlinked_takes_the_new_one(folder: Path) -> None:
    holder, waiter = Locks(str(folder)), Locks(str(folder))
    with waiter.hold("t-1"):
        pass
    free: list[bool] = []

    def wait() -> None:
        with waiter.hold("t-1", wait_s=20):
            free.append(is_free(folder, "t-1"))

    thread = threading.Thread(target=wait)
    with holder.hold("t-1"):
        thread.start()
        for path in folder.iterdir():
            path.unlink()
    thread.join(timeout=20)
    assert free == [False]
    holder.close()
    waiter.close()


def test_a_missing_lock_folder_is_unavailable_and_no_thread_stays_locked_out(folder: Path) -> None:
    locks = Locks(str(folder / "locks"))
    for _ in range(2):
        with pytest.raises(BusError) as error, locks.hold("t-1"):
            raise AssertionError("locked")
        assert error.value.code == "unavailable"
    (folder / "locks").mkdir()
    with locks.hold("t-1"):
        assert not is_free(folder / "locks", "t-1")
    locks.close()


def test_threads_of_one_handle_exclude_one_another(folder: Path) -> None:
    locks = Locks(str(folder))
    count = [0]

    def add() -> None:
        for _ in range(200):
            with locks.hold("t-1", wait_s=30):
                seen = count[0]
                os.stat(folder)
                count[0] = seen + 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert count == [800]
    locks.close()


def test_our_locks_and_those_of_portalocker_exclude_one_another(folder: Path) -> None:
    locks = Locks(str(folder))
    with locks.hold("t-1"):
        (path,) = folder.iterdir()
        with path.open("ab") as file, pytest.raises(portalocker.LockException):
            portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
    locks.close()


def test_the_locks_of_a_system_without_flock_behave_alike(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "try_lock", module._try_portalocker)
    monkeypatch.setattr(module, "unlock", module._free_portalocker)
    locks = Locks(str(folder))
    with locks.hold("t-1"), locks.hold("t-1"):
        assert not is_free(folder, "t-1")
    assert is_free(folder, "t-1")
    locks.close()


@pytest.mark.skipif(sys.platform == "win32" or sys.version_info >= (3, 12), reason="forks beside threads")
def test_the_child_of_a_fork_within_a_lock_does_not_free_it(folder: Path) -> None:
    locks = Locks(str(folder))
    pid = -1
    try:
        with locks.hold("t-1"):
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
                assert not is_free(folder, "t-1")
    finally:
        if pid == 0:
            os._exit(0)
    locks.close()


def test_few_lock_files_stay_open_however_many_names_were_locked(tmp_path: Path) -> None:
    locks = Locks(str(tmp_path))
    for number in range(2000):
        with locks.hold(f"t-{number}"), locks.hold(f"h-{number}", "holder"):
            pass
    held = [slot for slot in locks._slots.values() if slot.file is not None]
    assert len(held) <= OPEN_FILES
    assert len(list(tmp_path.iterdir())) > 400
    with locks.hold("t-1"), pytest.raises(BusError):  # a slot whose file was closed locks as before
        Locks(str(tmp_path)).hold("t-1", wait_s=0).__enter__()
    locks.close()
