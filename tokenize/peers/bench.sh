#!/usr/bin/env bash
# Ours and the Rust tokenizers on the same messages, one after the other for each model, on one core:
#   MISROUTE_SHARED=../shared tokenize/peers/bench.sh
# Prints a Markdown table of tokens a second of processor time (on a busy machine the clock misleads).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
: "${MISROUTE_SHARED:?names the folder with the recorded data}"
case $MISROUTE_SHARED in /*) ;; *) MISROUTE_SHARED=$root/$MISROUTE_SHARED ;; esac
export MISROUTE_SHARED
pin=""
command -v taskset >/dev/null && pin="taskset -c ${CORE:-0}"
cd "$root"
go test -c -o "${TMPDIR:-/tmp}/tokenize-bench.test" ./tokenize
cd tokenize
echo "| Model | misroute, tokens/s | Rust through npm, tokens/s | ratio | allocations a week of mail |"
echo "|---|---|---|---|---|"
for name in distilbert roberta t5 albert; do
  ours=$($pin "${TMPDIR:-/tmp}/tokenize-bench.test" -test.run '^$' -test.bench "Encode/$name\$" -test.cpu 1 -test.benchtime "${BENCHTIME:-5x}" | grep "^BenchmarkEncode/")
  rust=$($pin node "$here/bench.js" "$MISROUTE_SHARED/data/tokenizer-oracle/$name/tokenizer.json" "$MISROUTE_SHARED/data/newsgroups/week-1993-W16.mbox.gz" "${SECONDS_RUST:-3}")
  NAME=$name OURS=$ours RUST=$rust node -e '
    const f = process.env.OURS.split(/\s+/), at = (unit) => Number(f[f.indexOf(unit) - 1]);
    const r = JSON.parse(process.env.RUST), rust = r.tokens / r.cpu, ours = at("tokens/cpu-s");
    const n = (x) => (x / 1e6).toFixed(2) + " M";
    console.log(`| ${process.env.NAME} | ${n(ours)} | ${n(rust)} | ${(ours / rust).toFixed(0)} x | ${at("allocs/op")} |`);'
done
