// The tokens that the library of VS Code finds. Arguments: node_modules, a JSON file [[grammar file, text], ...].
// Writes for each text its lines, each as [first, end, innermost scope] of its tokens.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const [modules, asked] = process.argv.slice(2);
const oniguruma = require(path.join(modules, "vscode-oniguruma"));
const textmate = require(path.join(modules, "vscode-textmate"));

async function main() {
  await oniguruma.loadWASM(fs.readFileSync(path.join(modules, "vscode-oniguruma", "release", "onig.wasm")).buffer);
  const onigLib = Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  });
  const rows = [];
  for (const [file, text] of JSON.parse(fs.readFileSync(asked, "utf-8"))) {
    const raw = textmate.parseRawGrammar(fs.readFileSync(file, "utf-8"), file);
    const registry = new textmate.Registry({ onigLib, loadGrammar: async () => raw });
    const grammar = await registry.loadGrammar(raw.scopeName);
    let state = textmate.INITIAL;
    const lines = [];
    for (const line of text.split("\n")) {
      const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
      state = ruleStack;
      lines.push(tokens.map(({ startIndex, endIndex, scopes }) => [startIndex, endIndex, scopes.at(-1)]));
    }
    rows.push(lines);
  }
  process.stdout.write(JSON.stringify(rows));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
