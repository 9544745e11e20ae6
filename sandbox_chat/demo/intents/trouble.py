"""Things that go wrong on purpose: a mistake that is mended, a slow job, a time limit."""

from __future__ import annotations

import re

from sandbox_chat.demo.intents.python import time_limit
from sandbox_chat.demo.steps import Call, Plan, gave_up, one_line, run
from sandbox_chat.demo.talk import Talk

WRONG = """\
temperature = {"Mon": 18.5, "Tue": 21.0, "Wed": 19.5, "Thu": 23.0, "Fri": 22.5, "Sat": 24.0}
week = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

mean = sum(temperature[day] for day in week) / len(week)
print(f"mean: {mean:.2f} °C")
"""
RIGHT = """\
known = [day for day in week if day in temperature]
missing = [day for day in week if day not in temperature]

mean = sum(temperature[day] for day in known) / len(known)
print(f"mean: {mean:.2f} °C over {len(known)} days")
print(f"no reading: {', '.join(missing)}")
"""
SLOW = """\
import time

steps = %d
for step in range(1, steps + 1):
    time.sleep(1)
    print(f"step {step:2} of {steps}  {'█' * step}{'░' * (steps - step)}", flush=True)
done = True
"""


def mistake(talk: Talk) -> Plan | None:
    """Code that fails, and is mended after its traceback has been read."""
    wanted = (
        r"\b(make|do|show|provoke|cause|have|produce)\b.{0,30}\b(mistakes?|errors?|bugs?|exception|fail\w*)\b|"
        r"\bdeliberate\b|\bon purpose\b|\b(mistake|error|bug)\b.{0,30}\b(fix|mend|repair|correct)|\bself[- ]?(heal|repair|correct)|"
        r"故意|出错.{0,8}(修|改)|犯.{0,4}错|错误.{0,8}修"
    )
    return fix_mistake(talk) if talk.says(wanted) else None


def fix_mistake(talk: Talk) -> Plan:
    """The plan of ``mistake``."""
    outcome = yield Call(
        "run_code",
        {"code": WRONG},
        talk.t("I compute the mean temperature of a week.", "我来计算一周的平均气温。"),
    )
    if outcome.ok:
        return talk.t(
            "Strangely, that worked at once, so there is nothing to mend.",
            "奇怪，这次没有出错，也就无需修复。",
        )
    last = one_line(outcome.error)
    key = re.search(r"KeyError: ['\"]?(\w+)", outcome.error)
    day = key[1] if key else talk.t("a day", "某一天")
    repaired = yield from run(
        talk,
        WRONG.split("\n\n", maxsplit=1)[0] + "\n\n" + RIGHT,
        talk.t(
            f"The traceback ends with `{last}`: there is no reading for **{day}**, but the loop asks for it. "
            "I leave out the days without a reading and run it again.",
            f"回溯的最后一行是 `{last}`：没有 **{day}** 的数据，但循环用到了它。我跳过没有数据的日子，重新运行。",
        ),
    )
    if not repaired.ok:
        return gave_up(talk, repaired)
    mean = repaired.values().get("mean", "?")
    return talk.t(
        f"Mended. The first try failed with `{last}`; without the missing day the mean is **{mean}**.",
        f"已修复。第一次因 `{last}` 失败；去掉缺失的日子后，平均值为 **{mean}**。",
    )


def slow(talk: Talk) -> Plan | None:
    """A job that prints a line a second, to watch or to interrupt."""
    wanted = r"\b(run|start|do|show|try|make|give)\b.{0,20}\bslow|\bslow (job|task|thing|code|loop|run|program)|\blong[- ](running )?(job|task|time|run)|\bprogress\b|\btakes? (a while|long|time)\b|慢任务|慢.{0,4}(任务|作业|程序)|耗时|进度"
    return _slow(talk) if talk.says(wanted) else None


def _slow(talk: Talk) -> Plan:
    steps = max(1, min(15, talk.run_limit - 3))
    outcome = yield from run(
        talk,
        SLOW % steps,
        talk.t(
            f"This takes {steps} seconds and prints a line each second. Press **Esc** to stop it.",
            f"这个任务需要 {steps} 秒，每秒输出一行。按 **Esc** 可以中断。",
        ),
    )
    if not outcome.ok:
        return talk.t(
            f"It did not come to its end: {one_line(outcome.reason)}. The variables are still there.",
            f"任务没有完成：{one_line(outcome.reason)}。变量仍然保留。",
        )
    lines = len(outcome.stdout.splitlines())
    return talk.t(
        f"Done: {lines} steps, shown as they came. Next time, try Esc in the middle of it.",
        f"完成：共 {lines} 步，边运行边显示。下次可以中途按 Esc 试试。",
    )


def sleep(talk: Talk) -> Plan | None:
    """``sleep 30 with a timeout of 2``: the time limit of a call."""
    match = talk.says(r"\b(?:sleep|wait)\b\D{0,12}(\d{1,4})|(?:睡|等待?|休眠)\D{0,4}(\d{1,4})\s*秒")
    return _sleep(talk, int(match[1] or match[2])) if match else None


def _sleep(talk: Talk, seconds: int) -> Plan:
    limit = time_limit(talk)
    code = (
        f"import time\n\nbefore = 'set before the pause'\ntime.sleep({seconds})\nprint('slept {seconds} s')"
    )
    outcome = yield Call("run_code", {"code": code} if limit is None else {"code": code, "timeout": limit})
    if outcome.ok:
        return talk.t(f"It slept {seconds} s.", f"已等待 {seconds} 秒。")
    check = yield Call(
        "run_code",
        {"code": "before"},
        talk.t(
            f"{one_line(outcome.reason)}. I look whether the variables are still there.",
            f"{one_line(outcome.reason)}。我看看变量是否还在。",
        ),
    )
    if check.ok:
        return talk.t(
            f"The time limit ended the pause, and the variables are still there: `before` is {check.value}.",
            f"时限结束了等待，变量仍然保留：`before` 是 {check.value}。",
        )
    return talk.t(
        f"The time limit ended the pause, and the variables are gone: `{one_line(check.error)}`.",
        f"时限结束了等待，变量已丢失：`{one_line(check.error)}`。",
    )
