"""Termination: every execution by the machine ends, and with a value for every output."""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import induction, natural, smt

STEPS = ("fires", "enters", "goes_on", "leaves", "tidy")
PARTS = (*STEPS, "moves", "tame", "halts_behind", "exits_halt", "left_over")
CLOSED = ("tidy", "starts", "supplied", "always_met", "completed", "ends_complete", "ends_runs", "moves")
SCRIPTS = (
    smt("RulesOfBodies"),
    induction({"begun": "OneBranch"}, Hints(closed=("enters", "tidy", "outside"))),
    smt("BoundedRuns", Hints(closed=("tidy",))),
    smt("RunsEnd", Hints(closed=("tidy", "bounded_by", "run_bound"))),
    smt("EntersOwn"),
    smt("EntersBegun", Hints(introduce=("begun",), closed=STEPS)),
    smt("DoneCounts", Hints(closed=STEPS)),
    smt("DoneGoesOn", Hints(introduce=("macro", "does"), closed=STEPS)),
    smt("NodeHalts", Hints(introduce=("halts",), closed=(*STEPS, "moves"))),
    natural("GraphHalts", "k", Hints(closed=(*STEPS, "tame", "exits_halt", "left_over"))),
    smt("RunHalts", Hints(introduce=("macro",), closed=PARTS)),
    smt("NextBegun", Hints(introduce=("begun", "does"), closed=STEPS)),
    natural("BodyHalts", "j", Hints(closed=(*STEPS, "tame"))),
    smt("RunsLeft"),
    smt("RunsHalt", Hints(closed=(*STEPS, "tame", "halts_behind", "bounded_by", "at_most_more"))),
    smt("TameNode", Hints(closed=(*STEPS, "halts_behind", "bounded_by"))),
    natural("TameUpTo", "k", Hints(closed=("tame", "ends_runs"))),
    smt("AllTame", Hints(closed=("tame", "ends_runs"))),
    smt("EveryExecutionEnds", Hints(closed=(*STEPS, "tame", "ends_runs"))),
    induction(
        {"halts": "EndsWell"},
        Hints(introduce=("executes",), closed=("tidy", "starts", "supplied", "met", "moves", "stopped")),
    ),
    smt("EndsComplete", Hints(closed=("tidy", "starts", "supplied", "met", "can_move", "finished"))),
    smt("FromTheStart", Hints(introduce=("executes",), closed=("moves",))),
    smt("Completes", Hints(closed=CLOSED)),
)
