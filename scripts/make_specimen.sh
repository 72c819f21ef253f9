#!/bin/sh
# Makes smmd_bench/conformance/specimen.tar.xz, the runs that `smmd-bench validate` tries reports on:
# a miniature run of every task, and a measurement of overhead. Some ten minutes on two cores.
# FOLDER/data/mmlu/cais/mmlu has MMLU's questions, or some in its layout (tests/regression).
#
#     sh scripts/make_specimen.sh FOLDER
set -e
bench="$(dirname "$0")/../.venv/bin/smmd-bench"
bench="$(cd "$(dirname "$bench")" && pwd)/smmd-bench"
packed="$(cd "$(dirname "$0")/.." && pwd)/smmd_bench/conformance/specimen.tar.xz"
cd "$1"
small="--train-examples 32 --validation-examples 8 --test-examples 16 --epochs 1 --engine transformers"
run() { "$bench" train-eval -q --out run --extend $small "$@"; }
run --task gsm8k --losses ce,smmd --no-transfers
"$bench" regress run --suite mmlu --limit 1 --engine transformers --data-dir data
run --task arithmetic --losses ce,ntl,smmd --seeds 0,1
run --task arithmetic --losses "ce,ntl,smmd,smmd[term=mmd],smmd[term=smooth],smmd[kernel=random,term=mmd],smmd[kernel=shuffled,term=mmd],smmd[sigma=1],smmd[sigma=4],smmd[sigma=1+2+3],smmd[lambda=1],ntl[lambda=1]"
run --task 'clock_time[source=synthetic]' --losses ce,smmd
run --task 'chartqa[source=synthetic,charts=plain]' --losses ce,smmd
run --task 'samsum[source=synthetic]' --losses ce,smmd
"$bench" overhead --out overhead --geometry tiny --losses smmd --steps 4 --repeats 1 \
  --batch-size 2 --length 16
rm -rf run/reports run/logs run/train/*/epochs run/select/*/weights overhead/reports overhead/logs
tar --sort=name --mtime=2026-01-02 --owner=0 --group=0 --numeric-owner \
  --exclude=.lock -c run overhead | xz -9e > "$packed"
ls -l "$packed"
