"""What the person at a client is asked, English and Japanese side by side; joined into MESSAGES."""

from __future__ import annotations

ASKING: dict[str, tuple[str, str]] = {
    "ask.approval": (
        "{sender} wants {target} to do the following. It waits for your approval because of: {terms}\n\n{order}\n\n"
        "Only what stands behind “>” is the order ({task_id}). May it run?",
        "{sender} から {target} への次の指示は、あなたの承認を待っています。理由: {terms}\n\n{order}\n\n"
        "「>」の付いた行だけが指示の内容です（{task_id}）。実行してよいですか？",
    ),
    "ask.left": ("Nothing was changed.", "何も変更していません。"),
    "ask.yes": ("Approve", "承認する"),
    "ask.comment": ("Comment", "コメント"),
}
