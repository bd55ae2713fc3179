#!/bin/sh
# What the commands that need no terminal say: lists, listings, refusals and what they leave behind.
set -u
cd "$(dirname "$0")/../.."
sasstop=${B:-build}/sasstop
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0
check() { # check WHAT STATUS-OF-A-TEST
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not held: $1"; fi
}

nb=${B:-build}/cubin/sm_90a/q4k_gemm/nb.cubin
if [ -f "$nb" ]; then
    "$sasstop" variants >"$dir/out" && grep -q '^q4k_gemm *hopper_n256_kd8 *8 90a' "$dir/out"
    check "variants lists what an H200 can flip to, whichever other archs were built" $?
    mkdir "$dir/own"
    cp "$nb" "$dir/own/nb.cubin"
    "$sasstop" variants --variants "$dir/own" 2>&1 | grep -q "doesn't run here"
    [ $? -ne 0 ]
    check "a kernel of one's own isn't refused for a chip that nobody asked about" $?
else
    skipped=$((skipped + 2)) # no cubins here
fi

refused() { # refused STATUS WORDS COMMAND...: one line with these words, and that exit status
    want=$1 words=$2; shift 2
    "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq "$want" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q -- "$words" "$dir/err"
}
if [ -e /dev/nvidiactl ] || [ -e /dev/nvidia0 ]; then
    skipped=$((skipped + 1)) # a GPU is here
else
    refused 3 'no GPU here' env SASSTOP_KCHECK= "$sasstop" ab nb_rolled:8 nb:8 --control narrow:8 \
        --hypothesis h --claim "LDS.32 in loop 6 -> 16" --bar '>= +1.5%'
    check "docs/LAB.md's experiment without a GPU says that there is none" $?
fi

refused 2 'or .sqlite' "$sasstop" run --report "$dir/x.pdf"
check "a report of no known format is refused with those that are" $?
for ext in md json html csv perfetto sqlite; do
    "$sasstop" run --help | grep -q "\.$ext" && "$sasstop" report --format "$ext" tests/fixtures/synthetic.sasstop >/dev/null
    check "and the help names .$ext" $?
done

[ "$("$sasstop" doctor | grep -c '^CUPTI ')" -le 1 ]
check "the doctor has one line of CUPTI" $?
sed -n '/^kernel nb_kd8/,/^```/p' docs/SASS.md | sed -n 's/^\(code [0-9a-f]* CUDA [0-9.]*\).*/\1/p' >"$dir/codes"
[ -s "$dir/codes" ] && sed -n '/^kernel nb_kd8/,$p' kernels/q4k_gemm/nb.expect | grep -qFxf "$dir/codes"
check "docs/SASS.md's example of a rule has the code that nb.expect has" $?

library=$(ls /usr/local/cuda/lib64/libcufft.so.[0-9]* 2>/dev/null | head -1)
if [ -n "$library" ]; then
    for how in --census --code --json --csv; do
        refused 3 "^sasstop sass: $library: .*licence" "$sasstop" sass "$library" "$how"
        check "$how of a vendor's library is refused under the file's name" $?
    done
    refused 3 "^sasstop diff: $library: .*licence" "$sasstop" diff "$library" "$library"
    check "so is diff" $?
    "$sasstop" sass "$library" --parts >/dev/null
    check "its parts are shown" $?
else
    skipped=$((skipped + 6)) # no CUDA toolkit here
fi
root=$(pwd)
mkdir "$dir/export"
(cd "$dir/export" && case $sasstop in /*) ;; *) sasstop=$root/$sasstop ;; esac &&
    printf 'key e\n' | "$sasstop" replay "$root/tests/fixtures/synthetic.sasstop" --script - --size 80x24 >/dev/null)
[ -s "$dir/export/sasstop-synthetic-1.md" ]
check "what a replay exports is named after its file" $?
for litter in .sasstop-ledger.jsonl sasstop-synthetic-1.md; do
    if git rev-parse --git-dir >/dev/null 2>&1; then git check-ignore -q "$litter"; fi
    check "$litter isn't taken for a part of the project" $?
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
