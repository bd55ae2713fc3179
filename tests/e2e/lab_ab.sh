#!/bin/sh
# Experiments from the command line: verdicts, gates, the ledger, kills; with a stand-in for kcheck
# and with the CPU engine.
set -u
cd "$(dirname "$0")/../.."
root=$(pwd)
program=$root/${B:-build}/sasstop
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export SASSTOP_KCHECK="$root/tests/e2e/lib_kcheck.sh" FAKE_DIR="$dir"
passed=0 failed=0 skipped=0
check() { # check WHAT STATUS-OF-A-TEST
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not held: $1"; fi
}
cd "$dir" || exit 1
ab() { # ab NAME A B [OPTIONS]: experiment with its recording and output under NAME
    name=$1; shift
    rm -f "$dir/count"
    "$program" ab "$@" --hypothesis "as the test says" --workload kernel --record "$name.sasstop" \
        --counters none >"$name.out" 2>"$name.err"
}
says() { grep -q -- "$2" "$1"; }

FAKE_US="nb_rolled_kd8=104 nb_kd8=100"; export FAKE_US
ab land nb_rolled:8 nb:8 --claim none --bar '>= +2%'
check "a gain of 4 % over a bar of 2 %: exit status 0" $?
says land.out '^LAND:'; check "is a LAND" $?
says land.out 'warmed .*+[34]\.[0-9]* %'; check "with its gain" $?
says land.out 'un-warmed'; check "un-warmed too" $?
says land.out 'in SM cycles'; check "and in cycles" $?
says land.err 'gate parity A  *ok'; check "parity is held first" $?
says land.err 'pairs 20 of 20'; check "progress is told" $?
"$program" replay land.sasstop --dump >land.dump 2>&1
[ "$(grep -c '^PAIR ' land.dump)" -eq 30 ]; check "20 pairs and 10 of A against A are in the recording" $?
[ "$(grep -n '^EXPERIMENT ' land.dump | cut -d: -f1)" -lt "$(grep -n '^PAIR ' land.dump | head -1 | cut -d: -f1)" ]
check "the bar before the first of them" $?
[ "$(grep 'kind="*AB' land.dump | grep -c 'swapped=1')" -eq 10 ]; check "half of A/B in the other order" $?

ab miss nb_rolled:8 nb:8 --claim none --bar '>= +6%' --strict
[ $? -eq 1 ] && says miss.out '^REVERT:'; check "below the bar: REVERT, and 1 with --strict" $?
ab miss2 nb_rolled:8 nb:8 --claim none --bar '>= +6%' --quiet
check "and 0 without" $?
ab noise nb:8 nb:8 --claim none --bar '>= +1%'
check "A against itself runs without being forced" $?
says noise.out '^NOISE:'; check "and is NOISE" $?
says noise.err 'A against itself'; check "and is named so" $?
ab control nb_rolled:8 nb:8 --claim none --bar '>= +2%' --control narrow:8
says control.out 'third kernel'; check "a third kernel is timed beside both" $?

FAKE_US="nb_rolled_kd8=104 nb_kd8=100" FAKE_MHZ="nb_rolled_kd8=1700 nb_kd8=1730" \
    ab clock nb_rolled:8 nb:8 --claim none --bar '>= +2%'
[ $? -eq 1 ] && says clock.out '^INVALID' && says clock.out 'clock'
check "time and cycles that disagree: INVALID, exit status 1" $?
FAKE_MHZ="nb_rolled_kd8=1700 nb_kd8=1400" ab dropped nb_rolled:8 nb:8 --claim none --bar '>= +2%'
says dropped.out 'INVALID' && says dropped.out 'left out'
check "pairs at different clocks are left out and counted" $?
FAKE_PARITY=nb_kd8 ab parity nb_rolled:8 nb:8 --claim none --bar '>= +2%'
[ $? -eq 1 ] && says parity.out 'INVALID' && says parity.out 'row 3 is off'
check "failed parity stops the run" $?
grep -q '^pairs' parity.err; [ $? -ne 0 ]; check "before anything is measured" $?
FAKE_PARITY=nb_kd8 ab forced nb_rolled:8 nb:8 --claim none --bar '>= +2%' --force-gates
says forced.err 'parity B  *forced' && says forced.out '^LAND'
check "a forced gate is marked and measured" $?
FAKE_DIE=40 ab die nb_rolled:8 nb:8 --claim none --bar '>= +2%'
[ $? -eq 1 ] && says die.out '^INVALID' && says die.out 'a side failed'
check "a side that dies: INVALID" $?
"$program" replay die.sasstop --dump 2>/dev/null | grep -q '^PAIR '
check "with the pairs before it" $?

# What the machine code is claimed to be, where cubins were built.
if ls "$root/${B:-build}"/cubin/*/q4k_gemm/nb.cubin >/dev/null 2>&1; then
    ab claim nb_rolled:8 nb:8 --claim 'LDS.32 in loop 1000 -> 16' --bar '>= +2%'
    says claim.err 'claim A  *unmet'; check "a claim is held against the incumbent first" $?
    says claim.err 'claim B'; check "then against B" $?
    says claim.out '^LAND'; check "and a prediction replaces no measurement" $?
    says claim.out 'int per tensor instr'; check "the census of both is in the figures" $?
else
    echo "skip: no cubins were built"; skipped=$((skipped + 4))
fi

# Killed in the middle: the recording holds the finished pairs, the ledger an open entry.
rm -f count
"$program" ab nb_rolled:8 nb:8 --hypothesis x --workload kernel --claim none --bar '>= +2%' \
    --pairs 400 --record kill.sasstop --counters none --ledger kill.jsonl >kill.out 2>kill.err &
pid=$!
while kill -0 $pid 2>/dev/null && ! "$program" replay kill.sasstop --dump 2>/dev/null | grep -q '^PAIR '; do :; done
kill -9 $pid
wait $pid 2>/dev/null
n=$("$program" replay kill.sasstop --dump 2>/dev/null | grep -c '^PAIR ')
[ "$n" -gt 0 ]; check "killed: the recording holds $n finished pairs" $?
"$program" ledger --ledger kill.jsonl | grep -q '1 .* open '; check "and the ledger says open" $?
"$program" ab nb_rolled:8 nb:8 --hypothesis x --workload kernel --claim none --bar '>= +3%' --pairs 400 \
    --resume kill.sasstop --record other.sasstop --counters none >other.out 2>other.err
[ $? -eq 2 ] && grep -q 'the bar was' other.err && [ ! -e other.sasstop ]
check "another bar doesn't go on with it" $?
"$program" ab nb_rolled:8 nb:8 --hypothesis x --workload kernel --claim none --bar '>= +2%' --pairs 8 \
    --record short.sasstop --counters none --ledger short.jsonl >short.out 2>short.err
"$program" ab nb_rolled:8 nb:8 --hypothesis x --workload kernel --claim none --bar '>= +2%' --pairs 8 \
    --resume short.sasstop --record other.sasstop --counters none >other.out 2>other.err
[ $? -eq 2 ] && grep -q 'has its verdict' other.err; check "nor does one that has its verdict" $?
"$program" cut short.sasstop --from 0 --to "$("$program" replay short.sasstop --dump | grep '^PAIR ' | sed -n 5p | sed 's/.* t=\([0-9.]*\).*/\1/')" \
    -o half.sasstop 2>cut.err
"$program" ab nb_rolled:8 nb:8 --hypothesis x --workload kernel --claim none --bar '>= +2%' --pairs 8 \
    --resume half.sasstop --record whole.sasstop --counters none --ledger short.jsonl >whole.out 2>whole.err
grep -q '^LAND' whole.out; check "the same experiment does, up to its verdict" $?
[ "$("$program" replay whole.sasstop --dump | grep -c 'kind="*AB')" -eq 8 ]
check "with as many pairs as were frozen" $?
"$program" ledger close 1 --ledger kill.jsonl && "$program" ledger --ledger kill.jsonl | grep -q INVALID
check "which can be closed as INVALID" $?

[ "$("$program" ledger --json | grep -c '"verdict"')" -eq "$(ls ./*.sasstop | grep -vcE 'kill|short|half|whole')" ]
check "every experiment is in the ledger" $?
"$program" ledger --verdict NOISE | grep -q 'nb:8 against nb:8'; check "it can be filtered" $?
"$program" ledger show 1 | grep -q '^claim  *none'; check "and shown" $?
[ "$("$program" ledger show 3 | grep -cE '^command .*(--quiet|--frames-fd|--number)')" -eq 0 ] &&
    "$program" ledger show 3 | grep -q '^command .*--bar'
check "with its command, less what only a screen's child is told" $?
"$program" ledger check >check.out; says check.out 'retry conditions met'; check "and checked" $?
"$program" ledger rerun 1 >rerun.out 2>/dev/null; says rerun.out '^LAND'; check "and run again" $?
"$program" ab nb_rolled:8 nb:8 --hypothesis x --workload kernel --claim none --bar '>= +2%' --quiet \
    --record json.sasstop --counters none --json >json.out 2>json.err
python3 -c 'import json; o = json.load(open("json.out")); assert len(o["samples"]) == 30 and o["verdict"] == "LAND"' 2>/dev/null ||
    { grep -q '"verdict":	*"LAND"' json.out && [ "$(grep -c '"a_us"' json.out)" -eq 30 ]; }
check "JSON holds every sample" $?
[ ! -s json.err ]; check "and --quiet is quiet" $?

for words in "nb:8" "nb:8 nb" "nb:8 nb:8 --bar 4" "nb:8 nb:8 --pairs 3" "nb:8 nb:8 --claim what"; do
    # shellcheck disable=SC2086
    "$program" ab $words --hypothesis x --record usage.sasstop >usage.out 2>usage.err
    [ $? -eq 2 ] && [ "$(wc -l <usage.err)" -eq 1 ] && [ ! -e usage.sasstop ]
    check "'$words' is refused in one line, with no recording" $?
done

# The CPU engine, whole: what the machine answers is its own affair, but it has to be a verdict.
env -u SASSTOP_KCHECK "$program" ab rows:8 tiles:8 --hypothesis "tiles reuse what was unpacked" --claim none \
    --bar '>= +4% prefill' --pairs 8 --model synth:tiny --threads 1 --bench pp16,tg4 \
    --record cpu.sasstop >cpu.out 2>cpu.err
[ $? -le 1 ] && grep -qE '^(LAND|REVERT|NOISE|INVALID)' cpu.out
check "rows against tiles on the CPU end in a verdict" $?
"$program" ledger show "$("$program" ledger | sed -n '$s/^ *\([0-9]*\) .*/\1/p')" | grep -q '^code  *not known$'
check "code that isn't known is said so, not as zeros" $?
says cpu.out 'the other phase'; check "with the other phase beside it" $?
says cpu.err 'parity B  *ok'; check "after parity in the engine" $?

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
