#!/usr/bin/env bash
# Times this engine beside ONNX Runtime and PyTorch in one run, on one core and on two, and writes the
# table that README.md shows. Shape of MiniLM-L6, random weights; minima, in ms.
#
#   compare.sh PEERS
#
# PEERS is a folder with setup.sh, which installs the peers and their models, run.sh and ortbench.js,
# which time them, and lens.json, the lengths of the mixed set. SECS is how long each case runs.
set -euo pipefail
peers=$(cd "${1:?folder of the peers}" && pwd)
cd "$(dirname "$0")/.."
export SECS=${SECS:-0.5} MISROUTE_LENGTHS=$peers/lens.json OPENBLAS_NUM_THREADS=1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
go test -c -o "$out/bench" .

ours() {
	GOMAXPROCS=1 "$out/bench" -test.run '^$' -test.bench 'MiniLM(Int8)?$/|Mix' -test.benchtime "${SECS}s" | grep ^Benchmark >>"$out/ours"
}
ours
bash "$peers/run.sh" >"$out/peers" || echo "a peer could not be run; its columns stay empty" >&2
ours
if [ "$(nproc)" -gt 1 ]; then
	GOMAXPROCS=2 "$out/bench" -test.run '^$' -test.bench Mix -test.benchtime "${SECS}s" | grep ^Benchmark >"$out/ours2"
	for process in 1 2; do
		for model in model.onnx model_int8.onnx; do
			node "$peers/ortbench.js" minilm "$model" 1 1 "$SECS" '[["mix1"]]' || true
		done >"$out/two$process" &
	done
	wait
fi
node peers/table.js "$out"
