# shellcheck shell=bash
# Functions that the scripts in this folder share; each script sources this file. It finds the project, installs missing
# packages, and configures the build. Afterwards the current directory is the project's root.
#
#   RANKMESH_BUILD_DIR    build folder (default: build, beside the sources)
#   RANKMESH_NO_INSTALL   set to 1 to install no packages and to use those that are installed

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit # everything below uses paths relative to the root, so blanks in it do no harm

# The list of packages. The first column says when a package is needed: "build" for building and the demo, "mpi" for
# these where no MPI library is installed yet, "test" for scripts/test only, "all" for scripts/test --all only, "docs" for
# scripts/docs only, which installs nothing. Packages that a system does not have are left out, and what needs them is
# skipped.
package_table='
# for   Debian, Ubuntu       Fedora               Arch
build   g++                  gcc-c++              gcc
build   meson                meson                meson
build   ninja-build          ninja-build          ninja
build   pkgconf              pkgconf-pkg-config   pkgconf
mpi     libopenmpi-dev       openmpi-devel        openmpi
mpi     openmpi-bin          openmpi              openmpi
build   libcli11-dev         cli11-devel          cli11
build   libexpat1-dev        expat-devel          expat
build   libfmt-dev           fmt-devel            fmt
build   nlohmann-json3-dev   json-devel           nlohmann-json
build   libtomlplusplus-dev  tomlplusplus-devel   tomlplusplus
build   libxxhash-dev        xxhash-devel         xxhash
build   libyaml-dev          libyaml-devel        libyaml
build   libcereal-dev        cereal-devel         cereal
build   doctest-dev          doctest-devel        doctest
test    clang-format-16      -                    -
test    cmake                cmake                cmake
test    fish                 fish                 fish
test    gfortran             gcc-gfortran         gcc-fortran
test    git                  git                  git
test    groff-base           groff-base           groff
test    iproute2             iproute              iproute2
test    util-linux           util-linux           util-linux
test    libhwloc-dev         hwloc-devel          hwloc
test    libeigen3-dev        eigen3-devel         eigen
test    libxtensor-dev       xtensor-devel        xtensor
test    libgloo-dev          gloo-devel           -
test    libfftw3-dev         fftw-devel           fftw
test    libfftw3-mpi-dev     fftw-openmpi-devel   fftw-openmpi
test    mandoc               mandoc               mandoc
test    procps               procps-ng            procps-ng
test    zsh                  zsh                  zsh
test    libthrust-dev        -                    -
test    libtorch-dev         -                    -
test    python3-torch        -                    -
all     chromium             chromium             chromium
docs    doxygen              doxygen              doxygen
docs    furo                 python3-furo         python-sphinx-furo
docs    python3-myst-parser  python3-myst-parser  python-myst-parser
docs    python3-sphinx       python3-sphinx       python-sphinx
docs    python3-sphinx-copybutton python3-sphinx-copybutton python-sphinx-copybutton
'

# ---------------------------------------------------------------------------------------------------- messages

heading() { printf '\n== %s ==\n' "$*"; }
complain() { printf '%s: %s\n' "scripts/${0##*/}" "$*" >&2; }
stop() { # STATUS MESSAGE...
  complain "${@:2}"
  exit "$1"
}

# Prints a command as a reader would type it: arguments are quoted only where the shell would misread them.
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

# The mpirun of the MPI library that a build folder uses.
launcher_of() { cat "$1/lib/mpi/launcher" 2>/dev/null || echo mpirun; }

# N CMD...: runs a program of the build folder as a job; scripts/run-mpi shows the mpirun command itself.
run_mpi() {
  RANKMESH_MPIRUN=$(launcher_of "$build_dir") RANKMESH_MPICH_IDLE=$(realpath -m "$build_dir/tests/libmpich_idle.so") \
    run_quietly scripts/run-mpi -v "$@"
}

