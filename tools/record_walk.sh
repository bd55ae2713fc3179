#!/bin/sh
# Records a walk through the rungs of the ladder in the campaign's order with nobody at the keys: each
# variant SECONDS long, with a stall window and an exact pass of its own. Few tokens are decoded and
# counters take one turn a rung, which keeps the recording small. What tests replay as
# tests/fixtures/h200_walk.sasstop is made with it.
# Usage: record_walk.sh OUT.sasstop [SECONDS] [run options...]      (default 6 s, --model synth:llama3-8b)
# RUNGS="mmq_r1:8 narrow:8 ..." chooses others.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { echo "usage: $0 OUT.sasstop [SECONDS] [run options...]" >&2; exit 2; }
out=$1 seconds=${2:-6}
shift
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- --model synth:llama3-8b --bench pp512,tg4 --rest 100
rungs=${RUNGS:-mmq_r1:8 narrow_prefold:8 narrow:8 wide_lds:8 wide_prefold:8 wide:8 wide_32x64:8 wide_serial:8 wide_split:8
    nb_rolled:8 nb:8 nb_swar:8 nb_qmajor:8 nb_pad:8 nb_pad_a:8 hopper_sync:8 hopper_ring:8 hopper_pair:8 hopper_even:8 hopper_n256:8}
bin=${B:-build}/sasstop
script=$(mktemp)
trap 'rm -f "$script"' EXIT
g=0
for rung in $rungs; do
    g=$((g + 1))
    if [ $g = 1 ]; then
        first=${rung%:*} kd=${rung#*:}
        printf 'wait wall clock\nwait  n \n' # the first timed round
    else
        printf 'take %s\nwait now    g%s \n' "$rung" $g
    fi
    printf 'key p\nkey x\nplay %s\n' "$seconds"
done >"$script"
for view in 1 2 3 4 5 7 8; do printf 'key %s\nsay ---- view %s\ndump\n' $view $view; done >>"$script"
echo "key q" >>"$script"
"$bin" run --headless --script "$script" --size 120x40 --record "$out" --variant "$first" $([ "$kd" = 0 ] || echo "--kd $kd") "$@"
ls -l "$out"
