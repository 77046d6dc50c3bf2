package compose

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

const (
	// pullTimeout bounds the pull of an image; the largest one has half a gigabyte.
	pullTimeout = 20 * time.Minute
	// pullSilence bounds the time in which the engine reports nothing of it.
	pullSilence = 2 * time.Minute
	// pullEvery is how often it is said how far a pull is.
	pullEvery = 5 * time.Second
)

var (
	errInterrupted = errors.New("it was interrupted")
	errPullTimeout = fmt.Errorf("it took longer than %v", pullTimeout)
	errPullSilent  = fmt.Errorf("nothing has come for %v", pullSilence)
)

// pull says what it gets, from time to time how far it is, and that it has it.
func (e *engine) pull(ctx context.Context, o *Opener, ref string) error {
	start := time.Now()
	o.note("pulling the image " + ref)
	bounded, cancel := context.WithTimeoutCause(ctx, pullTimeout, errPullTimeout)
	defer cancel()
	moving, stop := context.WithCancelCause(bounded)
	defer stop(nil)
	silence := time.AfterFunc(pullSilence, func() { stop(errPullSilent) })
	defer silence.Stop()
	var opts client.ImagePullOptions
	if _, auth, err := testcontainers.DockerImageAuth(moving, ref); err == nil {
		if opts.RegistryAuth, err = authconfig.Encode(auth); err != nil {
			return fmt.Errorf("use the registry's credentials: %w", err)
		}
	}
	p := pulling{layers: map[string]*layer{}}
	r, err := e.cli.ImagePull(moving, ref, opts)
	if err == nil {
		err = p.follow(r.JSONMessages(moving), func() { silence.Reset(pullSilence) }, func(s string) {
			o.note(fmt.Sprintf("pulling the image %s: %s", ref, s))
		})
		err = errors.Join(err, r.Close())
	}
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case moving.Err() != nil:
		return context.Cause(moving)
	case err != nil:
		return err
	}
	_, total := p.sum()
	o.note(fmt.Sprintf("pulled %d MB after %.1f s", total>>20, time.Since(start).Seconds()))
	return nil
}

// pulling adds up what the engine reports of the layers of one pull.
type pulling struct{ layers map[string]*layer }

// layer counts bytes.
type layer struct{ got, total int64 }

// follow takes the engine's messages until it is done. Each one is a sign of
// life; not more often than each pullEvery it is said how far the pull is.
func (p pulling) follow(messages iter.Seq2[jsonstream.Message, error], alive func(), say func(string)) error {
	last := time.Now()
	for m, err := range messages {
		if err == nil && m.Error != nil {
			err = m.Error
		}
		if err != nil {
			return err
		}
		alive()
		p.see(m)
		if now := time.Now(); now.Sub(last) >= pullEvery && len(p.layers) > 0 {
			last = now
			say(p.String())
		}
	}
	return nil
}

// see takes one message. A layer's total may come late, or only when the layer
// is unpacked; an engine that keeps images in containerd counts seconds then.
func (p pulling) see(m jsonstream.Message) {
	l := p.layers[m.ID]
	if l == nil {
		l = &layer{}
	}
	switch m.Status {
	case "Downloading":
		if m.Progress != nil {
			l.got, l.total = max(l.got, m.Progress.Current), max(l.total, m.Progress.Total, m.Progress.Current)
		}
	case "Extracting":
		if m.Progress != nil && m.Progress.Units == "" {
			l.total = max(l.total, m.Progress.Total)
		}
		l.got = l.total
	case "Verifying Checksum", "Download complete", "Pull complete":
		l.got = l.total
	}
	if l.total > 0 {
		p.layers[m.ID] = l
	}
}

func (p pulling) sum() (got, total int64) {
	for _, l := range p.layers {
		got, total = got+l.got, total+l.total
	}
	return got, total
}

func (p pulling) String() string {
	got, total := p.sum()
	if got == total {
		return fmt.Sprintf("%d MB are here and are unpacked", total>>20)
	}
	return fmt.Sprintf("%d of %d MB", got>>20, total>>20)
}
