#!/bin/sh
# Checks that the libraries are there; installs what is missing by apt as root or with passwordless
# sudo, else prints the line to run and exits 2. Usage: deps.sh [install]
set -eu
need=""
want() { # want HEADER-OR-COMMAND PACKAGE
    case $1 in
    */*) [ -e "/usr/include/$1" ] || need="$need $2" ;;
    *.h) [ -e "/usr/include/$1" ] || [ -n "$(find /usr/include -maxdepth 2 -name "$1" -print -quit)" ] || need="$need $2" ;;
    *) command -v "$1" >/dev/null 2>&1 || need="$need $2" ;;
    esac
}
want gcc gcc
want ncurses.h libncurses-dev
want libelf.h libelf-dev
want zstd.h libzstd-dev
want lz4.h liblz4-dev
want xxhash.h libxxhash-dev
want pcre2.h libpcre2-dev
want cjson/cJSON.h libcjson-dev
want cmocka.h libcmocka-dev
want sqlite3.h libsqlite3-dev
want zlib.h zlib1g-dev
want tmux tmux
[ -n "$need" ] || exit 0
if [ "$(id -u)" = 0 ]; then sudo=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo="sudo"
else
    echo "missing packages; install them with: sudo apt-get install -y$need" >&2
    exit 2
fi
echo "installing:$need"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get install -y -qq $need >/dev/null 2>&1 || {
    $sudo apt-get update -qq && $sudo apt-get install -y -qq $need >/dev/null
} || { echo "could not install; run: sudo apt-get install -y$need" >&2; exit 2; }
