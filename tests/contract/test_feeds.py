"""What every engine's feed tells."""

from agent_bus.store.port import Doc, Feed, Store, Unreadable

PREFIX = "inbox/coder"


def told(feed: Feed, full: bool = False) -> dict[str, object]:
    """What a poll says, as the value now, None for gone."""
    return {key: found.value if isinstance(found, Doc) else found for key, found in feed.poll(full)}


def test_the_first_poll_tells_everything(store: Store) -> None:
    store.create(f"{PREFIX}/a", {"n": 1})
    store.create(f"{PREFIX}/b", {"n": 2})
    store.create("inbox/other/c", {"n": 3})
    assert told(store.feed(PREFIX)) == {f"{PREFIX}/a": {"n": 1}, f"{PREFIX}/b": {"n": 2}}


def test_a_feed_over_a_prefix_without_a_folder_is_empty_and_hears_the_first_document(store: Store, peer: Store) -> None:
    feed = store.feed(PREFIX)
    assert told(feed) == {}
    peer.create(f"{PREFIX}/a", {"n": 1})
    assert told(feed) == {f"{PREFIX}/a": {"n": 1}}


def test_each_change_by_somebody_else_is_told_without_a_full_look(store: Store, peer: Store) -> None:
    feed = store.feed(PREFIX)
    told(feed)
    doc = peer.create(f"{PREFIX}/a", {"n": 1})
    assert told(feed) == {f"{PREFIX}/a": {"n": 1}}
    doc = peer.replace(doc, {"n": 2})
    assert told(feed) == {f"{PREFIX}/a": {"n": 2}}
    doc = peer.move(doc, "waiting/a", {"n": 3})
    assert told(feed) == {f"{PREFIX}/a": None}
    doc = peer.move(doc, f"{PREFIX}/a", {"n": 4})
    assert told(feed) == {f"{PREFIX}/a": {"n": 4}}
    peer.delete(doc)
    assert told(feed) == {f"{PREFIX}/a": None}


def test_a_poll_after_no_change_tells_nothing(store: Store) -> None:
    store.create(f"{PREFIX}/a", {"n": 1})
    feed = store.feed(PREFIX)
    told(feed)
    assert told(feed) == {}
    store.create("inbox/other/c", {"n": 3})
    store.create(f"{PREFIX}/deeper/c", {"n": 3})
    assert told(feed) == {}


def test_every_feed_hears_every_change(store: Store, peer: Store) -> None:
    feeds = [store.feed(PREFIX), store.feed(PREFIX), peer.feed(PREFIX), store.feed("waiting")]
    for feed in feeds:
        told(feed)
    store.create(f"{PREFIX}/a", {"n": 1})
    assert [list(told(feed)) for feed in feeds] == [[f"{PREFIX}/a"]] * 3 + [[]]


def test_the_answer_is_in_key_order_and_carries_the_document(store: Store) -> None:
    docs = [store.create(f"{PREFIX}/{name}", {"n": name}) for name in ("b", "a", "c")]
    answer = store.feed(PREFIX).poll(full=True)
    assert answer == [(doc.key, doc) for doc in sorted(docs, key=lambda doc: doc.key)]
    assert not any(isinstance(found, Unreadable) for _, found in answer)
