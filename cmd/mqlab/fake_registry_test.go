package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	manifestType = "application/vnd.docker.distribution.manifest.v2+json"
	configType   = "application/vnd.docker.container.image.v1+json"
	layerType    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// fakeRegistry serves one image of one small layer under every name and tag.
// An engine takes plain HTTP from 127.0.0.1.
type fakeRegistry struct {
	manifest []byte
	blobs    map[string][]byte // by digest
	password string            // empty: everybody may
	slow     string            // the digest of a layer that never comes to its end
	ended    chan struct{}     // its reader is gone
	pulls    atomic.Int32      // manifests that were asked for

	host string
}

// digestOf is how a registry names bytes.
func digestOf(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// newRegistry makes an image that no other test has, changes what is asked for,
// and serves it.
func newRegistry(t *testing.T, changes ...func(*testing.T, *fakeRegistry)) *fakeRegistry {
	t.Helper()
	var archive, layer bytes.Buffer
	w := tar.NewWriter(&archive)
	text := rand.Text()
	if err := w.WriteHeader(&tar.Header{Name: "text", Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, text) //nolint:errcheck // Close says it
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(&layer)
	z.Write(archive.Bytes()) //nolint:errcheck // a buffer takes everything
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	config := encode(t, map[string]any{"architecture": "amd64", "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(archive.Bytes())}}})
	r := &fakeRegistry{ended: make(chan struct{}), blobs: map[string][]byte{digestOf(config): config, digestOf(layer.Bytes()): layer.Bytes()}}
	r.manifest = manifestOf(t, config, digestOf(layer.Bytes()), layer.Len())
	for _, change := range changes {
		change(t, r)
	}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.host = strings.TrimPrefix(s.URL, "http://")
	return r
}

// slowLayer puts a large layer in the place of the small one; its bytes come a
// few at a time and never all.
func slowLayer(t *testing.T, r *fakeRegistry) {
	t.Helper()
	var config []byte
	for _, b := range r.blobs {
		if json.Valid(b) {
			config = b
		}
	}
	r.slow = digestOf([]byte(rand.Text()))
	r.manifest = manifestOf(t, config, r.slow, slowSize)
}

const slowSize = 512 << 20

func manifestOf(t *testing.T, config []byte, layer string, size int) []byte {
	t.Helper()
	return encode(t, map[string]any{"schemaVersion": 2, "mediaType": manifestType,
		"config": map[string]any{"mediaType": configType, "size": len(config), "digest": digestOf(config)},
		"layers": []any{map[string]any{"mediaType": layerType, "size": size, "digest": layer}}})
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// image is a name of the registry's image.
func (r *fakeRegistry) image(suffix string) string { return r.host + "/mqlab/kafka" + suffix }

func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, rq *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if _, password, _ := rq.BasicAuth(); password != r.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="mqlab"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`) //nolint:errcheck // a client that is gone needs no answer
		return
	}
	_, what, _ := strings.Cut(rq.URL.Path, "/mqlab/kafka/")
	kind, name, _ := strings.Cut(what, "/")
	switch {
	case rq.URL.Path == "/v2/":
	case kind == "manifests":
		r.pulls.Add(1)
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", digestOf(r.manifest))
		w.Write(r.manifest) //nolint:errcheck // as above
	case kind == "blobs" && name == r.slow:
		r.trickle(w, rq)
	case kind == "blobs" && r.blobs[name] != nil:
		w.Write(r.blobs[name]) //nolint:errcheck // as above
	default:
		http.NotFound(w, rq)
	}
}

// trickle sends bytes until nobody takes them. The engine speaks of a download
// only each half megabyte.
func (r *fakeRegistry) trickle(w http.ResponseWriter, rq *http.Request) {
	defer close(r.ended)
	w.Header().Set("Content-Length", fmt.Sprint(slowSize))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for sent := 0; sent+1<<20 < slowSize; sent += 1 << 20 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return
		}
		select {
		case <-rq.Context().Done():
			return
		case <-tick.C:
		}
	}
}
