"""What the commands of the vault say."""

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
}
