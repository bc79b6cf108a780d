"""What `initialize` says and what is answered are the same, in both directions."""

from __future__ import annotations

from collections.abc import Mapping

from dap_client import Client, Json
from dap_schema import definitions, kinds
from sonnx.semantics.debugger.dap.adapter import capabilities
from sonnx.semantics.debugger.dap.worker import BY_REQUEST, HANDLERS
from tables import table

BRINGS: Mapping[str, tuple[str, ...]] = {
    "supportsConfigurationDoneRequest": ("configurationDone",),
    "supportsFunctionBreakpoints": ("setFunctionBreakpoints",),
    "supportsConditionalBreakpoints": ("setBreakpoints",),
    "supportsHitConditionalBreakpoints": ("setBreakpoints",),
    "supportsLogPoints": ("setBreakpoints",),
    "supportsEvaluateForHovers": ("evaluate",),
    "supportsClipboardContext": ("evaluate",),
    "exceptionBreakpointFilters": ("setExceptionBreakpoints",),
    "supportsExceptionFilterOptions": ("setExceptionBreakpoints",),
    "supportsExceptionInfoRequest": ("exceptionInfo",),
    "supportsStepBack": ("stepBack", "reverseContinue"),
    "supportsSetVariable": ("setVariable",),
    "supportsSetExpression": ("setExpression",),
    "supportsRestartFrame": ("restartFrame",),
    "supportsRestartRequest": ("restart",),
    "supportsGotoTargetsRequest": ("gotoTargets", "goto"),
    "supportsStepInTargetsRequest": ("stepInTargets",),
    "supportsCompletionsRequest": ("completions",),
    "completionTriggerCharacters": ("completions",),
    "supportsModulesRequest": ("modules",),
    "additionalModuleColumns": ("modules",),
    "supportsValueFormattingOptions": ("stackTrace", "variables", "evaluate"),
    "supportsDelayedStackTraceLoading": ("stackTrace",),
    "supportsLoadedSourcesRequest": ("loadedSources", "source"),
    "supportedChecksumAlgorithms": ("source",),
    "supportsTerminateRequest": ("terminate",),
    "supportsDataBreakpoints": ("dataBreakpointInfo", "setDataBreakpoints"),
    "supportsDataBreakpointBytes": ("dataBreakpointInfo",),
    "supportsReadMemoryRequest": ("readMemory",),
    "supportsWriteMemoryRequest": ("writeMemory",),
    "supportsDisassembleRequest": ("disassemble",),
    "supportsInstructionBreakpoints": ("setInstructionBreakpoints",),
    "supportsCancelRequest": ("cancel",),
    "supportsBreakpointLocationsRequest": ("breakpointLocations",),
    "supportsSteppingGranularity": ("next", "stepIn", "stepBack"),
    "supportsTerminateThreadsRequest": ("terminateThreads",),
    "supportsExceptionOptions": (),
    "supportTerminateDebuggee": (),
    "supportSuspendDebuggee": (),
    "supportsSingleThreadExecutionRequests": (),
    "supportsANSIStyling": (),
}
"""The requests that a capability promises, of all capabilities of the protocol."""

ALWAYS = frozenset(
    (
        *("initialize", "launch", "attach", "disconnect", "threads", "stackTrace", "scopes", "variables", "source"),
        *("setBreakpoints", "setExceptionBreakpoints", "evaluate", "continue", "next", "stepIn", "stepOut", "pause"),
        "locations",
    )
)
"""The requests that need no capability."""

OWN = frozenset(("sonnx/values",))
"""The requests that the protocol does not have; a client that does not know them sends none."""

SAID = capabilities(HANDLERS)


def test_each_capability_of_the_protocol_is_known_here() -> None:
    assert set(BRINGS) == set(definitions()["Capabilities"]["properties"])


@table("name", SAID)
def test_what_is_said_is_answered(name: str) -> None:
    assert BRINGS[name] and not [request for request in BRINGS[name] if request not in BY_REQUEST]


@table("request_", BY_REQUEST)
def test_what_is_answered_is_said(request_: str) -> None:
    brought = [name for name, requests in BRINGS.items() if request_ in requests]
    assert request_ in ALWAYS | OWN or any(SAID.get(name) for name in brought)


def test_no_request_has_two_handlers() -> None:
    assert len(BY_REQUEST) == len(HANDLERS)
    said = [name for handler in HANDLERS for name in handler.capabilities]
    assert len(said) == len(set(said))


def test_the_client_hears_what_the_handlers_bring_and_nothing_else(client: Client, nested: Json) -> None:
    client.begin(nested)
    assert client.capabilities == SAID
    for kind, request in kinds():
        if kind == "request" and request not in BY_REQUEST:
            assert request in client.refused(request, {})
    changed = client.event("capabilities")["capabilities"]
    editing = {"supportsSetVariable", "supportsSetExpression", "supportsWriteMemoryRequest"}
    assert changed == dict.fromkeys(editing, False)
    client.end()


def test_every_stop_filter_has_a_label_and_is_accepted(client: Client, nested: Json) -> None:
    client.begin(nested)
    filters = client.capabilities["exceptionBreakpointFilters"]
    for it in filters:
        assert it["label"] and it["supportsCondition"] and it["conditionDescription"]
        answered = client.request("setExceptionBreakpoints", {"filters": [it["filter"]]})["breakpoints"]
        assert [found["verified"] for found in answered] == [it["filter"] != "divergence"], it["filter"]
    client.end()
