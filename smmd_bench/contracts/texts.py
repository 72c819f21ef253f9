r"""The text of a completion: what a reader sees of it, and what of that is its answer."""

import re
from unicodedata import category

MARKER = r"""(?:
    [<‹][|｜][^<>|｜\n]{1,60}[|｜][>›] | \[\|[^][|\n]{1,60}\|\]  # <|im_end|>, [|endofturn|]
    | </?s> | <(?:[A-Za-z]{3}|(?i:end)\w{1,60}|[A-Za-z]{1,60}_\w{1,60})>  # not <think>
    | \[/?[A-Z][A-Z_]{2,60}\] | \[end[ ]of[ ][a-z]{1,60}\]
)"""
"""A special token that a tokenizer may write as text; the pattern is verbose."""
_BEGIN = re.compile(rf"(?:\s*+{MARKER}(?:(?:assistant|model|final)\b)?)*+", re.VERBOSE)
_END = rf"(?=[<‹\[](?:[|｜]|/s|(?i:eo[a-z]\b|end|pad|sep))){MARKER}"
_MARKERS = re.compile(rf"(?:{MARKER}\s*+)++", re.VERBOSE)

_THOUGHT = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad)"
_PREFIX = r"(?:(?:begin|start)[_▁ ]?(?:of[_▁ ])?|[a-z]{1,20}[:_])?"
_CLOSE = r"(?P<{0}>/|end[_▁ ]?(?:of[_▁ ])?)?"
_REASONING_TAG = re.compile(
    rf"""
    (?i:<[|｜]?{_CLOSE.format("slash")}[|｜]?{_PREFIX}{_THOUGHT}
      (?:(?P<suffix>[_▁]end)|[_▁ ][^][<>|｜\n]{{0,60}})?[|｜]?>)  # <think>, <|end_of_thought|>
    | \[(?P<square>/)?THINK(?:ING)?\] | ◁(?P<triangle>/)?think▷
    | (?:<[|｜]channel[|｜]?>)(?:(?P<final>final)|analysis|commentary|thought)[^<\n]{{0,60}}
      (?:<[|｜]message[|｜]>)?  # of gpt-oss, whose last channel is the answer
    | (?P<spoken>\bassistantfinal|<channel[|｜]>|<unused95>) | <unused94>thought
    """,
    re.VERBOSE,
)
_REASONING_OR_END = re.compile(
    rf"(?P<open><think>)|(?P<close></think>)|{_END}", re.VERBOSE
)
_NARROW = "\u00a0\u2007\u2009\u202f"  # spaces that do not break a line, or thin ones
_GROUPING = re.compile(rf"(?<=[0-9])(?<![0-9]{{4}})[{_NARROW}](?=[0-9]{{3}}(?![0-9]))")
_SPACES = str.maketrans(dict.fromkeys(_NARROW, " "))


def remove_invisible(text: str) -> str:
    """The text without the characters of Unicode's category Cf, which nobody sees."""
    if text.isascii():
        return text
    return "".join(letter for letter in text if category(letter) != "Cf")


def readable_text(text: str) -> str:
    r"""The text without invisible characters and space around it, its markers kept.

    A non-breaking or thin space becomes a comma where it groups digits by three, as in 12 500, and
    else a space; `\r\n` and `\r` become `\n`.
    """
    text = _GROUPING.sub(",", remove_invisible(text)).translate(_SPACES)
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def plain_text(completion: str) -> str:
    """The readable text of a completion without reasoning, end-of-text tokens and their like.

    Reasoning in tags, such as `<think>…</think>`, is no answer; a text whose reasoning is not
    closed has none, and what stands before a closing tag alone is reasoning. Markers in brackets,
    such as `<|im_start|>assistant`, `</s>`, `<pad>` or `[EOS]`, go at the ends of a text, and
    nothing counts after one in bars or one that says end.
    """
    text = _REASONING_TAG.sub(_spell_tag, readable_text(completion))
    text = _answer_part(_BEGIN.sub("", text, count=1)).strip()
    text = _BEGIN.sub("", text, count=1).strip()

    *_, last = [None, *_MARKERS.finditer(text)]
    ends_with_marker = last is not None and last.end() == len(text)
    return text[: last.start()].rstrip() if last and ends_with_marker else text


def opens_reasoning(text: str) -> bool:
    """Whether a text holds a tag of reasoning."""
    return _REASONING_TAG.search(text) is not None


def remove_reasoning_tags(text: str) -> str:
    """The text with its reasoning as a part of the answer: the tags go, their content stays."""
    return _REASONING_TAG.sub("", text)


def _spell_tag(match: re.Match[str]) -> str:
    return "</think>" if any(match.groupdict().values()) else "<think>"


def _answer_part(text: str) -> str:
    """What stands outside of reasoning, up to the first token that ends a text there."""
    parts: list[str] = []
    reasoning, start = False, 0
    for match in _REASONING_OR_END.finditer(text):
        if match["open"]:
            # A second tag inside of reasoning opens nothing.
            if not reasoning:
                parts.append(text[start : match.start()])
            reasoning = True
        elif match["close"]:
            # Templates may write the opening tag into the prompt: then all of it was reasoning.
            if not reasoning:
                parts = []
            reasoning, start = False, match.end()
        elif not reasoning:
            return "".join([*parts, text[start : match.start()]])
    return "" if reasoning else "".join([*parts, text[start:]])
