"""What the doctor says. `doctor.check.ID`: what is well, why it matters. `doctor.ID.CASE`: what is wrong, the fix."""

from __future__ import annotations

from agent_bus.locale import doctor_cases, doctor_life

CHECKS: dict[str, tuple[str, str]] = {
    "root.exists": (
        "The bus folder is there\nEvery agent and every command needs it.",
        "バスのフォルダーがあります\nすべてのエージェントとコマンドが使います。",
    ),
    "root.format": (
        "Its format is known\nA version that does not know the format must not write.",
        "形式に対応しています\n形式を知らない版は書き込めません。",
    ),
    "root.write": (
        "It can be written\nWithout that no task is taken and no report is kept.",
        "書き込めます\n書き込めないと、タスクの受け取りも報告もできません。",
    ),
    "root.owner": (
        "This machine owns it\nOnly one machine writes, as locks do not reach over a network.",
        "このマシンが所有しています\nロックはネットワークを越えて効かないため、書き込むのは 1 台だけです。",
    ),
    "root.sync": (
        "Nothing disturbs the folder, and locks hold\nTwo writers that do not see each other's locks lose tasks.",
        "フォルダーを乱すものはなく、ロックも効いています\n互いのロックが見えないまま書き込むと、タスクが失われます。",
    ),
    "disk": (
        "There is room on the disk\nOn a full disk every writing command is refused.",
        "空き容量は十分です\nディスクがいっぱいになると、書き込みはすべて拒否されます。",
    ),
    "version": (
        "All versions are the same\nDifferent versions may not understand each other's newest fields.",
        "版はそろっています\n版が異なると、新しい項目が通じないことがあります。",
    ),
    "entry.found": (
        "It knows the bus\nAn agent reaches the bus through the entry in its client's file.",
        "バスが登録されています\nエージェントは、クライアントの設定ファイルのエントリーからバスにつながります。",
    ),
    "entry.parse": (
        "The file can be read\nA client drops all servers of a file that it cannot read.",
        "ファイルを読み取れます\n読み取れないファイルのサーバーは、クライアントからすべて無視されます。",
    ),
    "entry.place": (
        "Everything stands where it is read\nThe client never looks there, so those servers do not exist for it.",
        "正しい場所に書かれています\nクライアントが見ない場所に書かれたサーバーは、存在しないのと同じです。",
    ),
    "entry.command": (
        "The entry starts this installation\nThe client starts exactly this program, and says little if it cannot.",
        "エントリーはこのインストールを起動します\n"
        "クライアントはこのプログラムを起動しますが、失敗してもほとんど何も表示しません。",
    ),
    "entry.root": (
        "It means this bus\nAgents on two buses never see each other's tasks.",
        "このバスを指しています\nバスが別々だと、互いのタスクは見えません。",
    ),
    "entry.double": (
        "There is one entry\nTwo entries show every tool twice, or hide one bus behind the other.",
        "エントリーは 1 つです\n2 つあると、ツールが重複するか、一方のバスが隠れます。",
    ),
    "entry.agent": (
        "The agent's name is its own\nTwo clients with one name share one inbox and take each other's tasks.",
        "エージェント名は重複していません\n同じ名前のクライアントは受信箱を共有し、互いのタスクを取り合います。",
    ),
    "entry.limits": (
        "Its limits suit the bus\nCalls that are cut short or refused look like a broken bus to the agent.",
        "制限はバスに合っています\n呼び出しが打ち切られたり拒否されたりすると、エージェントにはバスの故障に見えます。",
    ),
    "entry.secret": (
        "It holds no secret\nProject files are shared, and environment blocks end up in logs.",
        "秘密の値は含まれていません\nプロジェクトのファイルは共有され、環境変数の値はログに残ることがあります。",
    ),
    "server.start": (
        "The server starts\nWithout it the client offers no tools of the bus.",
        "サーバーが起動します\n起動しないと、クライアントにバスのツールが現れません。",
    ),
    "server.discover": (
        "It answers server/discover\nThe newest clients begin with it.",
        "server/discover に応答します\n最新のクライアントはこの要求から始めます。",
    ),
    "server.initialize": (
        "It answers initialize\nMost clients begin with it.",
        "initialize に応答します\n多くのクライアントはこの要求から始めます。",
    ),
    "server.time": (
        "It answers soon\nClients give up on slow servers, and the first request goes out without our tools.",
        "すぐに応答します\n遅いサーバーは見切られ、最初の依頼がツールなしで送られます。",
    ),
    "server.tools": (
        "It offers the right tools\nOne tool in a wrong form makes some clients refuse them all.",
        "正しいツールを提供します\n形式の誤ったツールが 1 つでもあると、すべて拒否するクライアントがあります。",
    ),
    "server.stdout": (
        "It writes nothing but the protocol\nAny other line breaks the connection.",
        "プロトコル以外は出力しません\nほかの行が混ざると接続が壊れます。",
    ),
    "server.call": (
        "A call works\nThis is what agents do all day.",
        "呼び出しが成功します\nエージェントが常に行う操作です。",
    ),
    "http": (
        "The HTTP server answers\nClients with an address in their entry depend on it; nobody else may use it.",
        "HTTP サーバーが応答します\nアドレスで登録したクライアントが使います。ほかの誰にも使わせてはいけません。",
    ),
    "launch.settings": (
        "The agent's settings are right\nAn agent with wrong settings is never started.",
        "エージェントの設定は正しいです\n設定に誤りがあるエージェントは起動されません。",
    ),
    "launch.program": (
        "Its program can be used\nIts tasks wait until it can be started.",
        "プログラムを使えます\n起動できるまでタスクは待ち続けます。",
    ),
    "launch.parked": (
        "It is not parked\nA parked agent's tasks wait.",
        "休止中ではありません\n休止中のエージェントのタスクは待たされます。",
    ),
    "launch.login": (
        "It is logged in\nA run without a login ends at once and parks the agent.",
        "ログイン済みです\nログインしていないと実行はすぐに終わり、エージェントは休止します。",
    ),
    "jobs": (
        "The jobs are alive\nWithout them nothing is started, acknowledged, put right or told.",
        "ジョブは動いています\n動いていないと、起動・承認・回復・通知が行われません。",
    ),
    "notify": (
        "The channel works\nPeople hear of questions and failures through it.",
        "通知先は正常です\n質問や失敗はここから人に伝わります。",
    ),
    "vault": (
        "The notes in the vault are in order\nWhat hides, doubles or breaks notes hides what waits for you.",
        "Vault のノートに問題はありません\nノートが見えない、重複する、壊れるなどすると、対応待ちに気づけません。",
    ),
    "stop": (
        "The bus is not stopped\nWhile it is stopped no task is given out.",
        "バスは停止していません\n停止中はタスクが渡されません。",
    ),
    "tasks": (
        "Nothing is wrong with tasks and settings\nWhat stands here waits for somebody.",
        "タスクと設定に問題はありません\nここに示されたものは、誰かの対応を待っています。",
    ),
}
DOCTOR: dict[str, tuple[str, str]] = {
    **{f"doctor.check.{id}": words for id, words in CHECKS.items()},
    **{f"doctor.{case}": words for case, words in {**doctor_cases.CASES, **doctor_life.CASES}.items()},
    "doctor.bus": ("Bus", "バス"),
    "doctor.level.ok": ("ok", "正常"),
    "doctor.level.info": ("info", "情報"),
    "doctor.level.warn": ("warn", "注意"),
    "doctor.level.fail": ("FAIL", "異常"),
    "doctor.why": ("why: {why}", "理由: {why}"),
    "doctor.fix": ("fix: {fix}", "対処: {fix}"),
    "doctor.end.well": ("All is well. Checks that are fine: {ok}.", "すべて正常です（{ok} 項目）。"),
    "doctor.end.warned": (
        "It works. Things that could be better: {warn}; checks that are fine: {ok}.",
        "動作に支障はありません。改善できる点が {warn} 件あります（正常 {ok} 項目）。",
    ),
    "doctor.end.failed": (
        "Things that do not work: {fail}. Begin with the first one (warnings: {warn}, checks that are fine: {ok}).",
        "動作しない点が {fail} 件あります。最初のものから対処してください（注意 {warn} 件、正常 {ok} 項目）。",
    ),
    "doctor.!late": (
        "{id} gave no answer\nRun agent-bus doctor again; if this stays, look at what is slow there.",
        "{id} の結果が得られませんでした\nもう一度 agent-bus doctor を実行し、続くようなら原因を調べてください。",
    ),
    "doctor.!unread": (
        "{id} could not be looked at: {reason}\nMake it readable for you, then run agent-bus doctor again.",
        "{id} を確認できません: {reason}\n読み取れるようにしてから、もう一度 agent-bus doctor を実行してください。",
    ),
}
