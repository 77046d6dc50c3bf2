package rocketmq

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha1" // the protocol's own signature
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"mqlab/brokers"
)

// The requests that the driver makes by itself, because the client's admin
// package has no offsets, groups or consumers. The codes are those of
// org.apache.rocketmq.remoting.protocol.RequestCode.
const (
	reqPullMessage    = 11
	reqQueryOffset    = 14
	reqCreateTopic    = 17
	reqRuntimeInfo    = 28
	reqSearchOffset   = 29
	reqMaxOffset      = 30
	reqEarliestTime   = 32
	reqConsumerList   = 38
	reqRoute          = 105
	reqClusterInfo    = 106
	reqCreateGroup    = 200
	reqDeleteGroup    = 207
	reqDeleteInBroker = 215
	reqDeleteInNames  = 216
)

// The answers that are not plain failures, of ResponseCode.
const (
	resSuccess       = 0
	resSystemError   = 1
	resTopicMissing  = 17
	resPullNotFound  = 19
	resPullRetry     = 20
	resPullMoved     = 21
	resQueryNotFound = 22
)

const (
	// answerTimeout is the patience with a server that says nothing, where the
	// caller's context has more; a role's watch has less.
	answerTimeout = 5 * time.Second
	// maxFrame bounds an answer, in bytes; a broker's messages have 4 MiB.
	maxFrame = 64 << 20
	// isAnswer is the bit of a frame's flag that an answer has.
	isAnswer = 1
)

// header is a frame's header in the JSON serialization.
type header struct {
	Code     int               `json:"code"`
	Language string            `json:"language"`
	Version  int               `json:"version"`
	Opaque   int32             `json:"opaque"`
	Flag     int               `json:"flag"`
	Remark   string            `json:"remark,omitempty"`
	Ext      map[string]string `json:"extFields,omitempty"`
}

// answer is what a server said to a request.
type answer struct {
	header
	body []byte
}

// refused is the answer as an error of the contract, nil for success.
func (a answer) refused() error {
	switch a.Code {
	case resSuccess:
		return nil
	case resTopicMissing:
		return fmt.Errorf("%w: %w: %d %s", brokers.ErrRefused, brokers.ErrNotFound, a.Code, a.Remark)
	}
	return fmt.Errorf("%w: %d %s", brokers.ErrRefused, a.Code, a.Remark)
}

// link is one connection that speaks the remoting protocol. Its reader ends
// with the connection.
type link struct {
	nc   net.Conn
	cred primitive.Credentials
	lost chan struct{} // closed when the connection is over, for whatever reason

	mu      sync.Mutex
	opaque  int32
	waiting map[int32]chan answer
	running sync.WaitGroup
}

// dial connects to a name server or a broker.
func dial(ctx context.Context, addr string, cred primitive.Credentials) (*link, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect to %s: %w", addr, ctx.Err())
		}
		return nil, fmt.Errorf("connect to %s: %w: %w", addr, brokers.ErrConnectionLost, err)
	}
	l := &link{nc: nc, cred: cred, lost: make(chan struct{}), waiting: map[int32]chan answer{}}
	l.running.Go(l.read)
	return l, nil
}

// read hands out the answers until the connection ends.
func (l *link) read() {
	defer close(l.lost)
	defer l.nc.Close() //nolint:errcheck // it may be closed already
	r := bufio.NewReader(l.nc)
	for {
		a, err := readFrame(r)
		if err != nil {
			return
		}
		if a.Flag&isAnswer == 0 {
			continue // a broker's request; this connection serves nobody
		}
		l.mu.Lock()
		if ch := l.waiting[a.Opaque]; ch != nil {
			delete(l.waiting, a.Opaque)
			ch <- a // it has room
		}
		l.mu.Unlock()
	}
}

// readFrame reads length, header length (its first byte is the serialization,
// 0 for JSON), header and body.
func readFrame(r io.Reader) (answer, error) {
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return answer{}, err
	}
	total, head := binary.BigEndian.Uint32(lengths[:]), binary.BigEndian.Uint32(lengths[4:])
	if total > maxFrame || total < 4 || head > total-4 { // another serialization than JSON makes head too large
		return answer{}, errors.New("the frame's lengths are wrong")
	}
	b := make([]byte, total-4)
	if _, err := io.ReadFull(r, b); err != nil {
		return answer{}, err
	}
	a := answer{body: b[head:]}
	if err := json.Unmarshal(b[:head], &a.header); err != nil {
		return answer{}, fmt.Errorf("read the frame's header: %w", err)
	}
	return a, nil
}

// fields are a request's parameters.
type fields = map[string]string

// call asks and waits for the answer, whatever it is, at most answerTimeout. A
// server that stays silent for that long counts as lost.
func (l *link) call(ctx context.Context, code int, ext fields, body []byte) (answer, error) {
	patience, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	ch, err := l.send(patience, code, ext, body)
	if err == nil {
		select {
		case a := <-ch:
			return a, nil
		case <-l.lost:
			err = brokers.ErrConnectionLost
		case <-patience.Done():
			select {
			case a := <-ch: // it was this process that was late
				return a, nil
			default:
			}
			err = fmt.Errorf("%w: no answer within %v", brokers.ErrConnectionLost, answerTimeout)
		}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if !errors.Is(err, context.Canceled) {
		l.nc.Close() //nolint:errcheck // an answer that comes later is of no use
	}
	return answer{}, fmt.Errorf("ask %s (request %d): %w", l.nc.RemoteAddr(), code, err)
}

// ask is call for a request whose only good answer is success.
func (l *link) ask(ctx context.Context, code int, ext fields, body []byte) (answer, error) {
	a, err := l.call(ctx, code, ext, body)
	if err == nil {
		err = a.refused()
	}
	return a, err
}

func (l *link) send(ctx context.Context, code int, ext fields, body []byte) (<-chan answer, error) {
	ext = l.signed(ext, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opaque++
	h, err := json.Marshal(header{Code: code, Language: "GO", Version: 317, Opaque: l.opaque, Ext: ext})
	if err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(h)+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = append(append(b, h...), body...)
	deadline, _ := ctx.Deadline() // call has set one
	if err := l.nc.SetWriteDeadline(deadline); err != nil {
		return nil, fmt.Errorf("%w: %w", brokers.ErrConnectionLost, err)
	}
	ch := make(chan answer, 1)
	l.waiting[l.opaque] = ch
	if _, err := l.nc.Write(b); err != nil {
		return nil, fmt.Errorf("%w: %w", brokers.ErrConnectionLost, err)
	}
	return ch, nil
}

// signed adds the signature of RocketMQ's access control: HMAC-SHA1 over the
// values in the order of their keys, and the body.
func (l *link) signed(ext fields, body []byte) fields {
	if l.cred.IsEmpty() {
		return ext
	}
	out := fields{"AccessKey": l.cred.AccessKey}
	maps.Copy(out, ext)
	mac := hmac.New(sha1.New, []byte(l.cred.SecretKey))
	for _, key := range slices.Sorted(maps.Keys(out)) {
		io.WriteString(mac, out[key]) //nolint:errcheck // it never fails
	}
	mac.Write(body)
	out["Signature"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return out
}

// close ends the connection and its reader.
func (l *link) close() {
	if l == nil {
		return
	}
	l.nc.Close() //nolint:errcheck // it may be closed already
	l.running.Wait()
}
