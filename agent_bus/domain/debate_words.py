"""What a speaker is told with its turn. Pure; no word of the debate itself stands in it."""

from __future__ import annotations

from typing import Any

LANGUAGES = ("en", "ja", "zh")
_ROUNDS = {
    "en": (
        "Round 1: find holes and unproven assumptions in the others' reasoning.",
        "Answer the objections to you first, then bring new points.",
        "Last round: state your final position.",
    ),
    "ja": (
        "第 1 ラウンド: 他の参加者の推論の穴と、裏付けのない前提を指摘してください。",
        "まず自分への反論に答え、その後で新しい論点を出してください。",
        "最終ラウンド: 最終的な立場を述べてください。",
    ),
    "zh": (
        "第 1 轮：找出他人推理中的漏洞和未经证实的假设。",
        "先回应对你的反对意见，再提出新论点。",
        "最后一轮：陈述你的最终立场。",
    ),
}
_RULES = {
    "en": """\
It is your turn ({speaker}), turn {turn}, round {round} of {rounds}. {task}
Only moa_submit_turn(task_id, agent_id, content, turn={turn}) counts: text printed elsewhere is lost and the debate \
stands still. Then call moa_wait_turn(since={turn}) again and again until debate_complete or closed; a time-out means: \
call again. On not_your_turn do not submit again, go back to moa_wait_turn.
Sign-off: signed {signed}/{of}. signoff=true is a turn and a vote to end; when all have signed, the debate ends at \
once. A turn without it clears all votes.""",
    "ja": """\
あなた（{speaker}）の番です。ターン {turn}、ラウンド {round}/{rounds}。{task}
有効なのは moa_submit_turn(task_id, agent_id, content, turn={turn}) だけです。\
他の場所に書いた文章は失われ、討論は止まります。\
その後 debate_complete か closed になるまで moa_wait_turn(since={turn}) を繰り返し呼んでください。\
timeout なら、もう一度呼びます。\
not_your_turn のときは再送せず、moa_wait_turn に戻ってください。
合意: {signed}/{of} が署名済み。signoff=true は発言であり、終了への投票です。全員が署名するとすぐに終わります。\
署名のない発言は、すべての投票を取り消します。""",
    "zh": """\
轮到你（{speaker}）发言：第 {turn} 次发言，第 {round}/{rounds} 轮。{task}
只有 moa_submit_turn(task_id, agent_id, content, turn={turn}) 有效：\
写在别处的文字会丢失，辩论会停住。之后反复调用 moa_wait_turn(since={turn})，直到 debate_complete 或 closed；\
超时就再次调用。遇到 not_your_turn 不要重交，回到 moa_wait_turn。
同意结束：已签 {signed}/{of}。signoff=true 既是发言也是结束的一票；全部签署后辩论立即结束。\
没有它的发言会清除所有票。""",
}
_DEADLINE = {"en": "Speak before {until}.", "ja": "期限: {until}", "zh": "截止：{until}"}


def prompt(setup: dict[str, Any], head: dict[str, Any], tally: dict[str, int], language: str) -> str:
    """The protocol for the present speaker, at most 1,500 characters."""
    rounds, number = int(setup["rounds"]), int(head["round"])
    first, middle, last = _ROUNDS[language]
    task = first if number == 1 and rounds > 1 else last if number == rounds else middle
    place = {"speaker": head["speaker"], "turn": head["turn"], "round": number, "rounds": rounds}
    text = _RULES[language].format(**place, task=task, **tally)
    until = head["lease"].get("until", "")
    return f"{text}\n{_DEADLINE[language].format(until=until)}" if until else text
