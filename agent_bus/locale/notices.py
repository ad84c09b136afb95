"""What notices say, English and Japanese side by side; the same shape as `messages.py`."""

from __future__ import annotations

NOTICES: dict[str, tuple[str, str]] = {
    "task.dispatched": ("New task", "新しいタスク"),
    "task.approval_needed": ("A task waits for your approval", "タスクが承認を待っています"),
    "task.started": ("Work has begun", "作業を始めました"),
    "report.submitted": ("Report", "報告"),
    "report.needs_review": ("A report waits for your review", "報告が確認を待っています"),
    "task.failed": ("Task failed", "タスクが失敗しました"),
    "task.blocked": ("Task is blocked", "タスクが止まっています（判断待ち）"),
    "task.silent": ("No sign of life from whoever holds the task", "担当からの応答がありません"),
    "task.dead_letter": ("Task given up", "タスクを打ち切りました"),
    "agent.parked": ("Agent is parked", "エージェントを休止しました"),
    "bus.stopped": ("EMERGENCY STOP", "緊急停止"),
    "bus.resumed": ("The bus runs again", "再開しました"),
    "notify.test": ("A test: notices arrive here", "テスト: ここに通知が届きます"),
    "cut": ("… cut. The rest: {command}", "… 省略。続き: {command}"),
}
