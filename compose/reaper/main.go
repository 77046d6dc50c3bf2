// Command reaper removes what a program that was killed has left on a container
// engine. It speaks the protocol of testcontainers' Ryuk, for machines that can
// get no image of that: on port 8080 a client sends "label=K=V&label=K=V" as a
// line and gets "ACK". When the last client has been gone for
// RYUK_RECONNECTION_TIMEOUT (10s), everything that carries the labels is removed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// socket is where the engine's socket is mounted.
const socket = "/var/run/docker.sock"

func main() {
	if err := reap(); err != nil {
		fmt.Fprintln(os.Stderr, "reaper:", err)
		os.Exit(1)
	}
}

// event is a client that came, said what to remove, or went.
type event struct {
	clients int
	labels  []string
}

func reap() error {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", ":8080")
	if err != nil {
		return err
	}
	fmt.Println("Started address=[::]:8080")
	events := make(chan event)
	go func() { // ends with the program
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c, events)
		}
	}()
	clients, sets := 0, [][]string{}
	bound := duration("RYUK_CONNECTION_TIMEOUT", time.Minute)
	for {
		var alone <-chan time.Time
		if clients == 0 {
			alone = time.After(bound)
		}
		select {
		case e := <-events:
			clients += e.clients
			if e.labels != nil {
				sets = append(sets, e.labels)
			}
			bound = duration("RYUK_RECONNECTION_TIMEOUT", 10*time.Second)
		case <-alone:
			return removeAll(sets)
		}
	}
}

// serve takes what one client says until it goes.
func serve(c net.Conn, events chan<- event) {
	defer c.Close() //nolint:errcheck // the client is gone
	events <- event{clients: 1}
	for s := bufio.NewScanner(c); s.Scan(); {
		v, err := url.ParseQuery(s.Text())
		if err != nil || len(v["label"]) == 0 {
			continue // without a label it would be everything
		}
		events <- event{labels: v["label"]}
		if _, err := fmt.Fprint(c, "ACK\n"); err != nil {
			break
		}
	}
	events <- event{clients: -1}
}

func duration(name string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(name)); err == nil {
		return d
	}
	return otherwise
}

func removeAll(sets [][]string) error {
	h := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	var errs []error
	for _, labels := range sets {
		errs = append(errs, remove(h, labels))
	}
	return errors.Join(errs...)
}

// remove removes containers before the networks and volumes that they use.
func remove(h *http.Client, labels []string) error {
	filters, err := json.Marshal(map[string][]string{"label": labels})
	if err != nil {
		return err
	}
	query := "?all=1&filters=" + url.QueryEscape(string(filters))
	var found []struct {
		ID string `json:"Id"`
	}
	var volumes struct{ Volumes []struct{ Name string } }
	errs := []error{call(h, http.MethodGet, "/containers/json"+query, &found)}
	for _, f := range found {
		errs = append(errs, call(h, http.MethodDelete, "/containers/"+f.ID+"?force=1&v=1", nil))
	}
	found = nil
	errs = append(errs, call(h, http.MethodGet, "/networks"+query, &found))
	for _, f := range found {
		errs = append(errs, call(h, http.MethodDelete, "/networks/"+f.ID, nil))
	}
	errs = append(errs, call(h, http.MethodGet, "/volumes"+query, &volumes))
	for _, v := range volumes.Volumes {
		errs = append(errs, call(h, http.MethodDelete, "/volumes/"+v.Name+"?force=1", nil))
	}
	return errors.Join(errs...)
}

// call asks the engine; an answer is read into out where there is one.
func call(h *http.Client, method, path string, out any) error {
	rq, err := http.NewRequestWithContext(context.Background(), method, "http://engine"+path, nil)
	if err != nil {
		return err
	}
	rs, err := h.Do(rq)
	if err != nil {
		return err
	}
	defer rs.Body.Close() //nolint:errcheck // it is only read
	if rs.StatusCode >= 300 && rs.StatusCode != http.StatusNotFound {
		return fmt.Errorf("%s %s: %s", method, path, rs.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(rs.Body).Decode(out)
}
