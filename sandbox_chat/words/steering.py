"""Words about prompts that are sent into the running turn."""

from __future__ import annotations

EN = {"idle": "No turn runs that could take it up: send it as a prompt."}

ZH = {"idle": "没有可以接收它的轮次：请作为提示发送。"}
