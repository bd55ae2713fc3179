#!/bin/sh
# The whole forward pass on the GPU against the CPU: logits of every prompt position for each variant and
# KD of q4k_gemm and q6k_gemm, and 32 greedy tokens. Models: synth:tiny, and the Gemma GGUF when there is one
# ($MODEL, else the cache). $JOBS engines run at once. Ends with "N passed, N failed, N skipped".
#
# Limits. Variants and CPU share the integer dots; f32 order differs, and an activation that sits on a
# rounding edge then takes the neighbouring int8, 1/127 of its chunk's largest value away. One such
# rounding of all activations has an NMSE of (amax / (127 rms))^2 / 12, near 5e-5 where a chunk's largest
# value is 3 rms; four roundings a layer add up over the layers, damped by the residual stream. Gemma
# (18 layers) measured 3.6e-4 on an H200; 1e-3 takes that, and a wrong kernel gives 1e-2 and more.
# Variants of the class bf16 don't make those roundings at all: 18 layers of four are 3.6e-3 if nothing
# were damped, so 4e-3.
#
# Tokens. Where two runs part, the two gaps of their largest logits add up to the difference of two of
# their logits' errors; with errors of the measured rms s it has a standard deviation of sqrt(2) s, and
# more than 4 s (2.8 of them) is no rounding. Both figures are of the pair of runs compared.
#
# Among themselves. Members of the class q8 add the same two terms a chunk in the same order, so their
# logits are equal bit for bit, in two groups: the fold takes (da*sa)*dmv, the forms before it (da*dmv)*sa.
set -u
cd "$(dirname "$0")/../.."
B=${B:-build}
engine=$B/sasstop-engine compare=$B/gpu/engine_compare
jobs=${JOBS:-$(($(nproc 2>/dev/null || echo 4) / 2))}
[ "$jobs" -gt 6 ] && jobs=6
[ "$jobs" -lt 1 ] && jobs=1
passed=0 failed=0 skipped=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
prompt=$(cat tests/fixtures/gemma/prompt.txt)
tiny="The registers hold what the scheduler lets them hold, and nothing more than that."

done_with() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" -eq 0 ]; exit; }
judge() { # judge STATUS TEXT
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "ok   $2"; else failed=$((failed + 1)); echo "FAIL $2"; fi
}
# The engine with frames to FILE; its last word on failure.
engine() { # engine FILE ARGS...
    frames=$1; shift
    "$engine" --sources none --no-parity --fd 3 "$@" 3>"$frames" 2>"$frames.why" </dev/null && return
    rc=$?
    tail -1 "$frames.why"
    return $rc
}

# The cheapest run tells whether there is a GPU; exit status 3 = not here.
line=$(engine "$tmp/probe" --model synth:tiny --backend cuda --prompt x --logits "$tmp/probe.f32")
case $? in
0) ;;
3) skipped=1; echo "SKIP engine_parity: $line"; done_with ;;
*) judge 1 "engine on the GPU: $line"; done_with ;;
esac

variants() { # "NAME KD" of every sound variant that was built; of q6k_gemm FAMILY/NAME
    for d in "$B"/cubin/sm_*; do
        "$B/sasstop" variants --arch "${d##*sm_}" | awk '$1 ~ /^q[46]k_gemm$/ && $2 !~ /^broken/ {sub(/_kd[0-9]+$/, "", $2); print ($1 == "q6k_gemm" ? "q6k_gemm/" : "") $2, $3}'
    done | sort -u
}
class() { # class NAME: members add the same terms in the same order
    case $1 in
    q6k_gemm/hopper_* | q6k_gemm_hopper_*) echo bf16_q6 ;;
    q6k_gemm*) echo q6 ;;
    hopper_*) echo bf16 ;;
    mmq_r1 | narrow_prefold | wide_lds | wide_prefold | wide_r7) echo unfolded ;;
    *) echo folded ;;
    esac
}
four() { awk -v s="$1" 'BEGIN {print 4 * s}'; }
field() { echo "$1" | sed -n "s/.*$2 \([^ ,]*\).*/\1/p"; }

# against REF.f32 REF.tok LIMIT WHAT: this variant's logits and tokens, one line each.
against() {
    if line=$("$compare" logits "$1" "$dir/f32" "$3" 2>&1); then echo "P $at, logits, $4: $line"; else echo "F $at, logits, $4: $line"; fi
    gap=$(four "$(field "$line" 'rms difference')")
    if line2=$("$compare" tokens "$2" "$dir/tok" 32 "$gap" 2>&1); then echo "P $at, tokens, $4: $line2"; else echo "F $at, tokens, $4: $line2"; fi
}

