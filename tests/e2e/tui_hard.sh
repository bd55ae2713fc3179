#!/bin/sh
# Hard use: signals to the screen, an engine that stops answering, deaths in a row, a full disk, keys
# held down, storms of sizes, leaving while the model loads, a prompt of a megabyte.
. "$(dirname "$0")/lib_tui.sh"

run="'$bin' run --model synth:tiny --backend cpu --threads 2"

for sig in TERM INT HUP; do
    start 80x24 "$run --record $sig.sasstop"
    wait_for " n " || done_here
    pid=$(engine_pid)
    kill -$sig "$(child_named "$(pane_pid)" sasstop)"
    wait_for "STATUS=0"
    check "stty differs after $sig" cmp -s "$tmp/before" "$tmp/after"
    check "the engine outlived $sig" wait_gone "$pid" 30
    "$bin" replay "$tmp/$sig.sasstop" --dump >/dev/null 2>"$tmp/err"
    check "the recording is torn after $sig: $(cat "$tmp/err")" [ ! -s "$tmp/err" ]
done

# Stopped, not dead: no progress is a hang.
start 100x30 "$run --bench pp8,tg4"
wait_for " n " || done_here
pid=$(engine_pid)
kill -STOP "$pid"
keys 7
wait_for "made no progress and was ended"
check "a stopped engine is still there" wait_gone "$pid" 30
keys 1
wait_for "now    g2"

# Three deaths with no rounds between them end it; the screen stays. The engine dies by itself each time but the
# first, so that none gets as far as a round however slow this script is.
printf '#!/bin/sh\n[ -e "%s" ] && kill -KILL $$\n: >"%s"\nexec "%s" "$@"\n' "$tmp/ran" "$tmp/ran" "$engine" >"$tmp/dying"
chmod 755 "$tmp/dying"
start 100x30 "SASSTOP_ENGINE='$tmp/dying' $run --record deaths.sasstop"
wait_for " n " || done_here
kill -KILL "$(engine_pid)"
wait_for "three deaths in a row"
keys e
wait_for "exported"
keys q
wait_for "STATUS=1"
check "stty differs after three deaths" cmp -s "$tmp/before" "$tmp/after"

# The disk is full: recording stops with words, the session goes on.
start 100x30 "(ulimit -f 16; exec $run --bench pp4,tg2 --record full.sasstop)"
wait_for " n " || done_here
tries=600
while [ $tries -gt 0 ] && ! screen | grep -qE "recording (stopped|ended|failed)|too large"; do
    tries=$((tries - 1))
    sleep 0.1
done
check "no word of a full disk: $(screen | tail -3)" [ $tries -gt 0 ]
wait_for "wall clock"
keys q
wait_for "STATUS="
"$bin" report "$tmp/full.sasstop" >"$tmp/full.md" 2>/dev/null
check "a recording up to a full disk doesn't open" [ -s "$tmp/full.md" ]

# Keys held down, pausing amid a flip, sizes that storm.
start 90x25 "$run"
wait_for " n " || done_here
keys v v v v k k v V K v k Space v k Space R
for size in 40x10 200x60 10x3 1x1 300x80 81x24 120x40; do
    keys v
    tmux -S "$sock" resize-window -x "${size%x*}" -y "${size#*x}" 2>/dev/null
done
keys Escape Escape
keys 1
wait_for "wall clock"
keys q
wait_for "STATUS=0"

# Leaving while the model loads.
start 80x24 "$run"
keys q
wait_for "STATUS=0"
check "stty differs after leaving early" cmp -s "$tmp/before" "$tmp/after"

# Terminals that can't draw are refused.
for t in "" nosuch dumb; do
    start 80x24 "TERM=$t $run"
    wait_for "STATUS=3"
    check "no words for TERM=$t" sh -c "tmux -S '$sock' capture-pane -p | grep -q 'sasstop: terminal type'"
    check "stty differs after TERM=$t" cmp -s "$tmp/before" "$tmp/after"
done

# No engine, or one that is none.
printf 'nothing\n' >"$tmp/none"
chmod 755 "$tmp/none"
for e in /nonexistent "$tmp" "$tmp/none" "$tmp/r.txt"; do
    SASSTOP_ENGINE=$e "$bin" run --headless --seconds 1 </dev/null >"$tmp/out" 2>"$tmp/err"
    check "status $? of engine $e" [ $? != 0 ]
    check "not one line for engine $e: $(cat "$tmp/err")" [ "$(wc -l <"$tmp/err")" = 1 ]
done
done_here
