package compose

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// pullTimeout bounds the pull of an image; the largest one has half a gigabyte.
const pullTimeout = 20 * time.Minute

// prefixed puts the user's prefix before the name of an image of the public
// hub, which is one whose first part is no host.
func (e *engine) prefixed(ref string) string {
	host, _, ok := strings.Cut(ref, "/")
	if e.prefix == "" || strings.HasPrefix(ref, "mqlab-local/") || ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return ref
	}
	return strings.TrimSuffix(e.prefix, "/") + "/" + ref
}

// image makes sure that the engine has an image, pulls it if need be, and
// returns its repository digest, or the ID of one that was made here.
func (e *engine) image(ctx context.Context, o *Opener, override, ref string) (string, error) {
	found, err := e.cli.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) {
		if err := e.pull(ctx, o, ref); err != nil {
			return "", fmt.Errorf("pull the image %s: %w (without a registry: scripts/images.sh builds one, %s names it; or --broker native)", ref, err, override)
		}
		found, err = e.cli.ImageInspect(ctx, ref)
	}
	if err != nil {
		return "", fmt.Errorf("look at the image %s: %w", ref, err)
	}
	if len(found.RepoDigests) > 0 {
		return found.RepoDigests[0], nil
	}
	return found.ID, nil
}

// pull says in one line what it gets and in another that it has it.
func (e *engine) pull(ctx context.Context, o *Opener, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	o.note("pulling the image " + ref)
	start := time.Now()
	var opts client.ImagePullOptions
	if _, auth, err := testcontainers.DockerImageAuth(ctx, ref); err == nil {
		if opts.RegistryAuth, err = authconfig.Encode(auth); err != nil {
			return fmt.Errorf("use the registry's credentials: %w", err)
		}
	}
	r, err := e.cli.ImagePull(ctx, ref, opts)
	if err != nil {
		return err
	}
	layers := map[string]int64{} // bytes of each
	for m, err := range r.JSONMessages(ctx) {
		if err == nil && m.Error != nil {
			err = m.Error
		}
		if err != nil {
			return errors.Join(err, r.Close())
		}
		if m.Progress != nil {
			layers[m.ID] = max(layers[m.ID], m.Progress.Total)
		}
	}
	var bytes int64
	for _, n := range layers {
		bytes += n
	}
	o.note(fmt.Sprintf("pulled %d MB after %.1f s", bytes>>20, time.Since(start).Seconds()))
	return r.Close()
}
