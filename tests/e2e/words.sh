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

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
