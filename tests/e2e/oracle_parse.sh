#!/bin/sh
# tests/gpu/oracle.py without a GPU: on files of the form that both sides write it passes what agrees and
# names what does not, and ncu's odd cells (thousands, n/a, its own talk) do no harm. On an excerpt of what both
# wrote on an H200 (tests/fixtures/oracle) it reads what is there. And tests/gpu/oracle.sh, with programs that only
# play their parts, asks ncu for the same caches.
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
        for (r = 0; r < 4; r++) {
            printf "launch\t%d\top%d\t%s\t512x512x4096\n", i - 1, i, name[i] >"plain.tsv"
            printf "\"%d\",\"77\",\"%s(const void *, int)\"", 4 * i + r, name[i] >"ncu.csv"
            for (m = 1; m <= n; m++) {
                v = m == n ? 1.25 : m == 5 || m == 8 || m == 12 ? 10 + i : 1000 * i + m
                if (!r) printf "value\t%d\t%s\t%.9g\t0\t4\n", i - 1, metric[m], v >"own.tsv"
                if (v >= 1000) printf ",\"%d,%03d\"", v / 1000, v % 1000 >"ncu.csv"
                else printf ",\"%s\"", v >"ncu.csv"
            }
            printf "\n" >"ncu.csv"
            printf "\"%d\",\"%s\",\"5,000\",\"2,900\",\"1,100\",\"9,500\",\"7\"\n", 4 * i + r, name[i] >"samples.csv"
        }
        printf "stall\t%d\twait\t500\nstall\t%d\tno_instruction\t300\nstall\t%d\tbarrier\t100\nstall\t%d\tselected\t900\n", i - 1, i - 1, i - 1, i - 1 >"own.tsv"
        printf "live\t%d\t%g\n", i - 1, 10.5 + i >"own.tsv"
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
bad "other instructions" "smsp__inst_executed.sum of nb_pad" x.tsv plain.tsv ncu.csv samples.csv
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
sed 's/"1,001"/"n\/a"/g' ncu.csv >x.csv
oracle own.tsv plain.tsv x.csv samples.csv; check "a cell without a number" $?
grep -q 'skip smsp__inst_executed.sum of nb ' out; check "is named" $?

# Spread of repeats, ours: small, then 3 % are a difference; as large as 3 %, then none; larger, then nothing is known.
cycles() { sed "s/^value\t4\tgpc__cycles_elapsed.max\t.*/value\t4\tgpc__cycles_elapsed.max\t5155\t$1\t4/" own.tsv; }
cycles 20 >x.tsv
bad "cycles outside the noise" "gpc__cycles_elapsed.max of q6k_gemm" x.tsv plain.tsv ncu.csv samples.csv
cycles 60 >x.tsv
oracle x.tsv plain.tsv ncu.csv samples.csv; check "cycles within the noise" $?
cycles 400 >x.tsv
oracle x.tsv plain.tsv ncu.csv samples.csv; check "cycles in a noise that says nothing" $?
grep -q 'skip gpc__cycles_elapsed.max of q6k_gemm.*spread by 400' out; check "are skipped, aloud" $?
sed 's/^value\t3\tsmsp__inst_executed.sum\t.*/value\t3\tsmsp__inst_executed.sum\t4001\t2\t4/' own.tsv >x.tsv
bad "instructions that vary in a kernel that does not poll" "smsp__inst_executed.sum of nb_pad.*spread 2" x.tsv plain.tsv ncu.csv samples.csv
sed 's/^value\t5\tsmsp__inst_executed.sum\t.*/value\t5\tsmsp__inst_executed.sum\t6003\t1\t4/' own.tsv >x.tsv
oracle x.tsv plain.tsv ncu.csv samples.csv; check "instructions of a kernel that polls" $?
grep -q 'hopper.* polls: instructions 6003, spread 1 of 4; ncu 6001, 0 of 4' out; check "are told with their spread" $?
sed 's/^value\t5\tsmsp__inst_executed.sum\t.*/value\t5\tsmsp__inst_executed.sum\t6101\t1\t4/' own.tsv >x.tsv
bad "far other instructions of a kernel that polls" "smsp__inst_executed.sum of hopper" x.tsv plain.tsv ncu.csv samples.csv
sed 's/^stall\t1\tbarrier\t.*/&\nstall\t1\tdrain\t105/' own.tsv >x.tsv
oracle x.tsv plain.tsv ncu.csv samples.csv; check "ranks that too few samples tell apart are equal" $?
sed 's/^value\t6\tsm__cycles_active.avg\t.*/value\t6\tsm__cycles_active.avg\t9000\t0\t4/' own.tsv >x.tsv
bad "more active cycles than elapsed" "ours with itself, attn_prefill" x.tsv plain.tsv ncu.csv samples.csv

