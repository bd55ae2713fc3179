#!/bin/sh
# Every GEMM variant against the reference on every shape, and every broken one caught for its own
# reason. Exit: kcheck's (0 all as they should be, 1 not, 3 no GPU). JSON lines go to $RESULTS when set.
cd "$(dirname "$0")/../.." || exit 1
kcheck=${KCHECK:-build/kcheck}
"$kcheck" --all --include-broken --repeat "${REPEAT:-2}" --seed "${SEED:-1}"
rc=$?
if [ $rc -ne 3 ] && [ -n "${RESULTS:-}" ]; then
    "$kcheck" --all --include-broken --json >"$RESULTS/kcheck.json"
fi
if [ $rc -eq 0 ]; then
    # The guard, with the limit of a smaller GPU: wide at KD 8 is refused at 72 KB, in words.
    SASSTOP_SMEM_LIMIT=72K "$kcheck" --variant wide_kd8 --shapes '128,128,256' --json |
        grep -q '"disposition":"refused".*SASSTOP_SMEM_LIMIT grants 73728' || {
        echo "the shared-memory guard did not refuse wide_kd8 at 72K"
        rc=1
    }
fi
exit $rc
