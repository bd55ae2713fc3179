#!/bin/sh
# soak.sh [SECONDS]: a headless live session, watched from outside. Each second the resident memory of the
# processes and the CPU time of the engine's threads go into DIR/soak.csv (RESULTS=DIR keeps it). At the end:
# the slope of each memory over the second half by least squares with its 95 % interval, the CPU time of the
# collector's threads, and what was dropped. Passes when the upper end of each slope's interval is at most
# BOUND KiB a minute (default 256: 15 MiB an hour), the collector took at most half a core, and the report
# accounts for every source.
# The second half, since histories of bounded length have filled by then; of every ten seconds the least counts,
# since PM sampling takes 64 MiB for its windows and gives them back. WORK= chooses what runs. KEYS=1: somebody
# sits there, who every 30 s flips the variant (in the first half), asks for exact counters, stalls or executed
# counts, and walks through the views. Without arguments 30 s; under two minutes the slopes are not judged:
# memory that a session takes once is not through yet.
set -u
cd "$(dirname "$0")/../.."
B="${B:-build}"
seconds="${1:-30}"
command -v python3 >/dev/null || { echo "skip soak: no python3"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
dir="${RESULTS:-$(mktemp -d)}"
mkdir -p "$dir" || exit 1
[ -n "${RESULTS:-}" ] || trap 'rm -rf "$dir"' EXIT
if "$B/sasstop-engine" --doctor >/dev/null 2>&1; then
    work="${WORK:---model synth:llama3-8b --bench pp512,tg64}"
else
    work="${WORK:---model synth:tiny --backend cpu --threads 2 --sources synth --bench pp64,tg8}"
fi
if [ -n "${KEYS:-}" ]; then
    {
        left=${seconds%.*} n=0
        echo "wait wall clock"
        while [ "$left" -gt 0 ]; do
            n=$((n + 1))
            set -- x p E g
            shift $((n % 4))
            # The second half is judged, and each flip's history takes memory for good: none there.
            [ "$left" -le $((${seconds%.*} / 2)) ] || echo "key v"
            printf 'play 12\nkey %s\nplay 12\n' "$1"
            for view in 2 3 4 5 7 8 t; do echo "key $view"; done
            printf 'play 5\nkey 1\nplay 1\n'
            left=$((left - 30))
        done
        echo "key q"
    } >"$dir/soak.keys"
    work="$work --script $dir/soak.keys"
fi
python3 - "$B" "$seconds" "$dir" "${BOUND:-256}" $work <<'P'
import json, math, os, subprocess, sys, time

B, SECONDS, DIR, BOUND = sys.argv[1], float(sys.argv[2]), sys.argv[3], float(sys.argv[4])
TICK, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE") // 1024
BUCKET = 10.0  # longer than a turn of the counters
OWN = ("counters", "clocks")  # the engine's names for its collector's threads


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def rss(pid):
    text = read("/proc/%d/statm" % pid).split()
    return int(text[1]) * PAGE if len(text) > 1 else None


def child_of(pid):
    """The engine among the children, the timing engine among the engine's; None before it runs."""
    kids = read("/proc/%d/task/%d/children" % (pid, pid)).split()
    for k in kids:
        if read("/proc/%s/comm" % k).strip().startswith("sasstop-engine"):
            return int(k)
    return None


def collector_cpu(pid, cupti):
    """Seconds of the collector's threads: ours by name; CUPTI's have the program's name or its own."""
    total = 0.0
    try:
        tasks = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return None
    for t in tasks:
        stat = read("/proc/%d/task/%s/stat" % (pid, t))
        if not stat:
            continue
        name = stat[stat.index("(") + 1:stat.rindex(")")]
        field = stat[stat.rindex(")") + 2:].split()
        theirs = cupti and int(t) != pid and (name.startswith("sasstop") or "cupti" in name.lower())
        if name in OWN or theirs:
            total += (int(field[11]) + int(field[12])) / TICK
    return total


def slope(xs, ys):
    """Least squares: KiB a minute and half of its 95 % interval; neighbours in time are no independent
    readings, so the interval is widened by their correlation."""
    n = len(xs)
    mx, my = sum(xs) / n, sum(ys) / n
    sxx = sum((x - mx) ** 2 for x in xs)
    b = sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sxx
    e = [y - my - b * (x - mx) for x, y in zip(xs, ys)]
    var = sum(v * v for v in e) / max(n - 2, 1)
    lag = sum(e[i] * e[i - 1] for i in range(1, n)) / max(sum(v * v for v in e), 1e-9)
    lag = min(max(lag, 0.0), 0.98)
    return 60 * b, 60 * 1.96 * math.sqrt(var / sxx * (1 + lag) / (1 - lag))


def floor_of(rows, at):
    """[(seconds, least KiB)] of each BUCKET of the second half."""
    least = {}
    for r in rows:
        if r[0] >= SECONDS / 2:
            b = int(r[0] / BUCKET)
            least[b] = min(least.get(b, (0, 1 << 62)), (r[0], r[at]), key=lambda p: p[1])
    return [least[b] for b in sorted(least)]


passed = failed = skipped = 0


def check(ok, what):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(("ok   " if ok else "FAIL ") + what)


out = open(os.path.join(DIR, "soak.out"), "w")
report = os.path.join(DIR, "soak.json")
if os.path.exists(report):
    os.remove(report)  # a report is never written over another file
span = [] if "--script" in sys.argv else ["--seconds", "%g" % SECONDS]
run = subprocess.Popen([os.path.join(B, "sasstop"), "run", "--headless", "--report", report] + span + sys.argv[5:], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
start, rows, engine, timer, cupti = time.monotonic(), [], None, None, False
with open(os.path.join(DIR, "soak.csv"), "w") as csv:
    csv.write("seconds,screen_kib,engine_kib,collector_cpu_s,timer_kib\n")
    nth = 0
    while run.poll() is None and time.monotonic() - start < SECONDS + 90:
        nth += 1
        time.sleep(max(0.0, start + nth - time.monotonic()))
        engine = engine if engine and rss(engine) else child_of(run.pid)
        if not engine:
            continue
        cupti = cupti or "libcupti" in read("/proc/%d/maps" % engine)
        timer = timer if timer and rss(timer) else child_of(engine)
        row = (time.monotonic() - start, rss(run.pid), rss(engine), collector_cpu(engine, cupti))
        if None not in row:
            rows.append(row + (timer and rss(timer) or 0,))
            csv.write("%.2f,%d,%d,%.2f,%d\n" % rows[-1])
if run.poll() is None:
    run.kill()
    run.wait()
check(run.returncode == 0, "the session ended by itself with status %s" % run.returncode)
check(len(rows) >= 0.8 * SECONDS - 5, "%d readings in %g s" % (len(rows), SECONDS))
for at, name in ((1, "screen"), (2, "engine")) + (((4, "timing engine"),) if timer else ()):
    points = floor_of(rows, at)
    if SECONDS < 120 or len(points) < 6:
        print("skip slope of the %s: %d readings in the second half" % (name, len(points)))
        skipped += 1
        continue
    b, half = slope([p[0] for p in points], [p[1] for p in points])
    check(b + half <= BOUND, "%s: %d KiB at the end, %+.1f +- %.1f KiB a minute (bound %g)" % (
        name, points[-1][1], b, half, BOUND))
if rows:
    # The most: threads that end take their time along.
    cpu, span = max(r[3] for r in rows) - rows[0][3], rows[-1][0] - rows[0][0]
    check(cpu <= 0.5 * span, "collector: %.1f s of CPU in %.0f s, %.2f cores%s" % (
        cpu, span, cpu / span if span else 0, "" if cupti else " (no CUPTI in this engine)"))
try:
    with open(report) as f:
        whole = json.load(f)
    told = [s for s in whole["session"]["sources"] if "windows" in s]
    # Executed counts come on request alone; the others have their turns.
    asked = "sassexec" if "--script" in sys.argv else ""
    turns = ("activity", "pm", "pc", "range", asked)
    ready = [s["name"] for s in whole["session"]["sources"] if s["state"] == "ok" and s["name"] in turns]
    for s in told:
        print("     %-9s %6d windows %10d found %8d lost %6d without times %4d ran over, switching %.2f s, reading %.2f s" % (
            s["name"], s["windows"], s["items"], s["dropped"], s["invalid"], s["overflows"], s["switch_ns"] / 1e9,
            s["decode_ns"] / 1e9))
    check(set(ready) <= set(s["name"] for s in told), "every source that works accounts for its windows: %s" % ", ".join(ready))
    lost = {k: v for k, v in whole["drops"].items() if v}
    print("     frames lost to a full ring: %s" % (lost or "none"))
    check(not [k for k in lost if k in ("ROUND", "COUNTER", "STALLS", "GENERATION", "TALLY")], "no control frame was lost")
except (OSError, ValueError, KeyError) as e:
    check(False, "the report: %r; the program said: %s" % (e, read(os.path.join(DIR, "soak.out"))[-300:]))
print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
sys.exit(failed != 0)
P
