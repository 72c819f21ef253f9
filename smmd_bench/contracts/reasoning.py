"""What a model thinks before it answers, as models and chat templates mark it.

Read are the marks of DeepSeek-R1 and Qwen3 (`<think>`), Magistral (`[THINK]`), Kimi (`◁think▷`),
Seed-OSS (`<seed:think>`), `<|begin_of_thought|>`, and the channels of gpt-oss.
"""

from __future__ import annotations

import re

_WORD = r"(?:seed:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection)"
_OPENS = rf"<{_WORD}>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>analysis<\|message\|>"
_CLOSES = rf"</{_WORD}>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|channel\|>final<\|message\|>"
_MARK = re.compile(rf"(?P<closes>{_CLOSES})|{_OPENS}", re.IGNORECASE)


def without_reasoning(text: str) -> str:
    """The answer alone: what is thought is none, and a thought that does not end leaves none.

    `<think>5?</think> 7` is ` 7`, and `<think>5?` is empty. A chat template may open the thought in
    the prompt, so what stands before a mark that only closes is thought, too: `5?</think> 7` is
    ` 7`.
    """
    answer: list[str] = []
    position, is_open = 0, False
    for mark in _MARK.finditer(text):
        if mark["closes"] is None:
            if not is_open:
                answer.append(text[position : mark.start()])
            is_open = True
            continue
        if not is_open:  # the prompt has opened it
            answer.clear()
        position, is_open = mark.end(), False
    return "" if is_open else "".join([*answer, text[position:]])
