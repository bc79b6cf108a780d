"""The memory in bytes: what the machine of part 3b does is what the rules of part 3 do."""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import smt

READ = ("agree", "same_names", "enabled", "loop_starts", "loop_decided", "has_input")
SCRIPTS = (
    smt("OverTheSame"),
    smt("BegunTheSame"),
    smt("EnabledOnReads"),
    smt("FiresMay", Hints(closed=("enabled", "loop_starts", "loop_decided"))),
    smt("MayFires", Hints(closed=("enabled", "loop_starts", "loop_decided"))),
    smt("EntersMay", Hints(closed=("enabled", "loop_starts", "loop_decided"))),
    smt("MayEnters", Hints(closed=("enabled", "loop_starts", "loop_decided"))),
    smt("GoesOnMay", Hints(closed=("finished", "loop_goes_on", "loop_condition"))),
    smt("MayGoOn", Hints(closed=("finished", "loop_goes_on", "loop_condition"))),
    smt("LeavesMay", Hints(closed=("finished", "loop_goes_on", "loop_condition"))),
    smt("MayLeave", Hints(closed=("finished", "loop_goes_on", "loop_condition"))),
    smt("MayFireOnReads", Hints(closed=READ)),
    smt("MayEnterOnReads", Hints(closed=READ)),
    smt("EndsOnReads"),
)
