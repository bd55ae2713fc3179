"""Holds what this project measured (oracle --own) against Nsight Compute's CSV of the same launches.

usage: oracle.py OWN.tsv PLAIN.tsv NCU.csv [NCU_SAMPLES.csv]

Prints a table in Markdown, what was off, and the closing line. Bounds: instructions, registers and
shared memory equal; cycles, SM%, pipes, DRAM bytes and occupancy within 2 % or 1 point (of the peak, for
bytes); stall ratios within 0.03 per issue; live SM% of launches above 300 us within 1.5 points; the same
three top stall reasons, or ones within 2 points of their place.
"""
import csv
import sys

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
INST = "smsp__inst_executed.sum"
DRAM_PCT = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
READ, WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
TIME = "gpu__time_duration.sum"
CYCLES, ACTIVE = "gpc__cycles_elapsed.max", "sm__cycles_active.avg"
OCC = "sm__warps_active.avg.pct_of_peak_sustained_active"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
EQUAL = [INST, "launch__registers_per_thread", "launch__shared_mem_per_block_static",
         "launch__shared_mem_per_block_dynamic"]
PIPES = [TENSOR] + ["sm__inst_executed_pipe_%s.avg.pct_of_peak_sustained_elapsed" % p for p in ("alu", "fma")]
COUNTS = ["sm__inst_executed_pipe_%s.sum" % p for p in ("tensor", "lsu", "xu", "uniform", "alu", "fma", "cbu")]
STALL, STALL_END = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
SAMPLE = "smsp__pcsamp_warps_issue_stalled_"
SAME = {"no_instructions": "no_instruction", "branch_resolve": "branch_resolving", "dispatch": "dispatch_stall"}


def own(path):
    """[{op, kernel, shape, values, stalls, live}] in the order of the launches."""
    by, order = {}, []
    with open(path) as f:
        for line in f:
            word = line.rstrip("\n").split("\t")
            if word[0] == "launch":
                by[word[1]] = {"op": word[2], "kernel": word[3], "shape": word[4], "values": {}, "stalls": {},
                               "live": None}
                order.append(by[word[1]])
            elif word[0] == "value":
                by[word[1]]["values"][word[2]] = float(word[3])
            elif word[0] == "stall":
                by[word[1]]["stalls"][word[2]] = float(word[3])
            elif word[0] == "live":
                by[word[1]]["live"] = float(word[2])
    return order


def ncu(path):
    """[(kernel, {metric: number})]: lines before the header are ncu's talk, the row after it holds units."""
    with open(path, newline="") as f:
        rows = list(csv.DictReader(l for l in f if l.startswith('"')))
    out = []
    for r in rows:
        if not (r.get("ID") or "").strip():
            continue
        values = {}
        for k, v in r.items():
            try:
                values[k] = float((v or "").replace(",", ""))
            except (ValueError, AttributeError):
                pass
        out.append((r["Kernel Name"].split("(")[0].split("<")[0].strip(), values))
    return out


class Checks:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, ok, what):
        self.passed, self.failed = self.passed + bool(ok), self.failed + (not ok)
        if not ok:
            print("FAIL " + what)

    def skip(self, what):
        self.skipped += 1
        print("skip " + what)


def near(a, b, rel, points=0.0):
    return abs(a - b) <= max(rel * abs(b), points)


def rate(rows):
    """DRAM bytes a second at 100 %, from the launch that used most of it."""
    best = max(rows, key=lambda t: t.get(DRAM_PCT, 0))
    if best.get(DRAM_PCT, 0) < 5 or not best.get(TIME):
        return None
    return (best.get(READ, 0) + best.get(WRITE, 0)) / (best[TIME] * 1e-9) / (best[DRAM_PCT] / 100)


def top(stalls, n=3):
    """The n most frequent reasons but `selected`, with their shares in per cent."""
    total = sum(stalls.values())
    if not total:
        return []
    rest = sorted(((v, k) for k, v in stalls.items() if k != "selected"), reverse=True)
    return [(k, 100 * v / total) for v, k in rest[:n]]


def same_top(a, b, least=2.0):
    """Equal sets of three, or every reason that only one side has is within `least` points of its place."""
    ta, tb = top(a), top(b)
    if not ta or not tb:
        return None
    ok = True
    for one, other, edge in ((ta, b, tb), (tb, a, ta)):
        total, last = sum(other.values()), edge[-1][1]
        for name, _ in one:
            ok &= name in dict(edge) or 100 * other.get(name, 0) / total >= last - least
    return ok


def samples(values):
    out = {}
    for k, v in values.items():
        if k.startswith(SAMPLE) and not k.endswith("_not_issued"):
            name = k[len(SAMPLE):]
            out[SAME.get(name, name)] = v
    return out


