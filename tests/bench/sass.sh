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
start=$(date +%s%N)
for f; do "$tool" -c "$f" >/dev/null; done
end=$(date +%s%N)
awk -v ns=$((end - start)) '/MB of code/ {mb = $3} /^open\+census/ {ours = $2}
    END {v = mb * 1e9 / ns; printf "nvdisasm -c       %8.3f MB/s (a process a file)\nratio            %8.0f (open+census / nvdisasm)\n", v, ours / v}' "$B/bench/sass.out"
# A single large file takes the start of the process out of the comparison.
big=$(ls -S "$@" | head -1)
start=$(date +%s%N)
"$tool" -c "$big" >/dev/null
end=$(date +%s%N)
"$B/bench/sass" "$big" >"$B/bench/sass.big"
awk -v ns=$((end - start)) -v f="$(basename "$big")" '/MB of code/ {mb = $3} /^open\+census/ {ours = $2}
    END {v = mb * 1e9 / ns; printf "largest, %s: ours %.1f MB/s, nvdisasm %.3f MB/s, ratio %.0f\n", f, ours, v, ours / v}' "$B/bench/sass.big"
