#!/usr/bin/env bash
# Times a step of training beside PyTorch: the shape of MiniLM-L6, forward, backward, clipping and AdamW
# over all parameters, one core each, in turn, and prints a table with the memory of each process.
#
#   compare.sh [SECONDS]      for each case; 10 by default
#
# PYTHON is an interpreter that has torch, CASES other batches ("16 128,8 256": messages and tokens). On a busy machine believe the tokens per CPU second.
set -euo pipefail
seconds=${1:-10}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null || { echo "compare.sh: $python has no torch: set PYTHON to one that has" >&2; exit 1; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
(cd "$here/.." && go test -c -o "$out/bench" .)
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 GOMAXPROCS=1

# column FILE UNIT: the number before the unit
column() { awk -v unit="$2" '{for (i = 2; i <= NF; i++) if ($i == unit) printf "%.0f", $(i - 1)}' "$1"; }

echo '| batch | misroute: tokens/s | a CPU second | peak MB | PyTorch: tokens/s | a CPU second | peak MB | x | x by CPU |'
echo '|---|---|---|---|---|---|---|---|---|'
IFS=, read -ra cases <<<"${CASES:-16 128,8 256}"
for case in "${cases[@]}"; do
	set -- $case
	"$out/bench" -test.run '^$' -test.bench "^BenchmarkStep\$/^messages=$1\$/^tokens=$2\$" -test.benchtime "${seconds}s" | grep ^Benchmark >"$out/ours"
	OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-} "$python" "$here/torch_step.py" "$1" "$2" "$seconds" >"$out/torch"
	a=$(column "$out/ours" best-tokens/s) b=$(column "$out/torch" best-tokens/s)
	c=$(column "$out/ours" tokens/CPU-s) d=$(column "$out/torch" tokens/CPU-s)
	echo "| $1 x $2 | $a | $c | $(column "$out/ours" peak-MB) | $b | $d | $(column "$out/torch" peak-MB) | $(awk "BEGIN{printf \"%.2f\", $a/$b}") | $(awk "BEGIN{printf \"%.2f\", $c/$d}") |"
done