def compare(c, o, t, peak):
    """One launch; returns the worst difference of a stall ratio."""
    v, who = o["values"], "%s (%s)" % (o["kernel"], o["op"])
    for k in EQUAL:
        if k in t and k in v:
            c.check(v[k] == t[k] or (k == INST and near(v[k], t[k], 1e-6)), "%s %s: %.0f, ncu %.0f" % (k, who, v[k], t[k]))
        else:
            c.skip("%s of %s: one side has none" % (k, who))
    for k in [CYCLES, ACTIVE] + COUNTS:
        if k in t and k in v:
            c.check(near(v[k], t[k], 0.02), "%s of %s: %.6g, ncu %.6g" % (k, who, v[k], t[k]))
    for k in [SM, OCC] + PIPES:
        if k in t and k in v:
            c.check(near(v[k], t[k], 0.02, 1.0), "%s of %s: %.2f, ncu %.2f" % (k, who, v[k], t[k]))
    if READ in t and READ in v:
        a, b = v[READ] + v.get(WRITE, 0), t[READ] + t.get(WRITE, 0)
        slack = 0.01 * peak * t[TIME] * 1e-9 if peak and TIME in t else 0
        c.check(near(a, b, 0.02, slack), "DRAM bytes of %s: %.6g, ncu %.6g" % (who, a, b))
    worst = 0.0
    for k in t:
        if k.startswith(STALL) and k.endswith(STALL_END) and k in v:
            d = abs(v[k] - t[k])
            worst = max(worst, d)
            c.check(d <= 0.03 + 0.02 * t[k], "%s of %s: %.3f, ncu %.3f" % (k[len(STALL):-len(STALL_END)], who, v[k], t[k]))
    if o["live"] is not None and SM in t:
        c.check(abs(o["live"] - t[SM]) <= 1.5, "live SM%% of %s: %.2f, ncu %.2f" % (who, o["live"], t[SM]))
    return worst


def show(v, form="%.2f"):
    return "-" if v is None else form % v


def row(o, t, worst, stalls):
    v = o["values"]
    both = lambda k, form="%.2f", scale=1.0: "%s / %s" % (
        show(v[k] * scale if k in v else None, form), show(t[k] * scale if k in t else None, form))
    dram = lambda x: (x.get(READ, 0) + x.get(WRITE, 0)) / 1e6 if READ in x else None
    ratio = v[INST] / t[INST] if t.get(INST) and INST in v else None
    print("| `%s` | %s | %s | %s | %s | %s | %s / %s | %s | %s | %.3f | %s | %s |" % (
        o["kernel"], o["shape"], both(TIME, "%.1f", 1e-3), both(CYCLES, "%.0f"), both(SM), both(TENSOR),
        show(dram(v), "%.1f"), show(dram(t), "%.1f"), both(OCC, "%.1f"), show(ratio, "%.6f"), worst, show(o["live"]),
        ", ".join("%s %.0f" % s for s in top(o["stalls"])) + " / " + ", ".join("%s %.0f" % s for s in top(stalls))))


def main(argv):
    c, ours, plain, theirs = Checks(), own(argv[1]), own(argv[2]), ncu(argv[3])
    sampled = ncu(argv[4]) if len(argv) > 4 else []
    names = [o["kernel"] for o in ours]
    c.check(len(set(names)) >= 12, "only %d kernels were measured" % len(set(names)))
    c.check(names == [p["kernel"] for p in plain], "both sides launch the same kernels in the same order")
    c.check(names == [k for k, _ in theirs], "ncu saw %s, we ran %s" % ([k for k, _ in theirs], names))
    if c.failed:
        return c
    peak = rate([t for _, t in theirs])
    lines = []
    for i, o in enumerate(ours):
        stalls = samples(sampled[i][1]) if i < len(sampled) and sampled[i][0] == o["kernel"] else {}
        worst = compare(c, o, theirs[i][1], peak)
        same = same_top(o["stalls"], stalls)
        who = "top stalls of %s (%s)" % (o["kernel"], o["op"])
        if same is None:
            c.skip("%s: no samples on one side" % who)
        else:
            c.check(same, "%s: %s, ncu %s" % (who, top(o["stalls"]), top(stalls)))
        lines.append((o, theirs[i][1], worst, stalls))
    print("\n| kernel | m x n x k | us | cycles | SM% | tensor% | DRAM MB | occupancy % | inst/ncu | stall ratio | live | top stalls % |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for l in lines:
        row(*l)
    print("\nOurs / ncu's; stall ratio: the largest difference, per issue; live: SM% of whole launches by PM sampling.")
    return c


if __name__ == "__main__":
    done = main(sys.argv)
    print("%d passed, %d failed, %d skipped" % (done.passed, done.failed, done.skipped))
    sys.exit(done.failed != 0)