# One variant: lines into DIR/lines, its hash into DIR/hash. KEEP: its logits stay.
one() { # one NAME KD KEEP
    dir=$tmp/v/$(echo "$1" | tr / _).$2 at="$spec $1 KD $2" c=$(class "$1")
    mkdir -p "$dir"
    set -- "$1" "$2" "$3" --backend cuda --model "$spec" --prompt "$text" --variant "$1" --kd "$2"
    keep=$3; shift 3
    if ! line=$(engine "$dir/frames" --logits "$dir/f32" "$@"); then
        case $line in *"has no variant"* | *"needs sm_"* | *" wants "*) echo "S $at: $line" ;; *) echo "F $at, logits: $line" ;; esac
    elif ! line=$(engine "$dir/tok" --tokens 32 --rounds 1 "$@"); then
        echo "F $at, tokens: $line"
    else
        limit=1e-3
        case $c in bf16*) limit=4e-3 ;; esac
        against "$tmp/cpu.f32" "$tmp/cpu.tok" $limit "to the CPU"
        field "$line" hash >"$dir/hash"
        # Of one numeric class: its first member's tokens.
        [ "$c" = bf16 ] && first=$tmp/v/$first_bf16 || first=$tmp/v/$first_q8
        # (folded: bit for bit, below; Q6_K: the q8 forms beside what runs when nothing is chosen)
        if [ "$first" != "$dir" ] && [ "$c" != folded ] && [ "$c" != bf16_q6 ] && [ -f "$first/f32" ]; then
            against "$first/f32" "$first/tok" $limit "to ${first##*/}"
        fi
    fi >"$dir/lines"
    [ "$keep" = keep ] || rm -f "$dir/f32"
}

# Bit-equal within a group, and so are the tokens.
group() { # group NAME
    first= n=0
    for d in "$tmp"/v/*; do
        [ -f "$d/hash" ] && [ "$(class "$(basename "${d%.*}")")" = "$1" ] || continue
        n=$((n + 1))
        if [ -z "$first" ]; then first=$d; continue; fi
        cmp -s "$first/hash" "$d/hash" || judge 1 "$spec ${d##*/}: logits are not ${first##*/}'s ($(cat "$d/hash"), $(cat "$first/hash"))"
        line=$("$compare" tokens "$first/tok" "$d/tok" 32 0) || judge 1 "$spec ${d##*/}: tokens are not ${first##*/}'s: $line"
    done
    [ $n -lt 2 ] || judge 0 "$spec: $n variants of the group $1 compared with one another, bit for bit"
}

model() { # model SPEC PROMPT
    spec=$1 text=$2 start=$(date +%s) first_q8=nb.8 first_bf16=hopper_n256.8
    line=$(engine "$tmp/frames" --backend cpu --logits "$tmp/cpu.f32" --model "$spec" --prompt "$text") || { judge 1 "$spec: logits on the CPU: $line"; return; }
    line=$(engine "$tmp/cpu.tok" --backend cpu --tokens 32 --rounds 1 --model "$spec" --prompt "$text") || { judge 1 "$spec: tokens on the CPU: $line"; return; }
    variants >"$tmp/list"
    one nb 8 keep
    one hopper_n256 8 keep
    i=0
    while read -r n kd; do
        case $n.$kd in "$first_q8" | "$first_bf16") continue ;; esac
        one "$n" "$kd" drop &
        i=$((i + 1))
        [ $((i % jobs)) -ne 0 ] || wait
    done <"$tmp/list"
    wait
    cat "$tmp"/v/*/lines >"$tmp/lines"
    while read -r s line; do
        case $s in
        P) judge 0 "$line" ;;
        S) skipped=$((skipped + 1)); echo "SKIP $line" ;;
        *) judge 1 "$line" ;;
        esac
    done <"$tmp/lines"
    group folded
    group unfolded
    rm -rf "$tmp/v" "$tmp"/cpu.*
    echo "# $spec: $(($(date +%s) - start)) s, $jobs engines at once"
}

model synth:tiny "$tiny"
gguf=${MODEL:-${SASSTOP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sasstop}/gemma-3-270m-q4_k_m.gguf}
if [ -f "$gguf" ]; then
    model "$gguf" "$prompt"
else
    skipped=$((skipped + 1))
    echo "SKIP Gemma: no $gguf (make model fetches it; MODEL=FILE names another)"
fi
done_with
