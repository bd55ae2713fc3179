#!/bin/sh
# How long the key waits: exact SpeedOfLight of one layer's products (g) in a live session, five times, by the
# session's own clock from the command to the figures. Prints the passes and times; the median has to be at
# most BOUND ms (default 500). Also what x takes for everything, live and all sets (printed, not judged).
set -u
cd "$(dirname "$0")/../.."
B="${B:-build}"
command -v python3 >/dev/null || { echo "skip key: no python3"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
"$B/sasstop-engine" --doctor >/dev/null 2>&1 ||
    { echo "skip key: no GPU counters here (sasstop doctor says why)"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
dir="${RESULTS:-$(mktemp -d)}"
mkdir -p "$dir" || exit 1
[ -n "${RESULTS:-}" ] || trap 'rm -rf "$dir"' EXIT
rm -f "$dir/key.json"
{
    echo "wait gen"; echo "play 8"
    for _ in 1 2 3 4 5; do echo "key g"; echo "play 2.5"; done
    echo "key x"; echo "play 5"                                             # live
    for _ in 1 2 3 4 5; do echo "key y"; done; echo "key x"; echo "play 10" # all
} >"$dir/key.script"
"$B/sasstop" run ${WORK:---model synth:llama3-8b --bench pp512,tg64} --script "$dir/key.script" --size 120x40 \
    --report "$dir/key.json" >"$dir/key.out" 2>&1 || { echo "FAIL the session: $(tail -1 "$dir/key.out")"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
python3 - "$dir/key.json" "${BOUND:-500}" <<'P'
import json, re, sys

with open(sys.argv[1]) as f:
    report = json.load(f)
bound, passed, failed = float(sys.argv[2]), 0, 0
events = report["events"]
times = sorted(float(m.group(1)) for e in events for m in [re.search(r"products came (\d+) ms after the key", e["text"])] if m)
for e in events:
    if e["kind"] in ("command", "reply") and "range" in e["text"]:
        print("  %8.3f s %s" % (e["t_ns"] / 1e9, e["text"]))
for s in report["session"]["sources"]:
    if s["name"] == "range":
        print("  range: %s" % {k: s.get(k) for k in ("sets", "metrics", "passes", "pass_ns", "output", "windows", "items", "dropped")})
median = times[len(times) // 2] if times else None
print("  one layer's products: %s ms, median %s" % (", ".join("%.0f" % t for t in times), median))
for ok, what in ((len(times) == 5, "five keys, %d answers" % len(times)),
                 (median is not None and median <= bound, "median at most %.0f ms" % bound),
                 (any(s["name"] == "range" and s.get("output") == "equal" for s in report["session"]["sources"]),
                  "counted runs make what uncounted ones make"),
                 (not any("made something else" in e["text"] for e in events), "in every pass")):
    passed, failed = passed + bool(ok), failed + (not ok)
    print(("ok   " if ok else "FAIL ") + what)
print("%d passed, %d failed, 0 skipped" % (passed, failed))
sys.exit(failed != 0)
P
