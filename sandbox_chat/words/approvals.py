"""The screen that shows what is allowed and refused for the session."""

from __future__ import annotations

EN = {
    "title": "What holds for this session",
    "none": "You have answered nothing for the whole session, so each thing is asked.",
    "over": "None of it is carried over to a session that is resumed.",
    "key_remove": "take back",
    "key_back": "back",
    "taken_back": "Taken back: you are asked again the next time.",
}

ZH = {
    "title": "本会话内有效的答复",
    "none": "你没有作出对整个会话有效的答复，因此每一项都会询问。",
    "over": "恢复会话时，这些答复都不再有效。",
    "key_remove": "撤回",
    "key_back": "返回",
    "taken_back": "已撤回：下次会重新询问。",
}
