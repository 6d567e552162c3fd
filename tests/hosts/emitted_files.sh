#!/usr/bin/env bash
# emitted_files.sh MESHINFO: on two emulated hosts of two ranks, tp is split in the order of the launcher. The files that
# `meshinfo emit` writes must bring tp onto one host, and the live mesh must show it. Exits with 77 (skipped) and the
# reason if namespaces cannot be created, or if the launcher is not Open MPI 4.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
meshinfo=$(realpath "$1")
mpirun=${RANKMESH_MPIRUN:-mpirun}
[[ $("$mpirun" --version 2>&1) =~ (Open MPI|OpenRTE)\)\ 4\. ]] || { echo "skipped: $mpirun is not Open MPI 4" >&2 && exit 77; }
scratch=$(mktemp -d)
export RANKMESH_HOSTS=$scratch/hosts-state
hosts() { "$here/scripts/emulated-hosts" "$@"; }
trap 'hosts down >/dev/null 2>&1 || true; rm -rf "$scratch"' EXIT
printf 'h0 slots=2\nh1 slots=2\n' >"$scratch/hosts"
mesh=tp=2,dp=2
for format in openmpi openmpi-seq mpich mesh-order; do
  "$meshinfo" emit "$format" "$mesh" --offline --machine "$scratch/hosts" >"$scratch/$format"
done
{ echo "mesh = \"$mesh\"" && cat "$scratch/mesh-order"; } >"$scratch/moved.toml"
hosts up 2
# shows WANTED OPTION... -- MESH: the line of tp in the live mesh must begin as WANTED; blanks are ignored.
shows() {
  local wanted=$1 output
  shift
  output=$(hosts run timeout 60 "$mpirun" -n 4 "${options[@]}" "$@" 2>&1) || { printf '%s\n' "$output" >&2 && exit 1; }
  grep -qE "$wanted" <<<"$output" || { printf '%s\nmissing: %s\n' "$output" "$wanted" >&2 && exit 1; }
}
options=(--allow-run-as-root --hostfile "$scratch/hosts" --oversubscribe --bind-to none)
split='^ +tp +2 +2 .* 0 +2( all)? *$'
whole='^ +tp +2 +2 .* 2 +1 *$'
shows "$split" "$meshinfo" show "$mesh" --devices off
shows "$whole" "$meshinfo" show "$scratch/moved.toml" --devices off
options=(--allow-run-as-root --hostfile "$scratch/openmpi-seq" --map-by seq --bind-to none --oversubscribe)
shows "$whole" "$meshinfo" show "$mesh" --devices off
# Open MPI counts cores in a rankfile, and the emulated hosts have those of this machine.
(($(lscpu -p=CORE | grep -v '^#' | sort -u | wc -l) > 1)) || sed -i 's/slot=1/slot=0/' "$scratch/openmpi"
options=(--allow-run-as-root --hostfile "$scratch/hosts" --rankfile "$scratch/openmpi" --oversubscribe)
shows "$whole" "$meshinfo" show "$mesh" --devices off
# MPICH's launcher needs no program of MPICH: each rank prints its host.
if hydra=$(command -v mpiexec.hydra); then
  # shellcheck disable=SC2016 # the ranks expand it
  output=$(hosts run timeout 60 "$hydra" -launcher ssh -launcher-exec /dev/shm/rankmesh-hosts/agent -f "$scratch/mpich" -n 4 \
    sh -c 'echo $PMI_RANK $(hostname)' 2>&1) || { printf '%s\n' "$output" >&2 && exit 1; }
  [[ $(sort -n <<<"$output" | cut -d' ' -f2) == "$(cat "$scratch/mpich")" ]] ||
    { printf 'the ranks of MPICH are elsewhere:\n%s\nemitted:\n%s\n' "$output" "$(cat "$scratch/mpich")" >&2 && exit 1; }
fi
# Hosts that a machine took with it when it was switched off: their number is another process's now.
hosts down
echo $$ >"$scratch/hosts-state"
timeout 20 "$here/scripts/emulated-hosts" down
[[ ! -e $scratch/hosts-state ]] || { echo "the file of hosts that are gone stays" >&2 && exit 1; }
echo "the emitted files keep tp on one host"
