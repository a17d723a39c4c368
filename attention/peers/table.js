// Reads what compare.sh measured and prints a Markdown table: node table.js FOLDER
'use strict';
const fs = require('fs');
const path = require('path');

const folder = process.argv[2];
const lines = (name) => {
  const file = path.join(folder, name);
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
};
const least = {}; // least[who][case] in ms
const share = {}; // share[variant][case] of the peak, the largest
const stretch = {}; // the same of the peak over as long a stretch
const rate = {}; // messages a second on two cores
const note = (who, name, ms) => {
  least[who] ??= {};
  least[who][name] = Math.min(least[who][name] ?? Infinity, ms);
};

for (const line of lines('ours')) {
  const metric = (unit) => Number((line.match(new RegExp('([\\d.]+) ' + unit.replace('/', '\\/') + '(\\s|$)')) ?? [])[1]);
  const tokens = (line.match(/tokens=(\d+)/) ?? [])[1];
  const variant = (line.match(/\/(avx512|avx2|generic)\//) ?? [])[1];
  if (/^BenchmarkMiniLMInt8/.test(line)) note('int8', tokens, metric('min-ms'));
  else if (/^BenchmarkMiniLM/.test(line)) {
    note(variant, tokens, metric('min-ms'));
    for (const [table, unit] of [[share, '%peak'], [stretch, '%peak-as-long']]) {
      table[variant] ??= {};
      table[variant][tokens] = Math.max(table[variant][tokens] ?? 0, metric(unit));
    }
  } else if (/^BenchmarkMix/.test(line)) note(/float32/.test(line) ? 'mix' : 'int8', 'mix1', metric('min-ms'));
}
for (const line of lines('ours2')) {
  const who = /float32/.test(line) ? 'float32' : 'int8';
  rate[who] = Number((line.match(/([\d.]+) messages\/s/) ?? [])[1]);
}
for (const line of lines('peers')) {
  const row = JSON.parse(line);
  note(row.peer, row.case[0] === 'mix1' ? 'mix1' : String(row.case[1]), row.min_ms);
}
for (const name of ['two1', 'two2']) {
  for (const line of lines(name)) {
    const row = JSON.parse(line);
    rate[row.peer] = (rate[row.peer] ?? 0) + row.emails_s;
  }
}

const fast = least.avx512 ? 'avx512' : least.avx2 ? 'avx2' : 'generic';
if (least[fast] && least.mix) least[fast].mix1 = least.mix.mix1;
const ort = 'ort-model.onnx';
const ort8 = 'ort-model_int8.onnx';
const ms = (who, name) => (least[who]?.[name] ? least[who][name].toFixed(2) : '');
const times = (peer, who, name) => (least[peer]?.[name] && least[who]?.[name] ? (least[peer][name] / least[who][name]).toFixed(2) : '');
console.log(`| tokens | misroute (${fast}) | of peak | as long | ONNX Runtime | x | PyTorch | x | misroute int8 | ONNX Runtime int8 | x |`);
console.log('|---|---|---|---|---|---|---|---|---|---|---|');
for (const name of ['32', '128', '256', '512', 'mix1']) {
  const percent = (table) => (table[fast]?.[name] ? table[fast][name].toFixed(0) + ' %' : '');
  const title = name === 'mix1' ? '64 mixed' : name;
  console.log(`| ${[title, ms(fast, name), percent(share), percent(stretch), ms(ort, name), times(ort, fast, name), ms('torch', name), times('torch', fast, name),
    ms('int8', name), ms(ort8, name), times(ort8, 'int8', name)].join(' | ')} |`);
}
if (rate.float32) {
  const x = (who, peer) => (rate[peer] ? (rate[who] / rate[peer]).toFixed(2) : '');
  console.log(`\nTwo cores, the mixed set, messages/s: float32 ${rate.float32.toFixed(0)}, two ONNX Runtime processes ${(rate[ort] ?? 0).toFixed(0)} ` +
    `(${x('float32', ort)} x); int8 ${rate.int8.toFixed(0)}, theirs ${(rate[ort8] ?? 0).toFixed(0)} (${x('int8', ort8)} x).`);
}
