#!/bin/sh
# `make run`: picks a model that fits this machine and starts a live session. MODEL=SPEC overrides.
set -u
cd "$(dirname "$0")/.." || exit 1
bin=${B:-build}/sasstop
cache=${SASSTOP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sasstop}

gpu_gb() { # GiB of the largest GPU; nothing when there is none that can be used
    [ -e /dev/nvidia0 ] || return
    ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' || [ -e /usr/lib/wsl/lib/libcuda.so.1 ] ||
        command -v nvidia-smi >/dev/null 2>&1 || return
    command -v nvidia-smi >/dev/null 2>&1 || { echo 0; return; }
    nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null |
        sort -n | tail -1 | awk '{print int($1 / 1024)}'
}

gb=$(gpu_gb)
gguf=$(ls "$cache"/gemma*.gguf 2>/dev/null | head -1)
[ -n "$gguf" ] || gguf=$(ls "$cache"/*.gguf 2>/dev/null | head -1)
if [ -n "${MODEL:-}" ]; then
    model=$MODEL why="MODEL="
elif [ "${gb:-0}" -ge 16 ] 2>/dev/null; then
    model=synth:llama3-8b why="a GPU with $gb GiB"
elif [ -n "$gguf" ]; then
    model=$gguf why="no GPU of 16 GiB; the model in the cache"
else
    model=synth:tiny why="no GPU of 16 GiB and no model in the cache (make model fetches one)"
fi
echo "sasstop: running $model ($why)"
exec "$bin" run --model "$model" "$@"
