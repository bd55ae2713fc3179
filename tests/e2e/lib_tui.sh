# For tests/e2e/tui_*.sh: runs the program in a private tmux and waits for what the screen must show.
# Never sleeps a fixed time: wait_for polls every 0.1 s until a deadline, which is far away: only a test that
# fails reaches it. On a loaded machine a poll takes long itself, so wait for what stays on the screen: a message
# that the next one replaces may come and go between two polls (the log keeps it), and a race against the engine
# is lost.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$root/${B:-build}/sasstop
engine=$root/${B:-build}/sasstop-engine
passed=0 failed=0
tmp=$(mktemp -d) || exit 1
sock=$tmp/tmux
unset SASSTOP_ENGINE NO_COLOR
LC_ALL=C.UTF-8 TERM=xterm-256color SASSTOP_NVDISASM= # listings in our own words
export LC_ALL TERM SASSTOP_NVDISASM

finish() {
    tmux -S "$sock" kill-server 2>/dev/null
    rm -rf "$tmp"
}
trap finish EXIT

skip() {
    echo "0 passed, 0 failed, 1 skipped"
    echo "SKIP $(basename "$0"): $1" >&2
    exit 0
}
command -v tmux >/dev/null 2>&1 || skip "no tmux"
[ -x "$bin" ] && [ -x "$engine" ] || skip "sasstop and sasstop-engine are not built"

# start WxH COMMAND...: in $tmp; a shell waits behind it, keeps the terminal's state and prints how it ended.
start() {
    size=$1
    shift
    tmux -S "$sock" kill-server 2>/dev/null
    sock=$sock. # a server that is still ending must not be met
    tmux -S "$sock" -f /dev/null new-session -d -x "${size%x*}" -y "${size#*x}" -c "$tmp" \
        "cd '$tmp'; stty -g >before; $*; rc=\$?; stty -g >after; echo STATUS=\$rc; exec cat"
}
screen() { tmux -S "$sock" capture-pane -p 2>/dev/null; }
keys() { tmux -S "$sock" send-keys "$@"; }

# wait_for TEXT [SECONDS]: OK when the screen holds TEXT in time.
wait_for() {
    tries=$((${2:-60} * 10))
    while [ $tries -gt 0 ]; do
        if screen | grep -qF -- "$1"; then
            ok "$1"
            return 0
        fi
        tries=$((tries - 1))
        sleep 0.1
    done
    bad "the screen never showed: $1"
    screen
    return 1
}
# wait_gone PID SECONDS
wait_gone() {
    tries=$(($2 * 10))
    while [ $tries -gt 0 ]; do
        kill -0 "$1" 2>/dev/null || return 0
        tries=$((tries - 1))
        sleep 0.1
    done
    return 1
}
# wait_grown FILE BYTES SECONDS: the file is larger than that.
wait_grown() {
    tries=$(($3 * 10))
    while [ $tries -gt 0 ]; do
        [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt "$2" ] && return 0
        tries=$((tries - 1))
        sleep 0.1
    done
    return 1
}
ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAIL $(basename "$0"): $1"
}
check() { # check WORDS COMMAND...
    words=$1
    shift
    if "$@"; then ok; else bad "$words"; fi
}
done_here() {
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" = 0 ]
    exit
}

# The engine that this test's program started: the child of the pane's process tree.
pane_pid() { tmux -S "$sock" list-panes -F '#{pane_pid}'; }
child_named() { # child_named PID NAME: depth first
    for c in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        if [ "$(cat /proc/"$c"/comm 2>/dev/null)" = "$2" ]; then
            echo "$c"
            return
        fi
        child_named "$c" "$2"
    done
}
engine_pid() { child_named "$(pane_pid)" sasstop-engine; }
