"""Holds what this project measured (oracle --own) against Nsight Compute's CSV of the same launches.

usage: oracle.py OWN.tsv[,OWN2.tsv...] PLAIN.tsv[,PLAIN2.tsv] NCU.csv[,NCU2.csv] [NCU_SAMPLES.csv]
       oracle.py --metrics OWN.tsv      what is compared, with commas between, for ncu's --metrics

Prints a table in Markdown, what was off, and the closing line. Each launch is repeated on both sides, from the
same caches (tests/gpu/oracle.c). Bounds:

Equal: executed instructions and those of each pipe, registers, shared memory, of every kernel whose warps don't
poll. Registers as the driver gives them: 16 at least, allocated in eights.
Polling kernels (POLLS: how often a warp asks depends on the time it waits): instructions within 0.1 %, those of a
pipe within 2 %, or within the noise; both spreads are printed.
Measured: cycles 2 %; SM%, pipes, occupancy 2 % or 1 point; DRAM bytes 2 % or 1 % of the peak over the launch;
stall ratios 0.03 per issue and 2 % (ncu writes two digits: 0.005 of that); or, where that is more, the noise:
Student's t for one difference in a thousand by chance times the standard error of the difference of the two means,
by both sides' pooled spread. Some kernels take the same time in every launch of a process and another in the next
process, so with several OWN the mean is over processes, and the noise is at least t times their spread: each of
ncu's figures is of one process. And with a second run of ncu a measured difference counts if both runs show it: one
process of either side may be of the rarer kind. Noise above five such bounds decides nothing: such a difference is
skipped, aloud.
One side with itself: no more active cycles than elapsed ones, no occupancy above 100 %. ncu's figures come from
many passes; passes from other caches break this.
Live SM% of launches above 300 us: 1.5 points.
Stalls by samples: the same three top reasons. A reason that only one side has there is a difference if both sides
rank it otherwise by more than two standard errors of the difference of two shares of one multinomial (the samples
are fewer than they would be were they independent, so this is the least error), and by more than the stall ratios'
own bound, 0.03 per issue, makes of a share.
"""
import csv
import math
import sys

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
INST = "smsp__inst_executed.sum"
DRAM_PCT = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
READ, WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
TIME = "gpu__time_duration.sum"
CYCLES, ACTIVE = "gpc__cycles_elapsed.max", "sm__cycles_active.avg"
OCC = "sm__warps_active.avg.pct_of_peak_sustained_active"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
# ncu tells the latter unasked.
REGS, ALLOCATED = "launch__registers_per_thread", "launch__registers_per_thread_allocated"
SMEM = ["launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"]
PIPES = [TENSOR] + ["sm__inst_executed_pipe_%s.avg.pct_of_peak_sustained_elapsed" % p for p in ("alu", "fma")]
COUNTS = ["sm__inst_executed_pipe_%s.sum" % p for p in ("tensor", "lsu", "xu", "uniform", "alu", "fma", "cbu")]
COUNTS.append("smsp__thread_inst_executed.sum")
STALL, STALL_END = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
ASKED = [SM, INST, DRAM_PCT, READ, WRITE, TIME, CYCLES, ACTIVE, OCC, REGS] + SMEM + PIPES + COUNTS
SAMPLE = "smsp__pcsamp_warps_issue_stalled_"
SAME = {"no_instructions": "no_instruction", "branch_resolve": "branch_resolving", "dispatch": "dispatch_stall"}
POLLS = ("hopper",)
# Student's t, two-sided 0.1 %, by degrees of freedom.
STUDENT = {2: 31.6, 3: 12.92, 4: 8.61, 5: 6.87, 6: 5.96, 7: 5.41, 8: 5.04}


class Value(float):
    """A mean with the spread of what it is the mean of, and of the means of several processes."""
    def __new__(cls, mean, sd=0.0, n=1, processes=1, between=0.0):
        v = super().__new__(cls, mean)
        v.sd, v.n, v.processes, v.between = sd, n, processes, between
        return v


