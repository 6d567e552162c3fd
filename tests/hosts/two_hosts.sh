#!/usr/bin/env bash
# two_hosts.sh MESHINFO TEST FINALIZES_EARLY SHIFTED_CLOCK: two emulated hosts of four ranks; discovery must see them, meshinfo must print
# them, the tests of groups and exchange must pass across them, and jobs must end when one rank comes to MPI_Finalize before
# the others. Exits with 77 (skipped) and the reason if namespaces cannot be created.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
meshinfo=$(realpath "$1")
test=$(realpath "$2")
finalizes_early=$(realpath "$3")
shifted_clock=$(realpath "$4")
output=$("$here/scripts/emulated-hosts" mpirun 2 4 "$meshinfo" show pp=2,dp=2,tp=2 2>&1) || {
  status=$?
  printf '%s\n' "$output" >&2
  exit "$status"
}
printf '%s\n' "$output"
wants() { # the output must contain the line; blanks are ignored
  grep -qE "$1" <<<"$output" || { echo "missing in the output: $1" >&2; exit 1; }
}
wants '^  pp 0  dp 0 +0 n0 +1 n0$'
wants '^        dp 1 +6 n1 +7 n1$'
wants '^  pp +2 +4 +4 +0,4 +3,7 +0 +2$' # pp spans both nodes
wants '^  tp +2 +4 +1 +0-1 +6-7 +4 +1$' # every tp group lies inside one
wants '^  n0 h0: ranks 0-3, processes '
wants '^  n1 h1: ranks 4-7, processes '
# doctor relates the clocks and measures the connections. The clock of h1 is five seconds ahead, so the status is 1.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$shifted_clock" "$scratch/clock.so" # LD_PRELOAD takes no path with blanks
output=$("$here/scripts/emulated-hosts" mpirun 2 1 \
  sh -c '[ $(hostname) = h0 ] || export LD_PRELOAD="$1 $LD_PRELOAD"; exec "$2" doctor' sh "$scratch/clock.so" "$meshinfo" \
  2>/dev/null) || true
printf '%s\n' "$output"
wants '^doctor  2 ranks on 2 nodes, '
wants '^warning  clock-offset  rank 1 \(h1\)$'
wants 'the clock of host h1 is (4.9|5.0)[0-9]* s ahead of that of host h0'
wants '^  h0 +0 .* h1 +[0-9.]+ +[0-9.]+$'
wants '^  h1 +1 .* [+](49|50)[0-9.]+ +h0 +[0-9.]+ +[0-9.]+$'
# Files and refused calls do not depend on the host; the tests of one host have them.
RANKMESH_HOSTS_TIMEOUT=300 "$here/scripts/emulated-hosts" mpirun 2 2 "$test" '--source-file=*/group/*,*/exchange/*,*/mesh/batch_*' \
  '--source-file-exclude=*/exchange/checkpoint_*,*/group/contract_*'
RANKMESH_HOSTS_TIMEOUT=60 "$here/scripts/emulated-hosts" mpirun 2 1 "$finalizes_early"
# One rank per host: waits between nodes.
"$here/scripts/emulated-hosts" mpirun 2 1 "$test" '--source-file=*/mesh/waits_*' '--test-case=between nodes*'
