#!/bin/sh
# Everything that docs/LADDER.md is made from, measured on the GPU that is here: times of every rung
# beside nb_kd8 (Q6_K: q6k_gemm), each step against the rung it grew from at 1 and 2 blocks/SM, counters
# by ncu, correctness on shapes that cover every pair of sizes below, memcheck and racecheck.
# RESULTS=DIR keeps the files (small: copy them to docs/measurements/ladder, then
# `build/sasstop ladder docs/measurements/ladder >docs/LADDER.md`), RESULTS/raw the whole ones.
# About four minutes on an H200. PARTS="bench steps counters check sanitize" chooses. Ends with "N passed, N failed, N skipped".
# Needs kcheck, sasstop, gpu/rungs and cubin/ in $B; ncu and compute-sanitizer are skipped when missing.
set -u
cd "$(dirname "$0")/../.."
B=${B:-build} PARTS=${PARTS:-bench steps counters check sanitize}
passed=0 failed=0 skipped=0
out=${RESULTS:-$(mktemp -d)}
[ -n "${RESULTS:-}" ] || trap 'rm -rf "$out"' EXIT
raw=$out/raw
mkdir -p "$raw"
begin=$(date +%s)
lap() { echo "# $1: $(($(date +%s) - begin)) s in all"; }
judge() { # judge STATUS TEXT
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "ok   $2"; else failed=$((failed + 1)); echo "FAIL $2"; fi
}
skip() { skipped=$((skipped + 1)); echo "SKIP $1"; }
wants() { case " $PARTS " in *" $1 "*) return 0 ;; esac; return 1; }
tool() { command -v "$1" || ls /usr/local/cuda*/bin/"$1" 2>/dev/null | head -1; }

"$B/kcheck" --variant narrow_kd8 --shapes 1,1,256 >"$raw/probe" 2>&1
case $? in
3) skipped=1; echo "SKIP ladder: $(tail -1 "$raw/probe")"; echo "0 passed, 0 failed, 1 skipped"; exit 0 ;;
esac
{
    echo "what,value"
    echo "date,\"$(date -u +%Y-%m-%d)\""
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 |
        awk -F', ' '{print "device,\"" $1 "\"\ndriver,\"" $2 "\""}'
    echo "version,\"$("$B/kcheck" --version)\""
} >"$out/about.csv"

large=4096,512,14336 others="4096,512,4096;14336,512,4096"

# Times: one table, every rung beside its family's control, the two in turns.
if wants bench; then
    {
        "$B/kcheck" --all --family q4k_gemm --kd 8 --bench --quick --csv --against nb_kd8 --shapes "$large;$others" &&
            "$B/kcheck" --all --family q4k_gemm --kd 4 --bench --quick --csv --against nb_kd8 --shapes "$large" &&
            "$B/kcheck" --all --family q6k_gemm --bench --quick --csv --against "${Q6K_CONTROL:-q6k_gemm}" --shapes "$large;$others"
    } 2>"$raw/bench.err" | awk 'NR == 1 || !/^kernel,/' >"$out/bench.csv"
    bad=$(awk -F, 'NR > 1 && $0 !~ /,(ok|refused),/' "$out/bench.csv" | wc -l)
    [ "$(wc -l <"$out/bench.csv")" -gt 1 ] && [ "$bad" -eq 0 ] && [ ! -s "$raw/bench.err" ]
    judge $? "bench: $(($(wc -l <"$out/bench.csv") - 1)) rows, $bad neither sound nor refused $(tail -1 "$raw/bench.err")"
    lap bench
fi

# Steps: a rung against the one it grew from. Blocks/SM: 0 = as it is, else by padding shared memory.
if wants steps; then
    echo "blocks,parent,$("$B/kcheck" --variant narrow_kd8 --shapes 1,1,256 --csv | sed -n 1p)" >"$out/steps.csv"
    while read -r rung parent kd blocks; do
        b=
        [ "$blocks" = 0 ] || b="--blocks $blocks"
        "$B/kcheck" --variant "${rung}_kd$kd" --against "${parent}_kd$kd" $b --bench --quick --csv --shapes "$large" 2>>"$raw/steps.err" </dev/null |
            awk -v p="$blocks,${parent}_kd$kd," 'NR > 1 {print p $0}' >>"$out/steps.csv"
    done <<'S'
wide_prefold wide_lds 8 0
wide wide_prefold 8 0
narrow narrow_prefold 8 1
narrow narrow_prefold 8 2
wide_32x64 wide 4 0
wide_32x64 wide 8 0
wide wide_serial 8 0
wide_split wide 8 0
nb_rolled wide 8 0
nb nb_rolled 8 1
nb nb_rolled 8 2
nb_swar nb 8 1
nb_swar nb 8 2
nb_qmajor nb 8 1
nb_qmajor nb 8 2
nb_pad nb 8 1
nb_pad nb 8 2
nb_pad_a nb_pad 8 1
nb_pad_a nb_pad 8 2
S
    n=$(awk -F, 'NR > 1 && /,ok,/' "$out/steps.csv" | wc -l)
    [ "$n" -eq 19 ]
    judge $? "steps: $n of 19 timed $(tail -1 "$raw/steps.err" 2>/dev/null)"
    lap steps
