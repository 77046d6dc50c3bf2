#!/usr/bin/env bash
# Builds local images of the brokers, of the reaper and of mqlab on a machine
# that has a container engine but reaches no registry: the files of installed
# Debian packages and the jars of `mqlab broker install`, as one layer each.
# Prints the lines that make mqlab use them. For some only: images.sh kafka ryuk
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mqlab
work=$(mktemp -d)
id= # of a container that is made and removed below
finish() {
  local left
  left=$(docker ps -aq --filter "label=mqlab.state=$work/state" 2>/dev/null) || true
  if [ -n "$left$id" ]; then docker rm -fv $left $id >/dev/null 2>&1 || true; fi
  rm -rf "$work"
}
trap finish EXIT
[ $# -gt 0 ] || set -- rabbitmq kafka rocketmq pulsar ryuk mqlab

# files PACKAGE...: what the packages and all that they need have installed,
# without documentation.
files() {
  apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    "$@" base-files base-passwd bash coreutils dash grep hostname libc-bin mawk netbase sed |
    grep -E '^[a-z0-9]' | sed 's/:any$//' | sort -u >"$work/packages"
  dpkg-query -W -f '${db:Status-Status} ${binary:Package}\n' $(cat "$work/packages") 2>/dev/null >"$work/status" || true # names that others provide
  sed -n 's/^installed //p' "$work/status" >"$work/installed"
  # /lib and its like are links into /usr, which must stay links.
  dpkg-query -L $(cat "$work/installed") | sed -nE '/^\/usr\/share\/(doc|man|locale|info|lintian|i18n|perl|zoneinfo)\//d; /^\/usr\/lib\/[^/]*\/perl/d; s,^/(bin|sbin|lib|lib32|lib64)/,/usr/\1/,; /^\/[^.]/p' >"$work/all"
  printf '%s\n' /bin /sbin /lib /lib64 /etc/passwd /etc/group /etc/nsswitch.conf >>"$work/all"
  sort -u "$work/all" | while read -r f; do if [ -e "$f" ] || [ -L "$f" ]; then echo "${f#/}"; fi; done
}

# pack TAG LIST [TAR OPTION...]: imports the listed files; the changes to the
# image's configuration are in the array config.
pack() {
  local tag=$1 list=$2
  shift 2
  tar -C / -c --no-recursion "$@" -T "$list" | docker import "${config[@]}" - "$tag" >/dev/null
}

# jars PRODUCT FOLDER: an image of Java with the product's jars in that folder.
jars() {
  local dir
  dir=$(ls -d "$cache/$1"-*/lib 2>/dev/null | sort -V | tail -1)
  [ -n "$dir" ] || { echo "$1: no jars are installed (mqlab broker install $1)" >&2 && return 1; }
  [ -s "$work/java" ] || { files openjdk-17-jre-headless >"$work/java" && home=$(ls -d /usr/lib/jvm/java-17-openjdk-*/bin); }
  (cat "$work/java" && cd / && find "${dir#/}" -name '*.jar') >"$work/list"
  version=$(basename "$(dirname "$dir")" | sed "s/^$1-//")
  config=(--change "ENV PATH=$home:/usr/sbin:/usr/bin:/sbin:/bin" --change 'WORKDIR /tmp')
  pack "mqlab-local/$1:$version" "$work/list" --transform "s,^${dir#/},${2#/},"
  archive "$1" "mqlab-local/$1:$version"
}

# archive PRODUCT TAG: adds an archive of the classes that the broker loads until
# a message has gone through (JEP 350), which Java writes when it ends, and of
# Kafka the store as it is before a first start.
archive() {
  [ -x "$work/bin/mqlab" ] || go build -o "$work/bin/mqlab" ./cmd/mqlab
  env "MQLAB_IMAGE_${1^^}=$2" "MQLAB_JAVA_OPTS=-XX:ArchiveClassesAtExit=/tmp/$1.jsa" MQLAB_STATE="$work/state" TESTCONTAINERS_RYUK_DISABLED=true \
    "$work/bin/mqlab" broker up "$1" --broker container >&2
  id=$(docker ps -q --filter "label=mqlab.state=$work/state")
  docker stop -t 120 "$id" >/dev/null
  mkdir -p "$work/opt/mqlab"
  docker cp "$id:/tmp/$1.jsa" - | tar -x -C "$work/opt/mqlab"
  if [ "$1" = kafka ]; then docker cp "$id:/tmp/formatted" - | tar -x -C "$work/opt/mqlab"; fi
  docker rm -v "$id" >/dev/null
  id=$(docker create "$2" sh)
  tar -C "$work" -c opt | docker cp - "$id:/"
  docker commit "$id" "$2" >/dev/null
  docker rm -v "$id" >/dev/null
  id=
  rm -r "$work/opt"
}

# program NAME PACKAGE COMMAND: an image of one static program of ours.
program() {
  mkdir -p "$work/$1/tmp" && chmod 1777 "$work/$1/tmp"
  CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$work/$1/$1" "$2"
  tar -C "$work/$1" -c "$1" tmp | docker import --change "ENTRYPOINT [\"/$1\"]" --change 'WORKDIR /tmp' --change 'ENV HOME=/tmp' - "$3" >/dev/null
}

for image; do
  case $image in
  rabbitmq)
    files rabbitmq-server >"$work/list"
    version=$(dpkg-query -W -f '${Version}' rabbitmq-server | sed 's/[-+].*//')
    # Debian's command on the PATH is a wrapper that changes the user.
    config=(--change 'ENV PATH=/usr/lib/rabbitmq/bin:/usr/sbin:/usr/bin:/sbin:/bin' --change 'WORKDIR /tmp')
    pack "mqlab-local/rabbitmq:$version" "$work/list"
    ;;
  kafka) jars kafka /opt/kafka/libs ;;
  rocketmq) jars rocketmq /home/rocketmq/rocketmq-5.5.0/lib ;;
  pulsar) jars pulsar /pulsar/lib ;;
  ryuk) version=1 && program ryuk ./compose/reaper mqlab-local/ryuk:$version ;;
  mqlab) program mqlab ./cmd/mqlab mqlab-local/mqlab:latest && continue ;;
  *) echo "no image is named $image" >&2 && exit 2 ;;
  esac
  echo "export MQLAB_IMAGE_${image^^}=mqlab-local/$image:$version"
done
