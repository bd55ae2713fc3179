#!/bin/sh
# A live session on the CPU: wall clock, flip, census, export, record, quit; the terminal restored;
# the recording replays to the report that was exported.
. "$(dirname "$0")/lib_tui.sh"

start 100x30 "'$bin' run --model synth:tiny --backend cpu"
wait_for "wall clock" || done_here
wait_for "prefill tok/s"
wait_for "R opens recorded"
wait_for " n " # a timed round's figure
keys r
wait_for "recording to"
keys v
wait_for "now    g2"
wait_for "before g1"
wait_for "x"
keys k
wait_for "now    g3"
keys 5
wait_for "wall clock by generation"
keys s
wait_for "census"
keys 3
wait_for "timed, not counted"
keys 7
wait_for "flip"
keys h
wait_for "Flip variants"
keys Escape
keys 1
wait_for "wall clock"
keys e
wait_for "exported"
tmux -S "$sock" resize-window -x 60 -y 16
wait_for "wall clock"
tmux -S "$sock" resize-window -x 120 -y 40
wait_for "q quit"
keys q
wait_for "STATUS=0"
wait_for "recorded:"
check "stty differs after the program" cmp -s "$tmp/before" "$tmp/after"
json=$(ls "$tmp"/sasstop-*.json 2>/dev/null | head -1)
file=$(ls "$tmp"/sasstop-*.sasstop 2>/dev/null | head -1)
check "no report was exported" [ -s "${json:-/nonexistent}" ]
check "no recording was written" [ -s "${file:-/nonexistent}" ]
if [ -n "$file" ]; then
    check "the recording has no report" "$bin" report "$file" --format json -o "$tmp/again.json"
    check "the report names no flip" grep -q '"variant"' "$tmp/again.json"
    check "the export is not in the recording" sh -c "'$bin' replay '$file' --dump | grep -q '^MARK.*export'"
fi
done_here
