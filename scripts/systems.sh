# shellcheck shell=bash
# Minimal systems of other distributions, for scripts/fresh-system and scripts/try-gpu-pack: made by debootstrap, cached as
# tar files, and entered in namespaces of their own. A script that sources this file sets `self` to its own path, defines
# stop(), sets `suite` and `base`, and hands the arguments behind --enter to enter().
#
#   RANKMESH_FRESH_SYSTEM   folder for the cached systems, the systems in use and the logs (default: /var/tmp/rankmesh-fresh-system)
#   RANKMESH_MIRROR         the package archive (default: what apt uses on this machine, if that is the same distribution,
#                           or else the one that debootstrap knows)

# shellcheck disable=SC2154 # self, suite and base belong to the script that sources this file

cache=${RANKMESH_FRESH_SYSTEM:-/var/tmp/rankmesh-fresh-system}

# The archive that apt uses on this machine, if this machine runs the same distribution.
own_mirror() { # DISTRIBUTION
  local ID='' VERSION_CODENAME=''
  # shellcheck source=/dev/null
  . /etc/os-release
  [[ $ID == "$1" ]] || return 0
  # shellcheck disable=SC2016 # for apt-get, not for the shell
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(SITE)' |
    awk -v release="$VERSION_CODENAME" '$1 == release && $2 == "main" && !seen++ { print $3 }'
}

# Makes $base, a tar file of the minimal system $suite, unless it is there already.
make_base() {
  mkdir -p "$cache"
  [[ ! -e $base ]] || return 0
  command -v debootstrap >/dev/null || stop 77 "skipped: debootstrap is not installed"
  local distribution=debian components=main script=/usr/share/debootstrap/scripts/$suite options=() fresh mirror
  if [[ $suite == noble || $suite == jammy ]]; then
    distribution=ubuntu components=main,universe
    [[ -e $script ]] || script=/usr/share/debootstrap/scripts/jammy # an older debootstrap; the steps are the same
  fi
  mirror=${RANKMESH_MIRROR:-$(own_mirror "$distribution")}
  [[ -z $mirror ]] || wget -q -t 2 -T 20 -O /dev/null "$mirror/dists/$suite/Release" ||
    stop 77 "skipped: $mirror cannot be reached, or has no $suite"
  if [[ ! -e /usr/share/keyrings/$distribution-archive-keyring.gpg ]]; then
    echo "The archive keys of $distribution are not installed here: signatures of the first packages stay unchecked."
    options+=(--no-check-gpg)
  fi
  [[ $mirror != https:* ]] || options+=(--include=ca-certificates)

  echo "Making a minimal $suite (log: $cache/$suite-debootstrap.log)"
  fresh=$(mktemp -d "$cache/base.XXXXXX")
  debootstrap "${options[@]}" --variant=minbase "--components=$components" "$suite" "$fresh" "$mirror" "$script" \
    >"$cache/$suite-debootstrap.log" 2>&1 || {
    ! grep -q 'Failed getting release file' "$cache/$suite-debootstrap.log" ||
      stop 77 "skipped: the archive of $distribution cannot be reached"
    stop 1 "debootstrap failed"
  }
  tar -C "$fresh" -czf "$base.new" .
  mv "$base.new" "$base"
  rm -rf --one-file-system "$fresh"
}

# Unpacks $base into a new folder, $system, which vanishes when the script ends, with an ordinary user, "visitor".
unpack_system() {
  system=$(mktemp -d "$cache/system.XXXXXX")
  trap 'rm -rf --one-file-system "$system"' EXIT
  tar -C "$system" -xzf "$base"
  chmod 755 "$system"
  chroot "$system" useradd --create-home --shell /bin/bash visitor
}

# Lets apt in $system reach the package archive as it does on this machine.
prepare_apt() {
  cp --remove-destination /etc/resolv.conf "$system/etc/resolv.conf"
  apt-config dump Acquire::http::Proxy Acquire::https::Proxy >"$system/etc/apt/apt.conf.d/30proxy" # both may be unset
}

# Runs a command in the system. All mounts are made in a namespace of their own and vanish with the command, whatever
# happens to it; so there is nothing to unmount.
inside() { # USER FOLDER CMD...
  unshare --mount --pid --fork --kill-child "$self" --enter "$system" "$@" </dev/null
}

# The same without a network: there is only the loopback device.
inside_offline() { # USER FOLDER CMD...
  unshare --net --mount --pid --fork --kill-child \
    bash -c 'ip link set lo up && exec "$@"' bash "$self" --enter "$system" "$@" </dev/null
}

enter() { # SYSTEM USER FOLDER CMD...
  local system=$1 user=$2 folder=$3 home
  shift 3
  mount --bind "$system" "$system"
  cd "$system" || exit
  mount -t proc proc proc
  mount --rbind /sys sys
  mount --rbind /dev dev
  mount -t tmpfs -o mode=1777 shm dev/shm
  printf '127.0.0.1 localhost %s\n' "$(uname -n)" >etc/hosts # doctor warns of names that cannot be resolved
  mkdir -p .outside
  pivot_root . .outside # and not chroot: there, user namespaces would be refused
  cd /
  umount --lazy /.outside
  home=$(getent passwd "$user" | cut -d: -f6)
  # shellcheck disable=SC2016 # for the inner shell
  exec setpriv --reuid="$user" --regid="$user" --init-groups \
    env -i HOME="$home" USER="$user" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
    bash -c 'cd "$1" && exec "${@:2}"' bash "$folder" "$@"
}
