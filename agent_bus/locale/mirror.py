"""What the notes of the mirror say, English and Japanese side by side; joined into MESSAGES."""

from __future__ import annotations

MIRROR: dict[str, tuple[str, str]] = {
    "mirror.state.pending_approval": ("Waiting for approval", "承認待ち"),
    "mirror.state.scheduled": ("Scheduled", "予約済み"),
    "mirror.state.waiting": ("Waiting for other tasks", "ほかのタスク待ち"),
    "mirror.state.pending": ("Waiting for a worker", "着手待ち"),
    "mirror.state.in_progress": ("In progress", "作業中"),
    "mirror.state.in_review": ("In review", "レビュー中"),
    "mirror.state.blocked": ("A question for you", "質問があります"),
    "mirror.state.completed": ("Completed", "完了"),
    "mirror.state.failed": ("Failed", "失敗"),
    "mirror.state.cancelled": ("Cancelled", "取り消し"),
    "mirror.state.rejected": ("Rejected", "却下"),
    "mirror.state.expired": ("Expired", "期限切れ"),
    "mirror.state.dead_letter": ("Given up; it needs you", "中断（対応が必要です）"),
    "mirror.instruction": ("### Instruction", "### 指示"),
    "mirror.question": ("### Question", "### 質問"),
    "mirror.report": ("### Report", "### 報告"),
    "mirror.comment": ("### To be improved", "### 改善点"),
    "mirror.artifacts": ("### Artifacts", "### 成果物"),
    "mirror.notes": ("### Notes", "### メモ"),
    "mirror.more": (
        "{n} more characters: `agent-bus get {task_id}`",
        "続き {n} 文字: `agent-bus get {task_id}`",
    ),
    "mirror.terms": ("Held because of: {terms}", "止めた理由: {terms}"),
    "mirror.approve_how": (
        "Tick a box under Decision, or at a terminal: `agent-bus approve {task_id}` or `agent-bus reject {task_id}`",
        "「判断」のチェックボックス、または端末で: `agent-bus approve {task_id}` / `agent-bus reject {task_id}`",
    ),
    "mirror.approve_elsewhere": (
        "This is approved at a terminal only: `agent-bus approve {task_id}`. Rejecting works here too.",
        "この承認は端末でのみ行えます: `agent-bus approve {task_id}`。却下はここでもできます。",
    ),
    "mirror.not_here": (
        "Nothing is decided in notes here (vault.authority). At a terminal `agent-bus get {task_id}` shows it.",
        "ここではノートから判断できません（vault.authority）。端末の `agent-bus get {task_id}` で内容を確認できます。",
    ),
    "mirror.review_how": (
        "Tick Approve to accept the report. To send it back, write under Reply what to change and tick Send.",
        "承認で報告を受け入れます。差し戻すときは「返事」に直す点を書き、送信にチェックします。",
    ),
    "mirror.answer_how": (
        "Write your answer under Reply and tick Send, or at a terminal: "
        '`agent-bus ack {task_id} --verdict rework --comment "…"`',
        '「返事」に答えを書いて送信にチェック、または端末で: `agent-bus ack {task_id} --verdict rework --comment "…"`',
    ),
    "mirror.dead_how": (
        "Write advice under Reply and tick Send to have it tried again. At a terminal: "
        "`agent-bus retry {task_id}` runs it again, `agent-bus ack {task_id}` ends it.",
        "「返事」に助言を書いて送信にチェックすると再試行します。端末では `agent-bus retry {task_id}` で再実行、"
        "`agent-bus ack {task_id}` で終了します。",
    ),
    "mirror.decision": (
        "### Decision\n- [ ] Approve ^approve\n- [ ] Reject ^reject\n- [ ] Cancel ^cancel\n\n"
        "### Reply\n\n- [ ] Send ^send",
        "### 判断\n- [ ] 承認する ^approve\n- [ ] 却下する ^reject\n- [ ] 取り消す ^cancel\n\n"
        "### 返事\n\n- [ ] 送信 ^send",
    ),
    "mirror.controls": (
        "## Controls\n- [ ] Stop all agents ^stop-all\n- [ ] Clear the stop ^clear-stop",
        "## 操作\n- [ ] 全エージェントを停止する ^stop-all\n- [ ] 停止を解除する ^clear-stop",
    ),
    "mirror.log": ("### What became of it", "### 結果"),
    "mirror.worker": ("Worker: {worker}", "担当: {worker}"),
    "mirror.reason": ("Reason: {reason}", "理由: {reason}"),
    "mirror.report_title": ("Report: {title}", "報告: {title}"),
    "mirror.dashboard": ("Dashboard", "ダッシュボード"),
    "mirror.counts": (
        "Needs you {you} · waiting {waiting} · running {running} · problems {problems}",
        "要対応 {you} · 待機 {waiting} · 実行中 {running} · 問題 {problems}",
    ),
    "mirror.stopped": ("Stopped: {reason}", "緊急停止中: {reason}"),
    "mirror.resume_how": (
        "Go on with `agent-bus resume` at a terminal.",
        "端末で `agent-bus resume` を実行すると再開します。",
    ),
    "mirror.paused": (
        "Nothing but a stop is taken from the vault ({why}). If it was you: `agent-bus vault unpause`",
        "ノートからの操作は停止以外を受け付けていません（{why}）。心当たりがあれば: `agent-bus vault unpause`",
    ),
    "mirror.changed": ("Last change {at} · owner {host}", "最後の変化 {at} · 持ち主 {host}"),
    "mirror.needs_you": ("**Needs you**", "**要対応**"),
    "mirror.running": ("**Running**", "**実行中**"),
    "mirror.queue": ("**Waiting**", "**待機**"),
    "mirror.done": ("**Ended last**", "**最近の終了**"),
    "mirror.agents": ("**Agents**", "**エージェント**"),
    "mirror.transcript": ("## Transcript", "## 記録"),
    "mirror.rooms": ("**Rooms**", "**ルーム**"),
    "mirror.room": ("[[{stem}]] · {n} messages · {at}", "[[{stem}]] · {n} 件 · {at}"),
    "mirror.chains": ("**Chains**", "**連鎖**"),
    "mirror.nothing": ("Nothing.", "ありません。"),
    "mirror.and_more": ("and {n} more", "ほか {n} 件"),
    "mirror.archive": ("Ended tasks of {month}", "{month} に終わったタスク"),
    "mirror.archive_head": (
        "| task | worker | result | ended | title |",
        "| タスク | 担当 | 結果 | 終了 | タイトル |",
    ),
    "mirror.problems_link": ("{n} problems: [[Problems]]", "問題 {n} 件: [[Problems]]"),
    "mirror.problems": ("Problems", "問題"),
    "mirror.no_problems": ("All is well.", "問題はありません。"),
    "mirror.task_in_hand": ("Task in hand: {link}", "作業中のタスク: {link}"),
    "mirror.last_task": ("Last completed: {link}", "最後に完了したタスク: {link}"),
    "mirror.waiting_for": ("Tasks that wait: {n}", "待っているタスク: {n}"),
}
