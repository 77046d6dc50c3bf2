#!/usr/bin/env bash
# Tests everything: format, lint, vulnerabilities, go test with the race
# detector, and every lab on the embedded brokers and on the real ones, as
# processes and in containers. It needs Go and a C compiler (for -race). As root on
# Debian it installs RabbitMQ, Java and Maven, with Maven the other brokers, and a
# container engine, which it starts and ends; elsewhere it says what it leaves out.
# With MQLAB_REQUIRE_DOCKER=1 it fails where no engine can run.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/mqlab
lint_version=v2.15.0
rounds=${MQLAB_TEST_ROUNDS:-2}
left_out=()
work=$(mktemp -d)
export MQLAB_STATE=$work/state
unset MQLAB_BROKER
products='rabbitmq kafka rocketmq pulsar'

say() { printf '\n== %s\n' "$*"; }
policy=
engine=
finish() {
  if [ -n "$policy" ]; then rm -f "$policy"; fi
  if [ -x "$work/mqlab" ]; then
    for p in $products; do
      "$work/mqlab" broker down "$p" >/dev/null 2>&1 || true
      boxed broker down "$p" >/dev/null 2>&1 || true
    done
  fi
  if [ -n "$engine" ]; then
    kill "$engine" 2>/dev/null || true # its containers end with it
    wait "$engine" 2>/dev/null || true
    # It leaves the name of its network namespace mounted.
    awk -v work="$work/" 'index($2, work) == 1 {print $2}' /proc/mounts | xargs -r umount || true
  fi
  rm -rf "$work"
}
trap finish EXIT

# boxed ARGUMENT...: mqlab with other kept brokers.
boxed() { MQLAB_STATE=$work/boxed "$work/mqlab" "$@"; }

# install PACKAGE...: without starting the service that comes with it.
install() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then return 1; fi
  # policy-rc.d keeps a package's service from starting; finish removes ours.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy
  fi
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"; } >"$work/apt.log" 2>&1 ||
    { tail -5 "$work/apt.log" && return 1; }
}

say "rabbitmq-server, Java, Maven"
if [ ! -x /usr/lib/rabbitmq/bin/rabbitmq-server ] && [ -z "${RABBITMQ_HOME:-}" ] && ! command -v rabbitmq-server >/dev/null; then
  install rabbitmq-server || echo "no rabbitmq-server can be installed"
fi
if [ ! -x "${JAVA_HOME:-/nowhere}/bin/javac" ] && ! command -v javac >/dev/null; then
  install openjdk-17-jdk-headless || echo "no Java can be installed"
fi
if ! command -v mvn >/dev/null; then
  install maven || echo "no Maven can be installed"
fi

say "gofmt and vet"
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then echo "gofmt would change: $unformatted" && exit 1; fi
go vet ./...

say "golangci-lint"
lint=$cache/bin/golangci-lint-$lint_version
if [ ! -x "$lint" ]; then
  mkdir -p "$cache/bin"
  if GOBIN=$work/bin go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$lint_version" >"$work/lint.log" 2>&1; then
    mv "$work/bin/golangci-lint" "$lint"
  else
    tail -3 "$work/lint.log"
    left_out+=("golangci-lint: it could not be built")
  fi
fi
if [ -x "$lint" ]; then "$lint" run ./...; fi

say "govulncheck"
if GOBIN=$work/bin go install golang.org/x/vuln/cmd/govulncheck@v1.1.4 >"$work/vuln.log" 2>&1; then
  if "$work/bin/govulncheck" ./... >"$work/vuln.log" 2>&1; then echo "nothing found"
  elif grep -q 'Vulnerability #' "$work/vuln.log"; then cat "$work/vuln.log" && exit 1
  else left_out+=("govulncheck: $(tail -1 "$work/vuln.log")"); fi
else
  left_out+=("govulncheck: it could not be built")
fi

say "build"
go build -o "$work/mqlab" ./cmd/mqlab

