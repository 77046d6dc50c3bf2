package brokertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/go-cmp/cmp"

	"mqlab/brokers"
)

func contentCases() []testCase {
	return []testCase{
		{name: "bodies", run: bodies},
		{name: "properties", run: properties},
		{name: "ten-thousand", run: tenThousand, timeout: 5 * time.Minute},
	}
}

// bodies go out and come back byte for byte. The sizes around 128 KiB are
// where AMQP begins another frame.
func bodies(sc *scene) {
	every := make([]byte, 256)
	for n := range every {
		every[n] = byte(n)
	}
	noise := rand.NewChaCha8([32]byte{})
	random := func(size int) []byte {
		b := make([]byte, size)
		noise.Read(b) //nolint:errcheck // it never fails
		return b
	}
	rows := []struct {
		id   string
		body []byte
	}{
		{"empty", []byte{}}, {"every-byte", every}, {"no-utf8", []byte("\xff\xfe\x00\n\r")},
		{"131064-bytes", random(131064)}, {"131065-bytes", random(131065)}, {"900000-bytes", random(900_000)},
	}
	sc.prepare()
	p, c := sc.producer(), sc.consumer("c", 1)
	for _, row := range rows {
		m := message(row.id)
		m.Body = row.body
		_, err := p.Send(sc.ctx, m)
		sc.must(err)
		d := sc.receive(c, row.id)
		if got := d.Message().Body; !bytes.Equal(got, row.body) {
			sc.Errorf("%s: %d bytes went out, %d came back, or others", row.id, len(row.body), len(got))
		}
		sc.ack(d)
		sc.say("%s: the same", row.id)
	}
}

func properties(sc *scene) {
	sc.prepare()
	p, c := sc.producer(), sc.consumer("c", 1)
	odd := brokers.Message{ID: "ü-1", Key: "заказ 注文 \"1\"=\n", Type: "Übung", CorrelationID: "a,b;c", TraceID: "  ", Body: []byte("x")}
	for _, m := range []brokers.Message{message("m1"), odd, {ID: "only-an-id", Body: []byte("x")}} {
		_, err := p.Send(sc.ctx, m)
		sc.must(err)
		d := sc.receive(c, m.ID)
		if diff := cmp.Diff(m, d.Message()); diff != "" {
			sc.Errorf("sent (-) and received (+):\n%s", diff)
		}
		sc.ack(d)
		sc.say("%s: the same", m.ID)
	}
}

// tenThousand is long enough for whatever counts, buffers or leaks.
func tenThousand(sc *scene) {
	const n = 10_000
	sc.prepare()
	i, p := sc.inspector(), sc.producer()
	for k := range n {
		sc.send(p, fmt.Sprint("m", k))
	}
	sc.left(i, n)
	c := sc.consumer("c", 100)
	for k := range n {
		d := sc.receive(c, fmt.Sprint("m", k))
		sc.marked(d, sc.s.Marks.First)
		sc.ack(d)
	}
	sc.left(i, 0)
	sc.say("%d in, %d out, in order", n, n)
}