# Several processes of ours: the mean counts, and what they differ by is noise; counts are equal in each.
process() { sed "s/^value\t4\tgpc__cycles_elapsed.max\t.*/value\t4\tgpc__cycles_elapsed.max\t$1\t2\t4/" own.tsv; }
for p in "1 5154" "2 5156" "3 5155" "4 5005"; do process "${p#* }" >"x${p% *}.tsv"; done
bad "processes that agree on other cycles" "gpc__cycles_elapsed.max of q6k_gemm" x1.tsv,x2.tsv,x3.tsv plain.tsv ncu.csv samples.csv
oracle x1.tsv,x2.tsv,x3.tsv,x4.tsv plain.tsv ncu.csv samples.csv; check "processes that differ by as much" $?
sed 's/^value\t3\tsmsp__inst_executed.sum\t.*/value\t3\tsmsp__inst_executed.sum\t4003/' own.tsv >x.tsv
bad "instructions that vary between processes" "smsp__inst_executed.sum of nb_pad.*of processes" own.tsv,x.tsv,own.tsv plain.tsv ncu.csv samples.csv

# Two runs of ncu: what is measured has to be off in both, what is counted in one.
sed '/^"/s/,"1.25"$/,"1.45"/' ncu.csv >once.csv
bad "a stall ratio that one run of ncu gave" "wait of" own.tsv plain.tsv once.csv samples.csv
oracle own.tsv plain.tsv,plain.tsv once.csv,ncu.csv samples.csv; check "and another one didn't" $?
grep -q 'skip wait of nb .*1.450: not so in another run' out; check "is told" $?
bad "a stall ratio that both gave" "wait of" own.tsv plain.tsv,plain.tsv once.csv,once.csv samples.csv
sed 's/"1,001"/"1,002"/' ncu.csv >once.csv
bad "instructions that one run of ncu gave" "smsp__inst_executed.sum of nb " own.tsv plain.tsv,plain.tsv once.csv,ncu.csv samples.csv

# What an H200 gave, with ncu's replay of kernels: one repeat, other caches. What does not depend on caches is equal.
real="$root/tests/fixtures/oracle"
oracle "$real/own.tsv" "$real/plain.tsv" "$real/ncu.csv" "$real/samples.csv"
[ $? -eq 1 ] && grep -q '^454 passed, 76 failed, 0 skipped$' out; check "the recorded run is read whole" $?
[ "$(grep -c '^| `' out)" -eq 17 ]; check "all 17 kernels" $?
! grep -E 'FAIL (launch__|smsp__inst_executed|sm__inst_executed_pipe_[a-z]*\.sum)' out; check "counts, registers and shared memory are equal" $?
grep -q 'hopper_n256_kd8.* polls: instructions 6542416, .*; ncu 6542879' out; check "but for the kernel that polls" $?
grep -q 'FAIL ncu with itself, kv_store.*113.99 % occupancy' out; check "ncu's occupancy from two passes is found" $?
grep -q 'FAIL ncu with itself, rms_norm.*62285 cycles active of 59812' out; check "and its cycles" $?
grep -q 'FAIL top stalls of rope_pairs' out && ! grep -q 'FAIL top stalls of q6k' out; check "ranks within the error of ncu's samples are equal" $?

# The script around it.
mkdir -p b/gpu
printf '#!/bin/sh\n' >b/sasstop-engine
printf '#!/bin/sh\ncp "%s/${1#--}.tsv" "$2"\n' "$dir" >b/gpu/oracle
cat >ncu <<EOF
#!/bin/sh
echo "\$*" >>"$dir/asked"
from="$dir/ncu.csv"
while [ \$# -gt 2 ]; do
    case \$1 in --log-file) log=\$2 ;; --metrics) case \$2 in group:*) from="$dir/samples.csv" ;; esac ;; esac
    shift
done
cp "\$from" "\$log"
"$dir/b/gpu/oracle" "\$@"
EOF
chmod +x ncu b/sasstop-engine b/gpu/oracle
B="$dir/b" NCU="$dir/ncu" sh "$root/tests/gpu/oracle.sh" >out 2>&1
grep -q '^skip oracle: no .*cubin' out; check "without the flush kernel it skips" $?
: >b/gpu/oracle.sm_90a.cubin
B="$dir/b" NCU="$dir/ncu" sh "$root/tests/gpu/oracle.sh" >out 2>&1; check "the whole script" $?
tail -1 out | grep -qE '^[0-9]+ passed, 0 failed, 0 skipped$'; check "and its closing line" $?
[ "$(grep -c -e '--replay-mode application.*--cache-control none' asked)" -eq 2 ]; check "both runs of ncu replay the application" $?
head -1 asked | grep -q 'smsp__inst_executed.sum.*sm__warps_active.*stalled_wait'; check "what is compared is asked for" $?
! grep -q 'registers_per_thread_allocated\|,,' asked; check "and nothing else" $?
cp ncu.csv right.csv
sed '/^"/s/,"1.25"$/,"1.45"/' right.csv >ncu.csv
: >asked
B="$dir/b" NCU="$dir/ncu" sh "$root/tests/gpu/oracle.sh" >out 2>&1
[ $? -eq 1 ] && [ "$(grep -c smsp__inst_executed asked)" -eq 2 ]; check "what is off is asked for once more" $?
grep -q '^  once: wait of nb ' out; check "and told" $?
done_ $passed $failed 0
