#!/bin/sh
# Fuzzes one format with libFuzzer under ASan and UBSan (clang). Never part of `make test`, which
# re-runs the kept inputs instead (tests/unit/test_fuzz_corpus.c).
# Usage: tests/fuzz/run.sh gguf|session|cubin|container|decode|lines|rules [SECONDS]
# Inputs found on the way lie in build-fuzz/corpus/NAME, crashes in build-fuzz/crash-NAME-*.
set -eu
cd "$(dirname "$0")/../.."
name=$1 seconds=${2:-600} B=build-fuzz
command -v clang >/dev/null 2>&1 || { echo "no clang here: the fuzzers aren't built"; exit 3; }
san="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
make -s B=$B CC=clang WARN= OPT="-O1 -g" SAN="$san" $B/libbase.a $B/libsass_view.a $B/libsession.a \
    $B/libengine.a $B/libkernels.a $B/libcupti.a $B/libtestlib.a
libs=$(make -s --eval='print-libs:;@echo $(LIBS)' print-libs)
clang -g -O1 -I. -DFUZZ_RUN="fuzz_$name" -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -o "$B/fuzz_$name" tests/fuzz/driver.c -Wl,--start-group $B/lib*.a \
    -Wl,--end-group $libs -lcmocka -pthread
mkdir -p "$B/corpus/$name"
seeds="tests/fuzz/$name"
[ "$name" = gguf ] && seeds="$seeds tests/fixtures/gguf"
exec nice -n 19 "$B/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -malloc_limit_mb=768 -max_len=262144 -print_final_stats=1 -artifact_prefix="$B/crash-$name-" \
    "$B/corpus/$name" $seeds
