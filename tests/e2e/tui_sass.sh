#!/bin/sh
# Looking around in cubins as a new user would: kernels, listing, search, a jump followed and gone back from, the
# diff of two files, rules, out; the session behind it is gone afterwards. Pagers end the output quietly.
. "$(dirname "$0")/lib_tui.sh"
fixtures=$root/tests/fixtures/sass

start 120x40 "'$bin' sass --open '$fixtures/tiny_sm_80.cubin' '$fixtures/tiny_sm_90a.cubin'"
wait_for "tiny_kd4"
keys l
wait_for "hot loop"
keys /
keys -l "BRA"
wait_for "filter: BRA_"
keys Enter
wait_for "@P1 BRA"
keys Enter
wait_for "LDG.32"
keys Left j o s
wait_for "no line table"
keys l
wait_for "kernels"
keys d
wait_for "different"
keys m
wait_for "delta"
keys d X
wait_for "no rules beside"
keys q
wait_for "STATUS=0"
check "the terminal is as it was" cmp -s "$tmp/before" "$tmp/after"

quiet=$("$bin" sass --code "$fixtures/tiny_sm_90a.cubin" 2>&1 | head -1)
check "head ends the output quietly" [ "$quiet" = "frame  sm_90a" ]
"$bin" diff "$fixtures/tiny_sm_90a.cubin:tiny_kd4" "$fixtures/tiny_sm_90a.cubin" --same >/dev/null
check "a kernel is the same as itself" [ $? = 0 ]
"$bin" diff "$fixtures/tiny_sm_90a.cubin:tiny_kd4" "$fixtures/tiny_sm_90a.cubin:frame" --same >/dev/null
check "and not as another" [ $? = 1 ]
done_here
