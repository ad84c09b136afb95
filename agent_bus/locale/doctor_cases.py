"""What the doctor says of each bad case: what is wrong, and on the second line the fix. Keys: `ID.CASE`."""

from __future__ import annotations

CASES: dict[str, tuple[str, str]] = {
    "root.exists.unnamed": (
        "No bus folder is named\nagent-bus init FOLDER, then give --root FOLDER or set AGENT_BUS_ROOT",
        "バスのフォルダーが指定されていません\nagent-bus init FOLDER を実行し、--root FOLDER か AGENT_BUS_ROOT で指定",
    ),
    "root.exists.gone": (
        'There is no folder {root}\nagent-bus init --root "{root}", or name the right folder with --root',
        'フォルダー {root} がありません\nagent-bus init --root "{root}"、または --root で正しいフォルダーを指定',
    ),
    "root.exists.unmade": (
        '{root} is no bus folder yet\nagent-bus init --root "{root}"',
        '{root} はまだバスのフォルダーではありません\nagent-bus init --root "{root}"',
    ),
    "root.exists.incomplete": (
        'Parts of {root} are missing: {names}\nagent-bus init --root "{root}"',
        '{root} に足りないものがあります: {names}\nagent-bus init --root "{root}"',
    ),
    "root.format.unreadable": (
        "{reason}\n{fix}",
        "{reason}\n{fix}",
    ),
    "root.write.refused": (
        "Nothing can be written into {path}: {reason}\nGive your user write access to the folder.",
        "{path} に書き込めません: {reason}\nこのユーザーに書き込み権限を与えてください。",
    ),
    "root.owner.other": (
        "The machine {name} owns this bus; here it can only be read\n"
        "Work there, or make this machine the owner: agent-bus takeover",
        "所有しているのは {name} です。ここでは読み取りしかできません\n"
        "{name} で作業するか、このマシンを所有者にする: agent-bus takeover",
    ),
    "root.sync.service": (
        "{root} lies in a folder of {service}\n"
        "Move the bus out of it, or pause {service} on every other machine; keep .bus out of the synchronisation.",
        "{root} は {service} の同期フォルダーの中にあります\n"
        "バスを外へ移すか、ほかのマシンの {service} を止め、.bus を同期から除外してください。",
    ),
    "root.sync.git": (
        "{folder} is a git repository\n"
        "Keep .bus out of it (a line .bus/ in .gitignore); do not switch branches while agents work.",
        "{folder} は git リポジトリーです\n"
        ".gitignore に .bus/ を書き、エージェントの作業中はブランチを切り替えないでください。",
    ),
    "root.sync.conflicts": (
        "{count} copies of a conflict lie there, the first is {first}\nCompare each with its original, then delete it.",
        "競合コピーが {count} 件あります（最初: {first}）\n元のファイルと比べてから削除してください。",
    ),
    "root.sync.network": (
        "The folder lies on a network file system ({kind})\n"
        "Move the bus to a local disk; reach it from elsewhere over HTTP (agent-bus up).",
        "ネットワークファイルシステム（{kind}）の上にあります\n"
        "ローカルディスクへ移し、ほかのマシンからは HTTP（agent-bus up）で使ってください。",
    ),
    "root.sync.caseless": (
        "The file system takes Name and name for one\nNothing to do: names of agents are compared so everywhere.",
        "大文字と小文字を区別しないファイルシステムです\n対処は不要です。エージェント名も区別せずに扱われます。",
    ),
    "root.sync.unlocked": (
        "Two processes held one lock at the same time\nMove the bus to a local disk: tasks would be given out twice.",
        "1 つのロックを 2 つのプロセスが同時に取得しました\n"
        "ローカルディスクへ移してください。タスクが二重に渡されます。",
    ),
    "root.sync.stuck": (
        "The lock test did not work (code {code})\nMove the bus to a local disk, then run agent-bus doctor again.",
        "ロックを確認できませんでした（コード {code}）\nローカルディスクへ移し、もう一度 agent-bus doctor を実行。",
    ),
    "disk.little": (
        "Only {mib} MiB are free\nMake room on that disk.",
        "空きは {mib} MiB だけです\n空き容量を増やしてください。",
    ),
    "version.entry": (
        "The client starts version {found}, this is {ours}\nUpdate the older one, then start the client again.",
        "クライアントが起動するのは {found}、こちらは {ours} です\n古い方を更新し、クライアントを再起動してください。",
    ),
    "version.running": (
        "The server at {url} has version {found}, this is {ours}\nagent-bus up --stop, then agent-bus up --detach",
        "{url} のサーバーは {found}、こちらは {ours} です\nagent-bus up --stop の後に agent-bus up --detach",
    ),
    "entry.found.absent": (
        "{title} does not know the bus\nagent-bus install {client}",
        "{title} にバスが登録されていません\nagent-bus install {client}",
    ),
    "entry.found.off": (
        "The entry {key} in {path} is switched off\nSwitch it on in the client if its agent shall work.",
        "{path} のエントリー {key} は無効になっています\n使う場合は、クライアントで有効にしてください。",
    ),
    "entry.found.nobody": (
        "No client knows the bus\nagent-bus install all",
        "どのクライアントにもバスが登録されていません\nagent-bus install all",
    ),
    "entry.parse.broken": (
        "{title} cannot read {path}: {reason}\nMend that line in an editor; agent-bus install prints the entry.",
        "{title} は {path} を読み取れません: {reason}\nその行をエディターで直してください。",
    ),
    "entry.place.dead": (
        "{title} does not read {key} in {path}: {names}\n"
        "agent-bus install {client} for the bus (--force takes our dead entry away); move other servers with the"
        " client's own command",
        "{title} は {path} の {key} を読みません: {names}\n"
        "バスは agent-bus install {client}（--force で不要なエントリーも削除）。ほかのサーバーはクライアントのコマン"
        "ドで登録し直してください",
    ),
    "entry.place.older": (
        "{path} is read by older versions of {title} only\n"
        "agent-bus install {client}, then take {key} out of that file",
        "{path} を読むのは {title} の古い版だけです\nagent-bus install {client} の後、そのファイルから {key} を削除",
    ),
    "entry.place.args": (
        "{key} in {path} has args, which {title} rejects\n"
        "agent-bus install {client}; the arguments belong into command",
        "{path} の {key} に args があり、{title} は受け付けません\n"
        "agent-bus install {client}（引数は command に書きます）",
    ),
    "entry.place.address": (
        "{key} in {path} has its address under {wrong}, {title} reads {right}\nRename {wrong} to {right} there.",
        "{path} の {key} のアドレスは {wrong} にありますが、{title} が読むのは {right} です\n"
        "{wrong} を {right} に変更。",
    ),
    "entry.command.relative": (
        "{path} starts {program}, which is no absolute path\nagent-bus install {client} writes the whole path",
        "{path} の {program} は絶対パスではありません\nagent-bus install {client} で絶対パスに書き換わります",
    ),
    "entry.command.gone": (
        "{path} starts {program}, which is not there any more\nagent-bus install {client}",
        "{path} の {program} は存在しません\nagent-bus install {client}",
    ),
    "entry.command.unrunnable": (
        "{path} starts {program}, which cannot be run\n"
        "pipx install --force . in the folder of agent-bus, then agent-bus install {client}",
        "{path} の {program} は実行できません\n"
        "agent-bus のフォルダーで pipx install --force . の後に agent-bus install {client}",
    ),
    "entry.command.temporary": (
        "{path} starts {program}, which lies in a temporary place\n"
        "pipx install . in the folder of agent-bus, then agent-bus install {client}",
        "{path} の {program} は一時的な場所にあります\n"
        "agent-bus のフォルダーで pipx install . の後に agent-bus install {client}",
    ),
    "entry.command.other": (
        "{path} starts {program}, this installation is {ours}\n"
        "agent-bus install {client}, or remove the one that you do not use",
        "{path} が起動するのは {program} で、こちらは {ours} です\nagent-bus install {client}、または使わない方を削除",
    ),
    "entry.command.seed": (
        "{key} in {path} starts the server of agent-bus-mcp\nagent-bus install {client} --force replaces it",
        "{path} の {key} は agent-bus-mcp のサーバーを起動します\nagent-bus install {client} --force で置き換わります",
    ),
    "entry.root.unnamed": (
        "The entry in {path} names no bus folder\nagent-bus install {client} writes --root",
        "{path} のエントリーにバスのフォルダーがありません\nagent-bus install {client} で --root が書かれます",
    ),
    "entry.root.gone": (
        "The entry in {path} means {root}, which is not there\nagent-bus install {client}",
        "{path} のエントリーが指す {root} はありません\nagent-bus install {client}",
    ),
    "entry.root.other": (
        "Two buses: the entry in {path} means {root}, this is {here}\n"
        'agent-bus install {client}, or agent-bus doctor --root "{root}" to look at that one',
        "バスが 2 つあります: {path} のエントリーは {root}、こちらは {here} です\n"
        'agent-bus install {client}、または agent-bus doctor --root "{root}" で確認',
    ),
    "entry.double.twice": (
        "{path} has several entries of ours: {keys}\nDelete all but one of them.",
        "{path} にエントリーが複数あります: {keys}\n1 つを残して削除してください。",
    ),
    "entry.double.scopes": (
        "The user's entry means {user}, the project's means {project}\n"
        "Take out the one that is not meant: agent-bus uninstall {client} --scope project",
        "ユーザーのエントリーは {user}、プロジェクトのエントリーは {project} を指しています\n"
        "不要な方を削除: agent-bus uninstall {client} --scope project",
    ),
    "entry.agent.shared": (
        "The agent {agent} is used by {clients}\nagent-bus install {client} --agent ANOTHER",
        "エージェント {agent} を複数のクライアントが使っています: {clients}\n"
        "agent-bus install {client} --agent 別の名前",
    ),
    "entry.limits.timeout": (
        "{title} ends calls after {seconds} s, waits of the bus last up to 50 s\n"
        "agent-bus install {client} sets {key} in {path}",
        "{title} は {seconds} 秒で呼び出しを打ち切りますが、バスの待ち時間は最長 50 秒です\n"
        "agent-bus install {client} で {path} に {key} が設定されます",
    ),
    "entry.limits.approval": (
        "Codex cancels our writing tools when it runs without a person: {key} is missing\n"
        "agent-bus install {client} sets it in {path}",
        "{key} がないため、Codex は無人実行のとき書き込みツールを取り消します\n"
        "agent-bus install {client} で {path} に設定されます",
    ),
    "entry.limits.always_load": (
        "Our tools wait behind a search: {key} is missing\nagent-bus install {client} sets it in {path}",
        "{key} がないため、ツールは検索するまで使えません\nagent-bus install {client} で {path} に設定されます",
    ),
    "entry.limits.trust": (
        "{agent} is started by the bus, but its client hides our tools without trust\n"
        "agent-bus install {client} --with approve",
        "{agent} はバスから起動されますが、信頼されていないサーバーのツールは使えません\n"
        "agent-bus install {client} --with approve",
    ),
    "entry.limits.names": (
        "{key} and our longest tool name have {chars} characters, the client takes {most}\n"
        "agent-bus uninstall {client}, then agent-bus install {client} --name bus",
        "{key} とツール名を合わせると {chars} 文字になり、上限の {most} を超えます\n"
        "agent-bus uninstall {client} の後に agent-bus install {client} --name bus",
    ),
    "entry.secret.shown": (
        "{name} of {key} in {path} holds a secret\n"
        "Take it out of the file and make it anew, as others may have read it; the entry needs none: agent-bus"
        " install {client}",
        "{path} の {key} の {name} に秘密の値があります\n"
        "ファイルから消し、読まれた可能性があるので作り直してください。エントリーには不要です: agent-bus install "
        "{client}",
    ),
    "server.start.foreign": (
        "The project's entry in {path} was not tried: it starts {program}, or sets an environment\nagent-bus install"
        " {client} --scope project writes ours, which is tried",
        "プロジェクトの {path} にあるエントリーは試していません（{program} を起動するか、環境変数を設定しています）\n"
        "agent-bus install {client} --scope project で書き直すと確認できます",
    ),
    "server.start.spawn": (
        "{program} cannot be started: {reason}\n"
        "pipx install --force . in the folder of agent-bus, then agent-bus install {client}",
        "{program} を起動できません: {reason}\n"
        "agent-bus のフォルダーで pipx install --force . の後に agent-bus install {client}",
    ),
    "server.start.crashed": (
        "{program} ended at once with code {code}\n"
        "Mend what its last lines say; if there are none: agent-bus install {client}",
        "{program} はすぐに終了しました（コード {code}）\n"
        "最後の出力に従って直してください。何もなければ agent-bus install {client}",
    ),
    "server.start.silent": (
        "{program} started and did not answer in {seconds} s\n"
        "Run the entry's command in a terminal; if it stays silent too: agent-bus install {client}",
        "{program} は起動しましたが {seconds} 秒たっても応答しません\n"
        "エントリーのコマンドを端末で実行し、同じなら agent-bus install {client}",
    ),
    "server.start.other": (
        "{program} is another server: {name}\nagent-bus install {client}, or give that server's entry another name",
        "{program} は別のサーバーです: {name}\nagent-bus install {client}、または別名で登録し直してください",
    ),
    "server.discover.wrong_id": (
        "{program} answers with ids that nobody asked for\nIt is broken or no MCP server: agent-bus install {client}",
        "{program} は要求と異なる id で応答します\n故障か、MCP サーバーではありません: agent-bus install {client}",
    ),
    "server.discover.refused": (
        "server/discover is not answered: {reason}\nUpdate it: pipx upgrade agent-bus",
        "server/discover に応答しません: {reason}\n更新: pipx upgrade agent-bus",
    ),
    "server.initialize.refused": (
        "initialize of {version} is not answered with that version: {reason}\nUpdate it: pipx upgrade agent-bus",
        "initialize（{version}）に正しく応答しません: {reason}\n更新: pipx upgrade agent-bus",
    ),
    "server.time.slow": (
        "The first answer took {seconds} s\n"
        "Look at what slows programs down: a virus scanner, a network disk, a busy machine.",
        "最初の応答に {seconds} 秒かかりました\nウイルス対策、ネットワークディスク、高負荷などの原因を調べてください。",
    ),
    "server.tools.none": (
        "It lists no tools: {reason}\nagent-bus install {client}",
        "ツールの一覧を返しません: {reason}\nagent-bus install {client}",
    ),
    "server.tools.wrong": (
        "Its tools are not as they should be: {fault}\nUpdate it: pipx upgrade agent-bus",
        "ツールに誤りがあります: {fault}\n更新: pipx upgrade agent-bus",
    ),
    "server.stdout.noise": (
        "It writes something else than the protocol: {line}\n"
        "Take out what prints: a wrapper script, sitecustomize, a shell profile; or agent-bus install {client}",
        "プロトコル以外の出力があります: {line}\n"
        "出力の元（ラッパー、sitecustomize、シェルの設定）を除くか、agent-bus install {client}",
    ),
    "server.stdout.stays": (
        "It goes on after its input has ended\nLook at what holds it: it would be left behind by every session.",
        "入力が終わっても終了しません\n原因を調べてください。セッションごとに残り続けます。",
    ),
    "server.call.refused": (
        "system_health was refused: {reason}\nMend what it says, then run agent-bus doctor again.",
        "system_health が失敗しました: {reason}\n内容に従って直し、もう一度 agent-bus doctor を実行してください。",
    ),
}
