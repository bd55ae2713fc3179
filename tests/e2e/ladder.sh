#!/bin/sh
# `sasstop ladder`: made-up measurements against the page that they should give, missing and damaged
# files, and docs/LADDER.md against docs/measurements/ladder.
set -u
cd "$(dirname "$0")/../.."
bin=${B:-build}/sasstop
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
check() { # check WHAT STATUS-OF-A-TEST
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not held: $1"; fi
}
"$bin" ladder tests/fixtures/ladder >"$tmp/got" 2>"$tmp/err"
diff -u tests/fixtures/ladder/expected.md "$tmp/got"
check "a page of figures, gains and reasons" $?
if [ -d docs/measurements/ladder ]; then
    "$bin" ladder docs/measurements/ladder | diff -u docs/LADDER.md - >"$tmp/diff"
    check "docs/LADDER.md is what its measurements give: $(head -20 "$tmp/diff")" $?
    [ "$(cat docs/measurements/ladder/* | wc -c)" -lt 300000 ]
    check "which are small" $?
else
    skipped=1
    echo "SKIP docs/LADDER.md: docs/measurements/ladder isn't there (tests/gpu/ladder.sh measures it)"
fi

"$bin" ladder /no/such/folder >"$tmp/got" 2>"$tmp/err"
[ $? -eq 1 ] && [ ! -s "$tmp/got" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q launches.csv "$tmp/err"
check "no folder: one line, exit status 1" $?
"$bin" ladder >"$tmp/got" 2>"$tmp/err"
[ $? -eq 2 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ]
check "no argument: one line, exit status 2" $?
mkdir "$tmp/few" && cp tests/fixtures/ladder/launches.csv "$tmp/few"
"$bin" ladder "$tmp/few" >"$tmp/got" 2>"$tmp/err"
[ $? -eq 0 ] && grep -q '| `nb` | 8 | q8 | r29 | 128 | 43008 | 2 | - | - | - |' "$tmp/got"
check "what wasn't measured is a dash" $?

# Every file cut at several places: a page or one line of complaint, no fault.
bad=0
for f in tests/fixtures/ladder/*.csv; do
    rm -rf "$tmp/cut" && cp -r tests/fixtures/ladder "$tmp/cut"
    for at in 0 1 7 40 101 333; do
        head -c $at "$f" >"$tmp/cut/$(basename "$f")"
        "$bin" ladder "$tmp/cut" >/dev/null 2>"$tmp/err" || { [ $? -eq 1 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ]; } || bad=$((bad + 1))
    done
done
check "cut files" $bad
{ printf 'kernel'; for i in $(seq 200); do printf ',c%s' "$i"; done; echo; } >"$tmp/cut/launches.csv"
"$bin" ladder "$tmp/cut" >/dev/null 2>"$tmp/err"
[ $? -eq 1 ] && grep -q columns "$tmp/err"
check "too many columns are refused" $?

# changed SED: the folder again, its launches changed; afterwards $? is the exit status, got and err lie there.
changed() {
    rm -rf "$tmp/cut" && cp -r tests/fixtures/ladder "$tmp/cut"
    sed "$1" tests/fixtures/ladder/launches.csv >"$tmp/cut/launches.csv"
    "$bin" ladder "$tmp/cut" >"$tmp/got" 2>"$tmp/err"
}
refused() { [ "$1" -eq 1 ] && [ ! -s "$tmp/got" ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q "$2" "$tmp/err"; }
changed '1s/rung/rang/'
refused $? 'no rungs.*rung'
check "a heading that is missing is named" $?
changed '1,$d'
refused $? 'no rungs'
check "an empty file is no ladder" $?
changed '2,$d'
refused $? 'no rungs'
check "nor is a heading alone" $?
changed 's/nb,8/n|b,8/'
[ $? -eq 0 ] && grep -qF '| `n\|b` | 8 |' "$tmp/got"
check "a bar in a name ends no cell" $?
changed "s/nb,8/n$(printf '\033')[31mb,8/"
[ $? -eq 0 ] && grep -qF '| `n[31mb` | 8 |' "$tmp/got"
check "and an escape reaches no terminal" $?
sed 's/,503.404,/,0,/' tests/fixtures/ladder/bench.csv >"$tmp/cut/bench.csv"
"$bin" ladder "$tmp/cut" >"$tmp/got" 2>"$tmp/err" && ! grep -qE 'inf|nan' "$tmp/got"
check "a time of zero gives no gain" $?
# Line ends of other systems, more of them than ours: every cell has room.
printf 'kernel,a,b\rx,1,2\rx,1,2\rx,1,2\rx,1,2\rx,1,2\rx,1,2\n' >"$tmp/cut/sass.csv"
"$bin" ladder "$tmp/cut" >"$tmp/got" 2>"$tmp/err"
check "lines that end in a carriage return" $?
{ head -1 tests/fixtures/ladder/launches.csv
  awk 'BEGIN {for (i = 1; i <= 1500; i++) print "k" i ",q4k_gemm,x" i ",8,,q8,,x" (i * 7) % 1500 ",,1,1,1,1,1,1,1,1,"}'
} >"$tmp/cut/launches.csv"
timeout 20 "$bin" ladder "$tmp/cut" >"$tmp/got" 2>"$tmp/err"
check "many rungs without a step are put in order in time" $?
seq -f 'k%.0f' 3000 >"$tmp/cut/launches.csv"
"$bin" ladder "$tmp/cut" >"$tmp/got" 2>"$tmp/err"
refused $? 'more than'
check "too many lines are refused" $?
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
