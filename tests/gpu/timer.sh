#!/bin/sh
# Rounds of a live session, timed in a process of their own, against an engine that never opened CUPTI:
# interleaved pairs, alternating in order, prefill and decode apart; the ratio of medians is held to 0.99.
# Beside them one run timed in the counted process, and one without the untimed token before each round.
# Then a session with keys, whose counters all have to come with that process there, and a kill.
# PAIRS (6), WORK, BENCH change it, PARTS="keys kill" runs those parts alone; RESULTS=DIR keeps the streams.
set -u
cd "$(dirname "$0")/../.."
B="${B:-build}" pairs=${PAIRS:-6} parts=${PARTS:-pairs keys kill}
work="--model ${WORK:-synth:llama3-8b} --bench ${BENCH:-pp512,tg32}"
passed=0 failed=0 start=$(date +%s)
skip() { echo "skip timed rounds: $1"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
ok() { passed=$((passed + 1)); echo "ok   $1"; }
bad() { failed=$((failed + 1)); echo "FAIL $1"; }
check() { what=$1; shift; if "$@"; then ok "$what"; else bad "$what"; fi; }
"$B/sasstop-engine" --doctor >/dev/null 2>&1 || skip "no GPU counters here (sasstop doctor says why)"
[ -x "$B/gpu/engine_compare" ] || skip "no $B/gpu/engine_compare (make gpu-tests)"
dir="${RESULTS:-$(mktemp -d)}"
[ -n "${RESULTS:-}" ] || trap 'rm -rf "$dir"' EXIT

engine() { # engine NAME ROUNDS OPTIONS...: its stream, and "prefill decode first timed place" into NAME.rates
    name=$1 rounds=$2; shift 2
    "$B/sasstop-engine" --fd 3 $work --rounds "$rounds" "$@" 3>"$dir/$name.frames" 2>"$dir/$name.err" ||
        echo "     $name: $(tail -1 "$dir/$name.err")"
    "$B/gpu/engine_compare" rates "$dir/$name.frames" 2 | awk '/^prefill/ {p = $2} /^decode/ {d = $2}
        /^first/ {gsub(",", ""); print p, d, $2, $5, $8}' >"$dir/$name.rates"
}
clean() { engine "$1" 7 --sources none; }
live() { n=$1; shift; engine "$n" 16 "$@"; }

children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
cpu() { awk '{print ($14 + $15) / 100}' "/proc/$1/stat" 2>/dev/null; }

# Ratios live to clean of pairs: median, interquartile range, range.
ratios() { # ratios FIELD
    i=0
    while [ $i -lt "$pairs" ]; do
        i=$((i + 1))
        paste -d' ' "$dir/live$i.rates" "$dir/clean$i.rates" | awk -v f="$1" '{print $f / $(f + 5)}'
    done | sort -n | awk '{v[NR] = $1} function q(p,   x, k) {x = 1 + p * (NR - 1); k = int(x);
        return k < NR ? v[k] + (x - k) * (v[k + 1] - v[k]) : v[NR]}
        END {printf "%.4f %.4f %.4f %.4f\n", q(0.5), q(0.75) - q(0.25), v[1], v[NR]}'
}

run_pairs() {
    i=0
    while [ $i -lt "$pairs" ]; do
        i=$((i + 1))
        if [ $((i % 2)) = 1 ]; then clean "clean$i"; live "live$i"; else live "live$i"; clean "clean$i"; fi
        echo "     pair $i: clean $(cat "$dir/clean$i.rates"); live $(cat "$dir/live$i.rates") ($(($(date +%s) - start)) s)"
    done
    live here --timer here
    SASSTOP_TIMER_COLD=1 live cold
    clean clean_last
    for n in here cold clean_last; do echo "     $n: $(cat "$dir/$n.rates")"; done
    for f in 1 2; do
        name=$([ $f = 1 ] && echo prefill || echo decode)
        r=$(ratios $f)
        echo "     $name, live to clean: median, IQR, least, most: $r"
        check "$name within 0.99 of an engine that never opened CUPTI" test "$(echo "$r" | awk '{print ($1 >= 0.99)}')" = 1
    done
    check "every live run was timed in a process of its own" test \
        "$(cat "$dir"/live[0-9]*.rates | awk '$5 != "own"' | wc -l)" -eq 0
    check "the run with --timer here says so" grep -q 'here$' "$dir/here.rates"
    check "no round made other tokens" sh -c "! grep -aq 'made other tokens' '$dir'/live*.frames"
    echo "     $(($(date +%s) - start)) s for pairs"
}

