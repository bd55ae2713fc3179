#!/bin/sh
# Traps that need a GPU and other tools (docs/TRAPS.md): under other profilers the engine stays passive and ends;
# with --sources none a process has no libcupti in it; short programs lose no tail; leaving under load is quiet.
# Ends with the closing line.
set -u
cd "$(dirname "$0")/../.."
B="${B:-build}"
passed=0 failed=0 skipped=0
check() { # check WHAT STATUS-OF-A-TEST
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); echo "ok   $1"
    else failed=$((failed + 1)); echo "FAIL $1"; [ -s "$dir/out" ] && tail -3 "$dir/out"; fi
}
skip() { skipped=$((skipped + 1)); echo "skip $1"; }
done_() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" -eq 0 ]; exit; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$B/sasstop-engine" --doctor >"$dir/doctor" 2>&1
grep -q '^device ' "$dir/doctor" || { skip "traps: no GPU here"; done_; }
tool() { command -v "$1" 2>/dev/null || ls /usr/local/cuda*/bin/"$1" 2>/dev/null | head -1; }
work="--fd 1 --model synth:tiny --backend cuda --bench pp64,tg4"

# Other holders of CUPTI: 39 or 26 become words; the engine runs on and ends.
ncu=$(tool ncu) nsys=$(tool nsys) sanitizer=$(tool compute-sanitizer)
under() { # under NAME PROGRAM ARGUMENTS...
    name=$1; shift
    if [ -z "$1" ]; then skip "under $name: not installed"; return; fi
    timeout 100 "$@" "$B/sasstop-engine" $work --rounds 2 >"$dir/frames" 2>"$dir/out"
    check "under $name the engine runs and ends" $?
    timeout 100 "$@" "$B/sasstop-engine" --doctor >"$dir/out" 2>&1
    rc=$?
    [ $rc -eq 0 ] || [ $rc -eq 3 ]; check "under $name the doctor answers (status $rc)" $?
    grep -qE 'another (profiler|tool)|ready' "$dir/out"; check "and says what is held, or what works" $?
}
under ncu "$ncu" --kernel-name nothing_is_called_so --metrics sm__cycles_active.avg
under compute-sanitizer "$sanitizer" --tool memcheck
under nsys "$nsys" profile --force-overwrite true -o "$dir/nsys"

# A process that must be clean is one: no libcupti among its maps, also with injection asked for elsewhere.
"$B/sasstop-engine" $work --sources none --rounds 400 >/dev/null 2>&1 &
pid=$!
seen=
for _ in $(seq 200); do
    [ -r "/proc/$pid/maps" ] || break
    grep -q libcuda "/proc/$pid/maps" && seen=1
    if grep -q libcupti "/proc/$pid/maps"; then seen=cupti; break; fi
    sleep 0.05
    [ -n "$seen" ] && [ "$(cut -d' ' -f1 "/proc/$pid/task/$pid/schedstat" 2>/dev/null || echo 0)" -gt 1000000000 ] && break
done
kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null
[ "$seen" = 1 ]; check "with --sources none no libcupti is loaded" $?

# Short programs: the last window's spans are all there.
"$B/gpu/million" --launches 2000 >"$dir/out" 2>&1; check "a short program loses no tail" $?
"$B/gpu/million" --launches 300000 --pool 8 >"$dir/out" 2>&1; check "a small pool of CUPTI's own: the accounts add up" $?
sed -n 's/^     /     /p' "$dir/out"

# Leaving: TERM in the middle of counted rounds, five times over.
for n in 1 2 3 4 5; do
    timeout 60 "$B/sasstop-engine" --fd 1 --model synth:tiny --backend cuda --bench pp64,tg64 --schedule 1:1 >"$dir/frames" 2>"$dir/out" &
    pid=$!
    for _ in $(seq 400); do [ "$(stat -c %s "$dir/frames" 2>/dev/null || echo 0)" -gt $((150000 + n * 20000)) ] && break; sleep 0.05; done
    kill -TERM "$pid" 2>/dev/null
    wait "$pid"; rc=$?
    [ $rc -eq 0 ]; check "TERM in counted rounds, $n of 5 (status $rc)" $?
done
done_
