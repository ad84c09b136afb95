"""What the commands of the vault and of quarantine say."""

from __future__ import annotations

VAULT: dict[str, tuple[str, str]] = {
    "vault.install.offered": (
        "  ! {path} was changed here, so it stays; our version is {beside}",
        "  ! {path} は変更されているため、そのまま残しました。新しい版は {beside} です",
    ),
    "vault.install.type": (
        "  ! the property {name} has another type in this vault; it stays",
        "  ! プロパティ {name} は、この Vault では別の型です。そのまま残しました",
    ),
    "vault.install.done": (
        "{root}: {created} created, {updated} updated, {conflicts} kept as you changed them, {unchanged} unchanged.",
        "{root}: 作成 {created}、更新 {updated}、変更を残したもの {conflicts}、変更なし {unchanged}",
    ),
    "vault.install.dry": (
        "{root}: {created} would be created, {updated} updated, {conflicts} kept, {unchanged} unchanged. Nothing was"
        " written.",
        "{root}: 実行すると、作成 {created}、更新 {updated}、変更を残すもの {conflicts}、変更なし {unchanged}。"
        "まだ何も書き込んでいません。",
    ),
    "vault.install.next": ("Open Dashboard in Obsidian. Then:", "Obsidian で Dashboard を開いてください。次に:"),
    # What `vault doctor` has seen, and on the second line what to do.
    "vault.seen.bases_off": (
        "Bases is off, so the tables on the Dashboard are empty\nObsidian: Settings, Core plugins, switch Bases on.",
        "ベースがオフのため、Dashboard の表が表示されません\n"
        "Obsidian の設定「コアプラグイン」でベースをオンにしてください。",
    ),
    "vault.seen.excluded": (
        "The excluded files ({filter}) cover notes of the bus, so they leave the tables too\n"
        "Obsidian: Settings, Files and links, Excluded files: take this line out.",
        "除外ファイルの設定（{filter}）がバスのノートにも当たるため、表からも消えます\n"
        "Obsidian の設定「ファイルとリンク」の除外ファイルから、この行を外してください。",
    ),
    "vault.seen.two_services": (
        "More than one service carries this vault: {names}\n"
        "Choose one: two of them bring back each other's old files and make copies of conflicts.",
        "複数のサービスが同じ Vault を同期しています: {names}\n"
        "どれか一つにしてください。互いの古いファイルを戻し合い、競合コピーが増えます。",
    ),
    "vault.seen.service.sync": (
        "{name} carries this vault\nNothing to do; leave All other types off for the folder {bus}.",
        "{name} で同期しています\n"
        "そのままで問題ありません。フォルダー {bus} では「その他すべての種類」をオフのままにしてください。",
    ),
    "vault.seen.service.git": (
        "{name} carries this vault\nPut this line into .gitignore: {bus}/.bus/",
        "{name} で同期しています\n.gitignore に次の行を書いてください: {bus}/.bus/",
    ),
    "vault.seen.service.syncthing": (
        "{name} carries this vault\n"
        'Put two lines into .stignore: {bus}/.bus and (?d).*.tmp; or set state_dir = "auto" before the first use.',
        "{name} で同期しています\n"
        '.stignore に {bus}/.bus と (?d).*.tmp の二行を書くか、使い始める前に state_dir = "auto" を設定してください。',
    ),
    "vault.seen.service.dropbox": (
        "{name} carries this vault\n"
        'Let it ignore {bus}/.bus (help.dropbox.com: ignored files); or set state_dir = "auto" before the first use.',
        "{name} で同期しています\n"
        '{bus}/.bus を同期の対象から外すか、使い始める前に state_dir = "auto" を設定してください。',
    ),
    "vault.seen.service.whole": (
        "{name} carries this vault and uploads hidden folders too\n"
        'Set state_dir = "auto" before the first use: locks and a journal that grows all the time do not belong there.',
        "{name} で同期しています。隠しフォルダーもアップロードされます\n"
        '使い始める前に state_dir = "auto" を設定してください。ロックや増え続ける記録を置く場所ではありません。',
    ),
    "vault.seen.service.plugin": (
        "{name} carries this vault\nLeave hidden folders out of it, so that {bus}/.bus stays on this computer.",
        "{name} で同期しています\n"
        "隠しフォルダーを対象から外し、{bus}/.bus がこのパソコンだけに残るようにしてください。",
    ),
    "vault.seen.json_synced": (
        "{names} also carries the tasks themselves (JSON), and two versions of one are not merged\n"
        "Work on one computer only; look at agent-bus health for files in quarantine.",
        "{names} はタスクそのもの（JSON）も同期しますが、二つの版は統合されません\n"
        "作業するパソコンは一台だけにし、隔離されたファイルがないか agent-bus health で確認してください。",
    ),
    "vault.seen.not_owner": (
        "Another computer owns this bus: {name}\n"
        "Work there; or, if it is gone for good, run here: agent-bus vault takeover",
        "このバスの持ち主は別のパソコンです: {name}\n"
        "そちらで作業するか、もう使わない場合はここで agent-bus vault takeover を実行してください。",
    ),
    "vault.seen.two_hosts": (
        "The Dashboard names another owner, {name}, as recent as this one: both are read-only\n"
        "On the computer that shall own the bus: agent-bus vault takeover",
        "Dashboard には別の持ち主 {name} が同じ代で記されているため、どちらも読み取り専用です\n"
        "持ち主にするパソコンで agent-bus vault takeover を実行してください。",
    ),
    "vault.seen.state_dir": ("{reason}\n{hint}", "{reason}\n{hint}"),
    "vault.seen.mirror_budget": (
        "The bus has {count} notes, at most {most} are good\n"
        "Remove notes that you no longer want from notes/archive/kept and rooms.",
        "バスのノートが {count} 件あります（上限の目安は {most} 件）\n"
        "notes/archive/kept と rooms から、要らないノートを削除してください。",
    ),
    "vault.seen.visible_files": (
        "The bus folder has {count} files that the app looks at, at most {most} are good\n"
        'Set archive_dir = ".bus/archive", then move the content of archive there while nothing runs.',
        "バスのフォルダーに、アプリが調べるファイルが {count} 件あります（目安は {most} 件まで）\n"
        'archive_dir = ".bus/archive" を設定し、すべて止めてから archive の中身を移してください。',
    ),
    "vault.seen.copies": (
        "{count} copies of conflicts lie here: {paths}\nCompare each with its original, then remove it.",
        "競合コピーが {count} 件あります: {paths}\n元のファイルと見比べてから削除してください。",
    ),
    "vault.seen.names.bad": (
        "{count} names cannot be used on every device: this one {rule}\nRename the files in Obsidian.",
        "すべての機器では使えない名前が {count} 件あります（このファイル: {rule}）\nObsidian で名前を変えてください。",
    ),
    "vault.seen.names.same": (
        "{count} names differ only in case or form: {paths}\nRename them in Obsidian: some devices keep only one.",
        "大文字小文字や文字の形だけが違う名前が {count} 件あります: {paths}\n"
        "機器によっては一つしか残らないため、Obsidian で名前を変えてください。",
    ),
    "vault.seen.placeholders": (
        "{count} files are not on this computer yet: {paths}\n"
        "Wait for your service, or let it keep this folder on the computer always.",
        "まだこのパソコンにないファイルが {count} 件あります: {paths}\n"
        "同期が終わるのを待つか、このフォルダーを常に手元に置く設定にしてください。",
    ),
    "vault.seen.markers": (
        "In {count} notes the lines that enclose the part of the bus are broken: {paths}\n"
        "Put the %% lines back, or delete the note: it is made again.",
        "バスが書く部分を囲む行が壊れたノートが {count} 件あります: {paths}\n"
        "%% の行を元に戻すか、ノートを削除してください。ノートは作り直されます。",
    ),
    "vault.seen.template.older": (
        'Files are of an older version: {names}\nagent-bus vault install "{vault}"',
        'ファイルの版が古くなっています: {names}\nagent-bus vault install "{vault}"',
    ),
    "vault.seen.template.offered": (
        "New versions wait beside files that you changed: {paths}\nTake over what you like, then delete them.",
        "変更済みのファイルの横に新しい版があります: {paths}\n必要なところを取り入れたら削除してください。",
    ),
    "vault.seen.types": (
        "The property {name} has another type in this vault\n"
        "Obsidian: click the property's icon, Property type; or leave it if it suits you.",
        "プロパティ {name} は、この Vault では別の型です\n"
        "Obsidian でプロパティのアイコンから型を変えられます。困らなければそのままで構いません。",
    ),
    "vault.seen.links.link": (
        "{count} links lie in the bus folder: {paths}\nPut files there instead: synchronisers do not follow links.",
        "バスのフォルダーにリンクが {count} 件あります: {paths}\n"
        "同期サービスはリンクをたどりません。実際のファイルを置いてください。",
    ),
    "vault.seen.links.nested": (
        "Another vault begins inside the bus folder: {paths}\nMove or remove that .obsidian folder.",
        "バスのフォルダーの中に別の Vault があります: {paths}\nその .obsidian フォルダーを移すか削除してください。",
    ),
    "vault.seen.authority": (
        "Everything may be decided in the notes, money and deletion too; a program that writes files can do that too\n"
        "Set vault.authority to normal, or deny your agents' file tools this folder and notes/.",
        "金銭や削除も含め、すべてをノートで決められます。ファイルを書けるプログラムにもそれができます\n"
        "vault.authority を normal にするか、エージェントのファイル操作からこのフォルダーと notes/ を外してください。",
    ),
    "vault.level.error": ("ERROR ", "問題"),
    "vault.level.warn": ("WARN  ", "注意"),
    "vault.level.advice": ("ADVICE", "助言"),
    "vault.fix": ("        fix: {fix}", "        対処: {fix}"),
    "vault.owner": ("owner: {owner} (epoch {epoch})", "持ち主: {owner}（第 {epoch} 代）"),
    "vault.services": ("carried by: {names}", "同期: {names}"),
    "vault.no_services": ("nothing", "なし"),
    "vault.well": ("All is well.", "問題はありません。"),
    "vault.notes": ("notes: {root}", "ノート: {root}"),
    "vault.no_notes": (
        "notes: none; agent-bus vault install PATH puts them into a vault",
        "ノート: まだありません。agent-bus vault install PATH で Vault に入れられます",
    ),
    "vault.mirror": ("mirror: last tick {tick} {error}", "ミラー: 最後の更新 {tick} {error}"),
    "vault.no_mirror": (
        "mirror: does not run here; agent-bus up --detach starts it",
        "ミラー: ここでは動いていません。agent-bus up --detach で始まります",
    ),
    "vault.paused": (
        "paused: nothing but a stop is taken from the vault ({why}); agent-bus vault unpause",
        "一時停止: ノートからの操作は停止以外を受け付けていません（{why}）。agent-bus vault unpause",
    ),
    "vault.opened": ("What is written in the vault is taken again.", "ノートからの操作を再び受け付けます。"),
    "vault.was_open": ("Nothing was paused.", "一時停止していません。"),
    "vault.takeover.ask": (
        "The bus belongs to {owner}; its last sign was at {at}. If that computer still works on it, stop it first.",
        "このバスの持ち主は {owner} です（最後の記録 {at}）。そのパソコンがまだ使っているなら、先に止めてください。",
    ),
    "vault.takeover.sure": ("Make this computer the owner?", "このパソコンを持ち主にしますか？"),
    "quarantine.restore": ("{key} is a task again.", "{key} をタスクに戻しました。"),
    "quarantine.drop": ("{key} was thrown away.", "{key} を破棄しました。"),
}
