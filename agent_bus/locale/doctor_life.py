"""What the doctor says of what runs: HTTP, launched agents, jobs, channels, tasks. As `doctor_cases`."""

from __future__ import annotations

CASES: dict[str, tuple[str, str]] = {
    "http.silent": (
        "Nobody answers at {url}: {reason}\nagent-bus up --stop, then agent-bus up --detach",
        "{url} が応答しません: {reason}\nagent-bus up --stop の後に agent-bus up --detach",
    ),
    "http.stranger": (
        "Another program answers at {url}\nEnd it, or start ours on another port: agent-bus up --port PORT",
        "{url} では別のプログラムが応答しています\nそれを終了するか、別のポートで起動: agent-bus up --port PORT",
    ),
    "http.other_bus": (
        "{url} serves the bus {found}, this is {here}\nGive each bus its own port: agent-bus up --port PORT",
        "{url} は別のバス {found} のものです（こちらは {here}）\nバスごとにポートを分ける: agent-bus up --port PORT",
    ),
    "http.unguarded": (
        "{url} answers a request with a wrong or missing {what} ({status})\n"
        "End it and update: agent-bus up --stop; pipx upgrade agent-bus",
        "{url} は {what} が不正な要求にも応答します（{status}）\n"
        "終了して更新: agent-bus up --stop、pipx upgrade agent-bus",
    ),
    "http.open": (
        "It listens at {address}, where other machines reach it, and nothing encrypts the token\n"
        "agent-bus up --stop, then agent-bus up --host 127.0.0.1",
        "{address} で待ち受けているため、ほかのマシンから届き、トークンは暗号化されません\n"
        "agent-bus up --stop の後に agent-bus up --host 127.0.0.1",
    ),
    "http.token_gone": (
        "Its token cannot be found at {path}: {reason}\nagent-bus up --stop, then agent-bus up --detach makes one",
        "{path} にトークンがありません: {reason}\nagent-bus up --stop の後に agent-bus up --detach で作られます",
    ),
    "http.token_mode": (
        'Others can read its token: {path} has mode {mode}\nchmod 600 "{path}"',
        '{path} のモードが {mode} のため、ほかのユーザーもトークンを読めます\nchmod 600 "{path}"',
    ),
    "launch.settings.wrong": (
        "{agent} cannot be started: {reason}\n{fix}",
        "{agent} を起動できません: {reason}\n{fix}",
    ),
    "launch.program.unusable": (
        "{agent} cannot be started: {reason}\n{fix}",
        "{agent} を起動できません: {reason}\n{fix}",
    ),
    "launch.parked.parked": (
        "{agent} is parked until {until} ({reason})\nWait, or mend that and run: agent-bus unpark {agent}",
        "{agent} は {until} まで休止中です（{reason}）\n待つか、原因を直してから: agent-bus unpark {agent}",
    ),
    "launch.login.out": (
        "{agent} is not logged in\n{command}",
        "{agent} はログインしていません\n{command}",
    ),
    "jobs.idle": (
        "Nobody runs {names}; nothing is missing while no task is open\nagent-bus up --detach",
        "{names} は動いていません。未完了のタスクがない間は問題ありません\nagent-bus up --detach",
    ),
    "jobs.gone": (
        "Tasks wait, as nobody runs: {names}\nagent-bus up --detach",
        "動いていないジョブがあり、タスクが待たされます: {names}\nagent-bus up --detach",
    ),
    "jobs.failing": (
        "The job {name} fails (last tick {tick}): {error}\nMend that; the log is in .bus/log/up.log.",
        "ジョブ {name} が失敗しています（最終 {tick}）: {error}\n原因を直してください。ログは .bus/log/up.log です。",
    ),
    "notify.none": (
        "No channel is set up: people hear nothing of questions and failures\n"
        "Write a table such as [notify.discord] into the settings file.",
        "通知先がなく、質問や失敗が人に伝わりません\n設定ファイルに [notify.discord] のような表を書いてください。",
    ),
    "notify.wrong": (
        "{channel}: {reason}\n{fix}",
        "{channel}: {reason}\n{fix}",
    ),
    "notify.off": (
        "{channel} is off: {reason}\nMend its settings, or agent-bus notify retry {channel}",
        "{channel} は止まっています: {reason}\n設定を直すか、agent-bus notify retry {channel}",
    ),
    "notify.old": (
        "{count} notices for {channel} wait, the oldest for {minutes} min ({reason})\n"
        "agent-bus up --detach sends them; agent-bus notify retry {channel} tries at once",
        "{channel} への通知 {count} 件が待っています（最長 {minutes} 分、{reason}）\n"
        "agent-bus up --detach で送られます。すぐに試すには agent-bus notify retry {channel}",
    ),
    "notify.unsent": (
        "{channel} did not take the test notice: {reason}\nMend its settings, then agent-bus notify test {channel}",
        "{channel} に試験通知を送れません: {reason}\n設定を直してから agent-bus notify test {channel}",
    ),
    "vault.errors": (
        'The notes of this bus have errors: {ids}\nagent-bus vault doctor --root "{root}" says what to do.',
        'このバスのノートに問題があります: {ids}\nagent-bus vault doctor --root "{root}" で対処を確認してください。',
    ),
    "vault.warnings": (
        'Something about the notes could be better: {ids}\nagent-bus vault doctor --root "{root}" says what to do.',
        "このバスのノートに改善できる点があります: {ids}\n"
        'agent-bus vault doctor --root "{root}" で対処を確認してください。',
    ),
    "stop.stopped": (
        "The bus was stopped by {by} at {at} ({reason})\nWhen all is in order, a person runs: agent-bus resume",
        "バスは {by} により {at} に停止されました（{reason}）\n問題がなければ、人が agent-bus resume を実行",
    ),
    "tasks.problem": (
        "{problem}\nDo what the sentence says; agent-bus status shows the tasks.",
        "{problem}\n文の指示に従ってください。タスクは agent-bus status で確認できます。",
    ),
    "tasks.more": (
        "There are {count} more problems\nagent-bus status",
        "問題はほかに {count} 件あります\nagent-bus status",
    ),
}
