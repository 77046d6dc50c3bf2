package pulsar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"mqlab/brokers"
)

// maxAnswer bounds an answer of the admin API, in bytes.
const maxAnswer = 16 << 20

// earliest is the position before the first message, as the admin API writes it
// (https://pulsar.apache.org/docs/4.0.x/admin-api-topics/).
const earliest = `{"ledgerId":-1,"entryId":-1,"partitionIndex":-1}`

// admin asks the REST API of one broker.
type admin struct {
	site site
	http *http.Client
}

func newAdmin(s site) *admin {
	return &admin{site: s, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
}

// close ends the idle connections; it is idempotent.
func (a *admin) close() { a.http.CloseIdleConnections() }

// errExists is what a PUT of something that is there already gets.
var errExists = fmt.Errorf("%w: it exists already", brokers.ErrRefused)

// call asks and reads the answer into out, unless that is nil: a string as it
// stands, anything else from JSON.
func (a *admin) call(ctx context.Context, method, path, query, body string, out any) error {
	u := a.site.admin
	u.Path, u.RawQuery = u.Path+"/admin/v2/"+path, query
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.site.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.site.token)
	}
	res, err := a.http.Do(req)
	if err != nil {
		return lost(ctx, unwrapURL(err))
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end or is of no use
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return lost(ctx, err)
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %w: %s", brokers.ErrRefused, brokers.ErrNotFound, reason(answer))
	case res.StatusCode == http.StatusConflict:
		return errExists
	case res.StatusCode >= 300:
		return fmt.Errorf("%w: HTTP %s", brokers.ErrRefused, strings.TrimSuffix(res.Status+": "+reason(answer), ": "))
	case out == nil:
		return nil
	}
	if text, ok := out.(*string); ok {
		*text = strings.TrimSpace(string(answer))
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// unwrapURL drops the URL and the method that net/http puts before an error.
func unwrapURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// reason is the text of an error's answer, in one short line.
func reason(answer []byte) string {
	var e struct {
		Reason string `json:"reason"`
	}
	text := string(answer)
	if json.Unmarshal(answer, &e) == nil && e.Reason != "" {
		text = e.Reason
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if strings.HasPrefix(text, "<") {
		return "" // a page of the web server, which says no more than its status
	}
	return text[:min(len(text), 200)]
}

// namespace finds out that the namespace exists. That it does not is a
// refusal, not a missing destination: nothing in a scenario can name one.
func (a *admin) namespace(ctx context.Context) error {
	err := a.call(ctx, http.MethodGet, "namespaces/"+a.site.namespace, "", "", nil)
	if errors.Is(err, brokers.ErrNotFound) {
		err = fmt.Errorf("%w: there is none", brokers.ErrRefused)
	}
	if err != nil {
		return fmt.Errorf("ask the admin API at %s (the broker's URL names it as ?admin=http://HOST:PORT) for namespace %s: %w", a.site.admin.Host, a.site.namespace, err)
	}
	return nil
}

// path is a topic's path in the API.
func (a *admin) path(d brokers.Destination) string {
	return "persistent/" + a.site.namespace + "/" + d.OnWire(d.Topic)
}

// create makes the topic and the subscription that reads it.
func (a *admin) create(ctx context.Context, d brokers.Destination) error {
	err := a.call(ctx, http.MethodPut, a.path(d), "", "", nil)
	if errors.Is(err, errExists) {
		err = a.plain(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("create topic %s: %w", d.Topic, err)
	}
	err = a.call(ctx, http.MethodPut, a.path(d)+"/subscription/"+d.OnWire(d.Readers()), "", earliest, nil)
	if err != nil && !errors.Is(err, errExists) {
		return fmt.Errorf("create subscription %s of topic %s: %w", d.Readers(), d.Topic, err)
	}
	return nil
}

// plain finds out that a topic that exists already is not a partitioned one.
func (a *admin) plain(ctx context.Context, d brokers.Destination) error {
	var meta struct {
		Partitions int `json:"partitions"`
	}
	if err := a.call(ctx, http.MethodGet, a.path(d)+"/partitions", "checkAllowAutoCreation=false", "", &meta); err != nil {
		return err
	}
	if meta.Partitions > 0 {
		return fmt.Errorf("%w: a topic of that name has %d partitions", brokers.ErrRefused, meta.Partitions)
	}
	return nil
}

// find says whether the topic exists, without making it: a producer or a
// consumer that comes first would.
func (a *admin) find(ctx context.Context, d brokers.Destination) error {
	return a.call(ctx, http.MethodGet, a.path(d)+"/subscriptions", "", "", nil)
}

// remove deletes the topic with everybody on it; a missing one is fine.
func (a *admin) remove(ctx context.Context, d brokers.Destination) error {
	err := a.call(ctx, http.MethodDelete, a.path(d), "force=true", "", nil)
	if err != nil && !errors.Is(err, brokers.ErrNotFound) {
		return fmt.Errorf("delete topic %s: %w", d.Topic, err)
	}
	return nil
}

// version is the broker's own.
func (a *admin) version(ctx context.Context) (version string, err error) {
	if err := a.call(ctx, http.MethodGet, "brokers/version", "", "", &version); err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	return version, nil
}

// stats is what the API says of one topic.
type stats struct {
	Subscriptions map[string]struct {
		Backlog        int64 `json:"msgBacklog"`
		Delayed        int64 `json:"msgDelayed"`
		Unacknowledged int64 `json:"unackedMessages"`
		Consumers      []struct {
			Unacknowledged int64 `json:"unackedMessages"`
		} `json:"consumers"`
	} `json:"subscriptions"`
}

// stats are counted at the moment of the question. The ordinary backlog is a
// difference of counters that individual acks can bring out of step; the
// precise one counts the entries.
func (a *admin) stats(ctx context.Context, d brokers.Destination) (stats, error) {
	var s stats
	err := a.call(ctx, http.MethodGet, a.path(d)+"/stats",
		"getPreciseBacklog=true&subscriptionBacklogSize=false&getEarliestTimeInBacklog=false&excludePublishers=true", "", &s)
	if err != nil {
		return s, fmt.Errorf("ask for the numbers of topic %s: %w", d.Topic, err)
	}
	return s, nil
}
