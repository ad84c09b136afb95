"""What is said about clients: install, uninstall, their list and their limits."""

from __future__ import annotations

CLIENTS: dict[str, tuple[str, str]] = {
    "clients.found_here": ("Found here: {clients}", "見つかったクライアント: {clients}"),
    "clients.ask": ("Tell them about the bus?", "これらに agent-bus を登録しますか？"),
    "clients.broken_offer": ("Client {name} cannot be used: {why}", "クライアント {name} は使えません: {why}"),
    "clients.nothing": ("Nothing to do.", "することはありません。"),
    "clients.here": ("found", "あり"),
    "clients.not_here": ("not found", "なし"),
    "clients.unreadable": ("cannot be read: {why}", "読み取れません: {why}"),
    "clients.entry": (
        "entry {name} ({whose}): agent {agent}, bus {root}",
        "エントリー {name}（{whose}）: エージェント {agent}、バス {root}",
    ),
    "clients.what.added": ("added", "追加"),
    "clients.what.updated": ("updated", "更新"),
    "clients.what.unchanged": ("unchanged", "変更なし"),
    "clients.what.removed": ("taken out", "取り除きました"),
    "clients.what.kept": ("kept", "そのまま"),
    "clients.what.refused": ("refused", "中止"),
    "clients.token": (
        "Next: set {variable} to the content of {path} where the client starts.",
        "次に: クライアントを起動する環境で、{variable} に {path} の内容を設定してください。",
    ),
    "clients.backup": ("backup: {path}", "バックアップ: {path}"),
    "clients.by_hand": ("  To add it by hand:", "  手で追加する場合:"),
    "clients.snippet": ("This belongs into {path}:", "{path} に書く内容:"),
    "clients.snippet_nowhere": (
        "This belongs into the file of {client}, which has none on this system:",
        "{client} のファイルに書く内容（このシステムにはありません）:",
    ),
    # What a user does after a change.
    "clients.after.approve_project": (
        "Next: Claude Code asks once whether to use the project's server; say yes.",
        "次に: Claude Code がプロジェクトのサーバーを使うか一度だけ尋ねます。「はい」を選んでください。",
    ),
    "clients.after.restart_full": (
        "Next: quit Claude Desktop wholly and start it again.",
        "次に: Claude Desktop を完全に終了して、もう一度起動してください。",
    ),
    "clients.after.refresh": (
        "Next: refresh the MCP servers in its settings, or start it again.",
        "次に: 設定画面で MCP サーバーを再読み込みするか、再起動してください。",
    ),
    "clients.after.start_server": (
        'Next: run "MCP: List Servers" in VS Code and start bus.',
        "次に: VS Code で「MCP: List Servers」を実行し、bus を開始してください。",
    ),
    # What a client does that a user meets.
    "clients.note.background": (
        "Good to know: a call of more than two minutes goes on in the background.",
        "補足: 2 分を超える呼び出しはバックグラウンドで続きます。",
    ),
    "clients.note.results": (
        "Good to know: a very long result goes to a file, which the agent then reads.",
        "補足: 非常に長い結果はファイルに書かれ、エージェントがそれを読みます。",
    ),
    "clients.note.fixed_timeout": (
        "Good to know: how long a call may last is fixed there; waits of the bus stay below it.",
        "補足: 呼び出しの制限時間は固定です。バスの待ち時間はそれより短くしてあります。",
    ),
    "clients.note.short_path": (
        "Good to know: its programs get a short PATH; that is why the entry names ours in full.",
        "補足: このアプリから起動されるプログラムの PATH は短いため、エントリーには絶対パスを書いています。",
    ),
    "clients.note.freezes": (
        "Good to know: it freezes at its start if a server never answers; agent-bus doctor shows whether ours does.",
        "補足: 応答しないサーバーがあると起動時に固まります。agent-bus doctor で確認できます。",
    ),
    "clients.note.approval_exec": (
        "Good to know: codex exec cancels every tool that may write unless the entry approves it; ours does.",
        "補足: codex exec は、承認のない書き込みツールを取り消します。このエントリーは承認済みにしてあります。",
    ),
    "clients.note.trusted_project": (
        "Good to know: a project's file is read only after you have trusted the project.",
        "補足: プロジェクトのファイルは、プロジェクトを信頼してから読み込まれます。",
    ),
    "clients.note.trust_headless": (
        "Good to know: headless runs see our tools only with trust: --with approve sets it.",
        "補足: ヘッドレス実行では trust がないとツールが見えません。--with approve で設定します。",
    ),
    "clients.note.tool_count_40": (
        "Good to know: it takes about 40 tools in all; ours are 12 unless you ask for more.",
        "補足: 使えるツールは全体で約 40 個です。agent-bus は指定がなければ 12 個です。",
    ),
    "clients.note.tool_count_100": (
        "Good to know: it takes about 100 tools in all; ours are 12 unless you ask for more.",
        "補足: 使えるツールは全体で約 100 個です。agent-bus は指定がなければ 12 個です。",
    ),
    "clients.note.tool_count_128": (
        "Good to know: it takes 128 tools in all; ours are 12 unless you ask for more.",
        "補足: 使えるツールは全体で 128 個です。agent-bus は指定がなければ 12 個です。",
    ),
    "clients.note.approve_advice": (
        "Good to know: whether it asks before each call is set in the client itself.",
        "補足: 呼び出しごとに確認するかどうかは、クライアント側で設定します。",
    ),
    "clients.note.shared": (
        "Kept: another client uses it too.",
        "残しました: 別のクライアントも使っています。",
    ),
    "clients.note.edited": (
        "Kept: somebody edited it. What we would write stands beside it, as .new; --force replaces it.",
        "残しました: 編集されています。新しい内容は .new に書きました。--force で置き換えます。",
    ),
    "clients.note.left": (
        "Kept: somebody edited it. --force takes it out, with a copy.",
        "残しました: 編集されています。--force で取り除きます（コピーを残します）。",
    ),
    "clients.note.not_beside": (
        "Kept: somebody edited it; the new text could not be put beside it.",
        "残しました: 編集されています。新しい内容を横に書くことはできませんでした。",
    ),
    "clients.no_part": (
        "{client} has no place for {part} in the scope {scope}.",
        "{client} には、スコープ {scope} で {part} を置く場所がありません。",
    ),
    "clients.note.no_manifest": (
        "The bus folder could not note this; uninstall still knows our entry.",
        "バスのフォルダーに記録できませんでした。uninstall は記録がなくてもエントリーを見分けます。",
    ),
}