def mean_of(values):
    n, mean = len(values), sum(values) / len(values)
    # fsum, and the first value as the origin: equal counts have a spread of exactly 0.
    var = math.fsum((x - values[0]) ** 2 for x in values) - n * (mean - values[0]) ** 2
    return Value(mean, math.sqrt(max(var, 0) / (n - 1)) if n > 1 else 0.0, n)


def own(path):
    """[{at, op, kernel, shape, values, stalls, live}] in the order of the launches."""
    by, order = {}, []
    with open(path) as f:
        for line in f:
            word = line.rstrip("\n").split("\t")
            if word[0] == "launch":
                by[word[1]] = {"at": word[1], "op": word[2], "kernel": word[3], "shape": word[4], "values": {},
                               "stalls": {}, "live": None}
                order.append(by[word[1]])
            elif word[0] == "value":
                spread = (float(word[4]), int(word[5])) if len(word) > 5 else ()
                by[word[1]]["values"][word[2]] = Value(float(word[3]), *spread)
            elif word[0] == "stall":
                by[word[1]]["stalls"][word[2]] = float(word[3])
            elif word[0] == "live":
                by[word[1]]["live"] = float(word[2])
    return order


def several(paths):
    """own() of one process after the other, brought together; of the first: stalls and what isn't measured."""
    runs = [own(p) for p in paths]
    for first, *others in zip(*runs):
        for k, v in first["values"].items():
            again = [v] + [o["values"][k] for o in others if k in o["values"]]
            whole = mean_of(again)
            sd = math.sqrt(sum(x.sd ** 2 for x in again) / len(again))
            first["values"][k] = Value(whole, sd, v.n, len(again), whole.sd)
    return runs[0]


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


def grouped(rows, plain):
    """{launch: [values of its repeats]}, row by row in the order that ncu was shown them."""
    out = {}
    for (_, values), p in zip(rows, plain):
        out.setdefault(p["at"], []).append(values)
    return out


def means(repeats):
    names = set.intersection(*(set(r) for r in repeats))
    return {k: mean_of([r[k] for r in repeats]) for k in names}


class Checks:
    """What was compared, in an order that is the same for every run of ncu."""
    def __init__(self):
        self.log = []  # [state, what was found, whether another run may find otherwise]

    def count(self, state):
        return sum(entry[0] == state for entry in self.log)

    def check(self, ok, what, measured=False):
        self.log.append(["ok" if ok else "FAIL", what, measured])

    def skip(self, what):
        self.log.append(["skip", what, False])

    def near(self, a, b, bound, what):
        """|a - b| within the bound, or within the noise as long as that says something."""
        off, blur = abs(a - b), noise(a, b)
        if bound < off <= blur and blur > 5 * bound:
            self.skip("%s: repeats spread by %.3g and %.3g%s" % (what, a.sd, b.sd, ", our %d processes by %.3g" % (a.processes, a.between) if a.processes > 1 else ""))
        else:
            self.check(off <= max(bound, blur), what, True)

    def again(self, other):
        """The same comparisons with another run of ncu."""
        if len(self.log) != len(other.log):
            self.check(False, "both runs of ncu give the same figures")
        for mine, theirs in zip(self.log, other.log):
            if mine[0] == "FAIL" and mine[2] and theirs[0] != "FAIL":
                mine[:2] = ["skip", "%s: not so in another run (%s)" % (mine[1], theirs[1])]

    def tell(self):
        for state, what, _ in self.log:
            if state != "ok":
                print("%s %s" % (state, what))


def noise(a, b):
    """What the means of two samples of one quantity differ by, at most, 999 times in 1,000."""
    dof = a.n + b.n - 2
    if dof < 2 or a.n < 2 or b.n < 2:
        return 0.0
    pooled = ((a.n - 1) * a.sd ** 2 + (b.n - 1) * b.sd ** 2) / dof
    blur = STUDENT[min(dof, 8)] * math.sqrt(pooled * (1 / a.n + 1 / b.n))
    if a.processes > 2:
        blur = max(blur, STUDENT[min(a.processes - 1, 8)] * a.between * math.sqrt(1 + 1 / a.processes))
    return blur


def plus(a, b):
    return Value(a + b, math.hypot(a.sd, b.sd), min(a.n, b.n))


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


