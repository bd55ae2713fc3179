#!/bin/sh
# The live loop: a save rebuilds, errors are shown, what changed in the code is told. With a stand-in for nvcc
# that hands out cubins that were built before.
set -u
cd "$(dirname "$0")/../.."
root=$(pwd)
program=$root/${B:-build}/sasstop
cubins=$root/${B:-build}/cubin
passed=0 failed=0 skipped=0
check() { # check WHAT STATUS-OF-A-TEST
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not held: $1"; fi
}
if [ ! -e "$cubins/sm_90a/q4k_gemm/nb.cubin" ]; then
    echo "skip: no cubins were built"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
dir=$(mktemp -d) || exit 1
pid=""
trap 'if [ -n "$pid" ]; then kill "$pid" 2>/dev/null; fi; rm -rf "$dir"' EXIT
mkdir -p "$dir/kernels/q4k_gemm"
cp "$root/kernels/q4k_gemm/nb.expect" "$dir/kernels/q4k_gemm/" 2>/dev/null
cat >"$dir/nvcc" <<END
#!/bin/sh
# The source names the cubin to hand out, or is in error.
for w; do last=\$w; if [ "\${prev:-}" = -o ]; then out=\$w; fi; prev=\$w; done
if grep -q error "\$last"; then echo "\$last(1): error: expected a ;"; exit 1; fi
cp "$cubins/sm_90a/q4k_gemm/nb.cubin" "\$out"
END
chmod +x "$dir/nvcc"
export NVCC="$dir/nvcc" SASSTOP_CUBINS="$cubins"
cd "$dir" || exit 1
src=kernels/q4k_gemm/nb.cu
echo "kernel" >$src

builds() { find /tmp -maxdepth 1 -name 'sasstop-watch-*' -newer "$dir/nvcc" | wc -l; }
"$program" watch nb:8 --once >once.txt 2>err
check "one build" $?
[ "$(builds)" -eq 0 ]; check "leaves no folder behind" $?
"$program" watch nb:8 --once --keep "$dir/kept" >kept.txt 2>err && cmp -s "$cubins/sm_90a/q4k_gemm/nb.cubin" kept/sm_90a/q4k_gemm/nb.cubin
check "unless it is named" $?
grep -q "cubins=$dir/kept" kept.txt; check "then the line that measures it names it" $?
grep -q 'identical bytes' once.txt; check "is held against the build before" $?
grep -q 'rules: [0-9]* held' once.txt; check "and against the rules beside the source" $?
echo "error" >$src
"$program" watch nb:8 --once >once.txt 2>err
[ $? -eq 1 ] && grep -q 'expected a ;' once.txt; check "errors of the compiler are shown, exit status 1" $?
"$program" watch none:8 --once 2>err; [ $? -eq 2 ]; check "no such source: usage" $?
"$program" watch "x';:8" --once 2>err; [ $? -eq 2 ]; check "nor one with a quote" $?

until_line() { # until_line PATTERN COUNT: the watcher has said it so often
    n=0
    while [ "$(grep -c "$1" watch.txt)" -lt "$2" ]; do
        n=$((n + 1))
        [ $n -lt 20000 ] && kill -0 "$pid" 2>/dev/null || return 1
    done
}
echo "kernel" >$src
: >watch.txt # until_line may look before the watcher opens it
"$program" watch nb:8 >watch.txt 2>err &
pid=$!
until_line '^watching' 1; check "it watches" $?
echo "error" >$src
until_line 'not built' 1; check "a save in error is told" $?
echo "kernel again" >$src
until_line 'built in' 2; check "and the next one is built" $?
echo "kernel" >other && mv other $src
until_line 'built in' 3; check "also when the editor renames" $?
kill -INT "$pid"; wait "$pid"; rc=$?; pid=""
[ $rc -eq 0 ]; check "Ctrl-C ends it" $?
[ "$(builds)" -eq 0 ]; check "and its folder goes" $?

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
