#!/bin/sh
# Speed of the SASS reader, against nvdisasm on the same files where it is installed ($SASSTOP_NVDISASM, or
# the PATH). Usage: tests/bench/sass.sh [CUBIN...]   Without files: the test corpus and our kernels.
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build}
make -s B="$B" "$B/libsass_view.a" "$B/libbase.a" >/dev/null
mkdir -p "$B/bench"
cc -O2 -D_GNU_SOURCE -I. -o "$B/bench/sass" tests/bench/sass.c "$B/libsass_view.a" "$B/libbase.a" \
    -Wl,-Bstatic -lzstd -llz4 -lxxhash -lelf -lz -Wl,-Bdynamic -lm -pthread
[ $# -gt 0 ] || set -- $(ls build/sass_corpus/*.cubin build/cubin/*/*/*.cubin 2>/dev/null)
"$B/bench/sass" "$@" | tee "$B/bench/sass.out"
tool=${SASSTOP_NVDISASM:-$(command -v nvdisasm || true)}
[ -n "$tool" ] || { echo "nvdisasm isn't installed here: no ratio"; exit 0; }
"$tool" --version | tail -2 | head -1
# Processor time of the children so far, ns, into $spent. (In a subshell, times counts anew.)
count() {
    times >"$B/bench/times"
    spent=$(awk 'NR == 2 {for (i = 1; i <= 2; i++) {split($i, t, "m"); s += t[1] * 60 + t[2]} printf "%.0f\n", s * 1e9}' "$B/bench/times")
}
ratio() { # ratio FILE-OF-OURS NS
    awk -v ns="$2" '/MB of code/ {mb = $3} /^open\+census/ {ours = $2}
        END {v = mb * 1e9 / ns; printf "nvdisasm -c   %10.3f MB/s   ratio %.0f (open+census / nvdisasm)\n", v, ours / v}' "$1"
}
count; before=$spent
for f; do "$tool" -c "$f" >/dev/null; done
count; ratio "$B/bench/sass.out" $((spent - before))
# The largest file alone takes the start of the process out of the comparison.
big=$(ls -S "$@" | head -1)
"$B/bench/sass" "$big" >"$B/bench/sass.big"
count; before=$spent
"$tool" -c "$big" >/dev/null
echo "largest: $(basename "$big")"
count; ratio "$B/bench/sass.big" $((spent - before))