def above(stalls, one, other, least):
    """Reason `one` is more frequent than `other` by more than the error, in per cent of all samples."""
    total = sum(stalls.values())
    p, q = stalls.get(one, 0) / total, stalls.get(other, 0) / total
    return 100 * (p - q) > max(least, 200 * math.sqrt(max(p + q - (p - q) ** 2, 0) / total))


def same_top(a, b, least=0.0):
    """Three equal reasons, but for such as one side can't tell apart."""
    ta, tb = [k for k, _ in top(a)], [k for k, _ in top(b)]
    if not ta or not tb:
        return None
    return not any(above(a, i, j, least) and above(b, j, i, least)
                   for i in ta if i not in tb for j in tb if j not in ta)


def samples(repeats):
    out = {}
    for values in repeats:
        for k, v in values.items():
            if k.startswith(SAMPLE) and not k.endswith("_not_issued"):
                name = SAME.get(k[len(SAMPLE):], k[len(SAMPLE):])
                out[name] = out.get(name, 0) + v
    return out


def ratios(t):
    return [k for k in t if k.startswith(STALL) and k.endswith(STALL_END)]


def compare_counts(c, o, v, t, who):
    polls = o["kernel"].startswith(POLLS)
    for k in [INST] + COUNTS:
        if k not in t or k not in v:
            if k == INST:
                c.skip("%s of %s: one side has none" % (k, who))
        elif polls:
            c.near(v[k], t[k], (0.001 if k == INST else 0.02) * t[k], "%s of %s: %.0f, ncu %.0f" % (k, who, v[k], t[k]))
        else:
            c.check(v[k] == t[k] and not v[k].sd and not v[k].between and not t[k].sd,
                    "%s of %s: %.0f (spread %.3g, of processes %.3g), ncu %.0f (%.3g)" % (
                        k, who, v[k], v[k].sd, v[k].between, t[k], t[k].sd))


def tell_polls(o, t):
    v = o["values"]
    if o["kernel"].startswith(POLLS) and INST in t and INST in v:
        print("  %s (%s) polls: instructions %.0f, spread %.0f of %d; ncu %.0f, %.0f of %d" % (
            o["kernel"], o["op"], v[INST], v[INST].sd, v[INST].n, t[INST], t[INST].sd, t[INST].n))


def compare_launch(c, v, t, who):
    given = lambda regs: max(16, regs)
    for k, ours in [(k, v.get(k)) for k in SMEM] + [(REGS, given(v[REGS]) if REGS in v else None)]:
        if k in t and ours is not None:
            c.check(ours == t[k], "%s of %s: %.0f, ncu %.0f" % (k, who, ours, t[k]))
        else:
            c.skip("%s of %s: one side has none" % (k, who))
    if ALLOCATED in t and REGS in v:
        eights = math.ceil(given(v[REGS]) / 8) * 8
        c.check(eights == t[ALLOCATED], "%s of %s: %d, ncu %.0f" % (ALLOCATED, who, eights, t[ALLOCATED]))


def consistent(c, x, who, side):
    if ACTIVE in x and CYCLES in x:
        c.check(x[ACTIVE] <= 1.02 * x[CYCLES] + noise(x[ACTIVE], x[CYCLES]),
                "%s with itself, %s: %.0f cycles active of %.0f" % (side, who, x[ACTIVE], x[CYCLES]))
    if OCC in x:
        c.check(x[OCC] <= 101, "%s with itself, %s: %.2f %% occupancy" % (side, who, x[OCC]))


