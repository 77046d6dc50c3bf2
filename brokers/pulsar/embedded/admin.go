package embedded

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
)

// maxQuestion bounds a request's body, in bytes.
const maxQuestion = 64 << 10

// handler is the admin REST API.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	const topics = "/admin/v2/persistent/{tenant}/{namespace}/{topic}"
	mux.HandleFunc("GET /admin/v2/brokers/version", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, version) // a client that is gone does not matter
	})
	mux.HandleFunc("GET /admin/v2/namespaces/{tenant}/{namespace}", s.in(func(*http.Request) (int, any) {
		return http.StatusOK, map[string]any{}
	}))
	mux.HandleFunc("PUT "+topics, s.in(s.putTopic))
	mux.HandleFunc("DELETE "+topics, s.in(s.with(s.deleteTopic)))
	mux.HandleFunc("GET "+topics+"/partitions", s.in(func(*http.Request) (int, any) {
		return http.StatusOK, map[string]any{"partitions": 0, "deleted": false}
	}))
	mux.HandleFunc("GET "+topics+"/subscriptions", s.in(s.with(func(_ *http.Request, t *topic) (int, any) {
		names := []string{}
		for name := range t.subs {
			names = append(names, name)
		}
		slices.Sort(names)
		return http.StatusOK, names
	})))
	mux.HandleFunc("GET "+topics+"/stats", s.in(s.with(func(_ *http.Request, t *topic) (int, any) { return http.StatusOK, t.stats() })))
	mux.HandleFunc("PUT "+topics+"/subscription/{subscription}", s.in(s.with(putSubscription)))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusNotImplemented, because(r.Method+" "+r.URL.Path+" is not served here"))
	})
	return s.guarded(mux)
}

// guarded lets in who knows the token.
func (s *Server) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.token)) == 0 {
			write(w, http.StatusUnauthorized, because("HTTP 401 Unauthorized"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// because is the body of an error.
func because(reason string) any { return map[string]string{"reason": reason} }

// write sends an answer; no body means 204.
func write(w http.ResponseWriter, status int, answer any) {
	if answer == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // a client that is gone does not matter
}

// in answers under the broker's lock, in the one namespace.
func (s *Server) in(f func(*http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("tenant")+"/"+r.PathValue("namespace") != namespace {
			write(w, http.StatusNotFound, because("Namespace does not exist"))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxQuestion)
		s.b.mu.Lock()
		status, answer := f(r)
		s.b.mu.Unlock()
		write(w, status, answer)
	}
}

// with finds the topic.
func (s *Server) with(f func(*http.Request, *topic) (int, any)) func(*http.Request) (int, any) {
	return func(r *http.Request) (int, any) {
		t := s.b.topics[r.PathValue("topic")]
		if t == nil {
			return http.StatusNotFound, because("Topic persistent://" + namespace + "/" + r.PathValue("topic") + " not found")
		}
		return f(r, t)
	}
}

func (s *Server) putTopic(r *http.Request) (int, any) {
	if !s.b.create(r.PathValue("topic")) {
		return http.StatusConflict, because("This topic already exists")
	}
	return http.StatusNoContent, nil
}

func (s *Server) deleteTopic(r *http.Request, t *topic) (int, any) {
	if r.URL.Query().Get("force") != "true" && (len(t.subs) > 0 || len(t.producers) > 0) {
		return http.StatusPreconditionFailed, because("Topic has active producers/subscriptions")
	}
	s.b.remove(t)
	return http.StatusNoContent, nil
}

// putSubscription makes one at the end, or before the first message if the
// body names that position; others are not served.
func putSubscription(r *http.Request, t *topic) (int, any) {
	at := struct {
		Ledger int64 `json:"ledgerId"`
		Entry  int64 `json:"entryId"`
	}{1<<63 - 1, 1<<63 - 1}
	if err := json.NewDecoder(r.Body).Decode(&at); err != nil && !errors.Is(err, io.EOF) {
		return http.StatusBadRequest, because("the body is not a position")
	}
	earliest, latest := at.Ledger == -1 && at.Entry == -1, at.Ledger == 1<<63-1 && at.Entry == 1<<63-1
	switch {
	case t.subs[r.PathValue("subscription")] != nil:
		return http.StatusConflict, because("Subscription already exists for topic")
	case !earliest && !latest:
		return http.StatusNotImplemented, because("positions other than the earliest and the latest are not served here")
	}
	t.subscribe(r.PathValue("subscription"), earliest)
	return http.StatusNoContent, nil
}
