"""Random walks of every engine beside a dict."""

import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from agent_bus.store.port import Doc, Exists, Stale
from tests.contract.engines import ENGINES

FOLDERS = ("inbox/x", "inbox/y", "archive/2026-03", ".bus/ledger/20260307")
names = st.sampled_from(["a", "b", "a.b", "ナナ"])
folders = st.sampled_from(FOLDERS)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
inner = st.recursive(leaves, lambda part: st.lists(part, max_size=3) | st.dictionaries(texts, part, max_size=3))
values = st.dictionaries(texts, inner, max_size=3)


class StoreMachine(RuleBasedStateMachine):
    """Every operation, on documents of any age, by two handles."""

    engine: ClassVar[str]
    docs = Bundle("docs")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.opened = ENGINES[self.engine](self.folder)
        self.handles = self.opened.__enter__()
        self.model: dict[str, Doc] = {}
        self.revisions: set[str] = set()
        self.feeds = {prefix: self.handles[0].feed(prefix) for prefix in FOLDERS}
        self.mirror: dict[str, Doc] = {}

    def teardown(self) -> None:
        self.opened.__exit__(None, None, None)
        shutil.rmtree(self.folder)

    def is_stale(self, doc: Doc) -> bool:
        now = self.model.get(doc.key)
        return now is None or now.rev != doc.rev

    def wrote(self, doc: Doc) -> Doc:
        assert doc.rev not in self.revisions
        self.revisions.add(doc.rev)
        self.model[doc.key] = doc
        return doc

    @rule(target=docs, folder=folders, name=names, value=values, who=st.booleans())
    def create(self, folder: str, name: str, value: dict[str, Any], who: bool) -> Any:
        key = f"{folder}/{name}"
        if key in self.model:
            with pytest.raises(Exists):
                self.handles[who].create(key, value)
            return multiple()
        return self.wrote(self.handles[who].create(key, value))

    @rule(target=docs, doc=docs, value=values, who=st.booleans())
    def replace(self, doc: Doc, value: dict[str, Any], who: bool) -> Any:
        if self.is_stale(doc):
            with pytest.raises(Stale):
                self.handles[who].replace(doc, value)
            return multiple()
        return self.wrote(self.handles[who].replace(doc, value))

    @rule(target=docs, doc=docs, folder=folders, value=values, who=st.booleans())
    def move(self, doc: Doc, folder: str, value: dict[str, Any], who: bool) -> Any:
        key = f"{folder}/{doc.name}"
        if self.is_stale(doc):
            with pytest.raises(Stale):
                self.handles[who].move(doc, key, value)
            return multiple()
        if key in self.model and key != doc.key:
            with pytest.raises(Exists):
                self.handles[who].move(doc, key, value)
            return multiple()
        moved = self.handles[who].move(doc, key, value)
        del self.model[doc.key]
        return self.wrote(moved)

    @rule(doc=docs, who=st.booleans())
    def delete(self, doc: Doc, who: bool) -> None:
        if self.is_stale(doc):
            with pytest.raises(Stale):
                self.handles[who].delete(doc)
        else:
            self.handles[who].delete(doc)
            del self.model[doc.key]

    @rule(folder=folders, full=st.booleans())
    def poll(self, folder: str, full: bool) -> None:
        for key, found in self.feeds[folder].poll(full):
            self.mirror.pop(key, None)
            if found is not None:
                assert isinstance(found, Doc)
                self.mirror[key] = found
        mine = {key: doc for key, doc in self.model.items() if key.rpartition("/")[0] == folder}
        assert {key: doc for key, doc in self.mirror.items() if key.rpartition("/")[0] == folder} == mine

    @invariant()
    def every_handle_sees_the_same(self) -> None:
        for handle in self.handles:
            for folder in FOLDERS:
                mine = sorted(key for key in self.model if key.rpartition("/")[0] == folder)
                assert list(handle.keys(folder)) == mine
                assert list(handle.list(folder)) == [self.model[key] for key in mine]


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_store_behaves_like_a_dict_with_revisions(engine: str) -> None:
    machine = type("Machine", (StoreMachine,), {"engine": engine})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
