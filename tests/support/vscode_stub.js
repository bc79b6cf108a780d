// Runs the extension on a stand-in for VS Code. Arguments: the folder of the extension, a JSON array of scenes.
// A scene: { call, arguments, answers, settings, shown, models, values, session }. Writes for each scene one JSON object
// with what the extension registered, asked, started, said, and gave.
"use strict";
const Module = require("node:module");
const path = require("node:path");
const [folder, text] = process.argv.slice(2);
const resolve = path.resolve(folder);

class Range {
  constructor(line, column, endLine, endColumn) {
    Object.assign(this, { start: { line, character: column }, end: { line: endLine, character: endColumn } });
  }
  contains({ line, character }) {
    return this.start.line === line && this.start.character <= character && character <= this.end.character;
  }
}
class Kept {
  constructor(...given) {
    this.given = given;
  }
}

function world(scene, seen) {
  const answers = [...(scene.answers ?? [])];
  const answer = (asked) => {
    seen.asked.push(asked);
    if (!answers.length) throw new Error(`no answer is left for ${JSON.stringify(asked)}`);
    return answers.shift() ?? undefined;
  };
  const uri = (file) => ({ fsPath: file });
  const keep = (name) => (key, value) => {
    seen.registered[name] = { ...seen.registered[name], [JSON.stringify(key)]: value };
    return { dispose() {} };
  };
  const session = scene.session && {
    type: scene.session,
    async customRequest(command, given) {
      seen.asked.push({ command, ...given });
      if (!scene.values) throw new Error("refused");
      return { values: scene.values };
    },
  };
  return {
    Range,
    InlineValueText: Kept,
    EvaluatableExpression: Kept,
    DebugAdapterExecutable: Kept,
    Uri: { file: uri },
    commands: { registerCommand: keep("commands") },
    languages: {
      registerInlineValuesProvider: keep("inline"),
      registerEvaluatableExpressionProvider: keep("hover"),
    },
    debug: {
      activeDebugSession: session,
      registerDebugAdapterDescriptorFactory: keep("factory"),
      registerDebugConfigurationProvider: keep("provider"),
      async startDebugging(where, configuration) {
        seen.started.push({ folder: where, configuration });
        return true;
      },
    },
    workspace: {
      getConfiguration: (section) => ({ get: (key, other) => scene.settings?.[`${section}.${key}`] ?? other }),
      getWorkspaceFolder: (it) => path.dirname(it.fsPath),
      findFiles: async (pattern) => (pattern === "**/*.onnx" ? (scene.models ?? []).map(uri) : []),
      asRelativePath: (it) => path.basename(it.fsPath),
    },
    window: {
      tabGroups: { activeTabGroup: { activeTab: scene.shown && { input: { uri: uri(scene.shown) } } } },
      async showQuickPick(items, { placeHolder }) {
        const label = answer({ placeHolder, labels: items.map((it) => it.label) });
        if (label === undefined) return undefined;
        const picked = items.find((it) => it.label === label);
        if (!picked) throw new Error(`there is no item ${label}`);
        return picked;
      },
      async showOpenDialog({ title, filters }) {
        const file = answer({ title, endings: Object.values(filters).flat() });
        return file && [uri(file)];
      },
      async showInputBox({ prompt, value, validateInput }) {
        const given = answer({ prompt, value });
        const wrong = given === undefined ? undefined : validateInput(given);
        if (wrong) throw new Error(wrong);
        return given;
      },
      showErrorMessage: (message) => seen.said.push(message),
    },
  };
}

async function main() {
  const load = Module._load;
  const rows = [];
  for (const scene of JSON.parse(text)) {
    const seen = { registered: {}, asked: [], started: [], said: [] };
    const vscode = world(scene, seen);
    Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
    delete require.cache[path.join(resolve, "extension.js")];
    const packageJSON = JSON.parse(require("node:fs").readFileSync(path.join(resolve, "package.json"), "utf-8"));
    const subscriptions = [];
    require(path.join(resolve, "extension.js")).activate({ subscriptions, extension: { packageJSON } });
    const [kind, key, method] = scene.call ?? [];
    if (kind) {
      const target = seen.registered[kind][JSON.stringify(key)];
      const run = async () => (method ? target[method](...(scene.arguments ?? [])) : target(...(scene.arguments ?? [])));
      seen.gave = await run().catch((error) => ({ thrown: error.message }));
    }
    seen.registered = Object.fromEntries(
      Object.entries(seen.registered).map(([name, row]) => [name, Object.keys(row).map((it) => JSON.parse(it))]),
    );
    rows.push({ ...seen, subscriptions: subscriptions.length });
  }
  process.stdout.write(JSON.stringify(rows));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
