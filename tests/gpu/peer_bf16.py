#!/usr/bin/env python3
"""Dense bf16 products as peers of the hopper_* kernels: PyTorch's matmul (cuBLAS), graph-batched back to
back, weights, activations and outputs rotated over four times the L2, so that neither a launch floor nor a
warm weight is measured. Prints median, interquartile range and TFLOP/s a shape.

    peer_bf16.py [M,N,K;M,N,K...]
"""
import statistics
import sys

import torch

ROUNDS, WARM, BATCH_US, L2 = 15, 2, 3000.0, 60e6
DEFAULT = ";".join(f"{m},{n},{k}" for m, k in ((4096, 14336), (4096, 4096), (14336, 4096)) for n in (32, 128, 512, 2048))


def elapsed(graph):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3


def capture(once, copies, loops):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(loops):
            once(i % copies)
    return graph


def bench(m, n, k):
    copies = min(24, int(4 * L2 / (m * k * 2)) + 2)
    w = [torch.randn(m, k, device="cuda", dtype=torch.bfloat16) for _ in range(copies)]
    x = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(copies)]
    y = torch.empty(n, m, device="cuda", dtype=torch.bfloat16)

    def once(i):
        torch.matmul(x[i], w[i].t(), out=y)

    for i in range(copies):
        once(i)
    torch.cuda.synchronize()
    graph = capture(once, copies, copies)
    elapsed(graph)
    loops = copies * (int(BATCH_US / elapsed(graph)) + 1)
    graph = capture(once, copies, loops)
    times = sorted(elapsed(graph) / loops for _ in range(WARM + ROUNDS))
    return statistics.median(times), times[len(times) * 3 // 4] - times[len(times) // 4]


def main():
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    for shape in (sys.argv[1] if len(sys.argv) > 1 else DEFAULT).split(";"):
        m, n, k = map(int, shape.split(","))
        us, iqr = bench(m, n, k)
        print(f"{m:6d} {n:5d} {k:6d}  bf16 matmul  {us:8.2f} +-{iqr:.2f} us  {2e-6 * m * n * k / us:6.1f} TFLOP/s", flush=True)


main()