fi

# Counters of one launch of each rung.
metrics="gpu__time_duration.sum gpc__cycles_elapsed.max sm__cycles_active.avg sm__cycles_active.min sm__cycles_active.max
sm__throughput.avg.pct_of_peak_sustained_elapsed smsp__inst_executed.sum smsp__issue_active.avg.per_cycle_active
sm__warps_active.avg.pct_of_peak_sustained_active
sm__inst_executed_pipe_alu.sum sm__inst_executed_pipe_fma.sum sm__inst_executed_pipe_fmaheavy.sum sm__inst_executed_pipe_lsu.sum
sm__inst_executed_pipe_xu.sum sm__inst_executed_pipe_uniform.sum sm__inst_executed_pipe_tensor.sum
sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed
l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum
l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum
l1tex__data_pipe_lsu_wavefronts_mem_shared.sum l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum
l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum
smsp__inst_executed_op_ldsm.sum smsp__inst_executed_op_shared.sum dram__bytes_read.sum"
for s in long_scoreboard short_scoreboard mio_throttle lg_throttle math_pipe_throttle wait barrier no_instruction \
    branch_resolving dispatch_stall not_selected sleeping misc membar tex_throttle drain gmma selected; do
    metrics="$metrics smsp__average_warps_issue_stalled_${s}_per_issue_active.ratio"
done
sass="smsp__sass_inst_executed_op_ldsm.sum sm__sass_inst_executed_op_ldsm.sum smsp__sass_inst_executed_op_shared_ld.sum
smsp__sass_inst_executed_op_shared_st.sum smsp__sass_thread_inst_executed_op_integer_pred_on.sum
smsp__sass_thread_inst_executed_op_conversion_pred_on.sum"

safe="gpu__time_duration.sum sm__cycles_active.avg sm__throughput.avg.pct_of_peak_sustained_elapsed smsp__inst_executed.sum
l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum l1tex__data_pipe_lsu_wavefronts_mem_shared.sum sm__inst_executed_pipe_alu.sum"

known() { # known METRIC...: those of them that this chip has, with commas between
    for m; do
        if [ ! -s "$raw/names" ] || [ "${m%%.*}" = sm__throughput ] || grep -qx "${m%%.*}" "$raw/names"; then printf '%s\n' "$m"; fi
    done | paste -sd, -
}
collect() { # collect NAME LIST: ncu's words into raw/NAME.csv
    timeout 150 "$NCU" --clock-control none --cache-control none --csv --page raw --print-units base --metrics "$2" \
        --log-file "$raw/$1.csv" "$B/gpu/rungs" $large >"$raw/$1.rungs" 2>"$raw/$1.err"
}
profile() { # profile NAME METRIC...: NAME.csv of kernel,metric,...
    name=$1 list=; shift
    list=$(known "$@")
    [ -n "$list" ] || { skip "$name: no such counters on this chip"; return; }
    if ! collect "$name" "$list"; then
        judge 1 "$name: $(tail -1 "$raw/$name.err") $(grep -m1 ERROR "$raw/$name.csv" 2>/dev/null)"
        list=$(known $safe)
        [ "$name" = counters ] && collect "$name" "$list" || return
    fi
    # The kernel's name and the metrics alone; figures without the commas of thousands.
    awk '/^"/ {
        gsub(/^"|"$/, ""); n = split($0, f, "\",\"")
        if (!cols) { for (i = 1; i <= n; i++) { if (f[i] == "Kernel Name") name = i; if (f[i] ~ /__.*\./) at[++cols] = i }
            printf "kernel"; for (i = 1; i <= cols; i++) printf ",%s", f[at[i]]; print ""; next }
        if (f[name] == "") next
        sub(/\(.*/, "", f[name]); printf "%s", f[name]
        for (i = 1; i <= cols; i++) { gsub(/,/, "", f[at[i]]); printf ",%s", f[at[i]] ~ /^-?[0-9.]/ ? f[at[i]] : "" }
        print "" }' "$raw/$name.csv" >"$out/$name.csv"
    judge 0 "$name: $(($(wc -l <"$out/$name.csv") - 1)) kernels, $(echo "$list" | tr , '\n' | wc -l) counters"
}
if wants counters; then
    "$B/gpu/rungs" $large >"$out/launches.csv" 2>"$raw/rungs.err"
    judge $? "launches: $(($(wc -l <"$out/launches.csv") - 1)) kernels $(tail -1 "$raw/rungs.err")"
    NCU=${NCU:-$(tool ncu)}
    if [ -n "$NCU" ]; then
        "$NCU" --query-metrics 2>/dev/null | awk '{print $1}' >"$raw/names"
        profile counters $metrics
        lap counters
        profile sass $sass
    else
        skip "counters: no ncu; set NCU to the program"
    fi
    lap counters
