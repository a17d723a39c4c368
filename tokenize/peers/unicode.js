// Records what the Rust tokenizers think of every code point: node unicode.js > ../testdata/unicode-recorded.tsv
// The components of that library carry different versions of Unicode, so no single version of the
// standard gives its results. Lines: property, first, last (hexadecimal), or map, code point, result.
const { tokenizers } = require('./peers.js');

const wrap = (normalizer) => tokenizers.Tokenizer.fromString(JSON.stringify({
  version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer,
  pre_tokenizer: null, post_processor: null, decoder: null,
  model: { type: 'WordLevel', vocab: { a: 0 }, unk_token: 'a' },
})).getNormalizer();

const codePoints = [];
for (let c = 0; c < 0x110000; c++) if (c < 0xd800 || c > 0xdfff) codePoints.push(c);
const hex = (n) => n.toString(16);

function printSet(name, set) {
  let first = -1, last = -2;
  for (const c of set.concat(Infinity)) {
    if (c === last + 1) { last = c; continue; }
    if (first >= 0) console.log(`${name}\t${hex(first)}\t${hex(last)}`);
    first = last = c;
  }
}

// A class of the regular expressions (Oniguruma): what Replace takes out.
function regexClass(name, pattern) {
  const n = wrap({ type: 'Replace', pattern: { Regex: pattern }, content: '' });
  const set = [];
  for (let i = 0; i < codePoints.length; i += 512) {
    const chunk = codePoints.slice(i, i + 512);
    const left = new Set([...n.normalizeString(String.fromCodePoint(...chunk))].map((x) => x.codePointAt(0)));
    for (const c of chunk) if (!left.has(c)) set.push(c);
  }
  printSet(name, set);
}

const filter = (name, keep) => printSet(name, codePoints.filter((c) => keep(String.fromCodePoint(c), c)));
const splits = (name, preTokenizer, parts) =>
  filter(name, (s) => preTokenizer.preTokenizeString('a' + s + 'a').length === parts);

function map(name, normalizer) {
  const n = wrap(normalizer);
  for (const c of codePoints) {
    if (c >= 0xac00 && c <= 0xd7a3) continue; // Hangul syllables follow a rule
    const s = String.fromCodePoint(c), t = n.normalizeString(s);
    if (t !== s) console.log(`${name}\t${hex(c)}\t${[...t].map((x) => hex(x.codePointAt(0))).join(' ')}`);
  }
}

// A precompiled character map with one key: a double array of Darts-clone and the result "X".
function oneKey(key) {
  const bytes = Buffer.from(key), units = new Uint32Array(0x1000);
  let node = 0, base = 0x100, unit = 0;
  units[0] = (0x100 << 10) >>> 0;
  node = 0x100;
  bytes.forEach((b, i) => {
    node ^= b;
    const next = 0x200 * (i + 1) + 0x100, last = i === bytes.length - 1;
    units[node] = (((node ^ next) << 10) | (last ? 1 << 8 : 0) | b) >>> 0;
    node = next;
  });
  units[node] = 0x80000000;
  const blob = Buffer.alloc(4 + units.length * 4 + 2);
  blob.writeUInt32LE(units.length * 4, 0);
  units.forEach((u, i) => blob.writeUInt32LE(u, 4 + 4 * i));
  blob.write('X\0', 4 + units.length * 4, 'latin1');
  return wrap({ type: 'Precompiled', precompiled_charsmap: blob.toString('base64') });
}

for (const c of 'Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co'.split(' ')) regexClass(c, `\\p{${c}}`);
regexClass('regex.word', '\\w');
regexClass('regex.alpha', '\\p{Alpha}');
regexClass('regex.upper', '\\p{Upper}');
regexClass('regex.lower', '\\p{Lower}');
for (const s of ['Han', 'Hiragana', 'Katakana', 'Hangul', 'Thai', 'Latin', 'Cyrillic', 'Greek', 'Arabic', 'Hebrew', 'Devanagari', 'Lao', 'Myanmar', 'Khmer', 'Tibetan']) regexClass('script.' + s, `\\p{${s}}`);
splits('rust.word.not', tokenizers.whitespacePreTokenizer(), 3);
splits('rust.numeric', tokenizers.digitsPreTokenizer(true), 3);
splits('rust.space', tokenizers.whitespaceSplitPreTokenizer(), 2);
splits('bert.punctuation', tokenizers.punctuationPreTokenizer(), 3);
const bert = { type: 'BertNormalizer', clean_text: false, handle_chinese_chars: false, strip_accents: false, lowercase: false };
{
  const n = wrap({ ...bert, clean_text: true });
  filter('bert.control', (s) => n.normalizeString(s) === '');
}
{
  const n = wrap({ ...bert, strip_accents: true });
  filter('bert.mark', (s) => n.normalizeString(s) === '');
}
{
  const n = wrap({ type: 'StripAccents' });
  filter('mark', (s) => n.normalizeString(s) === '');
}
{ // a combining class: the mark passes U+0345, whose class is the greatest
  const n = wrap({ type: 'NFD' });
  filter('combining', (s) => n.normalizeString('a\u0345' + s) !== 'a\u0345' + n.normalizeString(s));
}
{ // what joins the cluster before it
  const n = oneKey('a');
  filter('cluster.extends', (s) => n.normalizeString('a' + s) === 'X');
  filter('cluster.prepends', (s) => n.normalizeString(s + 'a\u0301') === s + 'X\u0301');
}
{
  const n = oneKey('\u00a9');
  filter('cluster.pictograph', (s) => n.normalizeString(s + '\u200d\u00a9\u0301') === s.replace('\u00a9', 'X') + '\u200dX\u0301');
}
{
  const n = oneKey('\u0915');
  filter('cluster.consonant', (s) => n.normalizeString(s + '\u094d\u0915\u0301') === s.replace('\u0915', 'X') + '\u094dX\u0301');
  filter('cluster.linker', (s) => n.normalizeString('\u0915' + s + '\u0915\u0301') === 'X' + s + 'X\u0301');
}
map('lower', { type: 'Lowercase' });
map('nfd', { type: 'NFD' });
map('nfkd', { type: 'NFKD' });
map('nfc', { type: 'NFC' });
