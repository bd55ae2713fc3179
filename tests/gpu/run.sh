#!/bin/sh
# Runs every test that needs an NVIDIA GPU: the programs of tests/gpu/*.c, then its scripts. Ends with the
# closing line; without a GPU each says why it skips.
set -u
cd "$(dirname "$0")/../.."
export B="${B:-build}" LC_ALL=C.UTF-8 SASSTOP_TEST=1
passed=0 failed=0 skipped=0
one() {
    name=$1; shift
    echo "== $name"
    out=$("$@" 2>&1 </dev/null); rc=$?
    echo "$out"
    line=$(echo "$out" | grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' | tail -1)
    if [ -z "$line" ]; then failed=$((failed + 1)); echo "$name: no closing line (exit status $rc)"; return; fi
    set -- $(echo "$line" | tr -d ',')
    passed=$((passed + $1)) failed=$((failed + $3)) skipped=$((skipped + $5))
}
for t in tests/gpu/*.c; do n=$(basename "$t" .c); one "$n" "$B/gpu/$n"; done
for s in tests/gpu/*.sh; do
    case $s in */run.sh) continue ;; esac
    one "$(basename "$s" .sh)" sh "$s"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
