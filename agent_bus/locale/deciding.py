"""What the bus says of decisions, orders and stops made in the vault, English and Japanese; joined into MESSAGES."""

from __future__ import annotations

DECIDING: dict[str, tuple[str, str]] = {
    "deciding.fault.front": (
        "The properties of this note cannot be read, so nothing is taken from it: put them right.",
        "このノートのプロパティを読めないため、何も実行しません。直してください。",
    ),
    "deciding.fault.contradiction": (
        "Two different decisions are set here, so neither is taken: leave only one.",
        "異なる判断が同時に選ばれているため、どちらも実行しません。一つだけ残してください。",
    ),
    "deciding.fault.unknown_word": (
        "ab_decision holds a word that is none: use approve, reject or cancel.",
        "ab_decision の言葉が分かりません。承認、却下、取消 のいずれかを使ってください。",
    ),
    "deciding.fault.no_reply": (
        "Nothing was sent: write under Reply what to say or what to change, the tick can stay.",
        "送信していません。「返事」に内容や直す点を書いてください。チェックはそのままで構いません。",
    ),
    "deciding.fault.other_verb": (
        "That is not what is asked here: see the lines below.",
        "ここで求められている判断ではありません。下の説明を見てください。",
    ),
    "deciding.fault.say_it_again": (
        "This note was approved before. To approve it anew write `approve {req}` into ab_decision.",
        "このノートは以前に承認されています。改めて承認するには ab_decision に `承認 {req}` と書いてください。",
    ),
    "deciding.done.approve": ("{at} approved (vault edit, unverified) → {status}", "{at} 承認（ノートから）→ {status}"),
    "deciding.done.reject": ("{at} rejected (vault edit, unverified) → {status}", "{at} 却下（ノートから）→ {status}"),
    "deciding.done.answer": ("{at} answered (vault edit, unverified) → {status}", "{at} 返事（ノートから）→ {status}"),
    "deciding.done.cancel": (
        "{at} cancelled (vault edit, unverified) → {status}",
        "{at} 取り消し（ノートから）→ {status}",
    ),
    "deciding.done.priority": ("{at} priority → {status} (vault edit)", "{at} 優先度 → {status}（ノートから）"),
    "deciding.refused": ("{at} not done: {why}", "{at} 実行できません: {why}"),
    "deciding.late": (
        "{at} not taken: that decision was for something that is no longer asked.",
        "{at} 実行しません: すでに終わった確認への判断です。",
    ),
    "deciding.not_here": (
        "{at} not from the vault at this level: `agent-bus {verb} {task_id}` at a terminal.",
        "{at} この権限ではノートから実行できません。端末で `agent-bus {verb} {task_id}` を使ってください。",
    ),
    "deciding.no_priority": (
        "{at} the priority was put back: it is high, normal or low, of a task that has not ended.",
        "{at} 優先度を元に戻しました。終わっていないタスクに high、normal、low のいずれかを使ってください。",
    ),
    "deciding.put_back": (
        "{at} a property that the bus keeps was changed, and put back.",
        "{at} バスが管理するプロパティが変更されたため、元に戻しました。",
    ),
    "deciding.bad_agent": ("this is no name of an agent", "エージェントの名前ではありません"),
    "deciding.nearest": ("no such agent; did you mean {name}?", "そのエージェントはいません。{name} ですか？"),
    "deciding.no_agent": ("no such agent has been seen on this bus", "そのエージェントはこのバスにいません"),
    "deciding.yaml": (
        "The properties cannot be read, or hold anchors, tags or a name twice: put them right.",
        "プロパティを読めません（アンカー、タグ、同じ名前の重複など）。直してください。",
    ),
    "deciding.no_command.verb": (
        "ab_command holds no order: dispatch, approve, reject, answer, cancel, priority, say or stop.",
        "ab_command の値が分かりません: dispatch, approve, reject, answer, cancel, priority, say, stop",
    ),
    "deciding.no_command.priority": (
        "ab_priority must be high, normal or low.",
        "ab_priority は high, normal, low のいずれかです。",
    ),
    "deciding.no_command.no_agent": ("Name the agent in ab_to.", "ab_to にエージェント名を書いてください。"),
    "deciding.no_command.no_task": ("Name the task in ab_task.", "ab_task にタスクを指定してください。"),
    "deciding.no_command.no_room": ("Name the room in ab_room.", "ab_room にルーム名を書いてください。"),
    "deciding.said": ("Said in {room}.", "{room} で発言しました。"),
    "deciding.no_command.empty": (
        "Write below the properties what is to be done.",
        "プロパティの下に内容を書いてください。",
    ),
    "deciding.no_command.too_long": ("The text is too long: {about}.", "本文が長すぎます: {about}"),
    "deciding.stopped": ("All agents are stopped.", "全エージェントを停止しました。"),
    "deciding.old": (
        "That is not what is asked now: copy ab_req anew from the task's note.",
        "現在求められている確認ではありません。タスクのノートの ab_req を写し直してください。",
    ),
    "deciding.level": (
        "Not from the vault at this level: use a terminal.",
        "この権限ではノートから実行できません。端末を使ってください。",
    ),
    "deciding.why": ("Not done: {why}", "実行できません: {why}"),
    "deciding.made_twice": (
        "Another order with this stamp was sent as {task}: make a new note from the template.",
        "同じ作成時刻の別の指示が {task} として送信済みです。テンプレートから作り直してください。",
    ),
    "deciding.duplicate": (
        "This was sent before: {task}. To send it again tick ab_again and ab_ready in a new note.",
        "送信済みです: {task}。もう一度送るには新しいノートで ab_again と ab_ready にチェックしてください。",
    ),
    "deciding.accepted": ("Taken: {task} · {status}", "受け付けました: {task} · {status}"),
}
