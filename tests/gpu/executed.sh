#!/bin/sh
# Executed counts on a GPU: every instruction of every row, their sums against the range pass, tokens as
# without, on a key in good time, and again after all other counters have had their turn.
# MODEL and SECONDS_ change the session (default synth:tiny, 6).
set -u
cd "$(dirname "$0")/../.."
bin=${B:-build}/sasstop model=${MODEL:-synth:tiny} seconds=${SECONDS_:-6}
passed=0 failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
check() { # check WHAT COMMAND...
    what=$1; shift
    if "$@"; then passed=$((passed + 1)); echo "ok   $what"; else failed=$((failed + 1)); echo "FAIL $what"; fi
}
if ! "${B:-build}/sasstop-engine" --doctor 2>/dev/null | grep -q '^  sassexec *ready'; then
    echo "skip executed counts: $("${B:-build}/sasstop-engine" --doctor 2>/dev/null | grep -m1 '^  sassexec')"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
"$bin" run --headless --model "$model" --backend cuda --executed all --seconds "$seconds" \
    --record "$tmp/all.sasstop" --report "$tmp/all.md" >"$tmp/out" 2>&1
"$bin" replay "$tmp/all.sasstop" --dump >"$tmp/all.txt"
rows=$(grep -ac '^EXECUTED ' "$tmp/all.txt")
equal=$(grep -c 'equal to the range pass' "$tmp/all.md") differs=$(grep -c 'differs from the range pass' "$tmp/all.md")
echo "     $rows rows; $equal equal to the range pass, $differs differ:"
grep -o 'differs from the range pass by [^;.]*[0-9]%' "$tmp/all.md" | sort | uniq -c
check "rows were counted" test "$rows" -ge 10
check "nearly all equal the range pass (a kernel may branch by its data)" test "$equal" -ge $((rows * 9 / 10))
check "no instruction without a count" sh -c "! grep -q 'not counted' '$tmp/all.md'"
check "the counted work made what it makes uncounted" \
    grep -aq '^TALLY .*name="sassexec".* output=1' "$tmp/all.txt"
check "no pass made other tokens" sh -c "! grep -aq 'made other tokens' '$tmp/all.txt'"

cat >"$tmp/keys" <<KEYS
wait wall clock
play $seconds
dump
key E
play 1
key p
play 3
key x
play 3
dump
key E
play 1
dump
KEYS
"$bin" run --model "$model" --backend cuda --script "$tmp/keys" --size 120x40 --record "$tmp/keys.sasstop" >"$tmp/screens" 2>&1
"$bin" replay "$tmp/keys.sasstop" --dump >"$tmp/keys.txt"
# Seconds from each E to its counts; a missing one is 9.
times=$(awk '{split($2, t, "=")} /^COMMAND .*verb="sassexec"/ {if (asked) print 9; asked = t[2]}
    /^EXECUTED / && asked {printf "%.3f\n", t[2] - asked; asked = 0} END {if (asked) print 9}' "$tmp/keys.txt" | tr '\n' ' ')
echo "     from key to counts: $times s"
check "on a key, twice, within a second" test "$(echo "$times" | awk '{print (NF == 2 && $1 < 1 && $2 < 1)}')" = 1
check "other counters go on after it" awk '/^EXECUTED /{e = 1} e && /^STALLS /{s = 1} e && /^WINDOW_END /{w = 1} END {exit !(s && w)}' "$tmp/keys.txt"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
