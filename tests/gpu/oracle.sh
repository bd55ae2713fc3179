#!/bin/sh
# The same launches of at least twelve kernels by this project's sources and by Nsight Compute: build/gpu/oracle
# runs both, with a flush of the L2 before each launch that is compared. ncu replays the whole application for each
# of its passes: its replay of single kernels saves and restores memory between them, so that some of its passes find
# other caches than others, and than ours (docs/MEASUREMENTS.md). It flushes no cache and sets no clock itself.
# What differs is measured by ncu once more: a difference counts if both runs show it. Prints a table in Markdown, then
# the closing line; ends within three and a half minutes. RESULTS=DIR keeps the files.
set -u
cd "$(dirname "$0")/../.."
B="${B:-build}"
begun=$(date +%s)
done_() { echo "$1 passed, $2 failed, $3 skipped"; [ "$2" -eq 0 ]; exit; }
skip() { echo "skip oracle: $1"; done_ 0 0 1; }
command -v python3 >/dev/null || skip "no python3 to read the reports"
NCU="${NCU:-$(command -v ncu || ls /usr/local/cuda*/bin/ncu 2>/dev/null | head -1)}"
[ -n "$NCU" ] || skip "no ncu; set NCU to the program"
"$B/sasstop-engine" --doctor >/dev/null 2>&1 || skip "no GPU counters here (sasstop doctor says why)"
[ -f "$B/gpu/oracle.sm_90a.cubin" ] || skip "no $B/gpu/oracle.sm_90a.cubin (make gpu-tests, with nvcc)"
dir="${RESULTS:-$(mktemp -d)}"
mkdir -p "$dir" || exit 1
[ -n "${RESULTS:-}" ] || trap 'rm -rf "$dir"' EXIT
left() { # left KEPT: seconds that a step may take; never 0, which timeout takes for no limit
    s=$((210 - $1 - ($(date +%s) - begun)))
    echo $((s > 0 ? s : 1))
}

# Some kernels' figures hang on where their data lies, so each process puts it elsewhere.
owns= n=0
for at in 0 30 514 4098; do
    n=$((n + 1))
    timeout 40 "$B/gpu/oracle" --own "$dir/own$n.tsv" $at 2>"$dir/own.err" ||
        { echo "FAIL our side (status $?): $(tail -1 "$dir/own.err")"; done_ 0 1 0; }
    owns=${owns:+$owns,}$dir/own$n.tsv
done
sed -n 's/^oracle: /  /p' "$dir/own.err"
echo "  ours: $(($(date +%s) - begun)) s"

profile() { # profile SECONDS CSV METRICS [PLAIN]: the status of ncu
    timeout "$1" "$NCU" --replay-mode application --profile-from-start off --clock-control none --cache-control none \
        --csv --page raw --print-units base --log-file "$2" --metrics "$3" \
        "$B/gpu/oracle" --plain "${4:-$dir/plain.tsv}" >/dev/null 2>"$2.err"
}
ncu_failed() { echo "FAIL ncu (status $1): $(tail -1 "$dir/ncu.csv.err") $(grep -m1 -h ERROR "$dir/ncu.csv")"; done_ 0 1 0; }
metrics=$(python3 tests/gpu/oracle.py --metrics "$dir/own1.tsv")
t0=$(date +%s)
profile "$(left 60)" "$dir/ncu.csv" "$metrics"
rc=$?
if [ $rc -ne 0 ] && [ $rc -ne 124 ]; then
    # A name that this ncu doesn't have ends its run: those that every one has, then.
    echo "  ncu refused the whole list ($(grep -m1 -h ERROR "$dir/ncu.csv" "$dir/ncu.csv.err")); the short one is tried"
    metrics=$(echo "$metrics" | tr ',' '\n' | grep -E '^(launch__|smsp__inst_executed\.sum|gpc__cycles|sm__cycles_active\.avg$|gpu__time|sm__throughput|dram__bytes_|dram__throughput|sm__warps_active|sm__pipe_tensor|smsp__average_warps_issue_stalled_(wait|long|short|barrier|math|not_selected))' | paste -sd,)
    profile "$(left 60)" "$dir/ncu.csv" "$metrics"
    rc=$?
fi
[ $rc -eq 0 ] || ncu_failed $rc
echo "  ncu: $(($(date +%s) - t0)) s for $(echo "$metrics" | tr ',' '\n' | wc -l) metrics"
# Its samples of stall reasons, from a run of their own; without them that check is skipped.
samples="$dir/samples.csv"
profile "$(left 45)" "$samples" group:smsp__pcsamp_warp_stall_reasons || { echo "  ncu gave no samples"; samples=; }
judge() { python3 tests/gpu/oracle.py "$owns" "$1" "$2" ${samples:+"$samples"}; }
if ! judge "$dir/plain.tsv" "$dir/ncu.csv" >"$dir/first" &&
    profile "$(left 0)" "$dir/ncu2.csv" "$metrics" "$dir/plain2.tsv"; then
    grep '^FAIL' "$dir/first" | sed 's/^FAIL /  once: /'
    judge "$dir/plain.tsv,$dir/plain2.tsv" "$dir/ncu.csv,$dir/ncu2.csv" >"$dir/first"
fi
echo "  in all: $(($(date +%s) - begun)) s"
cat "$dir/first"
tail -1 "$dir/first" | grep -q ', 0 failed,'
