#!/bin/sh
# Records a session of flips with nobody at the keys: every variant of the family that runs, at both
# depths, SECONDS each, with a stall window and an exact pass. What tests replay is made with it.
# Usage: record_session.sh OUT.sasstop [SECONDS] [run options...]      (default 9 s, --model synth:llama3-8b)
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { echo "usage: $0 OUT.sasstop [SECONDS] [run options...]" >&2; exit 2; }
out=$1 seconds=${2:-9}
shift
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- --model synth:llama3-8b
bin=${B:-build}/sasstop
script=$(mktemp)
trap 'rm -f "$script"' EXIT
{
    echo "wait wall clock"
    echo "wait  n " # the first timed round
    echo "play $seconds"
    g=2
    for key in v v v k v v v k; do
        printf 'key %s\nwait now    g%s \nplay %s\n' $key $g "$seconds"
        g=$((g + 1))
    done
    echo "key x"
    echo "play 3"
    for view in 1 2 3 4 5 7 8; do printf 'key %s\nsay ---- view %s\ndump\n' $view $view; done
    echo "key q"
} >"$script"
"$bin" run --headless --script "$script" --size 120x40 --record "$out" "$@"
ls -l "$out"
