#!/bin/sh
# Screen tests: each NAME.script is run on a recording at each of its sizes, and the screens it dumps
# are compared with NAME.WxH.golden. ACCEPT=1 rewrites the goldens. Usage: run.sh [NAME...]
# Head lines of a script:  "# fixture: FILE in tests/fixtures"   "# sizes: 80x24 120x40"
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=${B:-build}/sasstop
LC_ALL=C.UTF-8 TERM=tmux-256color SASSTOP_NVDISASM= # listings in our own words
export LC_ALL TERM SASSTOP_NVDISASM
unset NO_COLOR
passed=0 failed=0 skipped=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

head_of() { sed -n "s/^# $2: *//p" "$1" | head -1; }

one() { # one SCRIPT SIZE FIXTURE
    name=$(basename "$1" .script).$2
    golden=tests/screens/$name.golden
    if ! "$bin" replay "tests/fixtures/$3" --script "$1" --size "$2" >"$tmp/got" 2>"$tmp/err"; then
        failed=$((failed + 1))
        echo "FAIL screens/$name"
        cat "$tmp/got" "$tmp/err"
    elif [ "${ACCEPT:-0}" = 1 ]; then
        cp "$tmp/got" "$golden"
        passed=$((passed + 1))
    elif [ ! -f "$golden" ]; then
        failed=$((failed + 1))
        echo "FAIL screens/$name: no golden; make accept writes it"
    elif diff -u "$golden" "$tmp/got" >"$tmp/diff"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL screens/$name"
        cat "$tmp/diff"
    fi
}

[ $# -gt 0 ] || set -- $(ls tests/screens/*.script | xargs -n1 basename | sed 's/\.script$//')
for name; do
    script=tests/screens/$name.script
    fixture=$(head_of "$script" fixture)
    for size in $(head_of "$script" sizes); do
        if [ ! -f "tests/fixtures/$fixture" ]; then
            skipped=$((skipped + 1))
            echo "SKIP screens/$name.$size: no tests/fixtures/$fixture"
        else
            one "$script" "$size" "$fixture"
        fi
    done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
