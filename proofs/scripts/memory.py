"""The memory in bytes: what the machine of part 3b does is what the rules of part 3 do."""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import induction, smt

READ = ("agree", "same_names", "enabled", "loop_starts", "loop_decided", "has_input")
STEPS = ("fires", "enters", "goes_on", "leaves")
ENDING = Hints(
    closed=(
        *STEPS,
        "finished",
        "agree",
        "same_names",
        "same_runs",
        "results_agree",
        "loop_goes_on",
        "loop_condition",
        "run_before",
    )
)
KINDS = Hints(
    closed=(
        *STEPS, "agree", "enabled", "loop_starts", "loop_decided", "has_input", "finished", "loop_goes_on",
        "loop_condition", "is_over", "is_begun", "corresponds", "same_names", "results_agree", "same_runs", "with_body",
    )
)  # fmt: skip
PLACES = Hints(closed=("lies", "spares"))
BYTES = Hints(
    closed=(
        *STEPS, "agree", "same_names", "on_owned", "selects", "selects_end", "reads", "ends_alike", "corresponds",
        "stays", "puts", "spares", "fills", "runs_stay", "same_place", "holds_values", "holds_runs",
    )
)  # fmt: skip
WITH_ROOM = Hints(
    closed=(
        *STEPS, "on_owned", "selects", "selects_end", "reads", "corresponds", "stays", "puts", "spares", "fills",
        "runs_stay", "same_place", "holds_values", "holds_runs", "may_enter", "may_go_on", "may_leave", "is_over",
        "is_begun",
    )
)  # fmt: skip
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
    smt("NextRunOnReads", Hints(closed=STEPS)),
    smt("MayGoOnOnReads", ENDING),
    smt("MayLeaveOnReads", ENDING),
    smt("FiresOnReads", KINDS),
    smt("EntersOnReads", KINDS),
    smt("WithoutOnReads"),
    smt("GoesOnOnReads", KINDS),
    smt("LeavesOnReads", KINDS),
    smt("ReadsRight"),
    smt("SelectsAgree"),
    smt("EndAgrees", Hints(closed=("collected",))),
    smt("RegionStays"),
    smt("AllStays", Hints(closed=("lies", "same_names"))),
    smt("RestStays", Hints(closed=("lies",))),
    smt("ValuesLie", PLACES),
    smt("RunsLie", PLACES),
    smt("RunsLieUnder", PLACES),
    smt("RunsLieOn", PLACES),
    smt("RunsLieBelow", PLACES),
    smt("FiresInBytes", BYTES),
    smt("EntersAsRead", BYTES),
    smt("EntersInBytes", BYTES),
    smt("GoesOnInBytes", BYTES),
    smt("LeavesInBytes", BYTES),
    smt(
        "StepInBytes",
        Hints(
            closed=(
                *STEPS,
                "moves",
                "represents",
                "byte_fires",
                "byte_enters",
                "reads",
                "writes_bytes",
                "advances",
                "runs_stay",
                "same_place",
            )
        ),
    ),
    smt("FreeInBytes"),
    induction(
        {"byte_executes": "Simulation"},
        Hints(introduce=("executes",), closed=("moves", "represents", "byte_step", "gives_free")),
    ),
    smt("OutputsInBytes", Hints(closed=("padded", "tidy", "starts"))),
    smt("WrittenPuts", Hints(closed=("keeps", "in_region", "is_free"))),
    smt("WrittenSpares", Hints(closed=("keeps", "in_region", "is_free"))),
    smt("WrittenFills", Hints(closed=("keeps", "in_region"))),
    smt("RoomIsWritten", Hints(closed=("has_room", "has_written", "puts", "spares", "fills"))),
    smt("ReadAsIs"),
    smt("StaysLeft", PLACES),
    smt("SameCorresponds"),
    smt("FiresWithRoom", WITH_ROOM),
    smt("EntersWithRoom", WITH_ROOM),
    smt("GoesOnWithRoom", WITH_ROOM),
    smt("LeavesWithRoom", WITH_ROOM),
    smt(
        "StepHasBytes",
        Hints(
            closed=(
                *STEPS, "represents", "byte_fires", "byte_enters", "byte_goes_on", "byte_leaves", "writes_bytes",
                "has_room", "named", "runs_kept", "runs_kept_on", "runs_kept_below", "selects", "selects_end",
            )
        ),
    ),
)
