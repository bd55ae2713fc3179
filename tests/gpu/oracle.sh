#!/bin/sh
# The same launches of at least twelve kernels by this project's sources and by Nsight Compute: build/gpu/oracle
# runs both. No cache is flushed and no clock is set on either side (ncu --cache-control none
# --clock-control none). Prints a table in Markdown, then the closing line. RESULTS=DIR keeps the files.
set -u
cd "$(dirname "$0")/../.."
B="${B:-build}"
done_() { echo "$1 passed, $2 failed, $3 skipped"; [ "$2" -eq 0 ]; exit; }
skip() { echo "skip oracle: $1"; done_ 0 0 1; }
command -v python3 >/dev/null || skip "no python3 to read the reports"
NCU="${NCU:-$(command -v ncu || ls /usr/local/cuda*/bin/ncu 2>/dev/null | head -1)}"
[ -n "$NCU" ] || skip "no ncu; set NCU to the program"
"$B/sasstop-engine" --doctor >/dev/null 2>&1 || skip "no GPU counters here (sasstop doctor says why)"
dir="${RESULTS:-$(mktemp -d)}"
[ -n "${RESULTS:-}" ] || trap 'rm -rf "$dir"' EXIT

# The longest that a step may take: the whole has to stay under two minutes.
timeout 30 "$B/gpu/oracle" --own "$dir/own.tsv" 2>"$dir/own.err" ||
    { echo "FAIL our side: $(tail -1 "$dir/own.err")"; done_ 0 1 0; }
sed -n 's/^oracle: /  /p' "$dir/own.err"

# What both know by the same name. Launch figures are not counters, but ncu takes them in the same list.
metrics=$(awk -F'\t' '$1 == "value" && !seen[$3]++ {printf "%s%s", n++ ? "," : "", $3}' "$dir/own.tsv")
profile() { # profile SECONDS CSV METRICS...
    seconds=$1 csv=$2; shift 2
    timeout "$seconds" "$NCU" --profile-from-start off --clock-control none --cache-control none --csv --page raw \
        --print-units base --log-file "$csv" "$@" "$B/gpu/oracle" --plain "$dir/plain.tsv" >/dev/null 2>"$csv.err"
}
t0=$(date +%s)
profile 70 "$dir/ncu.csv" --metrics "$metrics"
rc=$?
if [ $rc -ne 0 ] && [ $rc -ne 124 ]; then
    # A name that this ncu doesn't have ends its run: those that every one has, then.
    echo "  ncu refused the whole list ($(grep -m1 -h ERROR "$dir/ncu.csv" "$dir/ncu.csv.err")); the short one is tried"
    metrics=$(echo "$metrics" | tr ',' '\n' | grep -E '^(launch__|smsp__inst_executed\.sum|gpc__cycles|sm__cycles_active\.avg$|gpu__time|sm__throughput|dram__bytes_|dram__throughput|sm__warps_active|sm__pipe_tensor|smsp__average_warps_issue_stalled_(wait|long|short|barrier|math|not_selected))' | paste -sd,)
    profile 50 "$dir/ncu.csv" --metrics "$metrics"
    rc=$?
fi
[ $rc -eq 0 ] ||
    { echo "FAIL ncu (status $rc): $(tail -1 "$dir/ncu.csv.err") $(grep -m1 -h ERROR "$dir/ncu.csv")"; done_ 0 1 0; }
echo "  ncu: $(($(date +%s) - t0)) s for $(echo "$metrics" | tr ',' '\n' | wc -l) metrics"
# Its samples of stall reasons, from a run of their own; without them that check is skipped.
samples="$dir/samples.csv"
profile 20 "$samples" --metrics group:smsp__pcsamp_warp_stall_reasons || { echo "  ncu gave no samples"; samples=; }
python3 tests/gpu/oracle.py "$dir/own.tsv" "$dir/plain.tsv" "$dir/ncu.csv" ${samples:+"$samples"}
