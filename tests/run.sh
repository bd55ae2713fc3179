#!/bin/sh
# Runs every test that this machine can run and ends with "N passed, N failed, N skipped".
# Suites: unit programs (cmocka, TAP), and scripts that end with that same line themselves.
# One suite: sh tests/run.sh NAME...   B=build-asan picks another build folder.
set -u
cd "$(dirname "$0")/.."
export B="${B:-build}" LC_ALL=C.UTF-8 CMOCKA_MESSAGE_OUTPUT=TAP SASSTOP_TEST=1
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}"
export LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0"
passed=0 failed=0 skipped=0 bad=""
log=$B/test-logs
mkdir -p "$log"

count() { # count NAME PASSED FAILED SKIPPED
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    printf '%-28s %5d passed %3d failed %3d skipped\n' "$1" "$2" "$3" "$4"
    if [ "$3" -gt 0 ]; then bad="$bad $1"; fi
}

run_unit() { # a program that prints TAP
    name=$(basename "$1")
    "$1" >"$log/$name" 2>&1 </dev/null
    rc=$?
    ok=$(grep '^ok ' "$log/$name" | grep -vci '# *skip')
    skip=$(grep -ci '^ok .*# *skip' "$log/$name")
    # cmocka writes a skipped test as "not ok N # SKIP NAME".
    skip=$((skip + $(grep -ci '^not ok .*# *skip' "$log/$name")))
    not=$(grep '^not ok ' "$log/$name" | grep -vci '# *skip')
    # A crash leaves no "not ok" line: it still counts as a failure.
    if [ $rc -ne 0 ] && [ "$not" -eq 0 ]; then not=1; echo "$name: exit status $rc"; fi
    if [ "$((ok + not + skip))" -eq 0 ]; then not=1; echo "$name: ran no test"; fi
    if [ "$not" -gt 0 ]; then grep -v '^ok ' "$log/$name" | tail -40; fi
    if [ "$skip" -gt 0 ]; then grep -iE '^(skip|no |[^ ]* (isn.t|is not) )' "$log/$name" | head -5; fi
    count "$name" "$ok" "$not" "$skip"
}

run_script() { # a program or script whose last such line is "N passed, N failed, N skipped"
    name=$1; shift
    "$@" >"$log/$name" 2>&1 </dev/null
    rc=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log/$name" | tail -1)
    if [ -z "$line" ]; then
        echo "$name: no closing line (exit status $rc)"; tail -40 "$log/$name"; count "$name" 0 1 0
        return
    fi
    set -- $(echo "$line" | tr -d ',')
    if [ "$3" -gt 0 ] || [ $rc -ne 0 ]; then tail -60 "$log/$name"; fi
    if [ $rc -ne 0 ] && [ "$3" -eq 0 ]; then set -- "$1" p 1 f "$5"; fi
    grep -i '^skip' "$log/$name"
    count "$name" "$1" "$3" "$5"
}

wanted() { # is this suite asked for? no argument = all
    [ -z "$only" ] && return 0
    case " $only " in *" $1 "*) return 0 ;; esac
    return 1
}

only="$*"
for t in tests/unit/test_*.c; do
    n=$(basename "$t" .c)
    if wanted "$n"; then run_unit "$B/unit/$n"; fi
done
for s in tests/house.sh tests/screens/run.sh tests/e2e/*.sh; do
    [ -f "$s" ] || continue
    case $s in */lib_*) continue ;; esac # read by the others
    n=$(echo "$s" | sed 's|^tests/||; s|/run.sh$||; s|\.sh$||; s|/|_|g')
    if wanted "$n"; then run_script "$n" sh "$s"; fi
done
for t in tests/gpu/*.c; do
    n=$(basename "$t" .c)
    if wanted "gpu_$n"; then run_script "gpu_$n" "$B/gpu/$n"; fi
done

[ -z "$bad" ] || echo "failed:$bad (logs in $log)"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
