package compose

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	box "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// composeFile is the one source of how a broker's container looks, for
// docker-compose by hand and for the provider.
const composeFile = "compose.yml"

// service is the part of a compose.yml that the files here use; anything else
// in one is an error.
type service struct {
	Image       string            `yaml:"image"`
	Entrypoint  []string          `yaml:"entrypoint"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"` // ./FILE:PATH:ro
	Ports       []string          `yaml:"ports"`   // ADDRESS:PORT:PORT
	Healthcheck struct {
		Test        []string      `yaml:"test"`
		Interval    time.Duration `yaml:"interval"`
		Timeout     time.Duration `yaml:"timeout"`
		Retries     int           `yaml:"retries"`
		StartPeriod time.Duration `yaml:"start_period"`
	} `yaml:"healthcheck"`
}

// variables are the values of ${NAME:-default}; others come from the
// environment.
type variables map[string]string

// expand replaces variables as docker-compose does; $$ is a dollar sign.
func (v variables) expand(text string) string {
	return os.Expand(text, func(name string) string {
		if name == "$" {
			return name
		}
		name, otherwise, _ := strings.Cut(name, ":-")
		if value := v[name]; value != "" {
			return value
		}
		if value := os.Getenv(name); value != "" {
			return value
		}
		return otherwise
	})
}

// composeOf reads a product's compose.yml.
func composeOf(product string, v variables) (*service, error) {
	b, err := templates.ReadFile(product + "/" + composeFile)
	if err != nil {
		return nil, fmt.Errorf("%w for %s in a container", ErrMissing, product)
	}
	var f struct {
		Version  string             `yaml:"version"`
		Services map[string]service `yaml:"services"`
	}
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(&f); err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", product, composeFile, err)
	}
	s, ok := f.Services[product]
	if !ok {
		return nil, fmt.Errorf("read %s/%s: no service is named %s", product, composeFile, product)
	}
	s.Image = v.expand(s.Image)
	for _, texts := range [][]string{s.Entrypoint, s.Command, s.Volumes, s.Ports, s.Healthcheck.Test} {
		for i := range texts {
			texts[i] = v.expand(texts[i])
		}
	}
	for name, value := range s.Environment {
		s.Environment[name] = v.expand(value)
	}
	return &s, nil
}

// options are what the engine is asked for.
func (s *service) options(labels map[string]string) (client.ContainerCreateOptions, error) {
	c := &box.Config{Entrypoint: s.Entrypoint, Cmd: s.Command, Labels: labels, ExposedPorts: network.PortSet{},
		Healthcheck: &box.HealthConfig{Test: s.Healthcheck.Test, Interval: s.Healthcheck.Interval, Timeout: s.Healthcheck.Timeout,
			Retries: s.Healthcheck.Retries, StartPeriod: s.Healthcheck.StartPeriod}}
	for name, value := range s.Environment {
		c.Env = append(c.Env, name+"="+value)
	}
	h := &box.HostConfig{PortBindings: network.PortMap{}}
	for _, p := range s.Ports {
		host, inside, outside, err := publishedPort(p)
		if err != nil {
			return client.ContainerCreateOptions{}, err
		}
		c.ExposedPorts[inside] = struct{}{}
		h.PortBindings[inside] = []network.PortBinding{{HostIP: host, HostPort: outside}}
	}
	return client.ContainerCreateOptions{Config: c, HostConfig: h}, nil
}

// publishedPort reads ADDRESS:OUTSIDE:INSIDE.
func publishedPort(text string) (host netip.Addr, inside network.Port, outside string, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return host, inside, "", fmt.Errorf("the published port %q is not ADDRESS:PORT:PORT", text)
	}
	if host, err = netip.ParseAddr(parts[0]); err == nil {
		inside, err = network.ParsePort(parts[2] + "/tcp")
	}
	if err != nil {
		return host, inside, "", fmt.Errorf("read the published port %q: %w", text, err)
	}
	return host, inside, parts[1], nil
}

// files packs what the service mounts, readable by whatever user the image has.
func (s *service) files(product string) (io.Reader, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		if len(parts) != 3 || parts[2] != "ro" {
			return nil, fmt.Errorf("the mount %q is not ./FILE:PATH:ro", v)
		}
		text, err := templates.ReadFile(path.Join(product, parts[0]))
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(parts[1], "/"), Mode: 0o644, Size: int64(len(text))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	return &b, w.Close()
}
