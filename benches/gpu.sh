#!/usr/bin/env bash
# Measures on a machine with a GPU that has neither a network nor Rust.
#
#   benches/gpu.sh pack FILE.tar.xz [PROGRAM]   here: builds the program with cuda, wgpu and vulkan, and packs it with
#                                               experiments and data; or packs a program that was built before
#   benches/gpu.sh run [FOLDER]                 there, in the unpacked folder: everything of gpu.md, into one folder
#
# CUDA is built without LLVM if LLVM_STAND_IN names a crate in its place. `run` uses DEVICES (vulkan,cuda as far as they are
# there), and knows what share of the card's arithmetic is used if PEAK_TFLOPS says how much it has.
set -uo pipefail
here="$(cd "$(dirname "$0")/.." && pwd)"

pack() {
    local to="$1" program="${2:-}" place
    set -e
    if [ -z "$program" ]; then
        local stand_in=()
        if [ -n "${LLVM_STAND_IN:-}" ]; then
            stand_in=(--config "patch.crates-io.cubecl-llvm.path=\"$LLVM_STAND_IN\"" -F cubecl-cuda/cpp)
            # The stand-in changes the lock file, which is restored.
            cp "$here/Cargo.lock" "$here/Cargo.lock.before"
            trap 'mv "$here/Cargo.lock.before" "$here/Cargo.lock"' EXIT
        fi
        (cd "$here" && cargo build --release --features cuda,wgpu,vulkan "${stand_in[@]}")
        program="${CARGO_TARGET_DIR:-$here/target}/release/runner"
    fi
    place="$(mktemp -d)"
    mkdir -p "$place/gpu/benches"
    cp -r "$here/experiments" "$place/gpu/"
    cp "$here/benches/gpu.sh" "$here/benches/gpu.md" "$here/benches/peers.py" "$place/gpu/benches/"
    strip -o "$place/gpu/runner" "$program"
    tar -C "$place" -cJf "$to" gpu
    rm -rf "$place"
    local size
    size=$(stat -c %s "$to")
    echo "$to: $((size >> 20)) MiB"
    [ "$size" -lt $((60 << 20)) ] || { echo "more than 60 MiB"; return 1; }
}

# Runs a part with at most so many seconds, all of them together less than ten minutes; what it printed stays in the folder,
# and the next part follows however it ended.
part() {
    local name="$1" limit="$2" code=0 left=$((570 - SECONDS))
    shift 2
    [ "$left" -gt 5 ] || { echo "$name: left out: ten minutes are over" | tee -a "$out/parts.txt"; return; }
    limit=$((limit < left ? limit : left))
    timeout -k 5 "$limit" "$@" >"$out/$name.txt" 2>"$out/$name.err" || code=$?
    case $code in
        0) echo "$name: done" ;;
        124 | 137) echo "$name: stopped after $limit s" ;;
        *) echo "$name: ended with $code: $(tail -n 1 "$out/$name.err")" ;;
    esac | tee -a "$out/parts.txt"
}

# A row of the table of steps: an experiment on a device in a precision.
steps() {
    local name="$1" device="$2" precision="$3" batch="$4" place="$out/steps-$1-$2-$3"
    local sets=(--set "backend.device='$device'" --set "backend.precision='$precision'"
        --set "train.batch_size=$batch" --set train.epochs=3 --set "experiment.seeds=[1]")
    local spec="$here/experiments/$name.toml"
    "$runner" run "$spec" "${sets[@]}" --results "$place" || return
    local products
    products=$("$runner" describe "$spec" | sed -n 's/.* \([0-9,]*\) multiply-adds and.*/\1/p' | tr -d ,)
    # The last epoch; a step multiplies three times as much as its way there.
    cat "$place"/*/runs/*/events.jsonl | tr ',{' '\n\n' | awk -F: -v row="$name | $device | $precision | $batch" \
        -v products="${products:-0}" -v batch="$batch" -v peak="${PEAK_TFLOPS:-0}" '
        $1 == "\"step\"" { step = $2 }
        $1 == "\"train_secs\"" { rate = (step - last) / $2; last = step }
        END {
            if (!rate) exit 1
            tera = 6 * products * batch * rate / 1e12
            printf "| %s | %.1f | %.3f | %s |\n", row, rate, tera, (peak > 0 ? sprintf("%.1f %%", 100 * tera / peak) : "")
        }' >>"$out/steps.md"
}

run() {
    out="${1:-$here/gpu-results}"
    runner="$here/runner"
    mkdir -p "$out"
    cd "$out" || exit 1
    out="$PWD"
    export XDG_CACHE_HOME="$out/cache" CUBECL_AUTOTUNE_LEVEL="${CUBECL_AUTOTUNE_LEVEL:-minimal}"
    part devices 30 "$runner" devices
    local devices="${DEVICES:-$(sed '/^not available/,$d' "$out/devices.txt" | grep -oE '^ +(vulkan|cuda)' | tr -d ' ' | paste -sd,)}"
    [ -n "$devices" ] || { echo "no GPU is there, see $out/devices.txt"; exit 1; }
    part card 20 nvidia-smi
    local quoted="\"flex\", \"${devices//,/\", \"}\"" device name precision
    # What is not timed, all at once.
    for device in ${devices//,/ }; do
        part "parity-layers-$device" 150 "$runner" parity --layers --devices "flex,$device" --md &
        part "parity-cnn-$device" 100 "$runner" parity "$here/experiments/burn_guide_cnn.toml" \
            --devices "flex,$device" --steps 20 &
        part "prove-$device" 150 "$runner" prove "$here/experiments/burn_guide_cnn.toml" \
            --set "backend.device='$device'" &
    done
    part sweep 150 "$runner" run "$here/experiments/mnist_sweep.toml" --results "$out/sweep" --set train.epochs=2 \
        --set "experiment.seeds=[1]" --set "sweep.grid.backend.device=[$quoted]" &
    wait
    printf '| network | device | precision | batch | steps/s | TFLOP/s | share of the peak |\n%s\n' \
        '| --- | --- | --- | --- | --- | --- | --- |' >"$out/steps.md"
    for device in ${devices//,/ }; do
        part "memory-$device" 35 "$runner" memory "$here/experiments/burn_guide_cnn.toml" \
            --set "backend.device='$device'" --calibrate
        for name in burn_guide_cnn residual_cnn segmentation char_lstm char_transformer; do
            part "steps-$name-$device-f32" 15 "$BASH" "$here/benches/gpu.sh" steps "$out" "$name" "$device" f32 64
        done
        for precision in f16 bf16; do
            part "steps-$precision-$device" 15 "$BASH" "$here/benches/gpu.sh" steps "$out" char_transformer "$device" \
                "$precision" 64
        done
        if python3 -c 'import torch' 2>/dev/null; then
            part "pytorch-$device" 100 python3 "$here/benches/peers.py" "$runner" --device "$device" --rounds 2 \
                --epochs 2 --steps 100 MLP CNN "residual network" "LSTM language model" "transformer language model"
        fi
    done
    cat "$out/steps.md"
    echo "everything is in $out"
}

case "${1:-}" in
    pack) shift && pack "$@" ;;
    run) shift && run "$@" ;;
    steps) # one row, as a part of `run`
        out="$2" runner="$here/runner"
        shift 2 && steps "$@"
        ;;
    *)
        sed -n '2,9s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
esac
