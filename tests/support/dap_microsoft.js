// A session driven by Microsoft's test client. Arguments: node_modules, python, shim of the adapter, a JSON object.
// Writes one JSON object with what it saw; ends with a code other than 0 where an assertion of the client fails.
"use strict";
const [modules, python, shim, text] = process.argv.slice(2);
const { DebugClient } = require(`${modules}/@vscode/debugadapter-testsupport`);
const { launch, listing, breakpoint, body, tensor, watched, strange } = JSON.parse(text);

async function started() {
  const client = new DebugClient(python, shim, "sonnx");
  client.defaultTimeout = 60000;
  const plain = client.initializeRequest.bind(client);
  const says = { adapterID: "sonnx", linesStartAt1: true, columnsStartAt1: true, supportsMemoryReferences: true };
  client.initializeRequest = () => plain(says);
  await client.start();
  return client;
}

/** Stops where a step writes or reads bytes of a tensor, by their address. */
async function bytesOf(client, seen) {
  const { memoryReference } = (await client.evaluateRequest({ expression: watched, context: "watch" })).body;
  const { address } = (await client.customRequest("readMemory", { memoryReference, count: 1 })).body;
  const info = await client.customRequest("dataBreakpointInfo", { name: address, asAddress: true, bytes: 2 });
  const { dataId, accessTypes } = info.body;
  seen.accessTypes = accessTypes;
  const asked = { breakpoints: [{ dataId, accessType: "readWrite" }] };
  const [made] = (await client.customRequest("setDataBreakpoints", asked)).body.breakpoints;
  const stops = async (request) => {
    const [stopped] = await Promise.all([client.waitForEvent("stopped"), request]);
    const { stackFrames } = (await client.stackTraceRequest({ threadId: 1 })).body;
    return [stopped.body.reason, stopped.body.hitBreakpointIds?.[0] === made.id, stackFrames[0].line];
  };
  seen.watched = [
    await stops(client.reverseContinueRequest({ threadId: 1 })),
    await stops(client.reverseContinueRequest({ threadId: 1 })),
    await stops(client.continueRequest({ threadId: 1 })),
  ];
  seen.malformed = await client
    .customRequest("dataBreakpointInfo", { name: "-1", asAddress: true })
    .then(() => "accepted", (error) => error.message);
  await client.customRequest("setDataBreakpoints", { breakpoints: [] });
}

/** Stands still on entry, then at the first value that is not a number. */
async function faults(seen) {
  const client = await started();
  await Promise.all([
    client.waitForEvent("initialized").then(async () => {
      await client.setExceptionBreakpointsRequest({ filters: ["nan"] });
      await client.configurationDoneRequest();
    }),
    client.launch({ ...strange, stopOnEntry: true }),
    client.assertStoppedLocation("entry", { line: 6 }),
  ]);
  const [stopped] = await Promise.all([client.waitForEvent("stopped"), client.continueRequest({ threadId: 1 })]);
  const { exceptionId } = (await client.exceptionInfoRequest({ threadId: 1 })).body;
  seen.fault = [stopped.body.reason, exceptionId];
  await client.stop();
}

async function main() {
  const client = await started();
  const seen = { lines: [], reasons: [] };
  const waits = (reason) => client.assertStoppedLocation(reason, { path: listing });
  const move = async (reason, request) => {
    const [trace] = await Promise.all([waits(reason), request]);
    seen.lines.push(trace.body.stackFrames[0].line);
    seen.reasons.push(reason);
    return trace.body.stackFrames;
  };
  await client.hitBreakpoint(launch, { path: listing, line: breakpoint });
  let frames = await move("step", client.nextRequest({ threadId: 1 }));
  frames = await move("breakpoint", client.stepBackRequest({ threadId: 1 }));
  await client.setBreakpointsRequest({ source: { path: listing }, breakpoints: [{ line: body }] });
  frames = await move("breakpoint", client.continueRequest({ threadId: 1 }));
  seen.frames = frames.map((frame) => [frame.name, frame.line]);
  const { scopes } = (await client.scopesRequest({ frameId: frames[0].id })).body;
  seen.scopes = scopes.map((scope) => scope.name);
  const { variables } = (await client.variablesRequest({ variablesReference: scopes[0].variablesReference })).body;
  seen.variables = variables.map((variable) => variable.name);
  const asked = { expression: tensor, context: "watch", frameId: frames[0].id };
  const value = (await client.evaluateRequest(asked)).body;
  seen.value = value.result;
  const memory = { memoryReference: value.memoryReference, count: 8 };
  seen.memory = (await client.customRequest("readMemory", memory)).body.data;
  await client.setBreakpointsRequest({ source: { path: listing }, breakpoints: [] });
  await bytesOf(client, seen);
  await client.setBreakpointsRequest({ source: { path: listing }, breakpoints: [{ line: body }] });
  await move("breakpoint", client.continueRequest({ threadId: 1 }));
  await client.setBreakpointsRequest({ source: { path: listing }, breakpoints: [] });
  frames = await move("step", client.stepOutRequest({ threadId: 1 }));
  await client.reverseContinueRequest({ threadId: 1 });
  seen.refused = await client.customRequest("noSuchRequest").then(
    () => "accepted",
    (error) => error.message,
  );
  await client.stop();
  await faults(seen);
  process.stdout.write(JSON.stringify(seen));
}

main().then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  },
);
