#!/bin/sh
# --variant auto on the GPU that is here: measured once and kept, tokens of its class, a damaged file
# made anew, and prefill beside nb's. Ends with "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/../.."
B=${B:-build} model=${MODEL_SPEC:-synth:llama3-8b}
passed=0 failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export SASSTOP_CACHE="$tmp/cache"
judge() { # judge STATUS TEXT
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "ok   $2"; else failed=$((failed + 1)); echo "FAIL $2"; fi
}
engine() { # engine FRAMES ARGS...: seconds into $took
    f=$1 t=$(date +%s); shift
    "$B/sasstop-engine" --sources none --fd 3 "$@" 3>"$tmp/$f" 2>"$tmp/err" </dev/null
    rc=$? took=$(($(date +%s) - t))
    return $rc
}
work="--backend cuda --model $model --bench pp512,tg8 --rounds 2"
engine nb $work --variant nb --kd 8
case $? in
0) ;;
3) echo "SKIP auto: $(tail -1 "$tmp/err")"; echo "0 passed, 0 failed, 1 skipped"; exit 0 ;;
*) judge 1 "nb: $(tail -1 "$tmp/err")" ;;
esac
engine first $work --variant auto
judge $? "measured and ran in $took s $(tail -1 "$tmp/err")"
tr -c "[:print:]" "\n" <"$tmp/first" | grep -oE 'auto: q[46]k_gemm .*weights|auto: [0-9]+ shapes.*|auto: no kernel.*' | sort -u
file=$(ls "$SASSTOP_CACHE"/bench-*.json 2>/dev/null)
[ -s "$file" ]
judge $? "kept: $file, $(wc -c <"$file") bytes, $(grep -o '"kernel"' "$file" | wc -l) rows"
before=$(cksum <"$file")
engine second $work --variant auto
[ $? -eq 0 ] && [ "$(cksum <"$file")" = "$before" ]
judge $? "found again in $took s, nothing measured"
line=$("$B/gpu/engine_compare" tokens "$tmp/nb" "$tmp/second" 8 0)
judge $? "tokens of nb: $line"
engine any $work --variant auto:any
judge $? "auto:any measured the rest in $took s $(tail -1 "$tmp/err")"
tr -c "[:print:]" "\n" <"$tmp/any" | grep -oE 'auto: q[46]k_gemm .*weights' | sort -u
for v in "nb --kd 8" auto auto:any; do
    echo "prefill with $v: $("$B/sasstop" run --headless --seconds 5 --model "$model" --bench pp512,tg8 --sources none --variant $v 2>&1 | grep -i prefill | head -1)"
done
head -c 100 "$file" >"$file.cut" && mv "$file.cut" "$file"
# Told at once; what it measures then is cut short.
timeout 10 "$B/sasstop-engine" --sources none --fd 3 --backend cuda --model synth:tiny --bench pp64,tg2 --rounds 1 \
    --variant auto 3>"$tmp/damaged" 2>"$tmp/err" </dev/null
grep -aq 'is made anew: it is no JSON' "$tmp/damaged"
judge $? "a damaged file is made anew, and said"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