fi

# Sizes: every pair of m and n; k grows where the product stays small.
shapes() { # shapes PART OF
    awk -v part="$1" -v of="$2" 'BEGIN {
        n = split("1 7 8 16 33 64 127 128 129 512 2048", s, " ")
        for (i = 1; i <= n; i++) for (j = 1; j <= n; j++) {
            k = s[i] * s[j] <= 16384 ? 256 * (1 + (i * 7 + j * 3) % 4) : 256
            if (s[i] == 33 && s[j] == 129) k = 4096
            if (s[i] == 129 && s[j] == 33) k = 14336
            if (at++ % of == part) printf "%s%d,%d,%d", c++ ? ";" : "", s[i], s[j], k
        } }'
}
check_all() {
    # In processes of about the same length: most of it is the reference, on the CPU.
    while read -r f kd of; do
        part=0
        while [ $part -lt "$of" ]; do
            o=$raw/check.$f.$kd.$part
            "$B/kcheck" --all --family "$f" $([ "$kd" = - ] || echo "--kd $kd") --json --limit 60 --seed $((part + 1)) \
                --shapes "$(shapes $part "$of")" >"$o.json" 2>"$o.err" </dev/null &
            part=$((part + 1))
        done
    done <<'S'
q4k_gemm 8 7
q4k_gemm 4 5
q6k_gemm - 4
S
    wait
    cat "$raw"/check.*.json | awk '
        function field(s, key,  t) { t = s; if (!sub(".*\"" key "\":\"?", "", t)) return ""; sub(/[",}].*/, "", t); return t }
        { kd = field($0, "kd") + 0; head = $0; sub(/"results".*/, "", head)
          v = field(head, "variant") (kd ? "_kd" kd : ""); hash[v] = field(head, "code_hash")
          n = split($0, r, /\{"m":/)
          for (i = 2; i <= n; i++) { shapes[v]++; d = field(r[i], "disposition"); count[v, d]++
              e = field(r[i], "nmse") + 0; w = field(r[i], "worst") + 0
              if (e > nmse[v]) nmse[v] = e; if (w > worst[v]) worst[v] = w } }
        END { for (v in shapes) { bad = shapes[v] - count[v, "ok"] - count[v, "refused"]
              printf "%s,%s,%d,%d,%d,%d,%.3g,%.3g\n", v, hash[v], shapes[v], count[v, "ok"], count[v, "refused"], bad, nmse[v], worst[v] } }' |
        sort >"$raw/checks"
    { echo "kernel,code_hash,shapes,sound,refused,bad,nmse,worst"; cat "$raw/checks"; } >"$out/checks.csv"
    cat "$raw"/check.*.json | gzip -9 >"$out/kcheck.jsonl.gz" # every shape, as kcheck --json said it
    bad=$(awk -F, '{s += $6} END {print s + 0}' "$raw/checks")
    [ -s "$raw/checks" ] && [ "$bad" -eq 0 ]
    judge $? "check: $(wc -l <"$raw/checks") kernels, $(awk -F, '{s += $4} END {print s + 0}' "$raw/checks") shapes sound, $(awk -F, '{s += $5} END {print s + 0}' "$raw/checks") refused, $bad bad"
    [ "$bad" -eq 0 ] || grep -hoE '"variant":"[a-z0-9_]*"|"disposition":"(failed|fault|hang)"[^}]*' "$raw"/check.*.json | grep -B1 disposition | head -20
    cat "$raw"/check.*.err | sort -u | head -3
}
wants check && { check_all; lap check; }

sanitize() { # sanitize TOOL CLASS
    log=$raw/$1.$2.log
    timeout 90 "$SAN" --tool "$1" --print-limit 20 --error-exitcode 9 "$B/gpu/rungs" 129,65,512 "$2" >"$log" 2>&1
    rc=$?
    n=$(grep -cE '^[a-z0-9_]+,q[46]k_gemm,' "$log")
    echo "$1,$2,$n,$(sed -n 's/.*SUMMARY: *\([0-9]*\).*/\1/p' "$log" | tail -1)" >>"$out/sanitize.csv"
    [ $rc -eq 0 ] && [ "$n" -gt 0 ]
    judge $? "$1 of the class $2: $n kernels, $(grep SUMMARY "$log" | tail -1)"
    [ $rc -eq 0 ] || grep -E '=========' "$log" | grep -vE 'Host Frame|COMPUTE-SANITIZER' | head -12
}
if wants sanitize; then
    SAN=${SAN:-$(tool compute-sanitizer)}
    if [ -n "$SAN" ]; then
        echo "tool,class,kernels,errors" >"$out/sanitize.csv"
        for tool in memcheck racecheck; do
            for class in q8 bf16; do sanitize $tool $class; done
        done
    else
        skip "memcheck and racecheck: no compute-sanitizer; set SAN to the program"
    fi
    lap sanitize
fi
[ -z "${RESULTS:-}" ] || du -sh "$out" "$raw"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
