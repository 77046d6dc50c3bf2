package compose

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moby/moby/api/types/jsonstream"
)

// message is one of the engine's, as it comes.
func message(t *testing.T, text string) jsonstream.Message {
	t.Helper()
	var m jsonstream.Message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

const (
	pullingFrom = `{"status":"Pulling from mqlab/kafka","id":"1"}`
	downloadA   = `{"status":"Downloading","progressDetail":{"current":1048576,"total":4194304},"progress":"[=>  ]","id":"a"}`
	downloadB   = `{"status":"Downloading","progressDetail":{"current":2097152,"total":8388608},"id":"b"}`
	doneA       = `{"status":"Download complete","progressDetail":{},"id":"a"}`
)

func TestPulling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages   string
		got, total int64 // MB
	}{
		"nothing":                      {pullingFrom, 0, 0},
		"only what is there":           {`{"status":"Already exists","progressDetail":{},"id":"a"}`, 0, 0},
		"one layer":                    {downloadA, 1, 4},
		"two layers":                   {downloadA + "\n" + downloadB, 3, 12},
		"a layer that is there too":    {`{"status":"Already exists","progressDetail":{},"id":"c"}` + "\n" + downloadA, 1, 4},
		"the same twice":               {downloadA + "\n" + downloadA, 1, 4},
		"begun again":                  {downloadB + "\n" + `{"status":"Downloading","progressDetail":{"current":1,"total":8388608},"id":"b"}`, 2, 8},
		"complete":                     {downloadA + "\n" + doneA, 4, 4},
		"verified":                     {downloadA + "\n" + `{"status":"Verifying Checksum","progressDetail":{},"id":"a"}`, 4, 4},
		"unpacked":                     {downloadA + "\n" + `{"status":"Extracting","progressDetail":{"current":65536,"total":4194304},"id":"a"}`, 4, 4},
		"too quick for a download":     {`{"status":"Extracting","progressDetail":{"current":65536,"total":4194304},"id":"a"}`, 4, 4},
		"seconds of unpacking":         {downloadA + "\n" + `{"status":"Extracting","progressDetail":{"current":99999999,"units":"s"},"id":"a"}`, 4, 4},
		"without a total":              {`{"status":"Downloading","progressDetail":{"current":2097152,"total":-1},"id":"a"}`, 2, 2},
		"without numbers":              {`{"status":"Downloading","id":"a"}`, 0, 0},
		"all done":                     {downloadA + "\n" + downloadB + "\n" + doneA + "\n" + `{"status":"Pull complete","progressDetail":{},"id":"b"}`, 12, 12},
		"the digest and what is after": {downloadA + "\n" + `{"status":"Digest: sha256:00"}` + "\n" + `{"status":"Status: Downloaded newer image for x"}`, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := pulling{layers: map[string]*layer{}}
			for text := range strings.SplitSeq(c.messages, "\n") {
				p.see(message(t, text))
			}
			if got, total := p.sum(); got != c.got<<20 || total != c.total<<20 {
				t.Errorf("%d of %d bytes, want %d of %d MB", got, total, c.got, c.total)
			}
		})
	}
}

// TestPullingSays follows a pull for a while: each message is a sign of life,
// and a line comes every five seconds.
func TestPullingSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		took time.Duration // with a message each second
		text string
		want []string
	}{
		"quick":    {4 * time.Second, downloadA, nil},
		"slow":     {11 * time.Second, downloadA, []string{"1 of 4 MB", "1 of 4 MB"}},
		"no total": {11 * time.Second, pullingFrom, nil},
		"unpacked": {6 * time.Second, `{"status":"Extracting","progressDetail":{"current":65536,"total":4194304},"id":"a"}`, []string{"4 MB are here and are unpacked"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said []string
				alive := 0
				p := pulling{layers: map[string]*layer{}}
				if err := p.follow(eachSecond(message(t, c.text), c.took), func() { alive++ }, func(s string) { said = append(said, s) }); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(said, c.want) || alive != int(c.took/time.Second) {
					t.Errorf("said %q, want %q; %d signs of life", said, c.want, alive)
				}
			})
		})
	}
}

func eachSecond(m jsonstream.Message, took time.Duration) iter.Seq2[jsonstream.Message, error] {
	return func(yield func(jsonstream.Message, error) bool) {
		for range int(took / time.Second) {
			time.Sleep(time.Second)
			if !yield(m, nil) {
				return
			}
		}
	}
}

// TestPullingFails ends with the engine's words, in the stream or about it.
func TestPullingFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("the stream broke")
	for name, c := range map[string]struct {
		m    jsonstream.Message
		err  error
		want string
	}{
		"in the stream": {message(t, `{"errorDetail":{"message":"no space left on device"},"error":"no space left on device"}`), nil, "no space left on device"},
		"the stream":    {jsonstream.Message{}, broken, broken.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			p := pulling{layers: map[string]*layer{}}
			err := p.follow(func(yield func(jsonstream.Message, error) bool) { yield(c.m, c.err) }, func() {}, func(string) {})
			if fmt.Sprint(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
