#!/bin/sh
# Every GEMM variant against the reference on every shape, and every broken one caught for its own
# reason. Exit: kcheck's (0 all as they should be, 1 not, 3 no GPU). JSON lines go to $RESULTS when set.
cd "$(dirname "$0")/../.." || exit 1
kcheck=${KCHECK:-${B:-build}/kcheck}
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
    # And of the texts' GPU: the first wide form needs 136 KB where a block gets 99.
    SASSTOP_SMEM_LIMIT=99K "$kcheck" --variant wide_r7_kd8 --shapes '128,128,256' --json |
        grep -q '"disposition":"refused".*SASSTOP_SMEM_LIMIT grants 101376' || {
        echo "the shared-memory guard did not refuse wide_r7_kd8 at 99K"
        rc=1
    }
    # In the engine the fallback runs in its place, and the row says both.
    frames=$(mktemp)
    SASSTOP_SMEM_LIMIT=99K "$(dirname "$kcheck")/sasstop-engine" --backend cuda --model synth:tiny --bench pp64,tg1 \
        --variant wide_r7 --kd 8 --rounds 4 --sources events --fd 3 3>"$frames" 2>/dev/null &&
        tr -c '[:print:]' '\n' <"$frames" | grep -q 'SASSTOP_SMEM_LIMIT grants 101376' || {
        echo "the engine did not say that wide_r7_kd8 fell back at 99K"
        rc=1
    }
    rm -f "$frames"
fi
exit $rc
