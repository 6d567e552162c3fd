# shellcheck shell=bash
# What the scripts of this folder share; they source it. It finds the project, installs missing packages, and
# configures the build. Afterwards the current directory is the project's root.
#
#   RANKMESH_BUILD_DIR    build folder (default: build, beside the sources)
#   RANKMESH_NO_INSTALL   set to 1: look for no packages and install none; use what is there

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit # everything below uses paths relative to the root, so blanks in it do no harm

# The one list of packages. First column: who needs it ("build": building and the demo, "test": scripts/test only).
package_table='
# for   Debian, Ubuntu       Fedora               Arch
build   g++                  gcc-c++              gcc
build   meson                meson                meson
build   ninja-build          ninja-build          ninja
build   pkgconf              pkgconf-pkg-config   pkgconf
build   libopenmpi-dev       openmpi-devel        openmpi
build   openmpi-bin          openmpi              openmpi
build   libcli11-dev         cli11-devel          cli11
build   libfmt-dev           fmt-devel            fmt
build   nlohmann-json3-dev   json-devel           nlohmann-json
build   libtomlplusplus-dev  tomlplusplus-devel   tomlplusplus
build   libxxhash-dev        xxhash-devel         xxhash
build   libcereal-dev        cereal-devel         cereal
build   doctest-dev          doctest-devel        doctest
test    cmake                cmake                cmake
test    iproute2             iproute              iproute2
test    util-linux           util-linux           util-linux
'

# ---------------------------------------------------------------------------------------------------- messages

heading() { printf '\n== %s ==\n' "$*"; }
complain() { printf '%s: %s\n' "scripts/${0##*/}" "$*" >&2; }
stop() { # STATUS MESSAGE...
  complain "${@:2}"
  exit "$1"
}

# A command as a reader would type it: arguments are quoted only where the shell would misread them.
as_typed() {
  local word line=
  for word; do
    [[ $word =~ ^[A-Za-z0-9_./:=,+@%-]+$ ]] || word=${word@Q}
    line+=" $word"
  done
  printf '%s' "${line# }"
}

# Runs a command, and ends the script with its status if it fails.
run_quietly() {
  local status=0
  "$@" || status=$?
  ((status == 0)) || stop "$status" "failed with status $status: $(as_typed "$@")"
}

# The same, and shows the command first.
run() {
  printf '$ %s\n' "$(as_typed "$@")"
  run_quietly "$@"
}

run_mpi() { run_quietly scripts/run-mpi -v "$@"; } # N CMD...; it shows the mpirun command itself

# Prints the comment block on top of the calling script.
usage() { awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"; }

# ---------------------------------------------------------------------------------------------------- packages

# packages COLUMN PURPOSE...: the names in one column of the table, each once.
packages() {
  awk -v column="$1" -v purposes=" ${*:2} " \
    '!/^#/ && NF && index(purposes, " " $1 " ") && !seen[$column]++ { print $column }' <<<"$package_table"
}

# Says which column of the table fits this machine, and whether this script may install by itself ("apt").
detect_system() {
  local ID='' ID_LIKE='' VERSION_ID=''
  # shellcheck source=/dev/null
  [[ ! -r /etc/os-release ]] || . /etc/os-release
  local release=${VERSION_ID%%.*}
  case $ID in
    debian) ((${release:-99} < 12)) && echo "2 names" || echo "2 apt" ;; # testing and unstable have no number
    ubuntu) ((${release:-0} < 24)) && echo "2 names" || echo "2 apt" ;;
    fedora) echo "3 names" ;;
    arch) echo "4 names" ;;
    *)
      case " $ID_LIKE " in
        *" fedora "*) echo "3 names" ;;
        *" arch "*) echo "4 names" ;;
        *) echo "2 names" ;;
      esac
      ;;
  esac
}

# install_missing PURPOSE...: makes sure that the packages are there. Asks nothing, and is silent when nothing is missing.
install_missing() {
  [[ -z ${RANKMESH_NO_INSTALL:-} ]] || return 0
  local column way
  read -r column way < <(detect_system)
  if [[ $way == apt ]]; then
    install_with_apt "$@"
  else
    check_tools "$column" "$@"
  fi
}

install_with_apt() {
  local wanted missing
  mapfile -t wanted < <(packages 2 "$@")
  # One query for all of them; it fails if it does not know one, which is an answer here.
  mapfile -t missing < <(
    printf '%s\n' "${wanted[@]}" | grep -vxF -f <(
      dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p'
    )
  )
  ((${#missing[@]})) || return 0

  local install=(apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}")
  local as_root=()
  if ((EUID != 0)); then
    as_root=(sudo -n)
    if ! sudo -n true 2>/dev/null; then
      complain "packages are missing, and installing them needs root (or sudo without a password). Please run:"
      printf '  sudo apt-get install --no-install-recommends %s\n' "${missing[*]}" >&2
      exit 2
    fi
  fi
  heading "Installing ${#missing[@]} missing packages"
  run "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update
  run "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}"
}

# Elsewhere: names the packages, and goes on if the tools are there (meson then says which library is missing).
check_tools() {
  local column=$1 tool missing=()
  shift
  for tool in "${CXX:-c++}" meson ninja pkg-config mpirun; do
    command -v "${tool%% *}" >/dev/null || missing+=("$tool")
  done
  if ((${#missing[@]})) || [[ ! -e $build_dir/build.ninja ]]; then
    local names
    names=$(packages "$column" "$@" | paste -sd ' ')
    printf 'rankmesh needs these packages%s:\n  %s\n' \
      "$( ((column != 2)) || echo ', as Debian and Ubuntu name them')" "$names" >&2
  fi
  ((${#missing[@]} == 0)) || stop 2 "not found: ${missing[*]} (an MPI may need its environment module to be loaded first)"
}

# ---------------------------------------------------------------------------------------------------- building

build_dir=${RANKMESH_BUILD_DIR:-build}

# configure DIR [meson options]: once; later runs leave the folder's options as they are.
configure() {
  local dir=$1
  shift
  if [[ -e $dir/build.ninja ]]; then
    [[ -w $dir/build.ninja ]] || stop 2 "$dir belongs to another user: remove it, or set RANKMESH_BUILD_DIR"
    return 0
  fi
  run meson setup "$dir" "$@"
}

# Several source files in one compilation halve the time of a build from nothing.
quick_build=(--buildtype=plain --unity=on -Dunity_size=40 -Dgpu_arch=sm_80)

configure_default() {
  configure "$build_dir" "${quick_build[@]}" -Doptimization=1 -Dmpi=enabled -Dtools=enabled -Dtests=enabled -Dexamples=enabled
}