# Prints the comment block on top of the calling script.
usage() { awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"; }

# ---------------------------------------------------------------------------------------------------- packages

# packages COLUMN PURPOSE...: prints the names in one column of the table, each once.
packages() {
  awk -v column="$1" -v purposes=" ${*:2} " \
    '!/^#/ && NF && index(purposes, " " $1 " ") && $column != "-" && !seen[$column]++ { print $column }' <<<"$package_table"
}

# Prints the column of the table that fits this machine, and "apt" where this script may install packages by itself.
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

# install_missing PURPOSE...: installs the packages that are missing. It asks no question, and prints nothing when all
# packages are installed.
install_missing() {
  [[ -z ${RANKMESH_NO_INSTALL:-} ]] || return 0
  local column method
  # Any MPI library will do: a second one would only change what mpicc and mpirun mean.
  { command -v mpicc && command -v mpirun; } >/dev/null || set -- mpi "$@"
  read -r column method < <(detect_system)
  if [[ $method == apt ]]; then
    install_with_apt "$@"
  else
    check_tools "$column" "$@"
  fi
}

is_known() { [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[!\(]* ]]; } # PACKAGE: whether apt could install it

# COMMAND...: runs "apt-get update" by it. Another apt of the machine, such as the daily one, is waited for.
update_package_lists() {
  local update=("$@" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q update) output tries
  printf '$ %s\n' "$(as_typed "${update[@]}")"
  for ((tries = 0; tries < 60; tries++)); do
    output=$("${update[@]}" 2>&1) && printf '%s\n' "$output" && return
    [[ $output == *"Could not get lock"* ]] || break
    sleep 5
  done
  printf '%s\n' "$output" >&2
  stop 100 "the lists of packages could not be updated"
}

install_with_apt() {
  local wanted missing
  mapfile -t wanted < <(packages 2 "$@")
  # One query for all packages. It fails where it does not know one, and then that package counts as missing.
  mapfile -t missing < <(
    printf '%s\n' "${wanted[@]}" | grep -vxF -f <(
      dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p'
    )
  )
  ((${#missing[@]})) || return 0

  local as_root=()
  ((EUID == 0)) || as_root=(sudo -n)
  # Before the first update, apt knows the installed packages at most.
  if ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null && { ((EUID == 0)) || sudo -n true 2>/dev/null; }; then
    update_package_lists "${as_root[@]}"
  fi
  if is_known g++; then
    local package known=()
    for package in "${missing[@]}"; do
      if is_known "$package"; then known+=("$package"); else complain "this system has no package $package"; fi
    done
    missing=("${known[@]}")
    ((${#missing[@]})) || return 0
  fi

  local install=(apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}")
  if ((EUID != 0)); then
    if ! sudo -n true 2>/dev/null; then
      complain "packages are missing, and installing them needs root (or sudo without a password). Please run:"
      printf '  sudo apt-get install --no-install-recommends %s\n' "${missing[*]}" >&2
      exit 2
    fi
  fi
  heading "Installing ${#missing[@]} missing packages"
  update_package_lists "${as_root[@]}"
  run "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}"
}

# On other systems: prints the names of the packages, and continues if the tools are installed (meson then names the
# library that is missing).
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

# How many processors this process may use: its CPU affinity, and the limit of its cgroup. nproc also obeys OpenMP's variables.
processors() {
  local count quota period group
  count=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
  group=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null || true)
  while true; do # the limits of all groups around it count, too
    group=${group%/}
    if read -r quota period 2>/dev/null <"/sys/fs/cgroup$group/cpu.max" && [[ $quota != max ]]; then
      ((count * period <= quota)) || count=$(((quota + period - 1) / period))
    fi
    [[ $group ]] || break
    group=${group%/*}
  done
  echo "$count"
}

# The packages of the table that are installed; none where dpkg does not manage them. meson remembers for ever what it has not
# found.
installed_packages() {
  local wanted
  mapfile -t wanted < <(packages 2 build mpi test all)
  # It fails where it does not know one of them.
  { dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true; } | sed -n 's/^installed //p' | sort
}

# configure DIR [meson options]: configures the folder; later calls keep its options. If packages were installed or removed, the
# folder is made anew.
configure() {
  local dir=$1 now
  shift
  # meson takes ccache by itself, which fails where it cannot write.
  if command -v ccache >/dev/null && ! mkdir -p "$(ccache -k cache_dir)/tmp" 2>/dev/null; then export CCACHE_DISABLE=1; fi
  now=$(installed_packages)
  if [[ -e $dir/build.ninja ]]; then
    [[ -w $dir/build.ninja ]] || stop 2 "$dir belongs to another user: remove it or set RANKMESH_BUILD_DIR"
    [[ -e $dir/packages && $now != "$(<"$dir/packages")" ]] || return 0
    run meson setup --wipe "$dir"
  else
    rm -rf "$dir/meson-private" # of a setup that was interrupted, after which meson would set up nothing
    run meson setup "$dir" "$@"
  fi
  printf '%s\n' "$now" >"$dir/packages"
}

# Compiling several source files at once halves the time of a full build, and -Og takes a sixth less than -O1.
quick_build=(--buildtype=plain --unity=on -Dunity_size=40 -Db_ndebug=false -Dgpu_arch=sm_80)

configure_default() { # DIR [meson options]
  configure "$1" "${quick_build[@]}" -Doptimization=g -Ddefault_library=both -Dmpi=enabled -Dtools=enabled \
    -Dtests=enabled -Dexamples=enabled "${@:2}"
}
