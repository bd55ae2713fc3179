#!/bin/sh
# Live, whole and exact SM% and instructions of our own session against Nsight Compute, for three Q4_K
# GEMMs at their model shapes, the Q6_K GEMM and prefill attention. One table, then checks:
# instructions equal ncu's, exact SM% lies within 2 points of it. RESULTS=DIR keeps what was recorded.
set -u
cd "$(dirname "$0")/../.."
B="${B:-build}"
done_() { echo "$1 passed, $2 failed, $3 skipped"; [ "$2" -eq 0 ]; exit; }
skip() { echo "skip counters against ncu: $1"; done_ 0 0 1; }
command -v python3 >/dev/null || skip "no python3 to read the reports"
NCU="${NCU:-$(command -v ncu || ls /usr/local/cuda*/bin/ncu 2>/dev/null | head -1)}"
[ -n "$NCU" ] || skip "no ncu; set NCU to the program"
"$B/sasstop-engine" --doctor >/dev/null 2>&1 || skip "no GPU counters here (sasstop doctor says why)"
dir="${RESULTS:-$(mktemp -d)}"
[ -n "${RESULTS:-}" ] || trap 'rm -rf "$dir"' EXIT
work="--model synth:llama3-8b --bench pp512,tg2"
metrics=sm__throughput.avg.pct_of_peak_sustained_elapsed,smsp__inst_executed.sum,sm__cycles_active.avg,gpu__time_duration.sum
for v in ${VARIANTS:-narrow wide nb}; do
    # Layers 4 to 6 hold every shape; a layer is eight launches of these kernels.
    "$NCU" --clock-control none --cache-control none --csv --page raw --print-units base \
        --log-file "$dir/ncu_$v.csv" --kernel-name "regex:^(${v}_kd8|q6k_gemm|attn_prefill_128)\$" \
        --metrics $metrics --launch-skip 32 -c 24 \
        "$B/sasstop-engine" --fd 1 --sources none $work --variant "$v" --kd 8 --rounds 1 \
        >/dev/null 2>"$dir/ncu_$v.err" || { echo "FAIL ncu on $v: $(tail -1 "$dir/ncu_$v.err")"; done_ 0 1 0; }
    SASSTOP_EXACT=sol "$B/sasstop" run --headless --seconds "${SECONDS_EACH:-8}" $work \
        --variant "$v" --kd 8 --record "$dir/own_$v.sasstop" --report "$dir/own_$v.json" \
        >/dev/null 2>"$dir/own_$v.err" || { echo "FAIL session of $v: $(tail -1 "$dir/own_$v.err")"; done_ 0 1 0; }
done
python3 - "$dir" ${VARIANTS:-narrow wide nb} <<'P'
import csv, json, sys

ROLES = ["attn_q", "attn_k", "attn_v", "attention", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def ncu(path):
    """{(kernel, role): [(SM%, instructions, ns), ...]}: launches come in the model's order."""
    with open(path) as f:
        rows = list(csv.DictReader(l for l in f if l.startswith('"')))[1:]  # the first holds units
    out = {}
    for i, r in enumerate(rows):
        number = lambda k: float(r[k].replace(",", ""))
        out.setdefault((r["Kernel Name"].split("(")[0], ROLES[i % 8]), []).append(
            (number(SM), number("smsp__inst_executed.sum"), number("gpu__time_duration.sum")))
    return out


def text(v, form="%.2f"):
    return "-" if v is None else form % v


def mean(rows, i):
    return sum(r[i] for r in rows) / len(rows)


passed = failed = 0
print("%-16s %-16s %-11s %8s %7s %7s %7s %7s %13s %9s" % (
    "kernel", "m x n x k", "role", "us", "steady", "whole", "exact", "ncu", "inst", "inst/ncu"))
seen = set()
for v in sys.argv[2:]:
    theirs = ncu("%s/ncu_%s.csv" % (sys.argv[1], v))
    with open("%s/own_%s.json" % (sys.argv[1], v)) as f:
        ours = json.load(f)["kernels"]
    for k in ours:
        key = (k["name"], k["role"])
        if key not in theirs or key in seen:
            continue
        seen.add(key)
        got = lambda name: k[name]["v"] if k[name]["state"] == "ok" else None
        exact, inst, sm = got("sm_launch_pct"), got("inst"), mean(theirs[key], 0)
        ratio = inst / mean(theirs[key], 1) if inst else None
        print("%-16s %-16s %-11s %8s %7s %7s %7s %7.2f %13s %9s" % (
            k["name"], "%(m)dx%(n)dx%(k)d" % k["shape"], k["role"], text(got("time_us")),
            text(got("sm_pct")), text(got("sm_pct_whole")), text(exact), sm, text(inst, "%.0f"),
            text(ratio, "%.6f")))
        for ok, what in ((ratio is not None and abs(ratio - 1) < 1e-6, "instructions"),
                         (exact is not None and abs(exact - sm) < 2, "exact SM%")):
            passed, failed = passed + ok, failed + (not ok)
            if not ok:
                print("FAIL %s of %s %s" % ((what,) + key))
if not seen:
    print("FAIL no kernel was seen by both")
    failed += 1
print("%d passed, %d failed, 0 skipped" % (passed, failed))
sys.exit(failed != 0)
P
