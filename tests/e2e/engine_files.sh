#!/bin/sh
# The engine as a program by itself: frames into files and pipes, logits, the doctor, exit statuses.
set -u
cd "$(dirname "$0")/../.."
engine=${B:-build}/sasstop-engine
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
check() { # check WHAT STATUS-OF-A-TEST
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not held: $1"; fi
}
run() { "$engine" --backend cpu --threads 2 "$@"; }

run --fd 3 --rounds 2 --bench pp8,tg2 3>"$dir/frames"
check "a file takes the frames" $?
[ "$(wc -c <"$dir/frames")" -gt 5000 ]
check "and holds them" $?
grep -aq 'all rounds are done' "$dir/frames"
check "up to the engine's goodbye" $?

run --fd 1 2>"$dir/err" | head -c 1000 >"$dir/head"
[ "$(wc -c <"$dir/head")" -eq 1000 ]
check "a reader that leaves a pipe ends the engine" $?

run --rounds 1 2>"$dir/err"
[ $? -eq 2 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q -- --fd "$dir/err"
check "no --fd: one line and exit status 2" $?

run --fd 3 --model "$dir/none.gguf" 3>"$dir/frames2"
[ $? -eq 1 ] && grep -aq 'none.gguf' "$dir/frames2"
check "a model that isn't there: exit status 1, said as a frame" $?

run --fd 3 --prompt "hello" --logits "$dir/logits" 3>/dev/null
check "logits are written" $?
size=$(wc -c <"$dir/logits")
[ "$size" -gt 0 ] && [ $((size % (512 * 4))) -eq 0 ]
check "as whole rows of the vocabulary" $?
before=$(cksum <"$dir/logits")
run --fd 3 --prompt "hello" --logits "$dir/logits" 3>/dev/null 2>"$dir/err"
[ $? -eq 1 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q 'remove it' "$dir/err"
check "never over another file, said on stderr too" $?
[ "$(cksum <"$dir/logits")" = "$before" ]
check "which stays as it was" $?
run --prompt "hello" --logits "$dir/logits2" && cmp -s "$dir/logits" "$dir/logits2"
check "logits need no --fd" $?
run --fd 3 --variant nosuch --prompt "hello" --tokens 2 --rounds 1 3>"$dir/frames3" 2>"$dir/err"
[ $? -eq 2 ] && grep -q nosuch "$dir/err" && grep -aq nosuch "$dir/frames3"
check "frames into a file: what fails is on stderr too" $?

"$engine" --doctor --json >"$dir/doctor"
status=$?
[ $status -eq 0 ] || [ $status -eq 3 ]
check "the doctor ends with 0 or 3" $?
grep -q '"sources"' "$dir/doctor" && grep -q '"pm"' "$dir/doctor"
check "and names the sources" $?

"$engine" --help | grep -q -- '--script-fault'
[ $? -ne 0 ]
check "what is for tests is not offered" $?

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
