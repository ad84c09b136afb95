"""Pictures of the notes for docs/obsidian.md: `python3 scripts/pictures.py` (needs Chromium).

Fills a vault in each language with a few tasks, lets the mirror write its notes, and draws the Dashboard and the note
of a task that waits for approval, as Markdown is drawn in the app. By hand, after the notes have changed.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import _env

STYLE = """
body { font: 15px/1.5 system-ui, "Noto Sans CJK JP", sans-serif; margin: 28px 36px; color: #222; background: #fff }
table.p { border-spacing: 0; color: #555; font-size: 13px; margin-bottom: 14px }
table.p td { padding: 1px 18px 1px 0 } h2 { font-size: 20px } h3 { font-size: 17px; margin: 18px 0 6px }
.callout { border-radius: 6px; padding: 10px 14px; background: #eef4fd; border-left: 4px solid #4a8be8 }
.warning { background: #fdf3e3; border-color: #e8973a } .success { background: #e9f7ec; border-color: #46b265 }
.callout p { margin: 2px 0 } .callout p:first-child { font-weight: 600 }
pre { background: #f4f4f5; padding: 10px 12px; border-radius: 6px; white-space: pre-wrap } code { font-size: 13px }
a { color: #6a47d8; text-decoration: none } ul { padding-left: 20px } li.box { list-style: none; margin-left: -18px }
.embed { border: 1px solid #ddd; border-radius: 6px; padding: 8px 12px; color: #777; margin: 8px 0 }
"""
QUOTED = ' "'
SHOWN = ("ab_status", "ab_to", "ab_priority", "ab_created", "ab_approve", "ab_decision")
TEXTS = {
    "en": (
        "Delete all old files in fixtures/ and write tests",
        "Update the changelog",
        "Which database shall I use?",
    ),
    "ja": ("fixtures/ の古いファイルを削除してテストを書く", "変更履歴を更新する", "どのデータベースを使いますか？"),
}


def main() -> int:
    """Draws everything into docs/pictures; 0 if it worked."""
    _env.enter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("chromium-browser") or "")
    browser = parser.parse_args().browser
    if not browser:
        sys.exit("Name a Chromium: --browser PATH")
    target = _env.ROOT / "docs" / "pictures"
    target.mkdir(exist_ok=True)
    for language, texts in TEXTS.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "Vault" / "09_AgentSync"
            task_id = fill(root, language, texts)
            for name, note in (("dashboard", "Dashboard"), ("task", f"notes/tasks/{task_id}")):
                page = Path(folder) / f"{name}.html"
                page.write_text(drawn((root / f"{note}.md").read_text("utf-8")), "utf-8")
                shoot(browser, page, target / f"{name}-{language}.png")
    return 0


def fill(root: Path, language: str, texts: tuple[str, ...]) -> str:
    """Makes a vault with tasks and its notes; the id of the one that waits for approval."""
    sys.path.insert(0, str(_env.ROOT))
    from agent_bus.app import open_bus
    from agent_bus.bus import Caller
    from agent_bus.features.agents import update_status
    from agent_bus.features.dispatching import dispatch_task
    from agent_bus.features.reports import submit_report
    from agent_bus.features.tasks import receive_task
    from agent_bus.jobs.mirror import MirrorJob
    from agent_bus.notes import template
    from agent_bus.settings import load_settings

    root.mkdir(parents=True)
    settings = load_settings("", {"AGENT_BUS_CONFIG": str(root / "none.toml")}, {"root": str(root)})
    bus = open_bus(settings, Caller(agent="antigravity", role="orchestrator", channel="mcp", session="a"))
    for path, data in template.shipped().files(language, root.name).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    worker = bus.called_by(Caller(agent="codex", channel="mcp", session="c"))
    update_status(worker, state="working")
    sent = [dispatch_task(bus, target, text).task_id for target, text in zip(("claude-code", "claude-code", "codex"),
            (*texts[:2], texts[1]), strict=True)]  # fmt: skip
    import asyncio

    got = asyncio.run(receive_task(worker))
    submit_report(worker, str(got.task and got.task["task_id"]), status="blocked", summary=texts[2])
    MirrorJob().tick(bus, bus.now())
    bus.close()
    return sent[0]


def drawn(note: str) -> str:
    """A note as a page."""
    from markdown_it import MarkdownIt

    front, _, body = note.removeprefix("---\n").partition("\n---\n")
    rows = "".join(f"<tr><td>{k}</td><td>{html.escape(v.strip(QUOTED))}</td></tr>"
                   for k, _, v in (line.partition(":") for line in front.splitlines()) if k in SHOWN)  # fmt: skip
    body = re.sub(r"^%% .*%%\n", "", body, flags=re.MULTILINE)
    body = re.sub(r" \^[a-z-]+$", "", body, flags=re.MULTILINE)
    body = re.sub(r"^!\[\[(.+?)\]\]$", r"§embed§\1§", body, flags=re.MULTILINE)
    body = re.sub(r"\[\[([^\]|]+)\|([^\]]+)\]\]", r"[\2](#)", body)
    body = re.sub(r"\[\[([^\]]+)\]\]", r"[\1](#)", body)
    page = MarkdownIt("commonmark").render(body)
    page = re.sub(r"<blockquote>\n<p>\[!(\w+)\] (.*?)</p>", _callout, page, flags=re.DOTALL)
    page = page.replace("</blockquote>", "</div>").replace("<li>[ ] ", '<li class="box">☐ ')
    page = re.sub(r"<p>§embed§(.+?)§</p>", r'<div class="embed">▦ \1</div>', page)
    table = f'<table class="p">{rows}</table>' if rows else ""
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style>{table}{page}'


def _callout(found: re.Match[str]) -> str:
    lines = "".join(f"<p>{line}</p>" for line in found[2].split("\n"))
    return f'<div class="callout {found[1]}">{lines}'


def shoot(browser: str, page: Path, picture: Path) -> None:
    """Takes a picture of a page."""
    words = [browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", f"--screenshot={picture}",
             "--window-size=820,680", f"--user-data-dir={page.parent / 'browser'}", page.as_uri()]  # fmt: skip
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)


if __name__ == "__main__":
    sys.exit(main())
