#!/bin/sh
# Without a terminal: a text summary and the fixed exit statuses; scripts on a live session.
. "$(dirname "$0")/lib_tui.sh"
cd "$tmp" || exit 1

status() { # status WANT COMMAND...: the exit status, and one line on stderr when it isn't 0
    want=$1
    shift
    "$@" </dev/null >out 2>err
    got=$?
    lines=$(wc -l <err)
    if [ $got != "$want" ]; then bad "status $got instead of $want: $*"; else ok; fi
    [ "$want" = 0 ] || check "stderr has $lines lines: $*" [ "$lines" = 1 ]
}

status 0 "$bin" run --model synth:tiny --backend cpu --headless --report rep.json --record r.sasstop
check "no summary" grep -q prefill out
check "no report" grep -q '"generations"' rep.json
status 0 "$bin" report r.sasstop --format json
check "the report differs from its recording's" cmp -s out rep.json
status 0 "$bin" replay r.sasstop
status 0 "$bin" cut r.sasstop --from 0.5 --to 9 -o c.sasstop
status 0 "$bin" report c.sasstop
status 1 "$bin" cut r.sasstop --from 0.5 --to 2 -o c.sasstop
status 2 "$bin" cut r.sasstop --from 1000 --to 2000 -o n.sasstop
check "a cut that holds nothing is there" [ ! -e n.sasstop ]
head -c $(($(wc -c <r.sasstop) - 9)) r.sasstop >short.sasstop
status 0 "$bin" cut short.sasstop --from 0 --to 2000 -o d.sasstop
check "a cut doesn't say what its recording has lost" grep -q 'are whole' err
status 0 "$bin" replay "$root/tests/fixtures/h200_walk.sasstop"
check "the summary cuts a role that has room" grep -q ' attn_output ' out
head -c 970000 "$root/tests/fixtures/h200_walk.sasstop" >half.sasstop
printf '%s\n' 'seek 3' 'expect range: comes with the next counted round' 'refuse damaged' 'seek 900' 'expect damaged here' >script
"$bin" replay half.sasstop --script script --size 120x40 </dev/null >out 2>err; got=$?
check "half a recording doesn't say where it stops that it is one" [ $got = 0 ]
status 0 "$bin" help
status 0 "$bin" version
for c in run replay report cut sass variants doctor version; do status 0 "$bin" $c --help; done
status 2 "$bin" nonsense
status 2 "$bin" run --nonsense
status 2 "$bin" run --bench nonsense
status 2 "$bin" run --backend cpu --headless --tokens 5
check "what to do about --tokens alone" grep -q -- '--prompt' err
status 2 "$bin" run --backend cpu --headless --executed 'a b c d'
status 2 "$bin" run --backend cpu --headless --variants ''
status 2 "$bin" replay
status 2 "$bin" report r.sasstop --format nonsense
status 2 "$bin" run --report rep.txt
status 1 "$bin" run --model none.gguf
status 1 "$bin" replay none.sasstop
status 1 "$bin" run --report rep.json
status 1 "$bin" run --report /nosuch/rep.md
status 2 "$bin" run --headless --seconds 0
printf '#!/bin/sh\nexec sleep 60\n' >slow && chmod 755 slow
status 1 env SASSTOP_ENGINE="$tmp/slow" "$bin" run --headless --seconds 1
check "no words for an engine that has not begun" grep -q 'nothing was measured' err
status 2 "$bin" report r.sasstop --frame -1
status 2 "$bin" report r.sasstop --frame 99999999999999999999
status 2 "$bin" replay r.sasstop --size 99999999999x1
status 1 "$bin" replay r.sasstop --script /tmp
status 2 "$engine" --fd 77

# What was to be printed and could not be is a failure; a reader that left has what it wanted.
closed() { "$@" >&-; }
full() { "$@" >/dev/full; }
for c in version help "replay r.sasstop" "replay r.sasstop --dump" "report r.sasstop"; do
    status 1 closed "$bin" $c
    status 1 full "$bin" $c
done
"$bin" replay r.sasstop --dump 2>err | head -1 >/dev/null
check "words for a reader that left: $(cat err)" [ ! -s err ]
rm -f closed.sasstop
closed "$bin" run --model synth:tiny --backend cpu --headless --seconds 3 --record closed.sasstop 2>err
status 0 "$bin" replay closed.sasstop --dump
check "a summary in the recording: $(cat err)" [ ! -s err ]

status 1 "$bin" run --headless --seconds 1 --record /nosuch/r.sasstop
check "a recording that failed is named as one" [ "$(grep -c recorded out)" = 0 ]

head -c -5 r.sasstop >torn.sasstop
status 0 "$bin" replay torn.sasstop
check "no word of a torn recording" grep -q "before it are whole" err

[ -e /dev/nvidia0 ] || status 3 "$bin" run --backend cuda --headless

cat >script <<'END'
wait wall clock
wait  n 
key v
wait now    g2
key s
expect census
key q
END
status 0 "$bin" run --model synth:tiny --backend cpu --headless --script script --size 90x25

# auto where there is nothing to choose from: said, and v goes on as before.
cat >script <<'END'
wait wall clock
wait  n 
key A
wait none to choose from
key v
wait now    g2
key q
END
status 0 "$bin" run --model synth:tiny --backend cpu --headless --script script --size 110x25
status 3 "$bin" run --model synth:tiny --backend cpu --headless --variant auto --seconds 60
check "why there is no auto" grep -q "none to choose from" err

# A walk by names, as a recording of the ladder is made.
walk() { RUNGS="rows:4 tiles:8 rows:8" B=$(dirname "$bin") sh "$root/tools/record_walk.sh" "$tmp/walk.sasstop" 0 \
    --model synth:tiny --backend cpu --bench pp32,tg2; }
status 0 walk
"$bin" replay --dump walk.sasstop >frames
check "a walk flips by name" [ "$(grep -cE 'GENERATION .*(generation=1 .*"rows" kd=4|generation=2 .*"tiles" kd=8|generation=3 .*"rows" kd=8)' frames)" = 3 ]
done_here
