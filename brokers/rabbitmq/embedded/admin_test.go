package embedded_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"mqlab/brokers/rabbitmq/embedded"
)

type object = map[string]any

// admin asks the management API as the inspector does.
type admin struct {
	t    *testing.T
	base string
	user string
}

func newAdmin(t *testing.T, s *embedded.Server) admin {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return admin{t: t, base: u.Query().Get("management"), user: "guest"}
}

func (a admin) do(method, path string, answer any) int {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.base+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	r.SetBasicAuth(a.user, "guest")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if answer != nil {
		if err := json.NewDecoder(res.Body).Decode(answer); err != nil {
			a.t.Fatal(method, path, res.Status, err)
		}
	}
	return res.StatusCode
}

func (a admin) want(got, want any) {
	a.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		a.t.Error(diff)
	}
}

func open(t *testing.T) (*embedded.Server, *amqp.Connection, *amqp.Channel) {
	t.Helper()
	s, err := embedded.Open(t.Context(), embedded.Options{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c, err := amqp.DialConfig(s.URL(), amqp.Config{Properties: amqp.Table{"connection_name": "a role"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return s, c, ch
}

func TestAdminQueues(t *testing.T) {
	s, _, ch := open(t)
	a := newAdmin(t, s)
	_, err := ch.QueueDeclare("q/1", true, false, false, false, amqp.Table{"x-message-ttl": int32(60000), "t": amqp.Table{"k": []any{int64(1)}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		dc, err := ch.PublishWithDeferredConfirm("", "q/1", false, false, amqp.Publishing{})
		if err != nil || !dc.Wait() {
			t.Fatal(err)
		}
	}
	if _, _, err := ch.Get("q/1", false); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("excl", false, true, true, false, nil); err != nil {
		t.Fatal(err)
	}
	basics := object{"name": "q/1", "vhost": "/", "durable": true, "auto_delete": false, "exclusive": false, "type": "classic",
		"state": "running", "node": "mqlab@localhost", "arguments": object{"x-message-ttl": 60000.0, "t": object{"k": []any{1.0}}}}
	totals := merge(basics, object{"messages": 3.0, "messages_ready": 2.0, "messages_unacknowledged": 1.0})
	var list []object
	a.want(a.do("GET", "/api/queues/%2F?disable_stats=true&enable_queue_totals=true", &list), 200)
	if len(list) != 2 || list[0]["name"] != "excl" || list[0]["exclusive"] != true || list[0]["auto_delete"] != true {
		t.Fatal(list)
	}
	a.want(list[1], totals)
	for query, want := range map[string]object{
		"":                    merge(totals, object{"consumers": 0.0}),
		"?disable_stats=true": basics,
		"?disable_stats=true&enable_queue_totals=true": totals,
	} {
		var one object
		a.want(a.do("GET", "/api/queues/%2F/q%2F1"+query, &one), 200)
		a.want(one, want)
	}
	var refused object
	a.want(a.do("DELETE", "/api/queues/%2F/q%2F1?if-empty=true", &refused), 400)
	a.want(a.do("DELETE", "/api/queues/%2F/excl", &refused), 400)
	a.want(a.do("DELETE", "/api/queues/%2F/q%2F1", nil), 204)
	var missing object
	a.want(a.do("GET", "/api/queues/%2F/q%2F1", &missing), 404)
	a.want(missing, object{"error": "Object Not Found", "reason": "Not Found"})
}

func merge(a, b object) object {
	out := object{}
	for _, o := range []object{a, b} {
		for k, v := range o {
			out[k] = v
		}
	}
	return out
}

func TestAdminConnections(t *testing.T) {
	s, c, _ := open(t)
	a := newAdmin(t, s)
	closed := c.NotifyClose(make(chan *amqp.Error, 1))
	var list []object
	a.want(a.do("GET", "/api/connections", &list), 200)
	if len(list) != 1 {
		t.Fatal(list)
	}
	properties, _ := list[0]["client_properties"].(object)
	a.want([]any{properties["connection_name"], list[0]["user_provided_name"], list[0]["user"], list[0]["state"], list[0]["channels"]},
		[]any{"a role", "a role", "guest", "running", 1.0})
	name, _ := list[0]["name"].(string)
	a.want(a.do("DELETE", "/api/connections/"+url.PathEscape(name), nil), 204)
	if err := <-closed; err == nil || err.Code != 320 || err.Reason != "CONNECTION_FORCED - Closed via management plugin" {
		t.Error(err)
	}
	for end := time.Now().Add(bound); len(list) > 0; time.Sleep(time.Millisecond) {
		a.want(a.do("GET", "/api/connections", &list), 200)
		if time.Now().After(end) {
			t.Fatal("still listed")
		}
	}
	a.want(a.do("DELETE", "/api/connections/"+url.PathEscape(name), &object{}), 404)
}

func TestAdminRest(t *testing.T) {
	s, _, _ := open(t)
	a := newAdmin(t, s)
	var overview object
	a.want(a.do("GET", "/api/overview", &overview), 200)
	a.want([]any{overview["rabbitmq_version"], overview["product_name"], overview["node"]}, []any{"3.10.8", "mqlab embedded", "mqlab@localhost"})
	for _, path := range []string{"/", "/api", "/api/nodes", "/api/queues/other", "/api/queues/other/q"} {
		var answer object
		a.want(a.do("GET", path, &answer), 404)
		a.want(answer["error"], "Object Not Found")
	}
	a.user = "nobody"
	for _, path := range []string{"/api/overview", "/nothing"} {
		var answer object
		a.want(a.do("GET", path, &answer), 401)
		a.want(answer, object{"error": "not_authorized", "reason": "Login failed"})
	}
}

// TestForcedCloseGivesBack: what the client held is back before the request is answered.
func TestForcedCloseGivesBack(t *testing.T) {
	s, _, ch := open(t)
	a := newAdmin(t, s)
	if _, err := ch.QueueDeclare("q", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.Publish("", "q", false, false, amqp.Publishing{}); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := ch.Get("q", false); !ok || err != nil {
		t.Fatal(ok, err)
	}
	var list []object
	a.do("GET", "/api/connections", &list)
	name, _ := list[0]["name"].(string)
	a.do("DELETE", "/api/connections/"+url.PathEscape(name), nil)
	var q object
	a.do("GET", "/api/queues/%2F/q", &q)
	a.want([]any{q["messages_ready"], q["messages_unacknowledged"]}, []any{1.0, 0.0})
	if err := ch.Publish("", "q", false, false, amqp.Publishing{}); err != nil && !errors.Is(err, amqp.ErrClosed) {
		t.Error(err)
	}
}
