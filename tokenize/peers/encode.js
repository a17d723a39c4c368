// Encodes texts with the Rust tokenizers: node encode.js TOKENIZER.json < texts.jsonl > cases.jsonl
// A line of input is {"text"}; of output {"text","ids","offsets","tokens","special"}, offsets in code points.
const fs = require('fs');
const readline = require('readline');
const { tokenizers } = require('./peers.js');

(async () => {
  const file = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  file.truncation = null;
  file.padding = null;
  const t = tokenizers.Tokenizer.fromString(JSON.stringify(file));
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const { text } = JSON.parse(line);
    try {
      const e = await t.encode(text, null, { addSpecialTokens: true });
      console.log(JSON.stringify({ text, ids: e.getIds(), offsets: e.getOffsets(), tokens: e.getTokens(), special: e.getSpecialTokensMask() }));
    } catch (err) {
      console.log(JSON.stringify({ text, error: String(err) }));
    }
  }
})();
