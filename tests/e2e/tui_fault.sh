#!/bin/sh
# The engine is killed: the screen lives, the variant is marked, the engine runs again with the last
# good one, and the recording holds it all. Then a program that ends leaves no engine behind.
. "$(dirname "$0")/lib_tui.sh"

start 100x30 "'$bin' run --model synth:tiny --backend cpu --record rec.sasstop"
wait_for " n " || done_here
keys v
wait_for "now    g2"
pid=$(engine_pid)
check "no engine was found" [ -n "$pid" ]
kill -KILL "$pid"
keys 7 # the line that says it is gone once the engine runs again
wait_for "was killed by signal 9"
keys 1
wait_for "now    g3"
wait_for "before g"
keys 8
wait_for "faulted"
keys 1
wait_for "now    g3"
pid=$(engine_pid)
keys q
wait_for "STATUS=0"
check "the engine outlived the screen" wait_gone "$pid" 30
"$bin" replay "$tmp/rec.sasstop" --dump >"$tmp/frames" 2>"$tmp/err"
check "the recording is damaged" [ ! -s "$tmp/err" ]
check "no FAULT in the recording" grep -q '^FAULT.*signal=9' "$tmp/frames"
check "no restart in the recording" grep -q '^GENERATION.*reason="restart"' "$tmp/frames"

# The screen itself is killed: the engine sees end of file and leaves; the recording opens.
start 80x24 "'$bin' run --model synth:tiny --backend cpu --record cut.sasstop"
wait_for " n " || done_here
check "no chunk was ever written" wait_grown "$tmp/cut.sasstop" 16 60 # more than the file's header
i=0 # the first chunk may end before the first round does
until "$bin" report "$tmp/cut.sasstop" 2>/dev/null | grep -q prefill || [ $i -ge 600 ]; do
    sleep 0.1
    i=$((i + 1))
done
pid=$(engine_pid)
kill -KILL "$(child_named "$(pane_pid)" sasstop)"
check "the engine outlived a killed screen" wait_gone "$pid" 30
check "a killed recording doesn't open" sh -c "'$bin' report '$tmp/cut.sasstop' >'$tmp/cut.md' 2>/dev/null"
check "a killed recording is empty" grep -q prefill "$tmp/cut.md"
done_here
