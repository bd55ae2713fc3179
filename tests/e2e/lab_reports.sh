#!/bin/sh
# Reports of experiments and sessions in every format, the bench table, comparisons, and an experiment that
# is started from the screen.
set -u
cd "$(dirname "$0")/../.."
root=$(pwd)
program=$root/${B:-build}/sasstop
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0
check() { # check WHAT STATUS-OF-A-TEST
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not held: $1"; fi
}
lab=$root/tests/fixtures/lab/r29_2blk.sasstop
synthetic=$root/tests/fixtures/synthetic.sasstop
walk=$root/tests/fixtures/h200_walk.sasstop
cd "$dir" || exit 1

for f in md json html csv perfetto sqlite; do
    "$program" report "$lab" --format $f >lab.$f && "$program" report "$synthetic" --format $f >synthetic.$f
    check "$f is written" $?
    "$program" report "$lab" --format $f -o again.$f && cmp -s lab.$f again.$f
    check "$f is the same again, and as a file" $?
    "$program" report "$lab" --format $f -o again.$f 2>err
    [ $? -eq 1 ]; check "$f is never written over another file" $?
done
"$program" report "$lab" --format pdf 2>err; [ $? -eq 2 ]; check "another format is refused" $?
grep -q 'LAND' lab.md && grep -q 'frozen before the first pair' lab.md; check "Markdown holds verdict and bar" $?
grep -q '<svg' lab.html && grep -q '<svg' synthetic.html; check "HTML has charts" $?
grep -qE '<script|https?:|<link|src=' lab.html; [ $? -ne 0 ]; check "and loads nothing" $?
[ "$(head -c 15 lab.sqlite)" = "SQLite format 3" ]; check "the database is one" $?

# What the documentation shows of experiments is what their recordings report; ACCEPT=1 writes it anew.
for f in "$root"/tests/fixtures/lab/*.sasstop; do
    name=$(basename "$f" .sasstop)
    [ "${ACCEPT:-0}" != 1 ] || "$program" report "$f" --format md >"$root/docs/lab/$name.md"
    "$program" report "$f" --format md | cmp -s - "$root/docs/lab/$name.md"
    check "docs/lab/$name.md is the report of its recording" $?
done

# A live session and its recording say the same.
"$program" run --backend cpu --model synth:tiny --threads 1 --bench pp8,tg2 --headless --seconds 1 \
    --record live.sasstop --report live.html >out 2>err
check "a live session reports in HTML" $?
"$program" report live.sasstop --format html -o replay.html && cmp -s live.html replay.html
check "and its recording gives the same bytes" $?

"$program" compare "$synthetic" "$synthetic" >same.txt 2>err
check "a recording can be compared with itself" $?
grep -q 'within the spreads' same.txt; check "and is within the spreads" $?
"$program" compare "$walk" "$walk" >same.txt 2>err && grep -q '^to_bf16 ffn_down' same.txt &&
    grep -q '^quantize_q8 ffn_down' same.txt && ! grep -q '^[a-z0-9_]*/' same.txt
check "two kernels of one role are each held against themselves" $?
"$program" compare "$synthetic" live.sasstop >out 2>err
[ $? -eq 1 ] && grep -q 'the device differs' err && grep -q 'the model differs' err
check "other devices and models are refused with the reasons" $?
"$program" compare "$synthetic" >out 2>err; [ $? -eq 2 ]; check "two recordings are needed" $?

"$program" bench --backend cpu --threads 1 --samples 2 --shapes pp8,tg2 --kd 8 >bench.txt 2>err
[ $? -eq 0 ] && [ "$(grep -c '_kd8' bench.txt)" -eq 2 ]; check "the table has a row a CPU variant" $?
"$program" bench --backend cpu --threads 1 --samples 2 --shapes pp8,tg2 --variants tiles --json >bench.json 2>err
[ "$(grep -c '"us":' bench.json)" -eq 2 ]; check "and is there as JSON" $?

cat >start.script <<'END'
wait synthetic tiny
wait decode
key a
key a
type >= +4
key Enter
key Enter
type tiles:8
key Enter
type tiles reuse what was unpacked
key Enter
key Enter
expect isn't understood
type % prefill
key S-Tab
key Enter
wait parity B
key Esc
wait stopped by its user
wait running
END
"$program" run --backend cpu --model synth:tiny --threads 1 --bench pp8,tg2 --variant rows --kd 8 \
    --record screen.sasstop --script start.script --size 100x30 >screen.txt 2>err
check "an experiment starts from the screen once its bar is understood, and stops by Esc" $?
"$program" replay screen.sasstop --dump >screen.dump 2>/dev/null
grep -q '^EXPERIMENT ' screen.dump && grep -q '^VERDICT ' screen.dump
check "its frames are in the session's recording" $?
grep -q 'verb="*resume' screen.dump; check "and the engine, which was paused, goes on" $?

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
