// What VS Code asks an extension for: where the adapter is, configurations, the picker for inputs, values in the text.
// What is said about a model comes from `sonnx dap`; nothing here reads a model or a listing.
"use strict";

const { execFile } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");

const TYPE = "sonnx";
const LISTING = "sonnx-listing";
const LISTED = ".sonnx.lst";
const MODEL = ".onnx";

// ---- The adapter --------------------------------------------------------------------------------

/** The command that serves: of the setting sonnx.path, else of the Python that wrote this extension. */
function command(context) {
  const stated = vscode.workspace.getConfiguration("sonnx").get("path", "").trim();
  const [{ runtime, args }] = context.extension.packageJSON.contributes.debuggers;
  const found = stated || runtime;
  if (!isThere(found)) {
    throw new Error(
      `${found} is not there: set "sonnx.path" to the absolute path of the command sonnx,` +
        " or write this extension anew with: sonnx dap --vscode FOLDER",
    );
  }
  return { file: found, args: stated ? ["dap"] : args };
}

function isThere(file) {
  if (path.isAbsolute(file)) return fs.existsSync(file);
  const endings = process.platform === "win32" ? (process.env.PATHEXT ?? "").split(";") : [""];
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter(Boolean);
  return folders.some((folder) => endings.some((ending) => fs.existsSync(path.join(folder, file + ending))));
}

/** The inputs of a model: [{ name, type, needed, sizes }]. */
function inputsOf(context, model) {
  const { file, args } = command(context);
  return new Promise((resolve, reject) => {
    execFile(file, [...args, "--inputs", model], { maxBuffer: 1 << 28 }, (error, output, said) => {
      if (!error) return resolve(JSON.parse(output));
      const lines = said.trim().split("\n");
      return reject(new Error(lines[lines.length - 1] || error.message));
    });
  });
}

// ---- The picker ---------------------------------------------------------------------------------
// Each question gives undefined where the person turns away from it; nothing is started then.

async function pickModel() {
  const files = await vscode.workspace.findFiles(`**/*${MODEL}`, "**/node_modules/**", 1000);
  const known = files.map((uri) => ({ label: vscode.workspace.asRelativePath(uri), model: uri.fsPath }));
  const other = { label: "Another file..." };
  const picked = known.length
    ? await vscode.window.showQuickPick([...known, other], { placeHolder: "The model to debug" })
    : other;
  return picked === other ? askFile("The model to debug", { "ONNX models": [MODEL.slice(1)] }) : picked?.model;
}

async function askFile(title, filters) {
  const chosen = await vscode.window.showOpenDialog({ title, filters });
  return chosen?.[0]?.fsPath;
}

async function askNumber(prompt, value) {
  const validateInput = (text) => (/^[0-9]{1,15}$/.test(text) ? undefined : "Give a whole number, not negative");
  const text = await vscode.window.showInputBox({ prompt, value, validateInput });
  return text === undefined ? undefined : Number(text);
}

/** Seed and sizes for the inputs that are drawn. */
async function askDraws(inputs) {
  const random = await askNumber("The seed of the inputs that are drawn", "0");
  if (random === undefined) return undefined;
  const sizes = {};
  for (const name of new Set(inputs.flatMap((input) => input.sizes))) {
    const size = await askNumber(`The size ${name}, which the model leaves open`, "1");
    if (size === undefined) return undefined;
    Object.defineProperty(sizes, name, { value: size, enumerable: true });
  }
  return Object.keys(sizes).length ? { random, sizes } : { random };
}

/** The arguments of the launch that give a model its inputs. */
async function askInputs(inputs) {
  const needed = inputs.filter((input) => input.needed);
  if (!inputs.length) return {};
  const draw = { label: "Draw the inputs at random", description: needed.map((input) => input.name).join(", ") };
  const whole = { label: "One file with all inputs", description: ".npz" };
  const each = { label: "Choose for each input" };
  const how = await vscode.window.showQuickPick([draw, whole, each], { placeHolder: "The inputs of the model" });
  if (how === draw) return askDraws(needed);
  if (how === whole) {
    const file = await askFile("A file with all inputs", { "NumPy archives": ["npz"] });
    return file && { inputs: file };
  }
  return how && askEach(inputs);
}

