"""The approval gate's patterns: characters, identifiers, amounts, Japanese and Chinese, commands. Data only.

Every repetition is bounded, so that the cost of a scan grows with the length of the text and no faster.
"""

IGNORABLE = (  # Unicode default-ignorable code points, and control characters
    r"\x00-\x08\x0e-\x1f\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)

IDENTIFIER_DATA = (  # an identifier that names data: prod-db-1, backups/2024, customers.csv
    r"(?:^|[^a-z])(prod|production|db|database|backup|backups|bucket)(?:[^a-z]|$)"
    r"|\.(db|sqlite3?|bak|dump|csv|parquet)$"
)
CODE_FILE = (  # a source file or a call
    r"\.(?:py|[jt]sx?|go|rs|java|kt|rb|php"
    r"|c|cc|cpp|h|hpp|cs|swift|vue|md|css|html|ya?ml|toml|json|sh|lock)$|\("
)

AMOUNT = (
    r"[$€£¥]\s?\d|\d\s?(?:[$€£¥円元]"
    r"|(?:usd|eur|gbp|jpy|chf|btc|eth|dollars?|euros?|yen|pounds?|dolares)\b)"
)

# CJK, one pattern a rule: the groups `o` (object) and `v` (verb) make the term.
_JA_CODE = (
    "関数|メソッド|機能|api|ボタン|エンドポイント|処理|テスト|画面|モジュール|フラグ|コマンド|クラス|ページ|ダイアログ|ハンドラ|"
    "リクエスト|コード|ロジック|権限|確認|日時|イベント|エラー|バグ|メニュー|アイコン|フォーム|リンク|コンポーネント|ルート"
)
_JA_NOT = (
    rf"(?!され|済|でき|出来|可能|しない|しません|しては|するな|せず|禁止|不可|防止|時|前に|"
    rf"(?:する|した|用の?|の|する際の|う)?\s?(?:{_JA_CODE})|(?:する|した)(?:と|際|時|場合|前|か))"
)
_JA_OBJECT = (
    "本番環境|本番|データベース|db|テーブル|データ|ユーザー|ユーザ|アカウント|バックアップ|レコード|リポジトリ|バケット|サーバー|サーバ|"
    "ディスク|顧客|履歴|全て|すべて|全部|メール|(?<!未使用の)(?<!不要な)(?<!空の)(?<!テスト)(?:ファイル|フォルダ|ディレクトリ|ブランチ)|"
    "(?<!デバッグ)(?<!ダイア)(?<!カタ)(?<!ブ)(?<!不要な)ログ"
)
_JA_GAP = r"(?:情報|を|も|は|の|、|全て|すべて|全部|全件|完全に|一括で|今すぐ|まるごと|丸ごと|ごと|中身|\s){0,5}"
_ZH_CODE = (
    "按钮|按鈕|接口|功能|函数|方法|页面|頁面|模块|模塊|字段|组件|代码|测试|逻辑|请求|类|事件|权限|操作|服务类|参数|变量|注释|流程|"
    "状态|方式|名|界面|输入|头|路径|格式|类型|结构|表单|失败|成功|验证|检查|连接|配置|模型|管理|列表|系统|记录页|订单模型|网关"
)
_ZH_NOT_BEFORE = "".join(
    f"(?<!{word})" for word in "不要 不 勿 别 禁止 防止 避免 无法 已 被 软 允许 用来 用于 可以 时 支持 能 是否".split()
)
_ZH_GAP = r"(?:(?!未使用|无用|没用|多余|调试|注释|导入|函数|方法|变量|参数|代码[里中]|对)[^,。;、!?.\n]){0,12}?"
_ZH_OBJECT = (
    "生产库|数据库|資料庫|数据(?!库|结构|类型|模型|集成)|資料(?!庫)|文件夹|文件|档案|檔案|目录|数据表|(?<![列图报代])表(?![单格达示头面情现])|"
    "用户|用戶|账号|账户|帐号|备份|"
    "備份|(?<!登)记录|紀錄|日志|仓库|分支|存储桶|服务器|磁盘|硬盘|分区|集群|环境|客户|所有内容|全部内容|一切|邮件|历史"
)
_ZH_DELETE = "删除|刪除|删掉|刪掉|删光|清空|清除|移除|抹除|擦除|销毁|格式化|清掉|抹掉|干掉"
_ZH_NOT = rf"(?!\s?(?:{_ZH_CODE})|[中里内上]?的|时|前|之前|[中里内上](?!所有|全部))"
_ZH_GOODS = r"\d|[一二两三几十]|这|该|会员|域名|许可|服务器|订阅|授权|股票|比特币"
_ZH_PAY = "转账|汇款|打款|付款|付钱|转钱|退款|扣款|支付"


CJK: dict[str, tuple[str, ...]] = {
    "deletion": (
        rf"(?P<o>{_JA_OBJECT}){_JA_GAP}(?P<v>削除|消去|消して|消す|消せ|破棄|抹消|取り除|空にし|ドロップ|クリアし|全消し){_JA_NOT}",
        rf"(?P<o>ディスク|ドライブ|本番環境|本番db)を?(?P<v>初期化|フォーマット){_JA_NOT}",
        rf"(?P<o>全件|全|一括|完全)(?P<v>削除|消去){_JA_NOT}",
        rf"{_ZH_NOT_BEFORE}(?P<v>{_ZH_DELETE}){_ZH_GAP}(?P<o>{_ZH_OBJECT}){_ZH_NOT}",
        rf"[把将](?P<gap>{_ZH_GAP})(?P<o>{_ZH_OBJECT})(?:[里中]的内容|全部|都|给|彻底|统统|也|先|直接){{0,2}}(?P<v>{_ZH_DELETE}|删了)(?!\s?的)",
        r"(?P<v>删库)",
    ),
    "money": (
        rf"(?P<v>お?支払い?|決済|送金|振込|振り込み|返金|購入|発注|入金|出金|課金)(?:を|の)?(?P<o>実行|行っ|行い|行え|行う|して|しろ|しなさい|します|する|お願い|済ませ|完了させ){_JA_NOT}",
        rf"(?P<v>支払って|支払う|支払え|振り込んで|振り込む|買って|買う|お金を送|送金){_JA_NOT}(?!(?:い|を|の)?(?:履歴|{_JA_CODE}))",
        rf"(?P<o>代金|料金|請求書|給料|給与|家賃|費用|円|お金|税金|手数料|会費)を(?P<v>払っ|払う|払え|支払|送っ|振り込|移)(?!いす){_JA_NOT}",
        rf"{_ZH_NOT_BEFORE}(?P<v>支付|付清|缴纳|结清|报销){_ZH_GAP}(?P<o>账单|发票|费用|货款|工资|订金|定金|尾款|房租|租金|款项|欠款|税款|\d){_ZH_NOT}",
        rf"[给向][^,。;\n]{{1,12}}?(?P<v>{_ZH_PAY}){_ZH_NOT}",
        rf"{_ZH_NOT_BEFORE}(?P<v>转账|汇款|打款|付款|付钱|退款)(?P<o>给|\s?\d)",
        rf"用[^,。;\n]{{0,6}}卡(?P<v>{_ZH_PAY}){_ZH_NOT}",
        r"を(?P<v>購入|送金|返金)(?=$|[。\n])",
        rf"(?:执行|立即|马上)(?P<v>{_ZH_PAY}){_ZH_NOT}",
        rf"{_ZH_NOT_BEFORE}(?P<v>购买|買下|买下|订购|采购|充值|买)\s?(?P<o>{_ZH_GOODS}){_ZH_NOT}",
    ),
}

_NO_CODE = (
    r"(?! (?:\w+ing|support|views?|migrations?|tests?|drivers?|layers?|models?|helpers?|names?"
    r"|comments?|headers?|widths?|definitions?|labels?)\b)"
)

# Commands, matched on the whole text, identifiers and fences included; the first word of a term must occur.
PHRASES: dict[str, dict[str, str]] = {  # category -> term -> pattern
    "deletion": {
        "rm -rf": r"\brm (?:-{1,2}[\w-]+ ){0,3}-{1,2}(?:\w*[rf]\w*)(?: |$)",
        "rmdir /s": r"\brmdir (?:/\w )*/s\b",
        "del /": r"\bdel (?:/\w ){0,3}/[sqf]\b",
        "remove-item -recurse": r"\bremove-item\b[^\n]{0,120}-(?:recurse|force)\b",
        "rmtree": r"\brmtree ?\((?! ?self\b)",
        "drop table": rf"\bdrop (?:table|database|collection|tablespace)\b{_NO_CODE}",
        "drop schema": rf"\bdrop (?:the )?(?:\w+ ){{0,2}}(?:schema|keyspace)\b{_NO_CODE}",
        "drop column": rf"\bdrop (?:the )?(?:\w+ ){{0,2}}columns?\b{_NO_CODE}",
        "truncate table": r"\btruncate table\b",
        "delete from": r"\bdelete from \w",
        "dropdatabase": r"\bdropdatabase ?\(",
        "dropdb": r"\bdropdb \S",
        "flushall": r"\bflushall\b",
        "flushdb": r"\bflushdb\b",
        "git clean": r"\bgit clean -\w*[fdx]",
        "git branch -d": r"\bgit branch (?:-d\b|--delete)",
        "git push --delete": r"\bgit push [^\n]{0,60}--delete\b",
        "terraform destroy": r"\bterraform destroy\b",
        "tofu destroy": r"\btofu destroy\b",
        "pulumi destroy": r"\bpulumi destroy\b",
        "kubectl delete": r"\bkubectl (?:-\S+ \S+ ){0,2}delete\b",
        "aws s3 rm": r"\baws s3 r[mb]\b",
        "gsutil rm": r"\bgsutil (?:-m )?rm\b",
        "gh repo delete": r"\bgh repo delete\b",
        "docker prune": r"\bdocker (?:system|volume|image|container) (?:prune|rm)\b",
        "mkfs": r"\bmkfs(?:\.\w+)? ",
        "dd of=": r"\bdd (?:\w+=\S+ ){0,4}of=",
        "shred -": r"\bshred -",
        "wipefs": r"\bwipefs\b",
        "format c:": r"\bformat [a-z]:",
        "find -delete": r"\bfind [^\n|]{0,120} -delete\b",
        "factory reset": r"\bfactory[ -]reset\b",
    },
}