def compare(c, o, t, peak):
    """One launch; returns the worst difference of a stall ratio."""
    v, who = o["values"], "%s (%s)" % (o["kernel"], o["op"])
    compare_launch(c, v, t, who)
    compare_counts(c, o, v, t, who)
    consistent(c, v, who, "ours")
    consistent(c, t, who, "ncu")
    for k in [CYCLES, ACTIVE]:
        if k in t and k in v:
            c.near(v[k], t[k], 0.02 * t[k], "%s of %s: %.6g, ncu %.6g" % (k, who, v[k], t[k]))
    for k in [SM, OCC] + PIPES:
        if k in t and k in v:
            c.near(v[k], t[k], max(0.02 * t[k], 1.0), "%s of %s: %.2f, ncu %.2f" % (k, who, v[k], t[k]))
    if all(k in x for k in (READ, WRITE) for x in (v, t)):
        a, b = plus(v[READ], v[WRITE]), plus(t[READ], t[WRITE])
        slack = 0.01 * peak * t[TIME] * 1e-9 if peak and TIME in t else 0
        c.near(a, b, max(0.02 * b, slack), "DRAM bytes of %s: %.6g, ncu %.6g" % (who, a, b))
    worst = 0.0
    for k in ratios(t):
        if k in v:
            worst = max(worst, abs(v[k] - t[k]))
            c.near(v[k], t[k], 0.03 + 0.02 * t[k], "%s of %s: %.3f, ncu %.3f" % (k[len(STALL):-len(STALL_END)], who, v[k], t[k]))
    if o["live"] is not None and SM in t:
        c.check(abs(o["live"] - t[SM]) <= 1.5, "live SM%% of %s: %.2f, ncu %.2f" % (who, o["live"], t[SM]))
    return worst


def compare_stalls(c, o, t, stalls):
    who, all_ratios = "top stalls of %s (%s)" % (o["kernel"], o["op"]), sum(t[k] for k in ratios(t))
    same = same_top(o["stalls"], stalls, 100 * 0.03 / all_ratios if all_ratios else 0)
    if same is None:
        c.skip("%s: no samples on one side" % who)
    else:
        form = lambda s: ", ".join("%s %.1f" % p for p in top(s)) + " of %.0f" % sum(s.values())
        c.check(same, "%s: %s; ncu %s" % (who, form(o["stalls"]), form(stalls)))


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


def judge(ours, plain, theirs, sampled):
    """One run of ncu; also its lines of the table, none where the runs don't fit together."""
    c = Checks()
    names, shown, seen = [o["kernel"] for o in ours], [p["kernel"] for p in plain], [k for k, _ in theirs]
    c.check(len(set(names)) >= 12, "only %d kernels were measured" % len(set(names)))
    c.check(list(dict.fromkeys((p["at"], p["kernel"]) for p in plain)) == [(o["at"], o["kernel"]) for o in ours],
            "both sides launch the same kernels in the same order")
    c.check(seen == shown, "ncu saw %s, it was shown %s" % (seen, shown))
    if c.count("FAIL"):
        return c, []
    repeats = {at: means(r) for at, r in grouped(theirs, plain).items()}
    by_sample = grouped(sampled, plain) if [k for k, _ in sampled] == shown else {}
    peak = rate(repeats.values())
    lines = []
    for o in ours:
        t, stalls = repeats[o["at"]], samples(by_sample.get(o["at"], []))
        lines.append((o, t, compare(c, o, t, peak), stalls))
        compare_stalls(c, o, t, stalls)
    return c, lines


def main(argv):
    ours = several(argv[1].split(","))
    runs = [(own(p), ncu(n)) for p, n in zip(argv[2].split(","), argv[3].split(","))]
    c, lines = judge(ours, *runs[0], ncu(argv[4]) if len(argv) > 4 else [])
    for run in runs[1:]:
        c.again(judge(ours, *run, [])[0])
    c.tell()
    for o, t, _, _ in lines:
        tell_polls(o, t)
    if lines:
        print("\n| kernel | m x n x k | us | cycles | SM% | tensor% | DRAM MB | occupancy % | inst/ncu | stall ratio | live | top stalls % |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|")
        for l in lines:
            row(*l)
        print("\nOurs / ncu's, means of the repeats; stall ratio: the largest difference, per issue; live: SM% of whole launches by PM sampling.")
    print("%d passed, %d failed, %d skipped" % (c.count("ok"), c.count("FAIL"), c.count("skip")))
    return c.count("FAIL") != 0


if __name__ == "__main__":
    if sys.argv[1] == "--metrics":
        have = {k for o in own(sys.argv[2]) for k in o["values"]}
        print(",".join([k for k in ASKED if k in have] + sorted(ratios(have))))
        sys.exit(0)
    sys.exit(main(sys.argv))
