"""Each row of the protocol that an editor needs has a test that uses it."""

from __future__ import annotations

import ast
from pathlib import Path

from tables import table

ROWS = {
    "initialize launch configurationDone disconnect": "test_a_session_begins_and_ends",
    "threads stackTrace": "test_frames_are_the_graphs_and_calls_that_run",
    "scopes variables": "test_scopes_come_in_order_and_hold_what_the_frame_has",
    "breaks condition hitCondition": "test_breakpoints_replace_those_of_the_source_in_order",
    "logMessage": "test_a_log_point_says_something_and_does_not_stop",
    "breakpointLocations": "test_breakpoints_may_stand_on_the_lines_of_nodes",
    "setFunctionBreakpoints": "test_function_breakpoints_stop_at_operators_names_globs_and_functions",
    "setExceptionBreakpoints filterOptions exceptionInfo": "test_exceptions_are_faults_of_values",
    "dataBreakpointInfo setDataBreakpoints": "test_data_breakpoints_watch_a_tensor_or_an_element",
    "next stepIn stepOut": "test_steps_go_over_into_and_out_of_bodies_and_calls",
    "continue": "test_continue_ends_at_the_return_line_and_one_can_go_back",
    "stepBack reverseContinue": "test_reverse_steps_and_continues",
    "granularity instruction": "test_an_instruction_is_one_phase_of_a_transition",
    "source loadedSources checksums": "test_sources_are_the_listing_and_what_the_operators_mean",
    "evaluate watch repl hover clipboard variables": "test_each_context_evaluates",
    "completions": "test_completions_are_those_of_the_terminal",
    "start count filter": "test_elements_come_in_pages",
    "format hex": "test_numbers_can_be_shown_as_bits",
    "readMemory memoryReference": "test_memory_is_the_bytes_of_a_tensor",
    "locations declarationLocationReference": "test_a_variable_leads_to_the_line_that_makes_it",
    "setVariable setExpression writeMemory allowEdits": "test_edits_are_refused_unless_they_are_allowed",
    "attach": "test_a_recorded_run_can_be_looked_at",
    "restart restartFrame": "test_restart_goes_to_the_start_and_restart_frame_to_where_the_frame_began",
    "gotoTargets goto": "test_goto_is_a_seek_in_time",
    "stepInTargets": "test_one_may_choose_what_to_step_into",
}
"""Words of the protocol, by the test that shows them. Pause, cancel and progress: test_running."""


def _functions(path: Path) -> dict[str, str]:
    text = path.read_text(encoding="utf-8")
    found = ast.walk(ast.parse(text))
    return {it.name: ast.get_source_segment(text, it) or "" for it in found if isinstance(it, ast.FunctionDef)}


HERE = Path(__file__).parent
TESTS = {name: text for path in HERE.glob("test_*.py") for name, text in _functions(path).items()}
CLIENT = "".join(_functions(HERE.parents[2] / "support" / "dap_client.py").values())


@table(("row", "name"), ROWS.items(), ids=list(ROWS.values()))
def test_each_row_is_shown_by_its_test(row: str, name: str) -> None:
    assert not [word for word in row.split() if word not in TESTS[name] + CLIENT]
