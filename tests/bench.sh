#!/bin/sh
# Speed figures, never part of the tests: every tests/bench/NAME.sh in turn. Usage: bench.sh [NAME...]
set -u
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- $(ls tests/bench/*.sh | xargs -n1 basename | sed 's/\.sh$//')
status=0
for name; do
    echo "== $name"
    sh "tests/bench/$name.sh" || status=1
done
exit $status
