#!/usr/bin/env bash
# Tests everything: format, lint, vulnerabilities, go test with the race
# detector, and every lab on the embedded and on the real brokers. It needs Go and
# a C compiler (for -race). As root on Debian it installs RabbitMQ, Java and Maven,
# and with Maven the other brokers; elsewhere it says what it leaves out.
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
finish() {
  if [ -n "$policy" ]; then rm -f "$policy"; fi
  if [ -x "$work/mqlab" ]; then
    for p in $products; do "$work/mqlab" broker down "$p" >/dev/null 2>&1 || true; done
  fi
  rm -rf "$work"
}
trap finish EXIT

# install PACKAGE: without starting the service that comes with it.
install() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then return 1; fi
  # policy-rc.d keeps a package's service from starting; finish removes ours.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy
  fi
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$1"; } >"$work/apt.log" 2>&1 ||
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

say "every lab, embedded"
"$work/mqlab" run '*/*' --broker embedded --repeat "$rounds" --runs "$work/runs"
if [ ${#native[@]} -gt 0 ]; then
  say "every lab, native"
  "$work/mqlab" run "${native[@]/%//*}" --broker native --repeat "$rounds" --runs "$work/runs"
fi

say "go test"
go test -race -count=1 -timeout 40m ./... 2>&1 | tee "$work/test.log"
# The RocketMQ client has a race of its own; what shows it is skipped above.
go test -count=1 ./brokers/rocketmq 2>&1 | tee -a "$work/test.log"

say "left out"
if [ ${#left_out[@]} = 0 ]; then echo "nothing"; else printf -- '- %s\n' "${left_out[@]}"; fi

say "closing lines of go test"
grep -E '^(ok|FAIL|---|\?|panic)' "$work/test.log"
