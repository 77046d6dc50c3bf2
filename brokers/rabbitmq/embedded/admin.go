package embedded

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// newAdmin builds the management API. Each of its connections counts as
// running, so that Close waits for its goroutine too.
func (s *Server) newAdmin() *http.Server {
	return &http.Server{
		Handler:           s.authorized(http.HandlerFunc(s.route)),
		ErrorLog:          s.log,
		ReadHeaderTimeout: handshakeTimeout,
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.running.Add(1)
			case http.StateClosed:
				s.running.Done()
			}
		},
	}
}

// route takes the escaped path apart by itself: http.ServeMux mistakes a
// segment of %2F, which is the vhost of every request here, for a slash.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i, p := range parts {
		parts[i], _ = url.PathUnescape(p) // net/http has parsed it before
	}
	at := func(method string, n int, prefix ...string) bool {
		return r.Method == method && len(parts) == n && slices.Equal(parts[:len(prefix)], prefix)
	}
	switch {
	case at("GET", 2, "api", "overview"):
		s.overview(w, r)
	case at("GET", 2, "api", "connections"):
		s.listConnections(w)
	case at("DELETE", 3, "api", "connections"):
		s.deleteConnection(w, r, parts[2])
	case at("GET", 3, "api", "queues", "/"):
		s.listQueues(w, r)
	case at("GET", 4, "api", "queues", "/"):
		s.getQueue(w, r, parts[3])
	case at("DELETE", 4, "api", "queues", "/"):
		s.deleteQueue(w, r, parts[3])
	default:
		notFoundJSON(w)
	}
}

func (s *Server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if !s.allowed(user, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="RabbitMQ Management"`)
			writeJSON(w, http.StatusUnauthorized, object{"error": "not_authorized", "reason": "Login failed"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

type object map[string]any

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone if it fails
}

func notFoundJSON(w http.ResponseWriter) {
	writeJSON(w, http.StatusNotFound, object{"error": "Object Not Found", "reason": "Not Found"})
}

// view collects an answer under the lock; it is written after that.
func (s *Server) view(collect func()) {
	_ = s.b.do(nil, func() error {
		collect()
		return nil
	})
}

func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	var totals, messages object
	s.view(func() {
		ready, unacked, consumers, connections, channels := 0, 0, 0, 0, 0
		for _, q := range s.b.queues {
			s.b.dropExpired(q)
			ready, unacked, consumers = ready+q.ready.len(), unacked+q.unacked, consumers+len(q.consumers)
		}
		for c := range s.b.conns {
			if c.opened {
				connections, channels = connections+1, channels+len(c.channels)
			}
		}
		totals = object{"queues": len(s.b.queues), "exchanges": len(s.b.exchanges), "connections": connections,
			"channels": channels, "consumers": consumers}
		messages = object{"messages": ready + unacked, "messages_ready": ready, "messages_unacknowledged": unacked}
	})
	writeJSON(w, http.StatusOK, object{
		"management_version": imitates, "rabbitmq_version": imitates,
		"product_name": product, "product_version": version,
		"cluster_name": nodeName, "node": nodeName,
		"disable_stats":       r.URL.Query().Get("disable_stats") == "true",
		"enable_queue_totals": r.URL.Query().Get("enable_queue_totals") == "true",
		"object_totals":       totals, "queue_totals": messages,
	})
}

// describe: with disable_stats the number of consumers is missing, as on
// RabbitMQ, and the totals too unless asked for.
func (q *queue) describe(query url.Values) object {
	o := object{
		"name": q.name, "vhost": "/", "durable": q.durable, "auto_delete": q.autoDelete, "exclusive": q.owner != nil,
		"arguments": q.args.json(), "type": "classic", "state": "running", "node": nodeName,
	}
	stats := query.Get("disable_stats") != "true"
	if stats || query.Get("enable_queue_totals") == "true" {
		o["messages_ready"], o["messages_unacknowledged"] = q.ready.len(), q.unacked
		o["messages"] = q.ready.len() + q.unacked
	}
	if stats {
		o["consumers"] = len(q.consumers)
	}
	return o
}

func (s *Server) listQueues(w http.ResponseWriter, r *http.Request) {
	list := []object{}
	s.view(func() {
		for _, q := range s.b.queues {
			s.b.dropExpired(q)
			list = append(list, q.describe(r.URL.Query()))
		}
	})
	sortByName(list)
	writeJSON(w, http.StatusOK, list)
}

func sortByName(list []object) {
	slices.SortFunc(list, func(a, b object) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
}

// onQueue runs f under the lock on the queue of that name, if there is one.
func (s *Server) onQueue(name string, f func(*queue)) bool {
	found := false
	_ = s.b.do(nil, func() error {
		q := s.b.queues[name]
		if found = q != nil; found {
			s.b.dropExpired(q)
			f(q)
		}
		return nil
	})
	return found
}

func (s *Server) getQueue(w http.ResponseWriter, r *http.Request, name string) {
	var o object
	if !s.onQueue(name, func(q *queue) { o = q.describe(r.URL.Query()) }) {
		notFoundJSON(w)
		return
	}
	writeJSON(w, http.StatusOK, o)
}

func (s *Server) deleteQueue(w http.ResponseWriter, r *http.Request, name string) {
	query := r.URL.Query()
	var err error
	found := s.onQueue(name, func(q *queue) {
		if q.owner != nil {
			err = locked(q)
			return
		}
		if err = q.deletable(query.Get("if-unused") == "true", query.Get("if-empty") == "true"); err == nil {
			s.b.deleteQueue(q)
		}
	})
	switch {
	case !found:
		notFoundJSON(w)
	case err != nil:
		writeJSON(w, http.StatusBadRequest, object{"error": "bad_request", "reason": err.Error()})
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) listConnections(w http.ResponseWriter) {
	list := []object{}
	s.view(func() {
		for c := range s.b.conns {
			if c.opened {
				list = append(list, c.describe())
			}
		}
	})
	sortByName(list)
	writeJSON(w, http.StatusOK, list)
}

func (c *conn) describe() object {
	state := "running"
	if c.ending {
		state = "closing"
	}
	o := object{
		"name": c.name, "user": c.user, "vhost": "/", "state": state, "type": "network", "protocol": "AMQP 0-9-1",
		"node": nodeName, "channels": len(c.channels), "channel_max": c.channelMax, "frame_max": c.frameMax,
		"timeout": int(c.heartbeat / time.Second), "connected_at": c.since.UnixMilli(),
		"client_properties": c.properties.json(),
	}
	if name := c.givenName(); name != "" {
		o["user_provided_name"] = name
	}
	return o
}

func (s *Server) deleteConnection(w http.ResponseWriter, r *http.Request, name string) {
	reason := r.Header.Get("X-Reason")
	if reason == "" {
		reason = "Closed via management plugin"
	}
	found := false
	_ = s.b.do(nil, func() error {
		for c := range s.b.conns {
			if c.opened && c.name == name {
				found = true
				c.force(reason)
			}
		}
		return nil
	})
	if !found {
		notFoundJSON(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