say "install and start the real brokers"
native=()
for p in $products; do
  if "$work/mqlab" broker install "$p" && "$work/mqlab" broker up "$p" --broker native; then
    native+=("$p")
    # The suites of the drivers run on these as well.
    export "MQLAB_TEST_BROKER_${p^^}=$(sed -n 's/.*"address":"\([^"]*\)".*/\1/p' "$MQLAB_STATE/kept/$p.json")"
  else
    left_out+=("everything on the real $p: see above")
  fi
done
"$work/mqlab" broker status
"$work/mqlab" doctor

# start_engine starts an engine with data and a socket of its own, unless one is
# named or answers already.
start_engine() {
  if command -v docker >/dev/null && docker version >/dev/null 2>&1; then return 0; fi
  if [ -n "${DOCKER_HOST:-}" ]; then echo "nothing answers at $DOCKER_HOST" && return 1; fi
  if ! command -v dockerd >/dev/null || ! command -v iptables >/dev/null; then
    install docker.io iptables || return 1
  fi
  if [ "$(id -u)" != 0 ]; then echo "an engine is started by root only" && return 1; fi
  export DOCKER_HOST=unix://$work/engine.sock
  dockerd --data-root "$work/engine" --exec-root "$work/engine.run" --pidfile "$work/engine.pid" -H "$DOCKER_HOST" >"$work/engine.log" 2>&1 &
  engine=$!
  until docker version >/dev/null 2>&1; do
    if ! kill -0 "$engine" 2>/dev/null; then engine= && unset DOCKER_HOST && tail -3 "$work/engine.log" && return 1; fi
    sleep 0.2
  done
}

say "a container engine and its images"
if start_engine && scripts/images.sh >"$work/images"; then
  cat "$work/images"
  # shellcheck source=/dev/null
  . "$work/images"
  export MQLAB_TEST_CONTAINERS=1
else
  left_out+=("everything in containers: see above")
  if [ "${MQLAB_REQUIRE_DOCKER:-}" = 1 ]; then echo "MQLAB_REQUIRE_DOCKER is set" && exit 1; fi
fi

say "every lab, embedded"
"$work/mqlab" run '*/*' --broker embedded --repeat "$rounds" --runs "$work/runs"
if [ ${#native[@]} -gt 0 ]; then
  say "every lab, native"
  "$work/mqlab" run "${native[@]/%//*}" --broker native --repeat "$rounds" --runs "$work/runs"
fi

if [ -n "${MQLAB_TEST_CONTAINERS:-}" ]; then
  say "every lab, in containers"
  "$work/mqlab" run '*/*' --broker container --runs "$work/runs"
  say "mqlab's own image, against a URL"
  docker run --rm --network host mqlab-local/mqlab:latest run rabbitmq/basic --broker "$(sed -n 's/.*"address":"\([^"]*\)".*/\1/p' "$MQLAB_STATE/kept/rabbitmq.json")"
fi

say "go test"
go test -race -count=1 -timeout 40m ./... 2>&1 | tee "$work/test.log"
# The RocketMQ client has a race of its own; what shows it is skipped above.
go test -count=1 ./brokers/rocketmq 2>&1 | tee -a "$work/test.log"

if [ -n "${MQLAB_TEST_CONTAINERS:-}" ]; then
  say "go test: the conformance suite on brokers in containers"
  for p in $products; do
    boxed broker up "$p" --broker container
    env "MQLAB_TEST_BROKER_${p^^}=$(sed -n 's/.*"address":"\([^"]*\)".*/\1/p' "$work/boxed/kept/$p.json")" \
      go test -count=1 -run OfRealBroker "./brokers/$p" 2>&1 | tee -a "$work/test.log"
    boxed broker down "$p"
  done
fi

say "left out"
if [ ${#left_out[@]} = 0 ]; then echo "nothing"; else printf -- '- %s\n' "${left_out[@]}"; fi

say "closing lines of go test"
grep -E '^(ok|FAIL|---|\?|panic)' "$work/test.log"