# A session with somebody at the keys; the flip is checked and primes PC sampling for seconds.
run_keys() {
    printf 'wait wall clock\nplay 3\nkey E\nplay 1.5\nkey v\nplay 5\nkey g\nplay 2.5\nkey x\nplay 4\nkey q\n' >"$dir/keys"
    "$B/sasstop" run $work --script "$dir/keys" --size 120x40 --record "$dir/keys.sasstop" >/dev/null 2>"$dir/keys.err" &
    pid=$! engine= timer= n=0
    while kill -0 $pid 2>/dev/null && [ $n -lt 400 ]; do
        n=$((n + 1))
        for c in $(children $pid); do engine=$c; done
        for c in ${engine:+$(children "$engine")}; do grep -qs timer-of "/proc/$c/cmdline" && timer=$c; done
        if [ $n = 60 ]; then
            echo "     GPU memory, MiB: $(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null)" \
                "of pids $engine $timer: $(nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader 2>/dev/null | tr '\n' ';')"
        fi
        e=$(cpu "$engine"); t=$(cpu "$timer")
        [ -n "$e" ] && cpu_engine=$e; [ -n "$t" ] && cpu_timer=$t
        sleep 0.1
    done
    wait $pid
    echo "     CPU seconds: engine ${cpu_engine:-?}, timing process ${cpu_timer:-?}, of $((n / 10)) s"
    "$B/sasstop" replay "$dir/keys.sasstop" --dump >"$dir/keys.txt" 2>/dev/null
    for f in SPAN_AGG PM_SAMPLES STALLS COUNTER EXECUTED; do
        check "$f came with it there ($(grep -ac "^$f " "$dir/keys.txt"))" grep -aq "^$f " "$dir/keys.txt"
    done
    check "a flip was taken" grep -aq '^GENERATION .*reason="flip"' "$dir/keys.txt"
    check "and its rounds were timed there" grep -aq '^ROUND .*generation=2 .*timed_in="own"' "$dir/keys.txt"
    check "nothing was timed elsewhere" sh -c "! grep -aq '^ROUND .*timed_in=\"[hcm]' '$dir/keys.txt'"
    check "no pass made other tokens" sh -c "! grep -aq 'made other tokens' '$dir/keys.txt'"
    grep -aE '^(FAULT|SOURCE .*name="timer"|LOG .*(level=[12]|after the key))' "$dir/keys.txt" | cut -c1-220 | head -8
}

# The engine is killed: its process goes too.
run_kill() {
    "$B/sasstop-engine" --fd 3 $work 3>"$dir/kill.frames" 2>/dev/null &
    engine=$! timer= n=0
    while [ -z "$timer" ] && [ $n -lt 100 ]; do
        n=$((n + 1)); sleep 0.1
        for c in $(children $engine); do grep -qs timer-of "/proc/$c/cmdline" && timer=$c; done
    done
    sleep 1
    kill -KILL $engine
    n=0
    while [ -n "$timer" ] && grep -qs timer-of "/proc/$timer/cmdline" && [ $n -lt 50 ]; do n=$((n + 1)); sleep 0.1; done
    check "a killed engine leaves no process behind" sh -c "[ -n '$timer' ] && ! grep -qs timer-of /proc/$timer/cmdline"
}
for part in $parts; do "run_$part"; done
echo "     $(($(date +%s) - start)) s in all"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
