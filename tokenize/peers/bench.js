// Times the Rust tokenizers: node bench.js TOKENIZER.json MESSAGES.mbox.gz [SECONDS]; prints tokens a CPU second.
// Messages go one by one, as a router gets them. Loading and the first pass are not counted.
const fs = require('fs');
const zlib = require('zlib');
const { tokenizers } = require('./peers.js');

process.env.TOKENIZERS_PARALLELISM = 'false';
(async () => {
  const file = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
  file.truncation = null;
  file.padding = null;
  const t = tokenizers.Tokenizer.fromString(JSON.stringify(file));
  const messages = zlib.gunzipSync(fs.readFileSync(process.argv[3])).toString('utf8').split('\nFrom ');
  const seconds = Number(process.argv[4] || 3);
  let tokens = 0;
  const pass = async (until) => {
    for (const m of messages) {
      tokens += (await t.encode(m, null, { addSpecialTokens: true })).getLength();
      if (process.cpuUsage().user / 1e6 > until) return;
    }
  };
  await pass(process.cpuUsage().user / 1e6 + seconds / 3);
  tokens = 0;
  const before = process.cpuUsage(), wall = process.hrtime.bigint();
  await pass((before.user / 1e6) + seconds);
  const cpu = process.cpuUsage(before);
  console.log(JSON.stringify({ tokens, cpu: (cpu.user + cpu.system) / 1e6, wall: Number(process.hrtime.bigint() - wall) / 1e9 }));
})();
