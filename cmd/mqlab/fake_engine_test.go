package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeEngine plays an engine with every image and without any container.
type fakeEngine struct {
	api   string            // its version; empty: 1.44
	fails map[string]string // by the order as seen has it: the words with which it fails

	mu   sync.Mutex
	seen map[string]int // orders, such as "create", "start", "remove"
	path string         // of the last versioned request
}

// serve listens in the place of an engine and returns where.
func (e *fakeEngine) serve(t *testing.T) (host string) {
	t.Helper()
	l, host := listenOn(t)
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: e}
	go s.Serve(l)                   //nolint:errcheck // it ends with Close
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // it goes with the process
	return host
}

// did is how often an order was given.
func (e *fakeEngine) did(order string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[order]
}

// orderOf names what is asked for.
func orderOf(r *http.Request) string {
	for end, order := range map[string]string{"/_ping": "ping", "/version": "version", "/containers/json": "list", "/containers/create": "create",
		"/images/create": "pull", "/start": "start", "/archive": "copy", "/wait": "wait", "/logs": "logs"} {
		if strings.HasSuffix(r.URL.Path, end) {
			return order
		}
	}
	switch {
	case r.Method == http.MethodDelete:
		return "remove"
	case strings.Contains(r.URL.Path, "/images/"):
		return "image"
	}
	return "?"
}

func (e *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	order := orderOf(r)
	e.mu.Lock()
	if e.seen == nil {
		e.seen = map[string]int{}
	}
	e.seen[order]++
	if order != "ping" {
		e.path = r.URL.Path
	}
	e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	code, body := http.StatusOK, any(map[string]any{"Id": "sha256:1"})
	words, fails := e.fails[order]
	switch {
	case order == "ping":
		api := e.api
		if api == "" {
			api = "1.44"
		}
		w.Header().Set("API-Version", api)
	case order == "pull" && strings.HasPrefix(words, "{"): // in the stream
		body = json.RawMessage(words)
	case order == "image" && fails:
		code, body = http.StatusNotFound, map[string]any{"message": words}
	case fails:
		code, body = http.StatusInternalServerError, map[string]any{"message": words}
	case order == "list":
		body = []any{}
	case order == "create":
		code, body = http.StatusCreated, map[string]any{"Id": "c1"}
	case order == "remove":
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // a client that is gone needs no answer
}

const portIsTaken = "Bind for 127.0.0.1:1 failed: port is already allocated"

// TestContainerPortTaken: it is tried three times with other ports, each
// container is removed, and the engine's words are the reason. The engine may
// be newer than the client.
func TestContainerPortTaken(t *testing.T) {
	t.Parallel()
	for api, path := range map[string]string{"1.44": "/v1.44/", "9.99": "/v1."} {
		t.Run(api, func(t *testing.T) {
			m := newMqlab(t)
			e := &fakeEngine{api: api, fails: map[string]string{"start": portIsTaken}}
			m.env = append(m.env, "DOCKER_HOST="+e.serve(t), "TESTCONTAINERS_RYUK_DISABLED=true")
			if _, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "container"); !strings.Contains(stderr, portIsTaken) {
				t.Error(stderr)
			}
			if e.did("start") != 3 || e.did("remove") != 3 || !strings.HasPrefix(e.path, path) {
				t.Errorf("%d starts, %d removals, the last at %s", e.did("start"), e.did("remove"), e.path)
			}
		})
	}
}

// TestEngineFull has an engine without space: its words are the reason, what
// helps is said once, and a container that was made is removed.
func TestEngineFull(t *testing.T) {
	t.Parallel()
	const full = "write /var/lib/docker/x: no space left on device"
	for name, c := range map[string]struct {
		fails map[string]string
		want  string
		made  int
	}{
		"create":             {map[string]string{"create": full}, "create a container of ", 0},
		"copy":               {map[string]string{"copy": full}, "copy the configuration of kafka into its container: ", 1},
		"start":              {map[string]string{"start": full}, "start the container: ", 1},
		"pull":               {map[string]string{"image": "No such image", "pull": full}, "pull the image ", 0},
		"pull, in mid-layer": {map[string]string{"image": "No such image", "pull": `{"errorDetail":{"message":"` + full + `"},"error":"` + full + `"}`}, "pull the image ", 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMqlab(t)
			e := &fakeEngine{fails: c.fails}
			m.env = append(m.env, "DOCKER_HOST="+e.serve(t), "TESTCONTAINERS_RYUK_DISABLED=true", "MQLAB_IMAGE_KAFKA=mqlab-local/kafka:full")
			_, stderr := m.must(exitEnvironment, "run", "kafka/basic", "--broker", "container")
			if !strings.Contains(stderr, c.want) || !strings.Contains(stderr, full) || strings.Count(stderr, "(docker system df shows what takes the engine's space)") != 1 {
				t.Error(stderr)
			}
			if e.did("remove") != c.made {
				t.Errorf("%d made, %d removed", c.made, e.did("remove"))
			}
		})
	}
}
