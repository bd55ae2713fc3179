#!/bin/sh
# tests/gpu/oracle.py without a GPU: on files of the form that both sides write it passes what agrees and
# names what does not, and ncu's odd cells (thousands, n/a, its own talk) do no harm.
set -u
cd "$(dirname "$0")/../.."
root=$(pwd)
done_() { echo "$1 passed, $2 failed, $3 skipped"; [ "$2" -eq 0 ]; exit; }
command -v python3 >/dev/null || { echo "skip oracle.py: no python3"; done_ 0 0 1; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
check() { # check WHAT STATUS-OF-A-TEST
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not held: $1"; cat "$dir/out"; fi
}
cd "$dir" || exit 1

awk -v n=13 'BEGIN {
    split("nb narrow wide nb_pad q6k_gemm hopper attn_prefill attn_decode rms_norm rope add gemv glu", name, " ")
    split("smsp__inst_executed.sum gpc__cycles_elapsed.max sm__cycles_active.avg gpu__time_duration.sum" \
          " sm__throughput.avg.pct_of_peak_sustained_elapsed dram__bytes_read.sum dram__bytes_write.sum" \
          " dram__throughput.avg.pct_of_peak_sustained_elapsed launch__registers_per_thread" \
          " launch__shared_mem_per_block_static launch__shared_mem_per_block_dynamic" \
          " sm__warps_active.avg.pct_of_peak_sustained_active" \
          " smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", metric, " ")
    printf "==PROF== Connected to process 1\n\"ID\",\"Process ID\",\"Kernel Name\"" >"ncu.csv"
    for (m = 1; m <= n; m++) printf ",\"%s\"", metric[m] >"ncu.csv"
    printf "\n\"\",\"\",\"\"" >"ncu.csv"
    for (m = 1; m <= n; m++) printf ",\"unit\"" >"ncu.csv"
    printf "\n" >"ncu.csv"
    print "\"ID\",\"Kernel Name\",\"smsp__pcsamp_warps_issue_stalled_wait\",\"smsp__pcsamp_warps_issue_stalled_no_instructions\",\"smsp__pcsamp_warps_issue_stalled_barrier\",\"smsp__pcsamp_warps_issue_stalled_selected\",\"smsp__pcsamp_warps_issue_stalled_wait_not_issued\"" >"samples.csv"
    print "\"\",\"\",\"warps\",\"warps\",\"warps\",\"warps\",\"warps\"" >"samples.csv"
    for (i = 1; i <= 13; i++) {
        printf "launch\t%d\top%d\t%s\t512x512x4096\n", i - 1, i, name[i] >"own.tsv"
        printf "launch\t%d\top%d\t%s\t512x512x4096\n", i - 1, i, name[i] >"plain.tsv"
        printf "\"%d\",\"77\",\"%s(const void *, int)\"", i - 1, name[i] >"ncu.csv"
        for (m = 1; m <= n; m++) {
            v = m == n ? 1.25 : m == 5 || m == 8 || m == 12 ? 10 + i : 1000 * i + m
            printf "value\t%d\t%s\t%.9g\n", i - 1, metric[m], v >"own.tsv"
            if (v >= 1000) printf ",\"%d,%03d\"", v / 1000, v % 1000 >"ncu.csv"
            else printf ",\"%s\"", v >"ncu.csv"
        }
        printf "\n" >"ncu.csv"
        printf "stall\t%d\twait\t500\nstall\t%d\tno_instruction\t300\nstall\t%d\tbarrier\t100\nstall\t%d\tselected\t900\n", i - 1, i - 1, i - 1, i - 1 >"own.tsv"
        printf "live\t%d\t%g\n", i - 1, 10.5 + i >"own.tsv"
        printf "\"%d\",\"%s\",\"5,000\",\"2,900\",\"1,100\",\"9,500\",\"7\"\n", i - 1, name[i] >"samples.csv"
    }
}'

oracle() { python3 "$root/tests/gpu/oracle.py" "$@" >out 2>&1; }
oracle own.tsv plain.tsv ncu.csv samples.csv; check "what agrees passes" $?
grep -q '^| `nb_pad` | 512x512x4096 | .* | 1.000000 |' out; check "the table has a row a launch" $?
grep -qE '^[0-9]+ passed, 0 failed, 0 skipped$' out; check "nothing is skipped" $?
oracle own.tsv plain.tsv ncu.csv; check "without samples the rest is compared" $?
grep -q 'skip top stalls' out; check "and that is said" $?

bad() { # bad WHAT TEXT-THAT-IS-SAID FILES...
    what=$1 says=$2; shift 2
    oracle "$@"
    [ $? -eq 1 ] && grep -q "FAIL.*$says" out; check "$what" $?
}
sed 's/^value\t3\tsmsp__inst_executed.sum\t.*/value\t3\tsmsp__inst_executed.sum\t4010/' own.tsv >x.tsv
bad "other instructions" "smsp__inst_executed.sum nb_pad" x.tsv plain.tsv ncu.csv samples.csv
sed 's/^value\t0\tlaunch__registers_per_thread\t.*/value\t0\tlaunch__registers_per_thread\t9/' own.tsv >x.tsv
bad "other registers" "registers" x.tsv plain.tsv ncu.csv samples.csv
sed 's/\(stalled_wait_per_issue_active.ratio\)\t.*/\1\t1.35/' own.tsv >x.tsv
bad "another stall ratio" "wait of" x.tsv plain.tsv ncu.csv samples.csv
sed 's/^live\t2\t.*/live\t2\t30/' own.tsv >x.tsv
bad "another live SM%" "live SM% of wide" x.tsv plain.tsv ncu.csv samples.csv
sed 's/^stall\t1\tbarrier\t.*/stall\t1\tlong_scoreboard\t400/' own.tsv >x.tsv
bad "other top stalls" "top stalls of narrow" x.tsv plain.tsv ncu.csv samples.csv
sed '$d' ncu.csv >x.csv
bad "a launch that ncu missed" "ncu saw" own.tsv plain.tsv x.csv samples.csv
sed 's/rope/elsewhere/' plain.tsv >x.tsv
bad "launches in another order" "same kernels" own.tsv x.tsv ncu.csv samples.csv
head -1 ncu.csv >x.csv
bad "a run that ncu refused" "ncu saw" own.tsv plain.tsv x.csv samples.csv
# What ncu could not collect is skipped with its name, not taken for 0.
sed 's/"1,001"/"n\/a"/' ncu.csv >x.csv
oracle own.tsv plain.tsv x.csv samples.csv; check "a cell without a number" $?
grep -q 'skip smsp__inst_executed.sum of nb ' out; check "is named" $?
done_ $passed $failed 0
