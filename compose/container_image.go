package compose

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// hostOf is the registry that an image names, or nothing for the public hub.
func hostOf(ref string) string {
	host, _, ok := strings.Cut(ref, "/")
	if ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return host
	}
	return ""
}

// prefixed puts the user's prefix before the name of an image of the public
// hub.
func (e *engine) prefixed(ref string) string {
	if e.prefix == "" || strings.HasPrefix(ref, "mqlab-local/") || hostOf(ref) != "" {
		return ref
	}
	return strings.TrimSuffix(e.prefix, "/") + "/" + ref
}

// image makes sure that the engine has an image, pulls it if need be, and
// returns its repository digest, or the ID of one that was made here.
func (e *engine) image(ctx context.Context, o *Opener, override, ref string) (string, error) {
	found, err := e.look(ctx, ref)
	if errdefs.IsNotFound(err) {
		if err := e.pull(ctx, o, ref); err != nil {
			return "", fmt.Errorf("pull the image %s: %w%s", ref, err, pullHelp(err, ref, override))
		}
		found, err = e.look(ctx, ref)
	}
	if err != nil {
		return "", fmt.Errorf("look at the image %s: %w", ref, err)
	}
	if len(found.RepoDigests) > 0 {
		return found.RepoDigests[0], nil
	}
	return found.ID, nil
}

// look asks the engine for an image.
func (e *engine) look(ctx context.Context, ref string) (found client.ImageInspectResult, err error) {
	err = e.order(ctx, func(ctx context.Context) error {
		found, err = e.cli.ImageInspect(ctx, ref)
		return err
	})
	return found, err
}

// pullHelp is what helps where an image cannot be pulled; override is the
// variable that names another.
func pullHelp(err error, ref, override string) string {
	login := ""
	switch {
	case errors.Is(err, errInterrupted):
		return ""
	case full(err):
		return spaceHelp
	case strings.Contains(err.Error(), "no basic auth credentials") || strings.Contains(err.Error(), "unauthorized"):
		login = strings.TrimSpace("docker login "+hostOf(ref)) + "; "
	}
	return fmt.Sprintf(" (%swithout a registry: scripts/images.sh builds one, %s names it; or --broker native)", login, override)
}