async function askEach(inputs) {
  const files = {};
  const drawn = [];
  for (const input of inputs) {
    const rest = input.needed ? { label: "Draw it at random" } : { label: "The value that the model stores" };
    const file = { label: "A file...", description: ".npy, .npz, .pb, .json" };
    const placeHolder = `${input.name}: ${input.type}`;
    const how = await vscode.window.showQuickPick([file, rest], { placeHolder });
    if (how === undefined) return undefined;
    if (how === file) {
      const chosen = await askFile(placeHolder, { Tensors: ["npy", "npz", "pb", "json"] });
      if (chosen === undefined) return undefined;
      Object.defineProperty(files, input.name, { value: chosen, enumerable: true });
    } else if (input.needed) drawn.push(input);
  }
  const draws = drawn.length ? await askDraws(drawn) : {};
  return draws && (Object.keys(files).length ? { inputs: files, ...draws } : draws);
}

async function configurationFor(context, model) {
  const given = await askInputs(await inputsOf(context, model));
  const name = `SONNX: ${path.basename(model)}`;
  return given && { type: TYPE, request: "launch", name, model, ...given, stopOnEntry: true };
}

// ---- Commands and configurations ----------------------------------------------------------------

/** The model that the editor at hand shows, itself or as a listing. */
function modelShown() {
  const { activeTab } = vscode.window.tabGroups.activeTabGroup;
  const shown = /** @type {{ uri?: vscode.Uri } | undefined} */ (activeTab?.input)?.uri?.fsPath ?? "";
  if (shown.endsWith(MODEL)) return shown;
  return shown.endsWith(LISTED) ? shown.slice(0, -LISTED.length) : undefined;
}

/** Does something; what goes wrong is said to the person. */
async function said(action) {
  try {
    return await action();
  } catch (error) {
    vscode.window.showErrorMessage(error.message);
    return undefined;
  }
}

async function debugModel(context, uri) {
  const model = uri?.fsPath ?? modelShown() ?? (await pickModel());
  const configuration = model && (await configurationFor(context, model));
  if (!configuration) return;
  await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(vscode.Uri.file(model)), configuration);
}

async function resolved(context, configuration) {
  if (!configuration.type && !configuration.request && !configuration.name) {
    const model = modelShown() ?? (await pickModel()); // there is no launch.json
    return model && configurationFor(context, model);
  }
  return { model: "${command:pickModel}", ...configuration };
}

// ---- Values in the text -------------------------------------------------------------------------

/** The names in lines of the listing, as the session at hand knows them; none where none runs or it is busy. */
async function valuesIn(first, last) {
  const session = vscode.debug.activeDebugSession;
  if (session?.type !== TYPE) return [];
  try {
    return (await session.customRequest("sonnx/values", { line: first + 1, endLine: last + 1 })).values;
  } catch {
    return [];
  }
}

function rangeOf(value) {
  return new vscode.Range(value.line - 1, value.column - 1, value.line - 1, value.endColumn - 1);
}

const INLINE = {
  async provideInlineValues(document, shown) {
    const values = await valuesIn(shown.start.line, shown.end.line);
    return values
      .filter((value) => value.value !== undefined)
      .map((value) => new vscode.InlineValueText(rangeOf(value), `${value.name} = ${value.value}`));
  },
};

const HOVER = {
  async provideEvaluatableExpression(document, position) {
    const values = await valuesIn(position.line, position.line);
    const value = values.find((it) => rangeOf(it).contains(position));
    return value && new vscode.EvaluatableExpression(rangeOf(value), value.expression);
  },
};

exports.activate = (context) => {
  const factory = {
    createDebugAdapterDescriptor() {
      const { file, args } = command(context);
      return new vscode.DebugAdapterExecutable(file, args);
    },
  };
  const provider = {
    resolveDebugConfiguration: (folder, configuration) => said(() => resolved(context, configuration)),
  };
  context.subscriptions.push(
    vscode.commands.registerCommand("sonnx.debugModel", (uri) => said(() => debugModel(context, uri))),
    vscode.commands.registerCommand("sonnx.pickModel", () => said(pickModel)),
    vscode.debug.registerDebugAdapterDescriptorFactory(TYPE, factory),
    vscode.debug.registerDebugConfigurationProvider(TYPE, provider),
    vscode.languages.registerInlineValuesProvider({ language: LISTING }, INLINE),
    vscode.languages.registerEvaluatableExpressionProvider({ language: LISTING }, HOVER),
  );
};
