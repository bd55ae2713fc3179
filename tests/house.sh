#!/bin/sh
# House rules that a compiler can't hold: the direction of includes, who may name curses and CUPTI, sizes
# of files, and no trace of an unfinished piece. Prints what is off; ends with the closing line.
set -u
cd "$(dirname "$0")/.."
passed=0 failed=0
check() { # check WHAT OFFENDING-LINES
    if [ -z "$2" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); printf 'not held: %s\n%s\n' "$1" "$2"; fi
}
sources() { git ls-files "$1/*.c" "$1/*.h" "$1/*.cu" "$1/*.cuh" "$1/*.def"; }
includes() { # includes FOLDER REGEX: lines of FOLDER that include a header matching REGEX
    sources "$1" | xargs -r grep -nHE "^#[[:space:]]*include[[:space:]]+[<\"]($2)" /dev/null
}

# base <- sass_view <- kernels <- engine; base <- cupti <- engine; base <- session <- {engine, tui}.
check "base includes nobody" "$(includes base '(sass_view|kernels|cupti|session|engine|tui)/')"
check "sass_view includes base alone" "$(includes sass_view '(kernels|cupti|session|engine|tui)/')"
check "kernels includes base and sass_view alone" "$(includes kernels '(cupti|session|engine|tui)/')"
check "cupti includes base alone" "$(includes cupti '(sass_view|kernels|session|engine|tui)/')"
check "session includes base alone" "$(includes session '(sass_view|kernels|cupti|engine|tui)/')"
check "engine never includes tui" "$(includes engine 'tui/')"
check "tui never includes engine" "$(includes tui 'engine/')"
check "tui uses the host-only part of cupti and kernels" \
    "$(includes tui '(cupti/|kernels/)' | grep -vE '"(cupti/metrics\.(h|def)|kernels/(registry|variant|family|fragment)\.h)"')"
check "one file includes curses" \
    "$(for f in base sass_view kernels cupti session engine tui; do includes $f 'n?cursesw?(/|\.h)'; done | grep -v '^tui/screen_curses\.c:')"
check "only cupti names CUPTI's headers" \
    "$(for f in base sass_view kernels session engine tui; do includes $f 'cupti_|cupti\.h|nvperf'; done)"
check "session has no clock and no I/O of its own beyond files it is given" "$(includes session '(time\.h|sys/time\.h|base/clock\.h|unistd\.h)' | grep -v '^session/\(record\|report\)')"
check "no file over 500 lines (tables excepted)" \
    "$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs wc -l | awk '$2 != "total" && $1 > 500 {print $2 ": " $1 " lines"}')"
check "nothing says it is unfinished" \
    "$(git grep -nIE '\b(TODO|FIXME|XXX|HACK)\b' -- '*.c' '*.h' '*.cu' '*.sh' Makefile ':!tests/house.sh')"
# docs/TRAPS.md names tests: `test_NAME: CASE` of tests/unit/test_NAME.c, or files.
check "every test that docs/TRAPS.md names exists" \
    "$(grep -oE '`test_[a-z0-9_]+: [a-z0-9_]+`' docs/TRAPS.md | tr -d '`' | sort -u | while IFS=': ' read -r file name; do
        grep -qE "^static void $name\(void \*\*state\)" "tests/unit/$file.c" 2>/dev/null &&
            grep -qE "(T|cmocka_unit_test[a-z_]*)\($name[,)]" "tests/unit/$file.c" || echo "$file: $name"
    done
    grep -oE '`tests/[a-z0-9_/]+\.[a-z]+`' docs/TRAPS.md | tr -d '`' | sort -u | while read -r f; do [ -f "$f" ] || echo "$f"; done)"
check "docs/TRAPS.md has its forty-five rows, each with a test or a reason" \
    "$(awk -F'|' '/^\| [0-9]+ /{n++; if ($2 + 0 != n) print "row " n; if ($6 !~ /test/ && $5 !~ /can.t apply:/) print "row " n " has neither"}
        END {if (n != 45) print n " rows"}' docs/TRAPS.md)"
check "no macro is named like CUPTI itself" "$(git grep -nE '#[[:space:]]*define[[:space:]]+CUPTI([[:space:](]|$)' -- '*.c' '*.h' '*.def')"
check "nothing is registered to run at exit in what measures" "$(git grep -nE '\b(atexit|on_exit)\(' -- cupti engine)"
if command -v ctags >/dev/null 2>&1; then
    check "no function over 120 lines" "$(git ls-files '*.c' '*.cu' | ctags -L - --languages=C,C++ --langmap=C++:+.cu \
        --kinds-C=f --kinds-C++=f --fields=+ne --output-format=u-ctags -f - 2>/dev/null |
        awk -F'\t' '{l=0;e=0;for(i=4;i<=NF;i++){if($i~/^line:/)l=substr($i,6);if($i~/^end:/)e=substr($i,5)} if(e-l>120)print $2": "$1" "e-l" lines"}')"
fi
if [ -x "${B:-build}/sasstop" ]; then
    check "the screen links neither CUDA nor CUPTI" "$(ldd "${B:-build}/sasstop" | grep -E 'cuda|cupti|nvidia')"
    check "the engine links neither CUDA nor CUPTI" "$(ldd "${B:-build}/sasstop-engine" | grep -E 'cuda|cupti|nvidia')"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
