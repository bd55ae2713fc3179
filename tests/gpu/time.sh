#!/bin/sh
# What only a GPU can show of timeline, clock offset, estimates and ceilings: a live session in which
# ceilings are measured and the rest between turns is set by keys; then its recording is held to
# account. RESULTS=DIR keeps the recording, the screens and the report. Ends with the closing line.
set -u
cd "$(dirname "$0")/../.."
B="${B:-build}"
done_() { echo "$1 passed, $2 failed, $3 skipped"; [ "$2" -eq 0 ]; exit; }
skip() { echo "skip timeline and ceilings: $1"; done_ 0 0 1; }
command -v python3 >/dev/null || skip "no python3 to read the report"
"$B/sasstop-engine" --doctor >/dev/null 2>&1 || skip "no GPU counters here (sasstop doctor says why)"
dir="${RESULTS:-$(mktemp -d)}"
[ -n "${RESULTS:-}" ] || trap 'rm -rf "$dir"' EXIT
cat >"$dir/time.keys" <<K
wait generation 1
key c
wait ceilings measured
key w
wait counters rest for
play ${SECONDS_EACH:-14}
key x
play 4
key 1
dump $dir/overview.txt
key 3
dump $dir/detail.txt
key t
dump $dir/timeline.txt
key Up
key Up
key Up
key Up
key Up
dump $dir/timeline_near.txt
key 8
dump $dir/sources.txt
K
"$B/sasstop" run --headless --model "${MODEL:-synth:llama3-8b}" --bench pp512,tg32 --rest 0.5 \
    --script "$dir/time.keys" --size 120x40 --record "$dir/time.sasstop" --report "$dir/time.json" \
    >"$dir/out" 2>"$dir/err" || { echo "FAIL session: $(tail -1 "$dir/err")"; done_ 0 1 0; }
"$B/sasstop" replay "$dir/time.sasstop" --dump >"$dir/frames.txt" 2>>"$dir/err"
"$B/sasstop" report "$dir/time.sasstop" --format md >"$dir/time.md" 2>>"$dir/err"
python3 - "$dir" <<'P'
import json, re, sys

dir = sys.argv[1]
passed = failed = 0


def check(what, ok, told=""):
    global passed, failed
    print("%s %s%s" % ("ok  " if ok else "FAIL", what, ": " + told if told else ""))
    passed, failed = passed + bool(ok), failed + (not ok)


frames = open(dir + "/frames.txt", errors="replace").read().split("\n")
pick = lambda line, key: (re.search(r"\b%s=(\"[^\"]*\"|\S+)" % key, line) or [None, ""])[1].strip('"')
ends = [l for l in frames if l.startswith("WINDOW_END ")]
edges = [l for l in ends if pick(l, "offset_how") == "edges"]
offsets = sorted(int(pick(l, "offset_ns")) for l in edges)
bounds = [int(pick(l, "offset_bound_ns")) for l in edges]
print("windows %d, by edges %d, offsets %s ns, bounds %s ns; others: %s" % (
    len(ends), len(edges), offsets, sorted(bounds),
    sorted({pick(l, "offset_how") + " " + pick(l, "offset_why") for l in ends if l not in edges})))
check("windows were sampled", len(ends) >= 3, str(len(ends)))
check("nine of ten windows have their offset measured", len(edges) * 10 >= len(ends) * 9)
check("offsets of one clock agree within their bounds",
      offsets and offsets[-1] - offsets[0] <= 2 * max(bounds))
ceilings = {}
for l in frames:
    if l.startswith("CEILING "):
        ceilings[pick(l, "key")] = (int(pick(l, "state")), float(pick(l, "v")), float(pick(l, "spread")), pick(l, "why"))
for k, (state, v, spread, why) in sorted(ceilings.items()):
    print("ceiling %-12s %s %.4g +- %.2g%% %s" % (k, state, v, 100 * spread / v if v else 0, why))
check("seven ceilings came", len(ceilings) == 7, ", ".join(sorted(ceilings)))
for k in ("dram_read", "dram_copy", "int8_mma", "bf16_mma", "issue"):
    state, v, spread, why = ceilings.get(k, (0, 0, 0, "none"))
    check("ceiling %s is measured and steady" % k, state == 1 and v > 0 and spread < 0.05 * v, why)
report = json.load(open(dir + "/time.json"))
rows = report["kernels"]
estimates = [r for r in rows if r.get("sm_pct", {}).get("state") == "estimate"]
regimes = [r.get("regime") for r in rows if r.get("regime")]
print("rows %d, estimates of SM%% %d, regimes %s" % (
    len(rows), len(estimates), {k: regimes.count(k) for k in sorted(set(regimes))}))
check("short kernels have estimates", len(estimates) >= 3, str(len(estimates)))
over = [(r["name"], r["roof_share_pct"]["v"]) for r in rows
        if (r.get("roof_share_pct") or {}).get("v") is not None and r["roof_share_pct"]["v"] > 110]
check("no row is over its roof", not over, str(over[:4]))
rest = [l for l in frames if l.startswith("DUTY ")]
check("the rest was set by a key", len(rest) >= 2 and pick(rest[-1], "rest_ns") == "1000000000",
      str([pick(l, "rest_ns") for l in rest]))
print("%d passed, %d failed, 0 skipped" % (passed, failed))
sys.exit(failed > 0)
P
