#!/bin/sh
# Timed rounds in a process of their own, as a screen meets them: a hang there is the engine's hang, a process
# that is killed costs nobody a round, a fault there restarts the engine with the variant before, and no process is
# left behind by any of it.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$root/${B:-build}/sasstop
passed=0 failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
SASSTOP_TEST=1
export SASSTOP_TEST
check() { # check WHAT COMMAND...
    what=$1; shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $what"; fi
}
session() { # session NAME SECONDS OPTIONS...: its frames, as text, into NAME
    name=$1 seconds=$2; shift 2
    "$bin" run --headless --model synth:tiny --backend cpu --threads 1 --bench pp17,tg5 --timer own \
        --seconds "$seconds" --record "$tmp/$name.sasstop" --report "$tmp/$name.md" "$@" >"$tmp/$name.out" 2>&1
    "$bin" replay "$tmp/$name.sasstop" --dump >"$tmp/$name"
}
has() { grep -aq "$1" "$tmp/$name"; }
hasnt() { ! grep -aq "$1" "$tmp/$name"; }
# Processes for timed rounds of our work, which no other test has.
left() {
    for d in /proc/[0-9]*; do
        { tr '\0' ' ' <"$d/cmdline"; } 2>/dev/null | grep -q -- '--timer-of .*pp17,tg5' && echo "${d#/proc/}"
    done
}
none_left() {
    i=0
    while [ -n "$(left)" ] && [ $i -lt 50 ]; do i=$((i + 1)); sleep 0.1; done
    [ -z "$(left)" ]
}

session plain 2
check "rounds are timed in a process of their own" has '^ROUND .*counted=0 .*timed_in="own"'
check "none is timed elsewhere" hasnt 'timed_in="[hcm]'
check "the summary says so" grep -q 'timed in a process of its own that never opened CUPTI' "$tmp/plain.out"
check "the report says so" grep -q 'own process' "$tmp/plain.md"
"$bin" report "$tmp/plain.sasstop" >"$tmp/again.md" 2>/dev/null
check "the recording's report says so" grep -q 'own process' "$tmp/again.md"
check "a session leaves no process" none_left

# Whether a round was timed there after the new process came; a slow machine gets longer for it.
goes_on() { awk '/^LOG .*started once more/ {new = 1} new && /^ROUND .*timed_in="own"/ {ok = 1} END {exit !ok}' "$tmp/kill"; }
for seconds in 2 10 40; do
    rm -f "$tmp"/kill*
    session kill $seconds --script-fault timer:kill@prefill:3
    goes_on && break
done
check "a killed process is started once more" has 'started once more'
check "that is no fault of the engine" hasnt '^FAULT'
check "its rounds go on there" goes_on
check "in the same generation" hasnt '^GENERATION .*generation=2'
check "a killed one leaves no process" none_left

session fault 3 --script-fault timer:fault@variant:rows --variant rows
check "a fault there is the engine's, of the variant" has '^FAULT .*kind="illegal access" .*variant="rows" .*blames=1'
check "the engine goes on with another" has '^GENERATION .*generation=2 .*reason="restart"'
check "timed there again" has '^ROUND .*generation=2 .*timed_in="own"'
check "a fault leaves no process" none_left

session hang 10 --script-fault timer:hang@prefill:4
check "a hang there is seen and ended" has '^FAULT .*kind="hang"'
check "the engine is started again" has '^GENERATION .*reason="restart"'
check "and times there again" has '^ROUND .*generation=2 .*timed_in="own"'
check "a hang leaves no process" none_left
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
