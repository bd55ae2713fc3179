#!/bin/sh
# Stands in for kcheck where there is no GPU: answers --serve, --bench and --json by a script in the
# environment. Not a test itself. --bench leaves a line a run in FAKE_DIR/benches.
#   FAKE_DIR     folder for the count of samples, shared by all its processes
#   FAKE_US      "nb_kd8=100 nb_rolled_kd8=104 nb_kd8@64x32x256=7": us a launch (default 100)
#   FAKE_SLOW    kernel whose bench doesn't end by itself
#   FAKE_ENDLESS kernel whose bench talks without end; FAKE_STAYS: it closes its output and stays
#   FAKE_MHZ     "nb_kd8=1500": SM clock (default 1700)
#   FAKE_NOISE   half width of the noise, a fraction (default 0.002)
#   FAKE_PARITY  kernel that fails parity
#   FAKE_DIE     the sample, counted over all, at which the process dies
variant="" shapes="" serve=0 blocks=0 bench=0
while [ $# -gt 0 ]; do
    case $1 in
    --variant) variant=$2; shift ;;
    --shapes) shapes=$2; shift ;;
    --blocks) blocks=$2; shift ;;
    --serve) serve=1 ;;
    --bench) bench=1 ;;
    esac
    shift
done
value() { # value LIST KEY DEFAULT
    for w in $1; do case $w in "$2"=*) echo "${w#*=}"; return ;; esac; done
    echo "$3"
}
if [ $bench = 1 ]; then
    echo "$variant $shapes" >>"$FAKE_DIR/benches"
    [ "$variant" != "${FAKE_SLOW:-}" ] || exec sleep 600
    [ "$variant" != "${FAKE_ENDLESS:-}" ] || exec yes '{"variant":'
    [ "$variant" != "${FAKE_STAYS:-}" ] || exec sleep 600 >&-
    state=ok sep=
    [ "$variant" != "${FAKE_PARITY:-}" ] || state=failed
    printf '{"variant":"%s","results":[' "$variant"
    for s in $(echo "$shapes" | tr ';' ' '); do
        at=$variant@$(echo "$s" | tr , x) us=
        us=$(value "${FAKE_US:-}" "$at" "$(value "${FAKE_US:-}" "$variant" 100)")
        printf '%s{"m":%s,"n":%s,"k":%s,"disposition":"%s"' "$sep" $(echo "$s" | tr , ' ') $state
        [ $state != ok ] || printf ',"bench":{"us":%s}' "$us"
        printf '}'
        sep=,
    done
    echo '],"ok":true}'
    exit 0
fi
if [ $serve = 0 ]; then
    if [ "$variant" = "${FAKE_PARITY:-}" ]; then
        echo "{\"variant\":\"$variant\",\"ok\":false,\"results\":[{\"disposition\":\"failed\",\"why\":\"row 3 is off\"}]}"
        exit 1
    fi
    echo "{\"variant\":\"$variant\",\"ok\":true,\"results\":[{\"disposition\":\"ok\",\"why\":\"\"}]}"
    exit 0
fi
us=$(value "${FAKE_US:-}" "$variant" 100) mhz=$(value "${FAKE_MHZ:-}" "$variant" 1700)
if [ "$blocks" = 0 ]; then blocks=2; fi
echo "{\"ready\":true,\"kernel\":\"$variant\",\"device\":\"stand-in\",\"sm\":90,\"sms\":132,\"clock_mhz\":1980,\"driver\":\"1.0\",\"code_hash\":\"1\",\"regs\":100,\"smem\":65536,\"pad\":0,\"blocks_per_sm\":$blocks,\"launches\":10}"
# One awk a sample: its reading ahead would keep the answers back.
while read -r _; do
    n=0
    if [ -f "$FAKE_DIR/count" ]; then read -r n <"$FAKE_DIR/count"; fi
    n=$((n + 1))
    echo $n >"$FAKE_DIR/count"
    if [ "${FAKE_DIE:-0}" -gt 0 ] && [ $n -ge "$FAKE_DIE" ]; then exit 1; fi
    awk -v n=$n -v us="$us" -v mhz="$mhz" -v noise="${FAKE_NOISE:-0.002}" '
function jitter(n,  x) { x = sin(n * 12.9898) * 43758.5453; return (x - int(x)) * noise }
BEGIN {
    t = us * (1 + jitter(n)); c = us * 1.03 * (1 + jitter(n + 0.5))
    printf "{\"cold_us\":%.6f,\"us\":%.6f,\"cycles\":%.3f,\"mhz\":%d,\"nvml_mhz\":%d,\"mw\":400000,\"throttle\":\"\"}\n", c, t, t * mhz, mhz, mhz
}'
done
